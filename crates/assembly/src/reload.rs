//! Applies another configuration while the process runs: everything that needs no restart, or nothing.
//!
//! A reload reads the file as at the start, compares it with the configuration in force, and does everything that can
//! fail before it changes anything. It then swaps the backends ([`signalbox_runtime::Gateway::replace`]) and applies
//! the settings of all other parts.

mod plan;
mod report;
mod watch;

pub use report::{ReloadReport, Summary};

use crate::admin_files::{AdminFiles, owner_of_newest};
use crate::assemble::{self, App, AssembleError};
use crate::auditing::AuditParts;
use crate::builtin_backend;
use crate::logging;
use crate::name_check;
use crate::permissions::SwitchFile;
use crate::signals::{Hangup, Hangups};
use arc_swap::ArcSwap;
use plan::Course;
use report::ReloadRecord;
use signalbox_audit::{AdminAction, AdminOrigin, AdminOutcome};
use signalbox_config::loader::{Loader, News};
use signalbox_config::{Config, ConfigError};
use signalbox_engine::metrics::MethodMetrics;
use signalbox_rules::RuleSet;
use signalbox_runtime::{Backend, BackendSpec, Gateway};
use signalbox_transport::tls::TlsError;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Reason why a configuration is not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReloadError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A backend cannot be built.
    #[error("{0}")]
    Assemble(String),
    /// Some keys need a restart. Everything else is in force.
    #[error("{}: cannot change while Signalbox runs; restart it, or put the value back (all else is in force: {summary})", held_back.join(", "))]
    Partly {
        /// Keys that need a restart.
        held_back: Vec<&'static str>,
        /// Changes that are in force.
        summary: Box<Summary>,
    },
    /// The configured certificates are unusable.
    #[error(transparent)]
    Certificates(#[from] TlsError),
    /// The process is shutting down.
    #[error("Signalbox is shutting down")]
    Ending,
}

impl From<AssembleError> for ReloadError {
    fn from(error: AssembleError) -> Self {
        Self::Assemble(error.to_string())
    }
}

/// Cause of a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadTrigger {
    File,
    Signal,
    Command,
}

impl ReloadTrigger {
    fn as_str(self) -> &'static str {
        match self {
            Self::File => "the file changed",
            Self::Signal => "SIGHUP",
            Self::Command => "signalbox reload",
        }
    }
}

/// Change that cannot fail any more.
pub type Apply = Box<dyn FnOnce() + Send>;
/// Part outside the gateway that follows the configuration. Every reload calls it, even if the file is unchanged: it
/// reads what it needs, such as certificates, and returns an error or the change to apply.
pub type Follower = Box<dyn Fn(&Config) -> Result<Apply, TlsError> + Send + Sync>;

/// Reloads the configuration of a running process.
pub struct Reloader {
    app: App,
    loader: Arc<Loader>,
    /// False if there is no listener, so that its address has no meaning.
    listens: bool,
    followers: Vec<Follower>,
    current: ArcSwap<Config>,
    record: ReloadRecord,
    /// Allows one reload at a time.
    turn: Mutex<()>,
    admin_files: Arc<AdminFiles>,
}

impl Reloader {
    /// Creates a reloader for a process that was started with `config`, read by `loader`.
    #[must_use]
    pub fn new(app: App, loader: Loader, config: Config, listens: bool, followers: Vec<Follower>) -> Arc<Self> {
        let current = ArcSwap::from_pointee(config);
        let record = ReloadRecord::new(&app.gateway);
        let admin_files = Arc::new(AdminFiles::new(&current.load().data_dir));
        let (loader, turn) = (Arc::new(loader), Mutex::default());
        Arc::new(Self { app, loader, listens, followers, current, record, turn, admin_files })
    }

    /// Returns the configuration in force.
    #[must_use]
    pub fn current(&self) -> Arc<Config> {
        self.current.load_full()
    }

