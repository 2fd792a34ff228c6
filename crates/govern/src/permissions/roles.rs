//! Roles: patterns of the entries that callers may see and use.

use signalbox_engine::catalog::EntryRef;
use signalbox_engine::chain::{EntryNames, EntryPattern};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Permission that includes all others.
const ALL: &str = "*";
/// Permission to find entries in lists.
const READ: &str = "tools.read";
/// Permission to use entries, which includes finding them.
pub(super) const EXECUTE: &str = "tools.execute";

/// Permissions on a set of entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Role {
    /// Permissions: `*`, `tools.read`, `tools.execute`, and those that tool labels require, such as `read:filesystem`.
    pub permissions: Vec<Box<str>>,
    /// Entries that the role applies to.
    pub allow: Vec<EntryPattern>,
    /// Entries that its holders may not use, whatever their other roles allow.
    pub deny: Vec<EntryPattern>,
    /// Entries whose use needs approval each time.
    pub ask: Vec<EntryPattern>,
}

impl Role {
    /// Returns true if the role has this permission.
    #[must_use]
    pub fn has(&self, permission: &str) -> bool {
        self.permissions.iter().any(|one| &**one == ALL || &**one == permission)
    }
}

/// Access to an entry that a caller's roles give.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RoleAccess {
    /// The roles hide the entry.
    Hidden(Why),
    /// The roles list the entry, but it cannot be used.
    Listed(Why),
    /// The entry can be used after approval.
    AfterAsking(Why),
    /// The entry can be used.
    Usable,
}

/// Role that decided, and its reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Why {
    /// The deciding role, if there is one.
    pub role: Option<Arc<str>>,
    /// The reason, for the caller.
    pub reason: String,
}

/// All roles of the configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RoleBook {
    roles: BTreeMap<Arc<str>, Role>,
    /// Role of callers that have none.
    default: Option<Arc<str>>,
}

impl RoleBook {
    /// Creates the roles. Callers without any have the role `default`.
    #[must_use]
    pub fn new(roles: impl IntoIterator<Item = (String, Role)>, default: Option<&str>) -> Self {
        let roles = roles.into_iter().map(|(name, role)| (name.into(), role)).collect();
        Self { roles, default: default.map(Into::into) }
    }

    /// Returns true if no role is configured, so that roles restrict no caller.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    /// Returns true if callers without a role have this one.
    #[must_use]
    pub fn is_default(&self, role: &str) -> bool {
        self.default.as_deref() == Some(role)
    }

    /// Returns the configured roles among those of a caller.
    fn held<'a>(&'a self, roles: &'a [Box<str>]) -> impl Iterator<Item = (&'a Arc<str>, &'a Role)> {
        let default = self.default.as_deref().filter(|_| roles.is_empty());
        roles.iter().map(|role| &**role).chain(default).filter_map(|name| self.roles.get_key_value(name))
    }

    /// Returns the access to an entry that these roles give. A denial by one role outweighs the others.
    #[must_use]
    pub fn reach(&self, roles: &[Box<str>], entry: &EntryRef<'_>) -> RoleAccess {
        let (mut any, mut listed, mut usable, mut asks) = (false, None, false, None);
        let names = EntryNames::of(entry);
        for (name, role) in self.held(roles) {
            any = true;
            if role.deny.iter().any(|pattern| pattern.touches(&names)) {
                return RoleAccess::Hidden(Why::of(name, format!("the role `{name}` denies it")));
            }
            if role.allow.iter().any(|pattern| pattern.covers(&names)) {
                usable |= role.has(EXECUTE);
                listed = listed.or_else(|| role.has(READ).then_some(name));
            }
            if asks.is_none() && role.ask.iter().any(|pattern| pattern.touches(&names)) {
                asks = Some(name);
            }
        }
        match (usable, asks, listed) {
            (true, Some(name), _) => {
                RoleAccess::AfterAsking(Why::of(name, format!("the role `{name}` needs consent for it")))
            }
            (true, None, _) => RoleAccess::Usable,
            (false, _, Some(name)) => {
                RoleAccess::Listed(Why::of(name, format!("the role `{name}` lacks the permission `{EXECUTE}`")))
            }
            (false, ..) if any => RoleAccess::Hidden(Why::without_role("no role of the caller allows it")),
            (false, ..) => RoleAccess::Hidden(Why::without_role("the caller has no role that is configured")),
        }
    }

    /// Returns true if one of these roles lists the entry, usable or not.
    #[must_use]
    pub fn shows(&self, roles: &[Box<str>], entry: &EntryRef<'_>) -> bool {
        let names = EntryNames::of(entry);
        self.held(roles).any(|(_, role)| role.has(READ) && role.allow.iter().any(|pattern| pattern.covers(&names)))
    }

    /// Returns the first of the wanted permissions that none of the roles has.
    #[must_use]
    pub fn lacks<'a>(&self, roles: &[Box<str>], wanted: &'a [Box<str>]) -> Option<&'a str> {
        let has = |permission: &str| self.held(roles).any(|(_, role)| role.has(permission));
        wanted.iter().map(|permission| &**permission).find(|permission| !has(permission))
    }

    /// Returns true if the roles show anything of this backend.
    #[must_use]
    pub fn shows_backend(&self, roles: &[Box<str>], backend: &str) -> bool {
        let mut held = self.held(roles);
        held.any(|(_, role)| {
            (role.has(READ) || role.has(EXECUTE)) && role.allow.iter().any(|one| one.fits_backend(backend))
        })
    }
}

