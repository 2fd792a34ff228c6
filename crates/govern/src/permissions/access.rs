//! Access decision about an entry, with the reason for a denial.

use super::roles::Why;
use super::timed_grants::TimedGrant;
use crate::policy::{Asking, Grounds, PreparedReadings};
use std::sync::Arc;

/// Access of a caller to an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// Allowed, with the role or policy that grants it, if one does.
    Usable(Option<Arc<str>>),
    /// Allowed once a person has approved it.
    AfterAsking(Asking),
    /// Denied, though the caller may know of the entry.
    Denied(Denial),
    /// Denied, and the entry is answered like an unknown one.
    Hidden(Denial),
    /// The backend is closed to the caller, which no answer reveals.
    Closed,
}

/// Reason for a denial.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denial {
    /// The deciding role or policy, and the reason.
    pub grounds: Grounds,
    /// The missing permission, if that is the reason.
    pub permission: Option<Box<str>>,
    /// True if a grant can lift the denial: nothing forbids the use, something is missing.
    pub is_lack: bool,
}

/// Access to an entry before the arguments are known.
#[derive(Debug)]
pub(super) struct Entitlement {
    /// Result of everything but the policies.
    pub access: Access,
    /// Policies that apply, unless something else denies access.
    pub prepared: Option<PreparedReadings>,
    /// Grant that was considered.
    pub grant: Option<Arc<TimedGrant>>,
}

impl Entitlement {
    pub fn is_listed(&self) -> bool {
        let by_roles = !matches!(self.access, Access::Hidden(_) | Access::Closed);
        let shows =
            |prepared: &PreparedReadings| prepared.is_listed() || (self.grant.is_some() && !prepared.is_barred());
        by_roles && self.prepared.as_ref().is_none_or(shows)
    }

    pub fn by_grant(&self) -> Option<Access> {
        self.grant.as_ref().map(|grant| Access::Usable(Some(Arc::clone(&grant.name))))
    }
}

impl Denial {
    pub(super) fn of(policy: Option<Arc<str>>, reason: &str) -> Self {
        Self { grounds: Grounds { policy, reason: reason.to_owned() }, permission: None, is_lack: false }
    }
}

impl From<Grounds> for Denial {
    fn from(grounds: Grounds) -> Self {
        Self { is_lack: grounds.is_lack(), grounds, permission: None }
    }
}

impl From<Why> for Denial {
    fn from(why: Why) -> Self {
        let policy = why.role.map(|role| format!("role:{role}").into());
        Grounds { policy, reason: why.reason }.into()
    }
}
