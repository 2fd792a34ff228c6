//! Permissions on tools, prompts and resources: visibility and use.
//!
//! One set of permissions decides both lists and calls, so that they agree. It is evaluated in this order:
//!
//! ```text
//! switches      off for all callers, or the caller is off         killed, quarantined
//! callers       the backend is closed to the caller              answered like an unknown name, always
//! roles         patterns of names; permissions that labels ask   hidden, listed only, after asking, usable
//! resources     what the caller's own entry restricts it to      hidden
//! policies      Cedar, with the arguments of the call            forbid, ask, permit
//! ```
//!
//! A timed grant makes up for a missing role or `permit`, and for consent ([`TimedGrants`]).
//!
//! Entries that a caller may not see are not listed, and a use of one is answered like that of an unknown name, unless
//! `reveal` is on. If a listed entry is denied because of its arguments, the answer has the reason and the policy.
//!
//! # Invariants
//!
//! - What can be used is listed. Unless policies have conditions on the context of a call, what is listed can be used,
//!   except by roles that may only read.
//! - A new set replaces the old one as a whole. Everything derived from the old set is dropped, and the audiences of
//!   the two differ, so that no rendered list outlives its set.
//! - A request that an interceptor changed after the check is checked again ([`CallCheck`]).

mod access;
mod approval_links;
mod approvals;
mod call_check;
mod definition_quarantine;
mod entitlements;
mod roles;
mod switch_check;
mod switches;
mod timed_grants;
mod validation;
mod visibility;

pub use access::{Access, Denial};
pub use approval_links::ApprovalLinks;
pub use approvals::{ApprovalDigest, ApprovalUse, Approvals, GrantOutcome, MAX_APPROVALS};
pub use call_check::CallCheck;
pub(crate) use call_check::called_tool;
pub use call_check::entry_of;
pub use definition_quarantine::{DefinitionQuarantine, QuarantinedDefinition};
pub use roles::{Role, RoleAccess, RoleBook, Why};
pub use switch_check::SwitchCheck;
pub use switches::{Switch, SwitchOffReason, SwitchTarget, Switches};
pub use timed_grants::{BREAK_GLASS, TimedGrant, TimedGrants};

use crate::policy::{AskOf, Asking, Circumstances, EntityAttributes, Policies, PolicyVerdict};
use crate::tool_labels::ToolLabels;
use access::Entitlement;
use arc_swap::{ArcSwap, Guard};
use entitlements::{EntitlementQuery, Entitlements};
use roles::EXECUTE;
use signalbox_engine::NamePattern;
use signalbox_engine::catalog::{EntryRef, ListKind, NameStyle, Visibility as _};
use signalbox_engine::chain::ConsentOf;
use signalbox_engine::dialect::{PermissionSource as _, ScopePermissions};
use signalbox_engine::subject_names::SubjectNames;
use signalbox_engine::{Caller, Fault};
use signalbox_wire::glob::{Wildcards, fits};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Maximum number of cached entitlements, one per caller and entry.
pub const MAX_ENTITLEMENTS: usize = 16_384;

/// Permissions as the configuration sets them.
#[derive(Clone, Debug, Default)]
pub struct PermissionSet {
    /// Backends that are closed to other callers, each with the patterns of the principals that may use it.
    pub callers: Vec<(Box<str>, Vec<String>)>,
    /// Roles of callers without a standing, by principal.
    pub users: HashMap<Box<str>, Vec<Box<str>>>,
    pub roles: RoleBook,
    pub policies: Option<Arc<Policies>>,
    /// Switches of the configuration.
    pub switches: Switches,
    /// True if some callers are restricted to some resources.
    pub keeps_resources: bool,
    /// True if a caller that uses a hidden entry is told why it is denied.
    pub reveal: bool,
    /// True if denials are only recorded.
    pub shadow: bool,
    /// Deadline of approval requests.
    pub ask_timeout: Duration,
    /// True if the caller itself is asked where a role or policy does not say who is.
    pub ask_caller: bool,
    /// True if approvers are asked when a client cannot ask its user.
    pub ask_others: bool,
}

