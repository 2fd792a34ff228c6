//! Constraints on calls that are allowed: paths in arguments must lie within configured folders.
//!
//! Constraints are checked before approvals are requested, so that approvers decide only about calls that can be made.
//! They apply only to calls that the permissions would let through.

use crate::path_bounds::{Folders, PathFault};
use crate::permissions::{Access, Permissions, entry_of};
use crate::policy::Circumstances;
use arc_swap::ArcSwap;
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_engine::chain::{
    Case, EntryNames, EntryPattern, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict,
};
use signalbox_engine::dialect::validation::{AccessConstraint, ConstraintKind};
use signalbox_engine::{Caller, Fault, FaultKind};
use signalbox_wire::{json, printable};
use std::sync::Arc;

/// Maximum number of characters of an argument's name in errors.
const MAX_SHOWN: usize = 100;

/// Tools and callers that a constraint applies to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scope {
    /// Name of the constraint: its pattern as written.
    pub name: Arc<str>,
    pub tools: EntryPattern,
    /// Roles of the callers it applies to; empty for every caller.
    pub roles: Vec<Box<str>>,
}

impl Scope {
    /// Returns the name of the constraint in rulings and errors.
    #[must_use]
    pub fn policy(&self) -> Arc<str> {
        format!("constraint:{}", self.name).into()
    }

    /// Returns true if the constraint applies to this caller and entry.
    #[must_use]
    pub fn holds_for(&self, permissions: &Permissions, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        entry.kind == ListKind::Tools && self.tools.touches(&EntryNames::of(entry)) && self.is_for(permissions, caller)
    }

    /// Returns true if the constraint applies to this caller and some tool of this backend.
    #[must_use]
    pub fn holds_at(&self, permissions: &Permissions, caller: &Caller, backend: &str) -> bool {
        self.tools.fits_backend(backend) && self.is_for(permissions, caller)
    }

    /// Returns true if it is for this caller, whatever the tool.
    #[must_use]
    pub fn is_for(&self, permissions: &Permissions, caller: &Caller) -> bool {
        self.roles.is_empty() || self.roles.iter().any(|role| permissions.has_role(caller, role))
    }
}

/// Constraint that paths must lie within folders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathConstraint {
    /// Tools and callers that it applies to.
    pub scope: Scope,
    /// Names of the arguments that are paths or lists of paths.
    pub arguments: Vec<Box<str>>,
    pub folders: Folders,
    /// The folders as shown in errors.
    pub shown: Box<str>,
}

impl PathConstraint {
    /// Returns the violation in these arguments, a JSON object, if there is one.
    fn fault(&self, arguments: &[u8]) -> Option<String> {
        for member in json::members(arguments) {
            let Some(name) = json::string(member.key.of(arguments)) else {
                return Some("an argument has no name".to_owned());
            };
            if !self.arguments.iter().any(|known| **known == *name) {
                continue;
            }
            let name = printable::beginning(&name, MAX_SHOWN);
            let value = member.value.of(arguments);
            let why = match self.value(value) {
                Ok(true) => continue,
                Ok(false) => format!("the argument `{name}` must lie within {}", self.shown),
                Err(fault) => format!("the argument `{name}` must lie within {}: {fault}", self.shown),
            };
            return Some(why);
        }
        None
    }

