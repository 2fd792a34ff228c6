//! Evaluates permissions without a running gateway, for `signalbox policy`.

use crate::grants::{SetGrant, SetGrants};
use crate::key_file::KeyFile;
use crate::name_check::kept_catalog;
use crate::{permissions, tool_labels};
use signalbox_config::{Config, MemberConfig};
use signalbox_engine::catalog::{EntryRef, ListKind, Snapshot, Visibility as _};
use signalbox_engine::{Caller, Identity, Principal, Proof};
use signalbox_govern::directory::DirectoryClaims;
use signalbox_govern::permissions::{Access, Permissions};
use signalbox_govern::policy::Circumstances;
use signalbox_govern::{Directory, Grant};
use signalbox_wire::timestamp;
use std::collections::HashMap;
use std::sync::Arc;

/// Hypothetical caller of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrialCaller {
    /// Principal of the caller.
    pub principal: String,
    /// Roles in addition to those that the configuration gives.
    pub roles: Vec<String>,
    /// Groups in addition to those that the configuration gives.
    pub groups: Vec<String>,
}

/// Decision about a hypothetical call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialDecision {
    /// `allow`, `ask`, `deny` (the entry is listed, and the call denied) or `hide` (answered like an unknown name).
    pub verdict: &'static str,
    /// True if the caller sees the entry in lists.
    pub listed: bool,
    /// Role or policy behind the decision, if there is one.
    pub policy: Option<String>,
    /// Reason for the decision.
    pub reason: String,
    /// Grant that allows the call, if one does.
    pub grant: Option<SetGrant>,
}

/// Permissions of a configuration, with the last saved lists.
pub struct PermissionTrial {
    permissions: Permissions,
    directory: Directory,
    catalog: Snapshot,
    /// Roles of API keys, by principal.
    key_roles: HashMap<String, Vec<String>>,
    /// Grants that count in decisions.
    grants: SetGrants,
}

impl PermissionTrial {
    /// Reads the configuration's data folder. No grants count until [`Self::with_grants`] adds them.
    ///
    /// # Errors
    /// If the file of switches cannot be read.
    pub fn new(config: &Config) -> Result<Self, permissions::SwitchFileFault> {
        let labels = Arc::new(tool_labels::of(config));
        let grants = |members: &[(String, MemberConfig)]| -> HashMap<String, Grant> {
            members.iter().map(|(name, member)| (name.clone(), grant(member))).collect()
        };
        let auth = &config.auth;
        Ok(Self {
            permissions: permissions::of(config, &labels)?,
            directory: Directory::new(grants(&auth.users), grants(&auth.groups), auth.default_trust)
                .with_scopes(auth.scope_hierarchy.iter().cloned().collect()),
            catalog: kept_catalog(config),
            key_roles: key_roles(config),
            grants: SetGrants::default(),
        })
    }

    /// Adds the grants that the configuration allows and that are in force at `unix_ms`.
    #[must_use]
    pub fn with_grants(mut self, all: &SetGrants, config: &Config, unix_ms: u64) -> Self {
        self.grants = all.counting(config.permissions.break_glass.allowed, unix_ms);
        self.permissions.grant(self.grants.timed());
        self
    }

    /// Returns every principal that has a grant.
    pub fn granted(&self) -> impl Iterator<Item = &str> {
        self.grants.0.iter().map(|grant| grant.to.as_str())
    }

    /// Returns the tool that clients see under this name, as `BACKEND/NAME`.
    #[must_use]
    pub fn tool(&self, exposed: &str) -> Option<String> {
        self.catalog.tool(exposed).map(|route| format!("{}/{}", route.backend, route.name))
    }

    /// Decides about a call. `entry` is `BACKEND/NAME`; `arguments` are a JSON object.
    #[must_use]
    pub fn decide(
        &self,
        who: &TrialCaller,
        kind: ListKind,
        entry: &str,
        arguments: Option<&[u8]>,
        unix_ms: u64,
    ) -> TrialDecision {
        let (backend, name) = entry.split_once('/').unwrap_or((entry, ""));
        let views = self.catalog.backends().iter().filter(|known| *known.name == *backend);
        let item = views.flat_map(|known| known.views.values()).find_map(|view| view.list(kind).named(name));
        let entry = EntryRef { kind, backend, name, definition: item.map(|item| &*item.raw) };
        let caller = self.caller(who);
        let listed = self.permissions.lists(&caller, &entry);
        if let Some(fault) = self.permissions.stops(&caller, &entry) {
            return TrialDecision {
                verdict: "deny",
                listed: false,
                policy: Some("kill_switch".to_owned()),
                reason: fault.message,
                grant: None,
            };
        }
        let around = Circumstances { unix_ms, address: None };
        let (verdict, grounds) = match self.permissions.access(&caller, &entry, arguments, &around) {
            Access::Usable(by) => {
                let grant = by.as_ref().and_then(|by| self.grants.0.iter().find(|grant| grant.name() == **by)).cloned();
                let reason = grant.as_ref().map(granted).unwrap_or_default();
                return TrialDecision { verdict: "allow", listed, policy: by.map(|by| by.to_string()), reason, grant };
            }
            Access::AfterAsking(asking) => ("ask", asking.grounds),
            Access::Denied(denial) => ("deny", denial.grounds),
            Access::Hidden(denial) => ("hide", denial.grounds),
            Access::Closed => {
                let reason = "the backend is closed to the caller".to_owned();
                return TrialDecision { verdict: "hide", listed, policy: None, reason, grant: None };
            }
        };
        let (policy, reason) = (grounds.policy.map(|policy| policy.to_string()), grounds.reason);
        TrialDecision { verdict, listed, policy, reason, grant: None }
    }