impl PermissionSet {
    /// Returns true if the set restricts no caller.
    fn is_open(&self) -> bool {
        let restricts = !self.callers.is_empty() || !self.roles.is_empty() || self.policies.is_some();
        !restricts && !self.keeps_resources && self.switches.0.is_empty()
    }

    /// Returns whose consent is needed.
    fn consent_of(&self, of: AskOf) -> ConsentOf {
        match of {
            AskOf::Caller if self.ask_others => ConsentOf::CallerOrApprover,
            AskOf::Caller => ConsentOf::Caller,
            AskOf::Configured if self.ask_caller => self.consent_of(AskOf::Caller),
            AskOf::Configured | AskOf::Approver => ConsentOf::Approver,
        }
    }

    fn roles_of<'a>(&'a self, caller: &'a Caller) -> &'a [Box<str>] {
        match &caller.identity().standing {
            Some(standing) => &standing.roles,
            None => self.users.get(caller.principal().as_str()).map_or(&[], Vec::as_slice),
        }
    }

    /// Returns true if the caller has a permission. With roles configured, permissions come from roles and scopes;
    /// otherwise a caller has every permission that its scopes do not exclude.
    fn has_permission(&self, caller: &Caller, permission: &str) -> bool {
        if self.roles.is_empty() {
            return ScopePermissions.has(caller, permission);
        }
        let standing = caller.identity().standing.as_deref();
        let scopes = standing.and_then(|standing| standing.scopes.as_deref()).unwrap_or_default();
        let in_scopes = scopes.iter().any(|scope| **scope == *permission);
        in_scopes || self.roles.lacks(self.roles_of(caller), &[permission.into()]).is_none()
    }

    fn is_closed(&self, caller: &Caller, backend: &str) -> bool {
        let principal = caller.principal().as_str();
        let restricted = self.callers.iter().find(|(name, _)| **name == *backend);
        restricted.is_some_and(|(_, patterns)| {
            !patterns.iter().any(|pattern| fits(pattern, principal, Wildcards::StarAndQuestion))
        })
    }
}

/// Permissions in force. Lists use them as a [`Visibility`], calls through [`SwitchCheck`] and [`CallCheck`].
#[derive(Debug)]
pub struct Permissions {
    set: ArcSwap<PermissionSet>,
    /// Switches set at run time.
    manual: ArcSwap<Switches>,
    /// Definitions of tools that wait for approval.
    quarantine: ArcSwap<DefinitionQuarantine>,
    grants: ArcSwap<TimedGrants>,
    labels: Arc<ToolLabels>,
    entitlements: Entitlements,
    approvals: Approvals,
    /// Increments with every change that lists depend on.
    version: AtomicU64,
    /// Increments with every change of the configuration or the switches. Approvals are bound to it, not to `version`:
    /// a grant for one caller does not change what others were asked.
    rules_version: AtomicU64,
    open: AtomicBool,
}

impl Permissions {
    /// Creates the permissions with this set. `labels` give the permissions that tools require.
    #[must_use]
    pub fn new(set: PermissionSet, labels: Arc<ToolLabels>) -> Self {
        let open = AtomicBool::new(set.is_open());
        Self {
            set: ArcSwap::from_pointee(set),
            manual: ArcSwap::default(),
            quarantine: ArcSwap::default(),
            grants: ArcSwap::default(),
            labels,
            entitlements: Entitlements::default(),
            approvals: Approvals::default(),
            version: AtomicU64::new(1),
            rules_version: AtomicU64::new(1),
            open,
        }
    }

    /// Replaces the set, and evaluates the labels anew.
    pub fn replace(&self, set: PermissionSet) {
        self.set.store(Arc::new(set));
        self.rules_version.fetch_add(1, Ordering::Relaxed);
        self.changed();
    }

