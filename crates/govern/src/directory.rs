//! Directory of users and groups: merges the configuration with what a credential claims.

use signalbox_engine::standing::{Credential, Standing, TrustLevel};
use std::collections::HashMap;
use std::sync::Arc;

/// Rights that the configuration gives to a user or a group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Grant {
    pub roles: Vec<String>,
    /// Groups; only for users.
    pub groups: Vec<String>,
    pub trust: Option<TrustLevel>,
    /// Patterns of the resources that they may use.
    pub resources: Vec<String>,
}

/// Claims of a credential about its holder.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DirectoryClaims {
    pub roles: Vec<String>,
    pub groups: Vec<String>,
    /// Scopes, if the credential has any notion of them.
    pub scopes: Option<Vec<String>>,
    /// Trust level of the holder.
    pub trust: Option<TrustLevel>,
}

/// Users and groups of the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Directory {
    users: HashMap<String, Grant>,
    groups: HashMap<String, Grant>,
    default_trust: TrustLevel,
    /// Scopes by name, each with the scopes that it includes.
    scopes: HashMap<String, Vec<String>>,
}

impl Default for Directory {
    fn default() -> Self {
        Self::new(HashMap::new(), HashMap::new(), TrustLevel::Verified)
    }
}

impl Directory {
    /// Creates a directory of users by principal and groups by name. `default_trust` applies to proved callers for whom
    /// nothing else does.
    #[must_use]
    pub fn new(users: HashMap<String, Grant>, groups: HashMap<String, Grant>, default_trust: TrustLevel) -> Self {
        Self { users, groups, default_trust, scopes: HashMap::new() }
    }

    /// Adds scopes that include others: a caller with such a scope has those too.
    #[must_use]
    pub fn with_scopes(self, scopes: HashMap<String, Vec<String>>) -> Self {
        Self { scopes, ..self }
    }

    /// Returns the scopes with all that they include.
    fn with_included(&self, mut scopes: Vec<String>) -> Vec<String> {
        let mut seen = 0;
        while let Some(scope) = scopes.get(seen) {
            let included = self.scopes.get(scope).into_iter().flatten();
            let new: Vec<String> = included.filter(|one| !scopes.contains(one)).cloned().collect();
            scopes.extend(new);
            seen += 1;
        }
        scopes
    }

    /// Returns the groups that the configuration gives to a principal.
    #[must_use]
    pub fn groups_of(&self, principal: &str) -> &[String] {
        self.users.get(principal).map_or(&[], |user| &user.groups)
    }

    /// Returns the standing of a principal with such a credential. The configured trust of a user takes precedence;
    /// among groups, the most trusted one counts.
    #[must_use]
    pub fn standing(&self, principal: &str, said: DirectoryClaims, credential: Option<Credential>) -> Arc<Standing> {
        let user = self.users.get(principal);
        let mut groups = said.groups;
        groups.extend(user.into_iter().flat_map(|user| user.groups.iter().cloned()));
        let mut roles = said.roles;
        let mut resources: Vec<String> = Vec::new();
        let mut trust = said.trust;
        for grant in groups.iter().filter_map(|group| self.groups.get(group)) {
            roles.extend(grant.roles.iter().cloned());
            resources.extend(grant.resources.iter().cloned());
            trust = match (trust, grant.trust) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        if let Some(user) = user {
            roles.extend(user.roles.iter().cloned());
            resources.extend(user.resources.iter().cloned());
            trust = user.trust.or(trust);
        }
        Arc::new(Standing {
            trust: trust.unwrap_or(self.default_trust),
            roles: unique(roles),
            groups: unique(groups),
            scopes: said.scopes.map(|scopes| unique(self.with_included(scopes))),
            resources: unique(resources),
            credential,
        })
    }
}

fn unique(mut words: Vec<String>) -> Vec<Box<str>> {
    words.sort();
    words.dedup();
    words.into_iter().map(String::into_boxed_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn a_scope_brings_all_that_it_includes_and_nothing_else() {
        let includes = [("files", &["files:write", "files"][..]), ("files:write", &["files:read"][..])];
        let scopes = includes.map(|(scope, included)| (scope.to_owned(), texts(included))).into();
        let directory = Directory::default().with_scopes(scopes);
        let scopes = |said: &[&str]| -> Vec<String> {
            let said = DirectoryClaims { scopes: Some(texts(said)), ..DirectoryClaims::default() };
            let standing = directory.standing("user:ada", said, None);
            standing.scopes.iter().flatten().map(ToString::to_string).collect()
        };
        assert_eq!(scopes(&["files"]), ["files", "files:read", "files:write"]);
        assert_eq!(scopes(&["files:write"]), ["files:read", "files:write"]);
        assert_eq!(scopes(&["files:read"]), ["files:read"]);
        assert!(directory.standing("user:ada", DirectoryClaims::default(), None).scopes.is_none());
    }

    #[test]
    fn groups_bring_roles_and_the_users_own_entry_decides_trust() {
        let ops = Grant { roles: texts(&["admin"]), trust: Some(TrustLevel::System), ..Grant::default() };
        let ada = Grant { groups: texts(&["ops"]), trust: Some(TrustLevel::Community), ..Grant::default() };
        let directory = Directory::new(
            HashMap::from([("user:ada".to_owned(), ada)]),
            HashMap::from([("ops".to_owned(), ops)]),
            TrustLevel::Verified,
        );
        let ada = directory.standing(
            "user:ada",
            DirectoryClaims { roles: texts(&["reader"]), ..DirectoryClaims::default() },
            None,
        );
        assert_eq!((ada.trust, ada.has_role("admin"), ada.has_role("reader")), (TrustLevel::Community, true, true));
        let bob = directory.standing(
            "user:bob",
            DirectoryClaims { groups: texts(&["ops", "nobody"]), ..DirectoryClaims::default() },
            None,
        );
        assert_eq!((bob.trust, bob.groups.len()), (TrustLevel::System, 2));
        let eve = directory.standing("user:eve", DirectoryClaims::default(), None);
        assert_eq!((eve.trust, eve.roles.len()), (TrustLevel::Verified, 0));
    }
}
