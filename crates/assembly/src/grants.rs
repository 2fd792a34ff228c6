//! Grants that end by themselves, as they are kept in the data folder, put in force, and taken away by the clock.
//!
//! ```text
//! grants.json ─► those that have not ended ─► Permissions ─► lists change
//!                                              └─ the clock: sleeps until the next one ends, then the same again
//! ```

use crate::auditing::Auditing;
use crate::auth_file::{AuthFile, AuthFileError, FileStamp};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use signalbox_audit::BrokenGlass;
use signalbox_config::Config;
use signalbox_engine::chain::SubjectPattern;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_govern::Permissions;
use signalbox_govern::permissions::{BREAK_GLASS, TimedGrant, TimedGrants};
use signalbox_runtime::Gateway;
use signalbox_runtime::clock::unix_millis;
use signalbox_wire::timestamp;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Most grants that count at a time.
pub const MAX_GRANTS: usize = 1_000;
/// The longest that a grant may last.
pub const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long the address that hears of broken glass may take.
const ALARM_TIME: Duration = Duration::from_secs(30);

/// One grant, as it is written down and as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetGrant {
    /// Its id.
    pub id: String,
    /// The principal who has it.
    pub to: String,
    /// Patterns `BACKEND` or `BACKEND/NAME`; none if it breaks the glass.
    #[serde(default)]
    pub tools: Vec<String>,
    /// When it ends, in milliseconds since 1970.
    pub until: u64,
    /// Why it was given.
    pub because: String,
    /// Who gave it.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub since: u64,
    /// Whether it allows everything but what is switched off.
    #[serde(default)]
    pub break_glass: bool,
}

impl SetGrant {
    /// Its name in decisions.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}{}", if self.break_glass { BREAK_GLASS } else { "grant:" }, self.id)
    }

    fn timed(&self) -> Arc<TimedGrant> {
        Arc::new(TimedGrant {
            name: self.name().into(),
            to: self.to.as_str().into(),
            entries: self.tools.iter().map(|text| SubjectPattern::new(text)).collect(),
            until_ms: self.until,
            breaks_glass: self.break_glass,
        })
    }
}

/// All grants of a data folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SetGrants(pub Vec<SetGrant>);

impl SetGrants {
    /// Adds a grant, or changes the one of this id. What has ended is forgotten.
    ///
    /// # Errors
    /// If there are too many.
    pub fn set(&mut self, grant: SetGrant, now: u64) -> Result<(), GrantFileFault> {
        self.0.retain(|one| one.id != grant.id && one.until > now);
        if self.0.len() >= MAX_GRANTS {
            return Err(GrantFileFault::TooMany);
        }
        self.0.push(grant);
        Ok(())
    }

    /// Takes a grant away. `None` if there is none of this id.
    pub fn revoke(&mut self, id: &str, now: u64) -> Option<SetGrant> {
        let found = self.0.iter().position(|one| one.id == id && one.until > now)?;
        Some(self.0.remove(found))
    }

    /// Takes all grants of a principal away, and returns their ids.
    pub fn revoke_principal(&mut self, principal: &str) -> Vec<String> {
        self.0.extract_if(.., |grant| grant.to == principal).map(|grant| grant.id).collect()
    }

    /// Those that count: they have not ended, and the glass may be broken where they do that.
    #[must_use]
    pub fn counting(&self, break_glass: bool, now: u64) -> Self {
        let counts = |one: &&SetGrant| one.until > now && (break_glass || !one.break_glass);
        Self(self.0.iter().filter(counts).cloned().collect())
    }

    pub(crate) fn timed(&self) -> TimedGrants {
        TimedGrants(self.0.iter().map(SetGrant::timed).collect())
    }
}

/// Why the file of grants cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GrantFileFault {
    /// It can be neither read nor written.
    #[error(transparent)]
    File(#[from] AuthFileError),
    /// It is damaged.
    #[error("{}: the file of grants is damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How.
        why: serde_json::Error,
    },
    /// There are too many grants.
    #[error("{MAX_GRANTS} grants count already; revoke some, or give somebody a role")]
    TooMany,
}

/// Where the grants of a data folder are, so that they outlive the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GrantFile(AuthFile);

impl GrantFile {
    /// The grants of this data folder. Nothing is made.
    #[must_use]
    pub fn of(data_dir: &Path) -> Self {
        Self(AuthFile::of(data_dir, "grants.json"))
    }