    /// Returns the set in force.
    #[must_use]
    pub fn set(&self) -> Arc<PermissionSet> {
        self.set.load_full()
    }

    /// Returns the switches that were set at run time.
    #[must_use]
    pub fn manual(&self) -> Arc<Switches> {
        self.manual.load_full()
    }

    /// Replaces the switches that were set at run time. Those of the configuration stay.
    pub fn switch(&self, switches: Switches) {
        self.manual.store(Arc::new(switches));
        self.rules_version.fetch_add(1, Ordering::Relaxed);
        self.changed();
    }

    /// Returns the definitions that wait for approval.
    #[must_use]
    pub fn quarantine(&self) -> Arc<DefinitionQuarantine> {
        self.quarantine.load_full()
    }

    /// Replaces the definitions that wait for approval. Returns false if they are unchanged.
    pub fn set_quarantine(&self, quarantine: DefinitionQuarantine) -> bool {
        if **self.quarantine.load() == quarantine {
            return false;
        }
        self.quarantine.store(Arc::new(quarantine));
        self.changed();
        true
    }

    /// Returns the grants in force.
    #[must_use]
    pub fn grants(&self) -> Arc<TimedGrants> {
        self.grants.load_full()
    }

    /// Replaces the grants. Returns false if they are unchanged.
    pub fn grant(&self, grants: TimedGrants) -> bool {
        if **self.grants.load() == grants {
            return false;
        }
        self.grants.store(Arc::new(grants));
        self.changed();
        true
    }

    /// Returns true if the caller has this role.
    #[must_use]
    pub fn has_role(&self, caller: &Caller, role: &str) -> bool {
        let set = self.set.load();
        let roles = set.roles_of(caller);
        roles.iter().any(|one| **one == *role) || (roles.is_empty() && set.roles.is_default(role))
    }

    /// Returns true if this principal may use everything that is not switched off.
    #[must_use]
    pub fn breaks_glass(&self, principal: &str, unix_ms: u64) -> bool {
        let grants = self.grants.load();
        !grants.0.is_empty() && grants.after(unix_ms).breaks_glass(principal)
    }

    fn changed(&self) {
        let open = self.set.load().is_open() && self.manual.load().0.is_empty() && self.quarantine.load().is_empty();
        self.open.store(open, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::Release);
        self.entitlements.clear();
    }

    /// Returns the switch that turns this entry off.
    fn off(&self, set: &PermissionSet, entry: &EntryRef<'_>) -> Option<Switch> {
        let manual = self.manual.load();
        let switch = set.switches.of_entry(entry).or_else(|| manual.of_entry(entry)).cloned();
        switch.or_else(|| self.quarantine.load().of_entry(entry))
    }

    /// Returns the switch that turns this principal off.
    fn principal_off(&self, principal: &str) -> Option<Switch> {
        let (set, manual) = (self.set.load(), self.manual.load());
        set.switches.of_principal(principal).or_else(|| manual.of_principal(principal)).cloned()
    }

    /// Returns true if the caller itself is switched off.
    #[must_use]
    pub fn is_switched_off(&self, caller: &Caller) -> bool {
        self.principal_off(caller.principal().as_str()).is_some()
    }

    /// Returns true if the caller may learn that this backend exists: it sees a part of it, or would if the backend
    /// were not switched off.
    #[must_use]
    pub fn reveals_backend(&self, caller: &Caller, backend: &str) -> bool {
        let set = self.set.load();
        let (grants, principal) = (self.grants.load(), caller.principal().as_str());
        let by_roles = || {
            let shown = || set.roles.shows_backend(set.roles_of(caller), backend);
            set.shadow || set.roles.is_empty() || shown() || grants.shows_backend(principal, backend)
        };
        grants.breaks_glass(principal) || (!set.is_closed(caller, backend) && by_roles())
    }

