//! Builds the permissions of a configuration, and stores the switches that are set while a process runs.

use crate::auth_file::{AuthFile, AuthFileError, FileStamp};
use serde::{Deserialize, Serialize};
use signalbox_config::{Config, KillSwitch, RoleRule};
use signalbox_engine::chain::EntryPattern;
use signalbox_govern::permissions::{Role, RoleBook, Switch, SwitchOffReason, SwitchTarget, Switches};
use signalbox_govern::{PermissionSet, Permissions, ToolLabels};
use signalbox_runtime::Gateway;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of switches that can be set at run time.
pub const MAX_SWITCHES: usize = 10_000;

/// Builds the permissions of a configuration, with the switches that earlier processes stored.
///
/// # Errors
/// If the file of switches is damaged. Ignoring it would switch everything on again.
pub(crate) fn of(config: &Config, labels: &Arc<ToolLabels>) -> Result<Permissions, SwitchFileFault> {
    let permissions = Permissions::new(set(config), Arc::clone(labels));
    permissions.switch(SwitchFile::of(&config.data_dir).load()?.switches());
    Ok(permissions)
}

/// Applies the permissions of another configuration, and notifies clients that their lists may have changed.
pub(crate) fn take_over(permissions: &Permissions, before: &Config, next: &Config, gateway: &Gateway) {
    let closed = |config: &Config| -> Vec<(String, Vec<String>)> {
        config.backends.iter().map(|backend| (backend.name.clone(), backend.callers.clone())).collect()
    };
    let same = before.permissions == next.permissions
        && before.auth.users == next.auth.users
        && before.auth.groups == next.auth.groups
        && before.tool_labels == next.tool_labels
        && closed(before) == closed(next);
    if !same {
        permissions.replace(set(next));
        gateway.visibility_changed();
    }
}

/// Returns the configured permissions.
fn set(config: &Config) -> PermissionSet {
    let rules = &config.permissions;
    let closed = config.backends.iter().filter(|backend| !backend.callers.is_empty());
    let member =
        |(name, member): &(String, signalbox_config::MemberConfig)| (name.as_str().into(), texts(&member.roles));
    let mut members = config.auth.users.iter().chain(&config.auth.groups);
    PermissionSet {
        callers: closed.map(|backend| (backend.name.as_str().into(), backend.callers.clone())).collect(),
        users: config.auth.users.iter().map(member).collect(),
        roles: RoleBook::new(
            rules.roles.iter().map(|(name, rule)| (name.clone(), role(rule))),
            rules.default_role.as_deref(),
        ),
        policies: rules.policies.as_ref().map(|folder| Arc::clone(&folder.policies)),
        switches: switches(&rules.kill_switch),
        keeps_resources: members.any(|(_, member)| !member.resources.is_empty()),
        reveal: rules.reveal,
        shadow: rules.shadow,
        ask_timeout: rules.ask_timeout,
        ask_caller: rules.ask.caller,
        ask_others: rules.ask.others,
    }
}

fn role(rule: &RoleRule) -> Role {
    let patterns = |texts: &[String]| texts.iter().map(|text| EntryPattern::new(text)).collect();
    Role {
        permissions: texts(&rule.permissions),
        allow: patterns(&rule.allow),
        deny: patterns(&rule.deny),
        ask: patterns(&rule.ask),
    }
}

fn switches(rules: &KillSwitch) -> Switches {
    let entries = |text: &String| SwitchTarget::Entries(EntryPattern::new(text));
    let principals = |text: &String| SwitchTarget::Principals(text.as_str().into());
    let killed = rules.tools.iter().chain(&rules.backends).map(entries).chain(rules.principals.iter().map(principals));
    let killed = killed.map(|target| (target, SwitchOffReason::Killed));
    let aside = rules.quarantine.iter().map(entries).map(|target| (target, SwitchOffReason::Quarantined));
    Switches(killed.chain(aside).map(|(target, off)| Switch { target, off, reason: "".into() }).collect())
}

fn texts(words: &[String]) -> Vec<Box<str>> {
    words.iter().map(|word| word.as_str().into()).collect()
}

/// One switch, in the form of the file and of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetSwitch {
    /// Pattern `BACKEND` or `BACKEND/NAME`, or a pattern of principals.
    pub pattern: String,
    /// True if the pattern matches principals.
    #[serde(default)]
    pub principal: bool,
    /// Way of switching off: `killed` or `quarantined`.
    pub off: String,
    /// Reason, shown to callers.
    #[serde(default)]
    pub reason: String,
    /// Principal that set the switch.
    #[serde(default)]
    pub by: String,
    /// Time of setting in milliseconds since 1970.
    #[serde(default)]
    pub since: u64,
}

impl SetSwitch {
    fn means_same(&self, other: &Self) -> bool {
        (&self.pattern, self.principal) == (&other.pattern, other.principal)
    }