    /// When it was last written, if it is there; a change means that it has to be read again.
    pub(crate) fn stamp(&self) -> Option<FileStamp> {
        self.0.stamp()
    }

    /// The grants; none if there is no file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(&self) -> Result<SetGrants, GrantFileFault> {
        let Some(text) = self.0.read()? else { return Ok(SetGrants::default()) };
        serde_json::from_str(&text).map_err(|why| self.damaged(why))
    }

    /// Changes the grants while no other process does, and returns what they are now.
    ///
    /// # Errors
    /// If they can be neither read nor written, or the change is refused.
    pub fn change(
        &self,
        change: impl FnOnce(&mut SetGrants) -> Result<(), GrantFileFault>,
    ) -> Result<SetGrants, GrantFileFault> {
        self.0.change(|| {
            let mut all = self.load()?;
            change(&mut all)?;
            let text = serde_json::to_string_pretty(&all).map_err(|why| self.damaged(why))?;
            Ok((text, all))
        })
    }

    fn damaged(&self, why: serde_json::Error) -> GrantFileFault {
        GrantFileFault::Damaged { path: self.0.path().to_owned(), why }
    }
}

/// Puts grants in force and takes them away when they end. Clones are the same.
#[derive(Clone)]
pub struct GrantClock(Arc<Inner>);

struct Inner {
    permissions: Arc<Permissions>,
    gateway: Mutex<Weak<Gateway>>,
    /// What counts, and the address that hears of broken glass.
    kept: Mutex<(SetGrants, Option<Arc<str>>)>,
    ticking: Mutex<Option<JoinHandle<()>>>,
    /// Held by whoever changes what counts: the clock, or who was told of another file.
    turn: Mutex<()>,
    /// The audit log, where one is kept.
    audit: OnceLock<Arc<Auditing>>,
}

impl GrantClock {
    /// For these permissions, with the grants that are kept in the data folder. A file that cannot be read grants nothing.
    pub(crate) fn new(config: &Config, permissions: &Arc<Permissions>) -> Self {
        let this = Self(Arc::new(Inner {
            permissions: Arc::clone(permissions),
            gateway: Mutex::default(),
            kept: Mutex::default(),
            ticking: Mutex::default(),
            turn: Mutex::default(),
            audit: OnceLock::new(),
        }));
        this.tell_alarms(config);
        match GrantFile::of(&config.data_dir).load() {
            Ok(all) => this.apply(&all, config.permissions.break_glass.allowed),
            Err(error) => tracing::error!(%error, "nobody has a grant that ends by itself"),
        }
        this
    }

    /// Has the lists of this gateway follow, and the audit log told of broken glass.
    pub(crate) fn attach(&self, gateway: &Arc<Gateway>, audit: Option<&Arc<Auditing>>) {
        if let Some(audit) = audit {
            let _ = self.0.audit.set(Arc::clone(audit));
        }
        *self.0.gateway.lock().unpoisoned() = Arc::downgrade(gateway);
        self.tick();
    }

    /// Alarms go where this configuration says.
    pub(crate) fn tell_alarms(&self, config: &Config) {
        self.0.kept.lock().unpoisoned().1 = config.permissions.break_glass.webhook.as_deref().map(Into::into);
    }

    /// Puts grants in force that were written down.
    pub(crate) fn apply(&self, all: &SetGrants, break_glass: bool) {
        let _turn = self.0.turn.lock().unpoisoned();
        self.put_in_force(all.counting(break_glass, unix_millis()));
    }

    fn put_in_force(&self, counting: SetGrants) {
        let before = std::mem::replace(&mut self.0.kept.lock().unpoisoned().0, counting.clone());
        let is_new = |one: &&SetGrant| one.break_glass && !before.0.contains(one);
        counting.0.iter().filter(is_new).for_each(|grant| self.alarm(grant, true));
        let is_over = |one: &&SetGrant| one.break_glass && !counting.0.iter().any(|other| other.id == one.id);
        before.0.iter().filter(is_over).for_each(|grant| self.alarm(grant, false));
        let gateway = self.0.gateway.lock().unpoisoned().upgrade();
        if self.0.permissions.grant(counting.timed())
            && let Some(gateway) = gateway
        {
            gateway.visibility_changed();
        }
        self.tick();
    }