    /// Returns the fault if a switch has turned this principal off.
    #[must_use]
    pub fn stops_principal(&self, principal: &str) -> Option<Fault> {
        self.principal_off(principal).map(|switch| switch.fault("the caller"))
    }

    /// Returns the fault for a caller that is off, or for an entry that is off and visible to the caller.
    #[must_use]
    pub fn stops(&self, caller: &Caller, entry: &EntryRef<'_>) -> Option<Fault> {
        if let Some(fault) = self.stops_principal(caller.principal().as_str()) {
            return Some(fault);
        }
        let switch = self.off(&self.set.load(), entry).filter(|_| self.reveals(caller, entry))?;
        let short: String = entry.name.chars().take(200).collect();
        Some(switch.fault(&format!("`{short}`")))
    }

    fn principals_are_off(&self) -> bool {
        self.set.load().switches.name_principals() || self.manual.load().name_principals()
    }

    /// Decides whether the caller may use the entry with these arguments, a JSON object. Ignores shadow mode.
    #[must_use]
    pub fn access(
        &self,
        caller: &Caller,
        entry: &EntryRef<'_>,
        arguments: Option<&[u8]>,
        around: &Circumstances,
    ) -> Access {
        let (version, set) = self.current();
        let mut entitlement = self.entitlement(version, &set, caller, entry);
        if entitlement.grant.as_ref().is_some_and(|grant| grant.until_ms <= around.unix_ms) {
            // The grant has expired but has not been removed yet.
            entitlement = Arc::new(self.entitle(&set, caller, entry, None));
        }
        let (Some(prepared), Some(policies)) = (&entitlement.prepared, &set.policies) else {
            return entitlement.access.clone();
        };
        match (policies.decide_readings(prepared, arguments, around), &entitlement.access) {
            (PolicyVerdict::Permit(policy), Access::Usable(None)) => Access::Usable(Some(policy)),
            (PolicyVerdict::Permit(_), other) => other.clone(),
            (PolicyVerdict::Ask(asking), Access::AfterAsking(by_role)) => match set.consent_of(by_role.of) {
                // An approver's consent is stronger than the caller's.
                ConsentOf::Approver => Access::AfterAsking(by_role.clone()),
                _ => Access::AfterAsking(asking),
            },
            (PolicyVerdict::Ask(asking), _) => entitlement.by_grant().unwrap_or(Access::AfterAsking(asking)),
            (PolicyVerdict::Forbid(grounds), _) => match entitlement.by_grant().filter(|_| grounds.is_lack()) {
                Some(granted) => granted,
                None if entitlement.is_listed() => Access::Denied(grounds.into()),
                None => Access::Hidden(grounds.into()),
            },
        }
    }

    fn granted(&self, caller: &Caller, entry: &EntryRef<'_>) -> Option<Arc<TimedGrant>> {
        self.grants.load().of(caller.principal().as_str(), entry).cloned()
    }

    /// Returns the version and the set in force. Results are cached under that version, which must be the older of the
    /// two if both change meanwhile.
    fn current(&self) -> (u64, Guard<Arc<PermissionSet>>) {
        let version = self.version.load(Ordering::Acquire);
        (version, self.set.load())
    }

    fn entitlement(
        &self,
        version: u64,
        set: &PermissionSet,
        caller: &Caller,
        entry: &EntryRef<'_>,
    ) -> Arc<Entitlement> {
        let granted = !self.grants.load().0.is_empty();
        let query = EntitlementQuery { version, set, granted, caller, entry };
        self.entitlements.get(&query, || self.entitle(set, caller, entry, self.granted(caller, entry)))
    }