    /// Returns true if a value is null, a path within the folders, or a list of such paths.
    fn value(&self, value: &[u8]) -> Result<bool, PathFault> {
        if value == b"null" {
            return Ok(true);
        }
        if let Some(path) = json::string(value) {
            return self.folders.hold(&path);
        }
        if !value.starts_with(b"[") {
            return Err(PathFault::Unfit);
        }
        for item in json::elements(value) {
            let path = json::string(item.of(value)).ok_or(PathFault::Unfit)?;
            if !self.folders.hold(&path)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Interceptor that enforces path constraints.
#[derive(Debug)]
pub struct ConstraintCheck {
    all: ArcSwap<Vec<PathConstraint>>,
    permissions: Arc<Permissions>,
}

impl ConstraintCheck {
    /// Creates the interceptor with these constraints. They apply to what `permissions` allow.
    #[must_use]
    pub fn new(all: Vec<PathConstraint>, permissions: &Arc<Permissions>) -> Self {
        Self { all: ArcSwap::from_pointee(all), permissions: Arc::clone(permissions) }
    }

    pub fn replace(&self, all: Vec<PathConstraint>) {
        self.all.store(Arc::new(all));
    }

    /// Returns the constraints on a call of this tool.
    ///
    /// # Errors
    /// The fault if the arguments, a JSON object, violate one.
    pub fn on_call(
        &self,
        caller: &Caller,
        entry: &EntryRef<'_>,
        arguments: &[u8],
        unix_ms: u64,
    ) -> Result<Vec<AccessConstraint>, Fault> {
        if self.permissions.breaks_glass(caller.principal().as_str(), unix_ms) {
            return Ok(Vec::new());
        }
        let (all, shadow) = (self.all.load(), self.permissions.set().shadow);
        let held = all.iter().filter(|one| one.scope.holds_for(&self.permissions, caller, entry));
        held.map(|one| match one.fault(arguments).filter(|_| !shadow) {
            Some(why) => Err(refusal(&one.scope.policy(), why)),
            None => Ok(AccessConstraint {
                kind: ConstraintKind::Folders,
                policy: Some(one.scope.policy()),
                detail: format!("the arguments `{}` must lie within {}", one.arguments.join("`, `"), one.shown),
            }),
        })
        .collect()
    }

    fn broken(&self, case: &Case<'_>) -> Option<(Arc<str>, String)> {
        let entry = entry_of(case).filter(|_| case.phase == Phase::Request)?;
        let principal = case.caller.principal().as_str();
        if self.permissions.breaks_glass(principal, case.unix_ms) {
            return None;
        }
        let arguments = case.message.param("arguments").map_or(&b"{}"[..], |span| span.of(case.message.bytes()));
        let all = self.all.load();
        let mut held = all.iter().filter(|one| one.scope.holds_for(&self.permissions, case.caller, &entry));
        let broken = held.find_map(|one| Some((one.scope.policy(), one.fault(arguments)?)))?;
        let address = case.caller.identity().address.map(|address| address.ip());
        let around = Circumstances { unix_ms: case.unix_ms, address };
        // Calls that the caller may not make are left to the permission check, which may even hide that the tool
        // exists.
        let access = self.permissions.access(case.caller, &entry, Some(arguments), &around);
        matches!(access, Access::Usable(_) | Access::AfterAsking(_)).then_some(broken)
    }
}

fn refusal(policy: &str, why: String) -> Fault {
    Fault::new(FaultKind::Denied, why).with_str("policy", policy)
}

impl Interceptor for ConstraintCheck {
    fn name(&self) -> &'static str {
        "constraints"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let Some((name, why)) = self.broken(case) else { return Judgement::pass() };
        let shadow = self.permissions.set().shadow;
        let word = if shadow { "would_deny" } else { "deny" };
        let ruling = Ruling { rule: Some(Arc::clone(&name)), verdict: word, detail: why.clone(), ..Ruling::default() };
        let verdict = match shadow {
            true => Verdict::Pass,
            false => Verdict::Refuse(refusal(&name, why)),
        };
        Judgement { verdict, rulings: ruling.into(), effects: Vec::new() }
    }

    fn is_idle(&self) -> bool {
        self.all.load().is_empty()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Request && !self.is_idle()
    }

    fn judges_changes(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constraint() -> PathConstraint {
        let folders = Folders::new(&["/srv/docs".to_owned()]).unwrap();
        let scope = Scope { name: "files".into(), tools: EntryPattern::new("files"), roles: Vec::new() };
        PathConstraint { scope, arguments: vec!["path".into(), "paths".into()], folders, shown: "`/srv/docs`".into() }
    }

    /// Proves G-13.
    #[test]
    fn paths_in_arguments_have_to_lie_within_folders() {
        for fine in [
            "{}",
            r#"{"path":"/srv/docs/a"}"#,
            r#"{"paths":["/srv/docs/a","/srv/docs/b"]}"#,
            r#"{"path":null,"text":"/etc/passwd"}"#,
            r#"{"paths":[]}"#,
        ] {
            assert_eq!(constraint().fault(fine.as_bytes()), None, "{fine}");
        }
        for bad in [
            r#"{"path":"/etc/passwd"}"#,
            r#"{"path":"/srv/docs/../x"}"#,
            r#"{"paths":["/srv/docs/a","/etc"]}"#,
            r#"{"paths":["/srv/docs/a",1]}"#,
            r#"{"path":1}"#,
            r#"{"path":{"a":"/srv/docs"}}"#,
            r#"{"p\u0061th":"/etc/passwd"}"#,
            r#"{"path":"/srv/docs/a","path":"/etc/passwd"}"#,
            r#"{"path":"\u002fetc"}"#,
        ] {
            let told = constraint().fault(bad.as_bytes());
            assert!(told.as_ref().is_some_and(|told| told.contains("must lie within `/srv/docs`")), "{bad}: {told:?}");
        }
    }
}