    /// Returns the gateway with its services.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.app
    }

    #[must_use]
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.app.gateway
    }

    /// Returns the counters per method.
    #[must_use]
    pub fn metrics(&self) -> &Arc<MethodMetrics> {
        &self.app.metrics
    }

    /// Returns the state of the configuration.
    #[must_use]
    pub fn report(&self) -> ReloadReport {
        self.record.report()
    }

    /// Reads the configuration and applies it. Reloads run one after the other. An empty file is applied only on a
    /// command or a signal, because an editor may be writing it.
    ///
    /// # Errors
    /// Returns the reason why the configuration is not applied. Nothing has changed then, except with
    /// [`ReloadError::Partly`].
    pub async fn reload(&self, trigger: ReloadTrigger) -> Result<Summary, ReloadError> {
        let _turn = self.turn.lock().await;
        if trigger == ReloadTrigger::File {
            let news = self.look().await;
            if news == News::Empty {
                tracing::warn!("ignoring the empty configuration file; `signalbox reload` loads it anyway");
            }
            if news != News::Other {
                return Ok(self.record.unchanged());
            }
        }
        let mut done = self.take_over(trigger).await;
        self.record.note(&mut done);
        self.tell_audit(trigger, &done);
        match &done {
            Ok(summary) => tracing::info!(why = trigger.as_str(), "configuration: {summary}"),
            Err(error @ ReloadError::Partly { .. }) => {
                tracing::error!(why = trigger.as_str(), "the gateway runs an older configuration in part: {error}");
            }
            Err(error) => {
                tracing::error!(why = trigger.as_str(), "keeping the previous configuration: {error}");
            }
        }
        done
    }

    /// Records a reload that a changed file or a signal caused. The API records its own commands, with their caller.
    fn tell_audit(&self, trigger: ReloadTrigger, done: &Result<Summary, ReloadError>) {
        let Some(audit) = self.app.audit.as_ref().filter(|_| trigger != ReloadTrigger::Command) else { return };
        let files = self.loader.files();
        let shown: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let mut after = serde_json::json!({"ok": done.is_ok(), "trigger": trigger.as_str()});
        let summary = match done {
            Ok(summary) => Some(summary),
            Err(ReloadError::Partly { summary, .. }) => Some(&**summary),
            Err(_) => None,
        };
        if let Some(summary) = summary {
            (after["text"], after["summary"]) = (summary.to_string().into(), serde_json::json!(summary));
        }
        let why = done.as_ref().err().map(ToString::to_string);
        audit.administer(&AdminAction {
            who: &owner_of_newest(files.iter().map(PathBuf::as_path)),
            address: None,
            origin: AdminOrigin::File,
            action: "config.reload",
            target: &shown.join(", "),
            before: None,
            after: Some(&after),
            outcome: why.as_deref().map_or(AdminOutcome::Done, AdminOutcome::Failed),
        });
    }

    /// Applies the files of switches and grants. Rewrites a missing file of switches and records that in the audit log.
    /// Blocks.
    pub fn follow_govern_files(&self) {
        let config = self.current();
        let restored = self.app.govern.follow_files(&config, &self.app.gateway);
        let Some(audit) = self.app.audit.as_ref().filter(|_| restored > 0) else { return };
        audit.administer(&AdminAction {
            who: "unknown",
            address: None,
            origin: AdminOrigin::File,
            action: "switch.restored",
            target: &SwitchFile::of(&config.data_dir).path().display().to_string(),
            before: None,
            after: Some(&serde_json::json!({ "switches": restored })),
            outcome: AdminOutcome::Done,
        });
    }

    /// Records changes of the administration files since the last look in the audit log. Blocks.
    pub fn tell_of_admin_files(&self) {
        if let Some(audit) = &self.app.audit {
            self.admin_files.tell(&self.current().data_dir, audit);
        }
    }

    async fn look(&self) -> News {
        let loader = Arc::clone(&self.loader);
        tokio::task::spawn_blocking(move || loader.look()).await.unwrap_or(News::None)
    }

    async fn take_over(&self, trigger: ReloadTrigger) -> Result<Summary, ReloadError> {
        if self.app.gateway.is_draining() {
            return Err(ReloadError::Ending);
        }
        let loader = Arc::clone(&self.loader);
        let loading = tokio::task::spawn_blocking(move || loader.load()).await;
        let loaded = loading.map_err(|_| ReloadError::Ending)??;
        logging::log_warnings(&loaded.warnings);
        let (before, mut next) = (self.current(), loaded.config);
        if !self.listens {
            next.listen.clone_from(&before.listen);
        }
        let mut summary = self.record.unchanged();
        let plan::Plan { config: next, settings, held_back } = plan::settings(&before, &next);
        summary.settings = settings;
        let prepared = self.prepare(&before, &next)?;
        let following: Vec<Apply> = self.followers.iter().map(|follower| follower(&next)).collect::<Result<_, _>>()?;
        let audit = (before.audit != next.audit).then(|| AuditParts::of(&next).map_err(AssembleError::from));
        let audit = audit.transpose()?.flatten();
        // Nothing below can fail.
        if let (Some(auditing), Some(parts)) = (&self.app.audit, audit) {
            auditing.follow(parts);
        }
        self.app.gateway.set_settings(assemble::settings(&next));
        summary.warnings = loaded.warnings.iter().map(ToString::to_string).collect();
        for warning in plan::no_longer_recorded(&before, &next) {
            tracing::warn!("{warning}");
            summary.warnings.push(warning);
        }
        for warning in name_check::warnings(&next, &self.app.gateway.catalog.snapshot()) {
            tracing::warn!("{warning}");
            summary.warnings.push(warning);
        }
        if let Some(recording) = &self.app.recording {
            recording.withhold(builtin_backend::withheld(&next));
        }
        self.app.govern.take_over(&before, &next, &self.app.gateway);
        self.app.calls.follow(&next);
        if before.rules != next.rules {
            self.app.rules.replace(RuleSet::clone(&next.rules.set));
            if let Some(recording) = &self.app.recording {
                recording.rules(&next.rules.set);
            }
        }
        for (backend, spec, tools) in prepared.retuned {
            summary.retuned.push(backend.name.to_string());
            backend.retune(spec, tools);
        }
        let replaced = self.app.gateway.replace(prepared.backends);
        let names = |names: Vec<Arc<str>>| names.iter().map(|name| name.to_string()).collect();
        summary.added = names(replaced.added);
        summary.removed = names(replaced.removed);
        summary.replaced = names(replaced.changed);
        for apply in following {
            apply();
        }
        logging::set_level(next.log_level);
        summary.changed |= *before != next;
        self.current.store(Arc::new(next));
        if trigger != ReloadTrigger::File {
            self.try_again();
        }
        if !held_back.is_empty() {
            return Err(ReloadError::Partly { held_back, summary: Box::new(summary) });
        }
        Ok(summary)
    }

    /// Retries backends that are down, because a requested reload usually follows a repair.
    fn try_again(&self) {
        for backend in self.app.gateway.backends().iter().filter(|backend| !backend.is_up()) {
            backend.try_now();
        }
    }

    /// Returns the backends of the next configuration: running ones that can stay, and new ones.
    fn prepare(&self, before: &Config, next: &Config) -> Result<PreparedBackends, AssembleError> {
        let running = self.app.gateway.backends();
        let settings = assemble::settings(next);
        let mut prepared = PreparedBackends::default();
        // The message limit is built into the connections.
        let same_bounds = before.gateway.max_message == next.gateway.max_message;
        for wanted in next.backends.iter().filter(|backend| !backend.disabled) {
            let known = before.backends.iter().find(|known| known.name == wanted.name && !known.disabled);
            let course = known.filter(|_| same_bounds).map_or(Course::Anew, |known| plan::course(known, wanted));
            let backend = match (course, running.get(&wanted.name)) {
                (Course::Same, Some(same)) => Arc::clone(same),
                (Course::Retuned { tools }, Some(same)) => {
                    prepared.retuned.push((Arc::clone(same), assemble::spec(wanted, &settings), tools));
                    Arc::clone(same)
                }
                _ => assemble::backend(next, wanted, (&self.app.reaper, &self.app.oauth), &settings)?,
            };
            prepared.backends.push(backend);
        }
        if assemble::uses_demo(next) {
            let same = assemble::uses_demo(before) && same_bounds && before.gateway.demo_root == next.gateway.demo_root;
            let backend = match running.get(assemble::DEMO).filter(|_| same) {
                Some(same) => {
                    if before.gateway.call_timeout != next.gateway.call_timeout {
                        prepared.retuned.push((Arc::clone(same), assemble::demo_spec(next, &settings), false));
                    }
                    Arc::clone(same)
                }
                None => assemble::demo(next, &settings)?,
            };
            prepared.backends.push(backend);
        }
        // Changes of the relay need a restart.
        prepared.backends.extend(running.get(signalbox_relay::BACKEND).filter(|_| next.relay.is_some()).cloned());
        Ok(prepared)
    }

    /// Reloads at every SIGHUP and whenever the file changes, until dropped.
    pub async fn follow(self: Arc<Self>, mut hangups: Hangups) {
        let hearing = async {
            loop {
                match hangups.next().await {
                    Hangup::Reload => drop(self.reload(ReloadTrigger::Signal).await),
                    Hangup::TerminalGone => Hangups::end_process(),
                }
            }
        };
        tokio::join!(hearing, watch::watch(&self, &self.loader));
    }
}

#[derive(Default)]
struct PreparedBackends {
    backends: Vec<Arc<Backend>>,
    retuned: Vec<(Arc<Backend>, BackendSpec, bool)>,
}