    fn entitle(
        &self,
        set: &PermissionSet,
        caller: &Caller,
        entry: &EntryRef<'_>,
        grant: Option<Arc<TimedGrant>>,
    ) -> Entitlement {
        let by_grant = || grant.as_ref().map(|grant| Access::Usable(Some(Arc::clone(&grant.name))));
        if let Some(access) = by_grant().filter(|_| grant.as_ref().is_some_and(|grant| grant.breaks_glass)) {
            return Entitlement { access, prepared: None, grant };
        }
        let access = match self.by_roles(set, caller, entry) {
            Access::AfterAsking(asking) => by_grant().unwrap_or(Access::AfterAsking(asking)),
            Access::Denied(denial) if denial.is_lack => by_grant().unwrap_or(Access::Denied(denial)),
            Access::Hidden(denial) if denial.is_lack => by_grant().unwrap_or(Access::Hidden(denial)),
            other => other,
        };
        let denied = matches!(access, Access::Denied(_) | Access::Hidden(_) | Access::Closed);
        let Some(policies) = set.policies.as_ref().filter(|_| !denied) else {
            return Entitlement { access, prepared: None, grant };
        };
        let label = self.labels.of(entry.backend, entry.name);
        let known = EntityAttributes {
            roles: set.roles_of(caller),
            categories: label.categories,
            permissions: label.permissions,
            trust: label.trust.word(),
        };
        match policies.prepare_readings(caller, entry, &known) {
            Some(prepared) => Entitlement { access, prepared: Some(prepared), grant },
            None => {
                let access = Access::Hidden(Denial::of(None, "its name cannot be judged"));
                Entitlement { access, prepared: None, grant }
            }
        }
    }

    /// Evaluates everything but the policies.
    fn by_roles(&self, set: &PermissionSet, caller: &Caller, entry: &EntryRef<'_>) -> Access {
        if set.is_closed(caller, entry.backend) {
            return Access::Closed;
        }
        let standing = caller.identity().standing.as_deref();
        if standing.is_some_and(|standing| !may_use_resource(&standing.resources, entry)) {
            return Access::Hidden(Denial::of(None, "it is not among the resources that the caller may use"));
        }
        let lacking = self.lacking(set, caller, entry);
        if set.roles.is_empty() {
            return lacking.map_or(Access::Usable(None), Access::Denied);
        }
        let roles = set.roles_of(caller);
        let access = match set.roles.reach(roles, entry) {
            RoleAccess::Hidden(why) => return Access::Hidden(Denial { is_lack: why.role.is_none(), ..why.into() }),
            RoleAccess::Listed(why) => {
                Access::Denied(Denial { is_lack: true, permission: Some(EXECUTE.into()), ..why.into() })
            }
            RoleAccess::AfterAsking(why) => {
                Access::AfterAsking(Asking { grounds: Denial::from(why).grounds, of: AskOf::Configured })
            }
            RoleAccess::Usable => Access::Usable(None),
        };
        match lacking {
            // A role that may list the entry may know what is missing.
            Some(denial) if set.roles.shows(roles, entry) => Access::Denied(denial),
            Some(denial) => Access::Hidden(denial),
            None => access,
        }
    }

    /// Returns the denial for the first permission that the tool's label requires and the caller lacks.
    fn lacking(&self, set: &PermissionSet, caller: &Caller, entry: &EntryRef<'_>) -> Option<Denial> {
        if entry.kind != ListKind::Tools || !self.labels.demand_permissions() {
            return None;
        }
        let wanted = self.labels.of(entry.backend, entry.name).permissions;
        let permission = wanted.into_iter().find(|permission| !set.has_permission(caller, permission))?;
        let denial = Denial::of(None, "User lacks required permission");
        Some(Denial { permission: Some(permission), is_lack: true, ..denial })
    }
}

/// Returns true unless the entry is a resource or template outside of these patterns.
fn may_use_resource(patterns: &[Box<str>], entry: &EntryRef<'_>) -> bool {
    if patterns.is_empty() || entry.kind.style() != NameStyle::Uri {
        return true;
    }
    let names = SubjectNames::new(NameStyle::Uri, entry.name.into(), Some(entry.backend));
    patterns.iter().any(|pattern| names.meet(true, &[NamePattern::new(pattern)]))
}

#[cfg(test)]
mod tests;