    /// The grants that count now.
    #[must_use]
    pub fn counting(&self) -> SetGrants {
        let now = unix_millis();
        self.0.kept.lock().unpoisoned().0.counting(true, now)
    }

    /// Tells everybody who should know that the glass is broken, or no longer.
    fn alarm(&self, grant: &SetGrant, begins: bool) {
        let what = if begins { "breaks the glass" } else { "no longer breaks the glass" };
        let until = timestamp::rfc3339_millis(grant.until);
        tracing::warn!(to = grant.to, by = grant.by, because = grant.because, until, "{what}");
        if let Some(audit) = self.0.audit.get() {
            let SetGrant { to, by, because, until, .. } = grant;
            audit.note(&BrokenGlass { grant: &grant.name(), to, by, because, until: *until, begins });
        }
        let url = self.0.kept.lock().unpoisoned().1.clone();
        let (Some(url), Some(gateway)) = (url, self.0.gateway.lock().unpoisoned().upgrade()) else { return };
        let text = format!("`{}` {what} (until {until}), by {}: {}", grant.to, grant.by, grant.because);
        let body = json!({"text": text, "alarm": "break_glass", "what": what, "grant": grant}).to_string();
        if !gateway.webhooks.tell(&url, Bytes::from(body), ALARM_TIME) {
            gateway.counters.dropped("webhook");
        }
    }

    /// Sleeps until the next grant ends. Outside of a runtime nothing sleeps, and the time is looked at with each call anyway.
    fn tick(&self) {
        let mut ticking = self.0.ticking.lock().unpoisoned();
        if let Some(before) = ticking.take() {
            before.abort();
        }
        let next = self.0.permissions.grants().next_end();
        let (Some(next), Ok(runtime)) = (next, tokio::runtime::Handle::try_current()) else { return };
        let inner = Arc::downgrade(&self.0);
        *ticking = Some(runtime.spawn(async move {
            let left = Duration::from_millis(next.saturating_sub(unix_millis()));
            // The clock of the system may be set meanwhile, so nobody sleeps for long.
            tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
            let Some(inner) = inner.upgrade() else { return };
            let this = Self(inner);
            let _turn = this.0.turn.lock().unpoisoned();
            // Another task takes the place of this one, which is over with that.
            this.0.ticking.lock().unpoisoned().take();
            this.put_in_force(this.counting());
        }));
    }
}

/// How long the clock sleeps at most.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(id: &str, until: u64, break_glass: bool) -> SetGrant {
        let [to, because, by] = ["ada", "it burns", "bob"].map(str::to_owned);
        SetGrant { id: id.to_owned(), to, tools: vec!["files".to_owned()], until, because, by, since: 0, break_glass }
    }

    #[test]
    fn grants_outlive_the_process_and_end_by_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let file = GrantFile::of(folder.path());
        assert_eq!(file.load().unwrap(), SetGrants::default());
        file.change(|all| all.set(grant("a", 100, false), 0)).unwrap();
        file.change(|all| all.set(grant("b", 200, true), 0)).unwrap();
        let kept = file.load().unwrap();
        assert_eq!(kept.0.len(), 2);
        let counting = |glass, now| kept.counting(glass, now).0.iter().map(|one| one.id.clone()).collect::<String>();
        assert_eq!(
            [counting(true, 99), counting(true, 100), counting(false, 99), counting(true, 200)],
            ["ab", "b", "a", ""]
        );
        file.change(|all| all.set(grant("c", 300, false), 150)).unwrap();
        assert_eq!(file.load().unwrap().0.len(), 2, "what has ended is forgotten");
        let mut all = file.load().unwrap();
        assert!(all.revoke("a", 0).is_none() && all.revoke("c", 0).is_some() && all.revoke("c", 0).is_none());
        std::fs::write(file.0.path(), "[{").unwrap();
        let told = file.load().unwrap_err().to_string();
        assert!(told.contains("grants.json") && told.contains("damaged"), "{told}");
    }

    #[test]
    fn there_are_only_so_many_grants() {
        let mut all = SetGrants::default();
        assert!((0..MAX_GRANTS).all(|id| all.set(grant(&id.to_string(), 10, false), 0).is_ok()));
        assert!(all.set(grant("more", 10, false), 0).is_err());
        assert!(all.set(grant("1", 20, false), 0).is_ok(), "one of them is changed");
        assert!(all.set(grant("more", 30, false), 10).is_ok());
    }
}
