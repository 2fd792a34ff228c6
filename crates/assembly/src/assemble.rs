//! Builds a gateway from a configuration, ready to start.

use crate::auditing::{Auditing, AuditingError};
use crate::call_metrics::CallMetrics;
use crate::govern_parts::GovernParts;
use crate::interceptor_order::interceptor_chain;
use crate::live_feed::LiveFeed;
use crate::logging::ExchangeLog;
use crate::pin_book::PinFileError;
use crate::recording::Recording;
use crate::seal::Signatures;
use crate::tape_backend;
use crate::{authentication, backend_auth, baseline, builtin_backend, permissions, relaying, remote_backend};
use arc_swap::ArcSwap;
use signalbox_config::loops;
use signalbox_config::{BackendConfig, BackendTarget, Config, EraSetting, UrlTransport};
use signalbox_demo::{DemoError, DemoServer};
use signalbox_engine::back::Wish;
use signalbox_engine::fault::ErrorDetail;
use signalbox_engine::metrics::MethodMetrics;
use signalbox_engine::record::StoreError;
use signalbox_engine::{FactSink, Principal, budget};
use signalbox_govern::directory::Directory;
use signalbox_oauth_client::OauthClientState;
use signalbox_oauth_client::page_host::PageHost;
use signalbox_relay::Relay;
use signalbox_replay::{Baseline, BaselineError};
use signalbox_rules::{RuleInterceptor, RuleSet};
use signalbox_runtime::session_store::SessionStore;
use signalbox_runtime::{
    AuditTrail, Backend, BackendSpec, Breakpoints, Connector, FailureRules, Gateway, GatewayParts, Lifetime,
    QuestionTime, Settings,
};
use signalbox_transport::SpecError;
use signalbox_transport::child::{ChildConnector, ChildSpec, KILL_GRACE, Reaper};
use signalbox_transport::in_process::{InProcessConnector, ServerChannels};
use signalbox_transport::web_post::WebPost;
use signalbox_wire::Limits;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Name of the demo backend, which exists while no other is configured.
pub const DEMO: &str = "demo";
/// Grace period for child processes at shutdown: one period to exit by themselves, one after the request to exit, and a
/// margin.
const CHILDREN_END: Duration = KILL_GRACE.saturating_mul(2).saturating_add(Duration::from_secs(1));
/// Grace period for the tape and the audit log when the program stops at once.
const ABANDONED_END: Duration = Duration::from_millis(300);

