//! Whether a caller may use an entry, and why not.

use super::roles::Why;
use super::timed_grants::TimedGrant;
use crate::policy::{Asking, Grounds, PreparedReadings};
use std::sync::Arc;

/// Whether a caller may use an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// It may; with the role or policy that says so, if one does.
    Usable(Option<Arc<str>>),
    /// It may once somebody has agreed.
    AfterAsking(Asking),
    /// It may not, though it may know of the entry.
    Denied(Denial),
    /// It may not, and the entry is as good as unknown to it.
    Hidden(Denial),
    /// The backend is closed to it, which nothing reveals.
    Closed,
}

/// Why something is denied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denial {
    /// The role or policy that decided, and why.
    pub grounds: Grounds,
    /// The permission that is lacking, if one is (G-14).
    pub permission: Option<Box<str>>,
    /// Whether a grant can make up for it: nothing denies it, something is lacking.
    pub is_lack: bool,
}

/// What a caller may do with an entry before there are arguments.
#[derive(Debug)]
pub(super) struct Entitlement {
    /// What everything but policies says.
    pub access: Access,
    /// What policies will say, if there are any and nothing else denies it.
    pub prepared: Option<PreparedReadings>,
    /// The grant that was looked at.
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