impl Why {
    fn of(role: &Arc<str>, reason: String) -> Self {
        Self { role: Some(Arc::clone(role)), reason }
    }

    fn without_role(reason: &str) -> Self {
        Self { role: None, reason: reason.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::catalog::ListKind;

    fn patterns(texts: &[&str]) -> Vec<EntryPattern> {
        texts.iter().map(|text| EntryPattern::new(text)).collect()
    }

    fn role(permissions: &[&str], allow: &[&str], deny: &[&str]) -> Role {
        let permissions = permissions.iter().map(|&one| one.into()).collect();
        Role { permissions, allow: patterns(allow), deny: patterns(deny), ask: Vec::new() }
    }

    fn names(roles: &[&str]) -> Vec<Box<str>> {
        roles.iter().map(|&role| role.into()).collect()
    }

    fn book() -> RoleBook {
        RoleBook::new(
            [
                ("root".to_owned(), role(&["*"], &["*"], &[])),
                ("reader".to_owned(), role(&["tools.read"], &["files"], &[])),
                ("writer".to_owned(), role(&["tools.execute", "write:disk"], &["files", "db/get_*"], &["files/drop*"])),
                ("careful".to_owned(), Role { ask: patterns(&["files/write"]), ..role(&["*"], &["*"], &[]) }),
            ],
            None,
        )
    }

    fn reach(roles: &[&str], backend: &str, name: &str) -> &'static str {
        match book().reach(&names(roles), &EntryRef { kind: ListKind::Tools, backend, name, definition: None }) {
            RoleAccess::Hidden(_) => "hidden",
            RoleAccess::Listed(_) => "listed",
            RoleAccess::AfterAsking(_) => "asks",
            RoleAccess::Usable => "usable",
        }
    }

    /// Execute implies read, what is denied stays denied whatever else a caller is, an unknown role is denied.
    /// Proves NO-2.
    #[test]
    fn roles_decide_by_pattern_and_permission() {
        for (roles, backend, name, expected) in [
            (&["root"][..], "files", "drop_all", "usable"),
            (&["reader"], "files", "read", "listed"),
            (&["reader"], "db", "get_row", "hidden"),
            (&["writer"], "files", "write", "usable"),
            (&["writer"], "db", "get_row", "usable"),
            (&["writer"], "db", "put_row", "hidden"),
            (&["writer"], "files", "drop_all", "hidden"),
            (&["root", "writer"], "files", "drop_all", "hidden"),
            (&["reader", "writer"], "files", "read", "usable"),
            (&["careful"], "files", "write", "asks"),
            (&["root", "careful"], "files", "write", "asks"),
            (&["careful"], "files", "read", "usable"),
            (&["nobody"], "files", "read", "hidden"),
            (&[], "files", "read", "hidden"),
        ] {
            assert_eq!(reach(roles, backend, name), expected, "{roles:?} toward {backend}/{name}");
        }
    }

    /// Permissions that labels ask for come from roles too.
    /// Proves G-14 and G-17.
    #[test]
    fn the_permission_that_is_lacking_is_named() {
        let (book, wanted) = (book(), names(&["write:disk", "read:disk"]));
        assert_eq!(book.lacks(&names(&["writer"]), &wanted), Some("read:disk"));
        assert_eq!(book.lacks(&names(&["writer", "root"]), &wanted), None);
        assert_eq!(book.lacks(&names(&["nobody"]), &wanted), Some("write:disk"));
    }

    #[test]
    fn callers_without_a_role_have_the_default_one() {
        let book = RoleBook { default: Some("reader".into()), ..book() };
        let entry = EntryRef { kind: ListKind::Tools, backend: "files", name: "read", definition: None };
        assert!(matches!(book.reach(&[], &entry), RoleAccess::Listed(_)));
        assert!(matches!(book.reach(&names(&["nobody"]), &entry), RoleAccess::Hidden(_)));
        assert!(book.shows_backend(&[], "files") && !book.shows_backend(&[], "db"));
    }
}