    fn switch(&self) -> Switch {
        let pattern = self.pattern.as_str();
        Switch {
            target: match self.principal {
                true => SwitchTarget::Principals(pattern.into()),
                false => SwitchTarget::Entries(EntryPattern::new(pattern)),
            },
            // A word of a later version still switches off.
            off: SwitchOffReason::of(&self.off).unwrap_or(SwitchOffReason::Killed),
            reason: self.reason.as_str().into(),
        }
    }
}

/// All switches of a data folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SetSwitches(pub Vec<SetSwitch>);

impl SetSwitches {
    fn switches(&self) -> Switches {
        Switches(self.0.iter().map(SetSwitch::switch).collect())
    }

    /// Sets a switch, replacing the one with the same pattern.
    ///
    /// # Errors
    /// If there are too many switches.
    pub fn set(&mut self, switch: SetSwitch) -> Result<(), SwitchFileFault> {
        self.0.retain(|one| !one.means_same(&switch));
        if self.0.len() >= MAX_SWITCHES {
            return Err(SwitchFileFault::TooMany);
        }
        self.0.push(switch);
        Ok(())
    }

    /// Removes a switch. Returns `false` if there is none with this pattern.
    pub fn lift(&mut self, pattern: &str, principal: bool) -> bool {
        let before = self.0.len();
        self.0.retain(|one| (one.pattern.as_str(), one.principal) != (pattern, principal));
        self.0.len() < before
    }
}

/// Reason why the file of switches cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SwitchFileFault {
    /// The file can be neither read nor written.
    #[error(transparent)]
    File(#[from] AuthFileError),
    /// The file is damaged.
    #[error("{}: the file of switches is damaged: {why}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Error in the JSON.
        why: serde_json::Error,
    },
    /// There are more than [`MAX_SWITCHES`] switches.
    #[error("more than {MAX_SWITCHES} switches are set; use a pattern")]
    TooMany,
}

/// File of the switches, which outlives the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwitchFile(AuthFile);

impl SwitchFile {
    /// Returns the file of this data folder. Creates nothing.
    #[must_use]
    pub fn of(data_dir: &Path) -> Self {
        Self(AuthFile::of(data_dir, "switches.json"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the file's stamp, or `None` if there is no file. A different stamp means that it must be read again.
    pub(crate) fn stamp(&self) -> Option<FileStamp> {
        self.0.stamp()
    }

    /// Reads the switches; none if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn load(&self) -> Result<SetSwitches, SwitchFileFault> {
        let Some(text) = self.0.read()? else { return Ok(SetSwitches::default()) };
        serde_json::from_str(&text).map_err(|why| self.damaged(why))
    }

    /// Changes the switches under a lock against other processes, and returns the new ones.
    ///
    /// # Errors
    /// If the file can be neither read nor written, or `change` fails.
    pub fn change(
        &self,
        change: impl FnOnce(&mut SetSwitches) -> Result<(), SwitchFileFault>,
    ) -> Result<SetSwitches, SwitchFileFault> {
        self.0.change(|| {
            let mut all = self.load()?;
            change(&mut all)?;
            let text = serde_json::to_string_pretty(&all).map_err(|why| self.damaged(why))?;
            Ok((text, all))
        })
    }

    /// Rewrites switches whose file is gone. A file that exists by now stays as it is.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn restore(&self, switches: &SetSwitches) -> Result<(), SwitchFileFault> {
        self.0.change(|| {
            let text = match self.0.read()? {
                Some(text) => text,
                None => serde_json::to_string_pretty(switches).map_err(|why| self.damaged(why))?,
            };
            Ok((text, ()))
        })
    }

    fn damaged(&self, why: serde_json::Error) -> SwitchFileFault {
        SwitchFileFault::Damaged { path: self.0.path().to_owned(), why }
    }
}

/// Applies the switches of the file.
pub(crate) fn apply(permissions: &Permissions, switches: &SetSwitches, gateway: &Gateway) {
    let switches = switches.switches();
    if *permissions.manual() != switches {
        permissions.switch(switches);
        gateway.visibility_changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(pattern: &str, off: &str) -> SetSwitch {
        let (pattern, off) = (pattern.to_owned(), off.to_owned());
        SetSwitch { pattern, principal: false, off, reason: String::new(), by: String::new(), since: 0 }
    }

    /// Proves NO-9.
    #[test]
    fn switches_outlive_the_process_and_a_damaged_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = SwitchFile::of(folder.path());
        assert_eq!(file.load().unwrap(), SetSwitches::default());
        file.change(|all| all.set(switch("files/write", "killed"))).unwrap();
        file.change(|all| all.set(switch("files/write", "quarantined"))).unwrap();
        let kept = file.load().unwrap();
        assert_eq!((kept.0.len(), kept.0[0].off.as_str()), (1, "quarantined"));
        assert_eq!(kept.switches().0[0].off, SwitchOffReason::Quarantined);
        let mut lifted = kept.clone();
        assert!(!lifted.lift("files/write", true) && lifted.lift("files/write", false) && lifted.0.is_empty());
        std::fs::write(file.0.path(), "[{").unwrap();
        let told = file.load().unwrap_err().to_string();
        assert!(told.contains("switches.json") && told.contains("damaged"), "{told}");
    }
}