    fn caller(&self, who: &TrialCaller) -> Caller {
        let mut roles = who.roles.clone();
        roles.extend(self.key_roles.get(&who.principal).into_iter().flatten().cloned());
        let said = DirectoryClaims { roles, groups: who.groups.clone(), ..DirectoryClaims::default() };
        Caller::new(Identity {
            principal: Principal::named(&who.principal),
            proof: Proof::ApiKey,
            claims: Vec::new(),
            address: None,
            transport: "http",
            standing: Some(self.directory.standing(&who.principal, said, None)),
        })
    }
}

/// Describes the grant that allows a call: its end, its author and its reason.
fn granted(grant: &SetGrant) -> String {
    let what = if grant.break_glass { "the glass is broken" } else { "granted" };
    format!("{what} until {}, by {}: {}", timestamp::rfc3339_millis(grant.until), grant.by, grant.because)
}

/// Returns the roles of API keys, by principal. An unreadable file of keys gives no roles.
fn key_roles(config: &Config) -> HashMap<String, Vec<String>> {
    let mut all: HashMap<String, Vec<String>> = HashMap::new();
    for (_, key) in KeyFile::of(&config.data_dir).load().unwrap_or_default().iter() {
        all.entry(key.subject.clone()).or_default().extend(key.roles.iter().cloned());
    }
    all
}

fn grant(member: &MemberConfig) -> Grant {
    Grant {
        roles: member.roles.clone(),
        groups: member.groups.clone(),
        trust: member.trust,
        resources: member.resources.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_config::Overrides;
    use std::path::Path;

    #[test]
    fn what_is_tried_is_what_would_be_decided() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[gateway]\ndata_dir = '{}'\n[auth.users.ada]\nroles = ['writer']\n[roles.writer]\nallow = ['files']\n\
             ask = ['files/drop']\n[roles.reader]\npermissions = ['tools.read']\nallow = ['files']\n[kill_switch]\ntools = ['files/off']\n",
            folder.path().display()
        );
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let config = Config::parse(Path::new("signalbox.toml"), &text, &env, &Overrides::default()).unwrap().config;
        let trial = PermissionTrial::new(&config).unwrap();
        let says = |principal: &str, roles: &[&str], entry: &str| {
            let roles = roles.iter().map(|&role| role.to_owned()).collect();
            let who = TrialCaller { principal: principal.to_owned(), roles, groups: Vec::new() };
            let tried = trial.decide(&who, ListKind::Tools, entry, None, 0);
            (tried.verdict, tried.listed)
        };
        assert_eq!(says("ada", &[], "files/write"), ("allow", true));
        assert_eq!(says("ada", &[], "files/drop"), ("ask", true));
        assert_eq!(says("ada", &[], "files/off"), ("deny", false));
        assert_eq!(says("eve", &[], "files/write"), ("hide", false));
        assert_eq!(says("eve", &["reader"], "files/write"), ("deny", true));
    }

    /// Grants that are in force count, and are named; others do not.
    #[test]
    fn grants_in_force_are_looked_at_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[gateway]\ndata_dir = '{}'\n[roles.writer]\nallow = ['files']\n[roles.shut]\ndeny = ['files']\n\
             [auth.users.emil]\nroles = ['shut']\n[kill_switch]\ntools = ['files/off']\n[permissions.break_glass]\nallowed = true\n",
            folder.path().display()
        );
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let load =
            |text: &str| Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default()).unwrap().config;
        let config = load(&text);
        let grant = |id: &str, to: &str, until, break_glass| SetGrant {
            id: id.to_owned(),
            to: to.to_owned(),
            tools: if break_glass { Vec::new() } else { vec!["files".to_owned()] },
            until,
            because: "it burns".to_owned(),
            by: "bob".to_owned(),
            since: 0,
            break_glass,
        };
        let all = SetGrants(vec![
            grant("1", "eve", 10_000, false),
            grant("2", "dora", 500, false),
            grant("3", "emil", 10_000, false),
            grant("4", "fay", 10_000, true),
        ]);
        let says = |config: &Config, principal: &str, entry: &str| {
            let trial = PermissionTrial::new(config).unwrap().with_grants(&all, config, 1_000);
            let who = TrialCaller { principal: principal.to_owned(), ..TrialCaller::default() };
            let tried = trial.decide(&who, ListKind::Tools, entry, None, 1_000);
            (tried.verdict, tried.listed, tried.policy.unwrap_or_default(), tried.reason)
        };
        let (verdict, listed, policy, reason) = says(&config, "eve", "files/write");
        assert_eq!((verdict, listed, policy.as_str()), ("allow", true, "grant:1"));
        assert_eq!(reason, "granted until 1970-01-01T00:00:10.000Z, by bob: it burns");
        assert_eq!(says(&config, "dora", "files/write").0, "hide", "it is over");
        assert_eq!(says(&config, "emil", "files/write").0, "hide", "what a role denies stays denied");
        assert_eq!(says(&config, "eve", "files/off").0, "deny");
        assert_eq!(says(&config, "fay", "db/drop").2, "break_glass:4");
        let closed = load(&text.replace("allowed = true", "allowed = false"));
        assert_eq!(says(&closed, "fay", "db/drop").0, "hide");
    }
}
