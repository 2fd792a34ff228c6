//! Standing of an authenticated caller: its trust level, roles, groups and scopes, and the validity of the credential
//! they come from.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Trust level of a caller, a tool or a backend, from the highest to the lowest.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustLevel {
    /// Part of the system itself.
    System,
    /// Known and vouched for.
    Verified,
    /// Known, but not vouched for.
    Community,
    /// Not known to the gateway, such as an anonymous caller.
    #[default]
    Untrusted,
}

impl TrustLevel {
    /// All levels, from the highest to the lowest.
    pub const ALL: [Self; 4] = [Self::System, Self::Verified, Self::Community, Self::Untrusted];

    /// Returns the word for this level in configuration, policies and answers.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Verified => "verified",
            Self::Community => "community",
            Self::Untrusted => "untrusted",
        }
    }

    /// Returns the level that this word names, in any case.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word().eq_ignore_ascii_case(word))
    }
}

/// Standing of a caller: its trust, roles and credential.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Trust level of the caller.
    pub trust: TrustLevel,
    /// Roles of the caller.
    pub roles: Vec<Box<str>>,
    /// Groups of the caller.
    pub groups: Vec<Box<str>>,
    /// Scopes of its token or key. `None` if its credential has no scopes, and so is not limited by them.
    pub scopes: Option<Vec<Box<str>>>,
    /// Patterns of the resources that it may use; empty if it may use all.
    pub resources: Vec<Box<str>>,
    /// Credential that it authenticated with, if that can expire or be revoked.
    pub credential: Option<Credential>,
}

impl Standing {
    /// Returns true if the caller has this role.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|one| &**one == role)
    }

    /// Returns the scopes of this list that the caller lacks.
    #[must_use]
    pub fn lacks<'a>(&self, scopes: &'a [Box<str>]) -> Vec<&'a str> {
        let Some(has) = &self.scopes else { return Vec::new() };
        scopes.iter().filter(|scope| !has.contains(scope)).map(|scope| &**scope).collect()
    }
}

/// Key or token, by its id. Its secret is not stored.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Id of the key, or issuer and id of the token.
    pub id: Box<str>,
    /// Time of expiry, in milliseconds since 1970.
    pub expires: Option<u64>,
    /// The token itself, if a backend is reached with a token obtained in exchange for it.
    pub token: Option<SubjectToken>,
    state: Arc<AtomicU8>,
}

/// Token that can be exchanged for another (RFC 8693). Its `Debug` output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct SubjectToken(Arc<str>);

impl SubjectToken {
    /// Wraps a token so that it is not printed by accident.
    #[must_use]
    pub fn new(token: &str) -> Self {
        Self(token.into())
    }

    /// Returns the secret text of the token.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SubjectToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubjectToken(…)")
    }
}

const GOOD: u8 = 0;
const OUTDATED: u8 = 1;
const REVOKED: u8 = 2;
const EXPIRED: u8 = 3;

impl Credential {
    /// Creates a credential that is valid until it expires or [`Revocation::revoke`] is called.
    #[must_use]
    pub fn new(id: &str, expires: Option<u64>) -> (Self, Revocation) {
        let state = Arc::new(AtomicU8::new(GOOD));
        (Self { id: id.into(), expires, token: None, state: Arc::clone(&state) }, Revocation(state))
    }

    /// Creates a credential that is outdated or revoked together with this one, and expires on its own.
    #[must_use]
    pub fn beside(&self, id: &str, expires: Option<u64>) -> Self {
        Self { id: id.into(), expires, token: None, state: Arc::clone(&self.state) }
    }

    /// Combines this credential of a request with that of its connection: it ends with the earlier of the two, and
    /// backends get the token of the connection.
    #[must_use]
    pub fn for_request(self, shown: &Self) -> Self {
        let expires = self.expires.into_iter().chain(shown.expires).min();
        Self { expires, token: shown.token.clone(), ..self }
    }

    /// Returns the reason why it is no longer valid at this time, in milliseconds since 1970.
    #[must_use]
    pub fn fault(&self, now: u64) -> Option<&'static str> {
        match self.state.load(Ordering::Relaxed) {
            REVOKED => Some("revoked"),
            EXPIRED => Some("expired"),
            _ => self.expires.is_some_and(|expires| expires <= now).then_some("expired"),
        }
    }

    /// Returns true if it is valid and the standing derived from it still holds. Otherwise its holder must be
    /// identified again.
    #[must_use]
    pub fn is_current(&self, now: u64) -> bool {
        self.state.load(Ordering::Relaxed) == GOOD && self.fault(now).is_none()
    }
}

impl PartialEq for Credential {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.expires == other.expires
    }
}

impl Eq for Credential {}

/// Handle that revokes one credential, with all copies of it.
#[derive(Clone, Debug)]
pub struct Revocation(Arc<AtomicU8>);

impl Revocation {
    /// Revokes the credential and all copies of it.
    pub fn revoke(&self) {
        self.0.store(REVOKED, Ordering::Relaxed);
    }

    /// Expires the credential, if its end was not known when it was created.
    pub fn expire(&self) {
        self.0.store(EXPIRED, Ordering::Relaxed);
    }

    /// Marks the credential as outdated. It stays valid, but its holder must be identified again, because its roles may
    /// have changed.
    pub fn outdate(&self) {
        let _ = self.0.compare_exchange(GOOD, OUTDATED, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_good_until_it_expires_or_is_revoked() {
        let (credential, revocation) = Credential::new("k1", Some(1_000));
        assert_eq!(credential.fault(999), None);
        assert_eq!(credential.fault(1_000), Some("expired"));
        let copy = credential.clone();
        revocation.outdate();
        assert_eq!((copy.fault(0), copy.is_current(0)), (None, false));
        revocation.revoke();
        revocation.outdate();
        assert_eq!(copy.fault(0), Some("revoked"));
        let (first, revocation) = Credential::new("c1", Some(1_000));
        let beside = first.beside("c2", Some(2_000));
        assert_eq!((first.fault(1_000), beside.fault(1_000)), (Some("expired"), None));
        revocation.outdate();
        assert!(!beside.is_current(0), "what was derived of both is outdated");
        revocation.expire();
        assert_eq!(beside.fault(0), Some("expired"));
    }

    #[test]
    fn scopes_limit_only_a_credential_that_has_some() {
        let wanted: Vec<Box<str>> = vec!["read".into(), "write".into()];
        let mut standing = Standing::default();
        assert!(standing.lacks(&wanted).is_empty());
        standing.scopes = Some(vec!["read".into()]);
        assert_eq!(standing.lacks(&wanted), ["write"]);
    }
}
