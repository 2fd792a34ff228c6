//! Grants with an end: stores them in the data folder, applies them, and removes them when they end.
//!
//! ```text
//! grants.json ─► grants that have not ended ─► Permissions ─► lists change
//!                                                     └─ the clock: sleeps until the next grant ends, then repeats
//! ```

use crate::auditing::Auditing;
use crate::auth_file::{AuthFile, AuthFileError, FileStamp};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use signalbox_audit::BrokenGlass;
use signalbox_config::Config;
use signalbox_engine::chain::EntryPattern;
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

/// Maximum number of grants in force.
pub const MAX_GRANTS: usize = 1_000;
/// Maximum duration of a grant.
pub const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
/// Timeout for the alarm webhook of broken glass.
const ALARM_TIME: Duration = Duration::from_secs(30);

/// One grant, in the form of the file and of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetGrant {
    /// Unique id, also part of the grant's name in decisions.
    pub id: String,
    /// Principal that has the grant.
    pub to: String,
    /// Patterns `BACKEND` or `BACKEND/NAME`. Empty if the grant breaks the glass.
    #[serde(default)]
    pub tools: Vec<String>,
    /// End in milliseconds since 1970.
    pub until: u64,
    /// Reason given for the grant.
    pub because: String,
    /// Principal that gave the grant.
    pub by: String,
    /// Start in milliseconds since 1970.
    pub since: u64,
    /// True if the grant allows everything that is not switched off.
    #[serde(default)]
    pub break_glass: bool,
}

impl SetGrant {
    /// Returns the grant's name in decisions.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}{}", if self.break_glass { BREAK_GLASS } else { "grant:" }, self.id)
    }

    fn timed(&self) -> Arc<TimedGrant> {
        Arc::new(TimedGrant {
            name: self.name().into(),
            to: self.to.as_str().into(),
            entries: self.tools.iter().map(|text| EntryPattern::new(text)).collect(),
            until_ms: self.until,
            breaks_glass: self.break_glass,
        })
    }
}

/// All grants of a data folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SetGrants(pub Vec<SetGrant>);

impl SetGrants {
    /// Adds a grant, or replaces the one with its id. Removes grants that have ended.
    ///
    /// # Errors
    /// If there are too many grants.
    pub fn set(&mut self, grant: SetGrant, now: u64) -> Result<(), GrantFileFault> {
        self.0.retain(|one| one.id != grant.id && one.until > now);
        if self.0.len() >= MAX_GRANTS {
            return Err(GrantFileFault::TooMany);
        }
        self.0.push(grant);
        Ok(())
    }

    /// Removes a grant that is in force. Returns `None` if there is none with this id.
    pub fn revoke(&mut self, id: &str, now: u64) -> Option<SetGrant> {
        let found = self.0.iter().position(|one| one.id == id && one.until > now)?;
        Some(self.0.remove(found))
    }

    /// Removes all grants of a principal and returns their ids.
    pub fn revoke_principal(&mut self, principal: &str) -> Vec<String> {
        self.0.extract_if(.., |grant| grant.to == principal).map(|grant| grant.id).collect()
    }

    /// Returns the grants in force at `now`. Grants that break the glass count only if `break_glass` allows it.
    #[must_use]
    pub fn counting(&self, break_glass: bool, now: u64) -> Self {
        let counts = |one: &&SetGrant| one.until > now && (break_glass || !one.break_glass);
        Self(self.0.iter().filter(counts).cloned().collect())
    }

    pub(crate) fn timed(&self) -> TimedGrants {
        TimedGrants(self.0.iter().map(SetGrant::timed).collect())
    }
}

/// Reason why the file of grants cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GrantFileFault {
    /// The file can be neither read nor written.
    #[error(transparent)]
    File(#[from] AuthFileError),
    /// The file is damaged.
    #[error("{}: the file of grants is damaged: {why}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Error in the JSON.
        why: serde_json::Error,
    },
    /// There are more than [`MAX_GRANTS`] grants.
    #[error("{MAX_GRANTS} grants count already; revoke some, or assign roles instead")]
    TooMany,
}

/// File of the grants, which outlives the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GrantFile(AuthFile);

impl GrantFile {
    /// Returns the file of this data folder. Creates nothing.
    #[must_use]
    pub fn of(data_dir: &Path) -> Self {
        Self(AuthFile::of(data_dir, "grants.json"))
    }

    /// Returns the file's stamp, or `None` if there is no file. A different stamp means that it must be read again.
    pub(crate) fn stamp(&self) -> Option<FileStamp> {
        self.0.stamp()
    }

    /// Reads the grants; none if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn load(&self) -> Result<SetGrants, GrantFileFault> {
        let Some(text) = self.0.read()? else { return Ok(SetGrants::default()) };
        serde_json::from_str(&text).map_err(|why| self.damaged(why))
    }

    /// Changes the grants under a lock against other processes, and returns the new ones.
    ///
    /// # Errors
    /// If the file can be neither read nor written, or `change` fails.
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

/// Applies grants and removes them when they end. Clones share the state.
#[derive(Clone)]
pub struct GrantClock(Arc<Inner>);

struct Inner {
    permissions: Arc<Permissions>,
    gateway: Mutex<Weak<Gateway>>,
    /// Grants in force, and the webhook for alarms about broken glass.
    kept: Mutex<(SetGrants, Option<Arc<str>>)>,
    ticking: Mutex<Option<JoinHandle<()>>>,
    /// Serialises changes by the clock and by a changed file.
    turn: Mutex<()>,
    /// Audit log, if one is configured.
    audit: OnceLock<Arc<Auditing>>,
}

impl GrantClock {
    /// Applies the stored grants to these permissions. An unreadable file grants nothing.
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
            Err(error) => tracing::error!(%error, "cannot read the grants; none is in force"),
        }
        this
    }

    /// Sets the gateway whose lists change with the grants, and the audit log for broken glass.
    pub(crate) fn attach(&self, gateway: &Arc<Gateway>, audit: Option<&Arc<Auditing>>) {
        if let Some(audit) = audit {
            let _ = self.0.audit.set(Arc::clone(audit));
        }
        *self.0.gateway.lock().unpoisoned() = Arc::downgrade(gateway);
        self.tick();
    }

    /// Sets the webhook for alarms from a configuration.
    pub(crate) fn tell_alarms(&self, config: &Config) {
        self.0.kept.lock().unpoisoned().1 = config.permissions.break_glass.webhook.as_deref().map(Into::into);
    }

    /// Applies the grants of the file.
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

    /// Returns the grants in force now.
    #[must_use]
    pub fn counting(&self) -> SetGrants {
        let now = unix_millis();
        self.0.kept.lock().unpoisoned().0.counting(true, now)
    }

    /// Reports that a grant breaks the glass, or no longer does: to the log, the audit log and the webhook.
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

    /// Schedules the end of the next grant. Without a runtime nothing is scheduled; each call compares the time in any
    /// case.
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
            // Cap the sleep: the system clock may be set while we wait.
            tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
            let Some(inner) = inner.upgrade() else { return };
            let this = Self(inner);
            let _turn = this.0.turn.lock().unpoisoned();
            // `put_in_force` starts the next task, which must not abort this one.
            this.0.ticking.lock().unpoisoned().take();
            this.put_in_force(this.counting());
        }));
    }
}

/// Maximum sleep of the clock.
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