/// Reason why a gateway cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The configuration of a remote backend is unusable.
    #[error(transparent)]
    Remote(#[from] SpecError),
    /// The root folder of the demo tools is missing.
    #[error("{0}; set `gateway.demo_root` to a folder that exists, or configure a backend")]
    Demo(#[from] DemoError),
    /// The tape that replaces a backend cannot be read.
    #[error("the tape of backend `{backend}` cannot be played: {error}")]
    Tape {
        /// Name of the backend.
        backend: String,
        /// Error of the store.
        error: StoreError,
    },
    /// The tape for comparison cannot be used.
    #[error("`record.baseline` cannot be used: {0}")]
    Baseline(#[from] BaselineError),
    /// The file of switches cannot be read, so it is unknown which entries are switched off.
    #[error(transparent)]
    Switches(#[from] permissions::SwitchFileFault),
    /// The lock file of tools cannot be read, so it is unknown which tools are approved.
    #[error(transparent)]
    Pins(#[from] PinFileError),
    /// The audit log cannot be opened.
    #[error(transparent)]
    Audit(#[from] AuditingError),
    /// The thread of an exporter cannot be started.
    #[cfg(feature = "otel")]
    #[error("traces or metrics cannot be exported: {0}")]
    Traces(std::io::Error),
    /// A remote backend has no address. Validation of the configuration rejects this earlier.
    #[error("a remote backend needs an address")]
    NoAddress,
    /// The system provides no randomness.
    #[error("cannot get random bytes from the system: {0}")]
    Random(String),
    /// The gateway itself cannot be built.
    #[error(transparent)]
    Gateway(#[from] signalbox_engine::Fault),
}

/// Gateway with the services around it. Clones share them.
#[derive(Clone)]
pub struct App {
    pub gateway: Arc<Gateway>,
    /// Request counters per method.
    pub metrics: Arc<MethodMetrics>,
    /// Counters per tool, and durations of operations.
    pub calls: Arc<CallMetrics>,
    /// Tracks the child processes.
    pub reaper: Reaper,
    /// Breakpoints, at which messages are held for a person.
    pub breakpoints: Arc<Breakpoints>,
    /// Live feed of facts.
    pub live: Arc<LiveFeed>,
    pub rules: Arc<RuleInterceptor>,
    /// Tape being written, if recording is on.
    pub recording: Option<Arc<Recording>>,
    /// Audit log, if one is configured.
    pub audit: Option<Arc<Auditing>>,
    /// Comparison of calls with a recorded tape, if configured.
    pub baseline: Option<Arc<Baseline>>,
    /// OAuth clients for sign-ins at backends.
    pub oauth: Arc<OauthClientState>,
    /// Parts that govern calls: labels, permissions, limits, budgets and scopes.
    pub govern: GovernParts,
    /// Users and groups. [`authentication::follower`] replaces them at a reload.
    pub directory: Arc<ArcSwap<Directory>>,
    /// Relay, if pages may offer tools.
    pub relay: Option<Arc<Relay>>,
    /// Exporter of traces, if configured.
    #[cfg(feature = "otel")]
    pub telemetry: Option<crate::otel::Telemetry>,
    /// Exporter of metrics, if configured.
    #[cfg(feature = "otel")]
    pub exported: Option<crate::otel::MetricsExport>,
}

impl App {
    /// Stops accepting work, waits up to `drain` for calls in flight, and stops every backend, the tape and the audit
    /// log.
    pub async fn shut_down(&self, drain: Duration) {
        if let Some(relay) = &self.relay {
            relay.end_calls();
        }
        self.gateway.shut_down(drain).await;
        self.reaper.all_gone(CHILDREN_END).await;
        // Workers have ended, so these are the last facts for the tape.
        self.gateway.settle();
        let spent = Arc::clone(self.govern.spent());
        let _ = tokio::task::spawn_blocking(move || spent.save()).await;
        if let Some(baseline) = &self.baseline {
            baseline::stop(baseline).await;
        }
        if let Some(recording) = &self.recording {
            recording.stop().await;
        }
        if let Some(audit) = &self.audit {
            audit.stop().await;
        }
        #[cfg(feature = "otel")]
        if let Some(telemetry) = &self.telemetry {
            telemetry.flush().await;
        }
        #[cfg(feature = "otel")]
        if let Some(exported) = &self.exported {
            exported.flush().await;
        }
    }

    /// Kills every child process at once and gives the tape and the audit log a fraction of a second. Claude Code
    /// interrupts a server, terminates it 100 ms later, and kills it after another 400 ms.
    pub async fn abandon(&self) {
        self.reaper.all_gone(Duration::ZERO).await;
        self.gateway.settle();
        let ending = async {
            if let Some(recording) = &self.recording {
                recording.stop().await;
            }
            if let Some(audit) = &self.audit {
                audit.stop().await;
            }
        };
        let _ = tokio::time::timeout(ABANDONED_END, ending).await;
    }
}

/// Paths at which a gateway keeps its state between processes.
#[derive(Default)]
pub struct StateFiles {
    /// File of the last known lists.
    pub catalog: Option<PathBuf>,
    /// Folder of the sessions that outlive the process.
    pub sessions: Option<PathBuf>,
}

impl StateFiles {
    /// Returns the file of the last known lists, or `None` if all backends are tapes. A tape answers at once, and the
    /// saved lists of another tape under the same name would be wrong.
    fn catalog_file(&self, config: &Config) -> Option<PathBuf> {
        let is_live = uses_demo(config) || config.backends.iter().any(|one| !one.disabled && one.tape.is_none());
        self.catalog.clone().filter(|_| is_live)
    }

    /// Opens the sessions of earlier processes. A failure is logged, because the gateway can run without them.
    fn session_store(&self, timeout: Duration) -> Option<SessionStore> {
        let opened = SessionStore::open(self.sessions.clone()?, timeout);
        opened.inspect_err(|error| tracing::warn!(%error, "sessions will not survive a restart")).ok()
    }
}

/// Builds the gateway and its services without starting them. The fronts' sessions and the gateway's own connections
/// act for `principal`. People who sign in at backends are sent to `pages`.
///
/// # Errors
/// If a backend, the audit log, a tape or an exporter cannot be built from the configuration.
pub fn assemble(
    config: &Config,
    principal: Principal,
    state: StateFiles,
    recording: Option<Arc<Recording>>,
    pages: PageHost,
) -> Result<App, AssembleError> {
    let settings = settings(config);
    let reaper = Reaper::new();
    let oauth = backend_auth::oauth(config, pages);
    backend_auth::tell_exceptions(config);
    let mut backends = backends(config, (&reaper, &oauth), &settings)?;
    let relay = relaying::relay(config);
    backends.extend(relay.iter().map(|relay| relaying::backend(relay, &settings)));
    let metrics = Arc::new(MethodMetrics::default());
    let calls = CallMetrics::new(config);
    let live = LiveFeed::new();
    let breakpoints = Arc::new(Breakpoints::new(settings.limits));
    let mut facts: Vec<Arc<dyn FactSink>> = vec![metrics.clone(), calls.clone(), live.clone(), Arc::new(ExchangeLog)];
    facts.extend(recording.iter().map(|recording| recorder_sink(recording, config)));
    let audit = Auditing::open(config)?.map(Arc::new);
    facts.extend(audit.iter().map(|audit| audit.sink()));
    #[cfg(feature = "otel")]
    let telemetry = telemetry(config, &principal)?.inspect(|telemetry| facts.push(telemetry.tracer()));
    let baseline = baseline::start(config, &live, recording.as_deref())?;
    // Comes after the recorder, which must see a call before the differences found in it.
    facts.extend(baseline.clone().map(|baseline| baseline as _));
    let directory = Arc::new(ArcSwap::from_pointee(authentication::directory(&config.auth)));
    let signatures = Signatures::new(config, &directory);
    let govern = GovernParts::new(config, audit.as_ref())?;
    let rules = rule_interceptor(config, &govern)?;
    let trail = AuditTrail::begin(audit.as_ref().map(|audit| audit.intents()))?;
    let gateway = Gateway::new(GatewayParts {
        session_store: state.session_store(settings.session_timeout),
        settings,
        backends,
        chain: interceptor_chain(&signatures, &govern, &breakpoints, &rules),
        facts,
        post: Some(Arc::new(WebPost::default())),
        principal,
        catalog_file: state.catalog_file(config),
        lists: Some(Arc::new(govern.lists().clone())),
        visibility: Some(relaying::visibility(relay.as_ref(), Arc::clone(&govern.permissions) as _)),
        audit: trail,
        proof: Some(signatures.proofs()),
        governance: Some(govern.governance()),
        face: relay.as_deref().map(relaying::face),
    })?;
    audit.iter().try_for_each(|audit| audit.begin(gateway.audit_run(), config))?;
    relay.iter().for_each(|relay| relay.attach(&gateway));
    govern.attach(&gateway, audit.as_ref());
    backend_auth::follow_sign_ins(&oauth, &gateway, audit.as_ref());
    signatures.attach(&gateway);
    live.attach(&gateway);
    calls.attach(&gateway);
    recording.iter().for_each(|recording| recording.follow(&gateway));
    #[cfg(feature = "otel")]
    telemetry.iter().for_each(|telemetry| telemetry.count_at(&gateway));
    Ok(App {
        #[cfg(feature = "otel")]
        exported: crate::otel::MetricsExport::of(config, &calls, &gateway).map_err(AssembleError::Traces)?,
        gateway,
        metrics,
        calls,
        reaper,
        breakpoints,
        live,
        rules,
        recording,
        audit,
        baseline,
        oauth,
        govern,
        directory,
        relay,
        #[cfg(feature = "otel")]
        telemetry,
    })
}

/// Returns the recorder's sink. Of backends that withhold their messages it records outlines only.
fn recorder_sink(recording: &Recording, config: &Config) -> Arc<dyn FactSink> {
    recording.withhold(builtin_backend::withheld(config));
    recording.sink()
}

/// Returns the configured backends, or the demo tools if there are none.
fn backends(config: &Config, around: Around<'_>, settings: &Settings) -> Result<Vec<Arc<Backend>>, AssembleError> {
    let mut backends = Vec::new();
    for backend in config.backends.iter().filter(|backend| !backend.disabled) {
        backends.push(self::backend(config, backend, around, settings)?);
    }
    if uses_demo(config) {
        backends.push(demo(config, settings)?);
    }
    Ok(backends)
}

/// Starts the exporter of traces, if configured. It receives nothing until the gateway runs.
#[cfg(feature = "otel")]
fn telemetry(config: &Config, principal: &Principal) -> Result<Option<crate::otel::Telemetry>, AssembleError> {
    let start = |otel| crate::otel::Telemetry::start(otel, config, principal.owns_pipe());
    config.gateway.otel.as_ref().map(start).transpose().map_err(AssembleError::Traces)
}

/// Builds the interceptor of the rules. Their texts quote messages as tapes and the audit log show them.
fn rule_interceptor(config: &Config, govern: &GovernParts) -> Result<Arc<RuleInterceptor>, AssembleError> {
    let rules = RuleInterceptor::new(RuleSet::clone(&config.rules.set), seed(config)?);
    let rules = rules.redacting(Arc::new(govern.redactor().clone()));
    Ok(Arc::new(rules.showing(Arc::clone(&govern.permissions) as _)))
}

/// Returns the seed for the random draws of rules.
fn seed(config: &Config) -> Result<u64, AssembleError> {
    if let Some(seed) = config.gateway.rule_seed {
        return Ok(seed);
    }
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| AssembleError::Random(error.to_string()))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Returns `true` if no backend is configured, so that the demo tools stand in.
#[must_use]
pub fn uses_demo(config: &Config) -> bool {
    config.backends.is_empty()
}

/// Services that the connectors of all backends share.
type Around<'a> = (&'a Reaper, &'a Arc<OauthClientState>);

/// Builds one configured backend.
pub(crate) fn backend(
    config: &Config,
    backend: &BackendConfig,
    around: Around<'_>,
    settings: &Settings,
) -> Result<Arc<Backend>, AssembleError> {
    let connector = match (&backend.tape, &backend.target) {
        (_, BackendTarget::Builtin(builtin)) => builtin_backend::connector(config, &backend.name, *builtin),
        (Some(tape), _) => {
            let source = config.source.as_deref();
            tape_backend::connector(config, &backend.name, tape, || server(backend, source, around, &settings.limits))?
        }
        (None, _) => server(backend, config.source.as_deref(), around, &settings.limits)?,
    };
    Ok(Backend::new(&backend.name, connector, spec(backend, settings)))
}

/// Returns the gateway's settings.
pub(crate) fn settings(config: &Config) -> Settings {
    let gateway = &config.gateway;
    Settings {
        limits: Limits {
            message: gateway.max_message,
            line: gateway.max_message,
            sse_event: gateway.max_message,
            ..Limits::default()
        },
        memory: gateway.memory.max(budget::LEAST_MESSAGES * gateway.max_message),
        instructions: gateway.instructions.clone(),
        first_list_wait: gateway.first_list_wait,
        drain: gateway.drain,
        max_in_flight: gateway.max_in_flight,
        max_sessions: gateway.max_sessions,
        max_sessions_each: if config.auth.required { config.auth.max_sessions } else { usize::MAX },
        require_proof: config.auth.required,
        session_timeout: gateway.session_timeout,
        max_streams: gateway.max_streams,
        park_timeout: gateway.park_timeout,
        error_detail: match config.auth.required {
            true => config.auth.error_detail,
            // Authentication is off, so every caller is the local user.
            false => ErrorDetail::Full,
        },
        ..Settings::default()
    }
}

/// Returns the connector to the server itself, rather than to a tape of it.
fn server(
    backend: &BackendConfig,
    source: Option<&Path>,
    (reaper, oauth): Around<'_>,
    limits: &Limits,
) -> Result<Arc<dyn Connector>, AssembleError> {
    match &backend.target {
        BackendTarget::Command { program, args, env, env_pass, cwd } => {
            // Marks the child, so that a child that is this gateway again, through any wrapper, exits at once.
            let own = std::env::var(loops::INSIDE).ok();
            let nesting = source.map(|source| (loops::INSIDE.to_owned(), loops::inside(own.as_deref(), source)));
            let set = env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
            let spec = ChildSpec {
                args: args.clone(),
                env: set.chain(nesting).collect(),
                env_pass: env_pass.clone(),
                cwd: cwd.clone(),
                max_message: limits.line,
                ..ChildSpec::new(backend.name.as_str(), program)
            };
            Ok(Arc::new(ChildConnector::new(spec).with_reaper(reaper)))
        }
        BackendTarget::Url { url, .. } if backend.addresses.all.is_empty() => {
            remote_backend::single(backend, url, oauth, backend.failing.retries, limits)
        }
        BackendTarget::Url { .. } => remote_backend::many(backend, oauth, limits),
        BackendTarget::Tape | BackendTarget::Builtin(_) => Err(AssembleError::NoAddress),
    }
}

/// Returns the settings of a backend.
pub(crate) fn spec(backend: &BackendConfig, settings: &Settings) -> BackendSpec {
    let tools = backend.tools.clone();
    BackendSpec {
        timeout: backend.timeout,
        start_timeout: backend.start_timeout,
        max_children: backend.max_children,
        wish: match backend.era {
            EraSetting::Auto if matches!(backend.target, BackendTarget::Url { transport: UrlTransport::Sse, .. }) => {
                Wish::Legacy
            }
            EraSetting::Auto => Wish::Auto,
            EraSetting::Old => Wish::Legacy,
            EraSetting::New => Wish::Modern,
        },
        strict: settings.strict.then_some(settings.limits),
        failing: backend.failing.clone(),
        lifetime: backend.lifetime,
        questions: backend.questions,
        source: source(backend),
        allows: Box::new(move |tool| tools.allows(tool)),
    }
}

/// Returns a hash of the command and of its tool filter, to detect changes across runs. Values of environment variables
/// are left out because the hash is stored on disk.
fn source(backend: &BackendConfig) -> u64 {
    let mut hasher = DefaultHasher::new();
    match &backend.target {
        BackendTarget::Command { program, args, env, env_pass, cwd } => {
            (program, args, env_pass, cwd).hash(&mut hasher);
            env.iter().for_each(|(name, _)| name.hash(&mut hasher));
        }
        BackendTarget::Url { .. } | BackendTarget::Tape | BackendTarget::Builtin(_) => return 0,
    }
    (&backend.tools.include, &backend.tools.exclude).hash(&mut hasher);
    hasher.finish()
}

/// Builds the backend of the demo tools.
pub(crate) fn demo(config: &Config, settings: &Settings) -> Result<Arc<Backend>, AssembleError> {
    let server = DemoServer::new(config.gateway.demo_root.clone())?;
    let connector = InProcessConnector::new(DEMO, move |visitor: ServerChannels| {
        let server = server.clone();
        Box::pin(server.serve(visitor.incoming, visitor.outgoing))
    });
    Ok(Backend::new(DEMO, Arc::new(connector), demo_spec(config, settings)))
}

/// Returns the settings of the demo backend.
pub(crate) fn demo_spec(config: &Config, settings: &Settings) -> BackendSpec {
    BackendSpec {
        timeout: config.gateway.call_timeout,
        start_timeout: Duration::from_secs(10),
        max_children: 1,
        wish: Wish::Auto,
        strict: settings.strict.then_some(settings.limits),
        failing: FailureRules::default(),
        lifetime: Lifetime::default(),
        questions: QuestionTime::default(),
        source: 0,
        allows: Box::new(|_| true),
    }
}
