//! User that a backend takes a caller for.
//!
//! Most backends know callers by their principal, if at all. A backend reached with a token obtained in exchange for
//! the caller's own may show something else for each token, so its lists for one token must not be shown for another
//! credential of the same principal.

use crate::caller::{Caller, Principal};
use crate::standing::{Credential, Standing};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Principal, and the token of its caller if tokens are exchanged. Two are equal if both parts are.
#[derive(Clone, Debug)]
pub struct BackendUser {
    principal: Principal,
    /// Standing with the token; `None` if the credential has no token.
    standing: Option<Arc<Standing>>,
}

impl BackendUser {
    /// Returns the user for this caller when it acts for `principal`.
    #[must_use]
    pub fn of(principal: Principal, caller: &Caller) -> Self {
        Self { principal, standing: caller.identity().standing.as_ref().filter(|one| has_token(one)).cloned() }
    }

    /// Returns the principal that the user acts for.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Returns the credential whose token is exchanged, if there is one.
    #[must_use]
    pub fn credential(&self) -> Option<&Credential> {
        self.standing.as_ref()?.credential.as_ref()
    }

    /// Returns true if the user has a token that can be exchanged.
    #[must_use]
    pub fn has_token(&self) -> bool {
        self.standing.is_some()
    }

    /// Returns true if the token has expired or was revoked at this time, in milliseconds since 1970.
    #[must_use]
    pub fn has_lapsed(&self, now: u64) -> bool {
        self.credential().is_some_and(|credential| credential.fault(now).is_some())
    }

    /// Returns the user for a backend that knows callers by their principal.
    #[must_use]
    pub fn without_token(&self) -> Self {
        self.principal.clone().into()
    }

    /// Returns true if this caller, acting for the same principal, is this user.
    #[must_use]
    pub fn is_shown_by(&self, caller: &Caller) -> bool {
        let other = caller.identity().standing.as_ref().filter(|one| has_token(one));
        match (&self.standing, other) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || token(one) == token(other),
            _ => false,
        }
    }

    fn parts(&self) -> (&Principal, Option<&str>) {
        (&self.principal, self.standing.as_ref().and_then(|standing| token(standing)))
    }
}

fn token(standing: &Standing) -> Option<&str> {
    standing.credential.as_ref()?.token.as_ref().map(|token| token.expose())
}

fn has_token(standing: &Standing) -> bool {
    standing.credential.as_ref().is_some_and(|credential| credential.token.is_some())
}

impl From<Principal> for BackendUser {
    fn from(principal: Principal) -> Self {
        Self { principal, standing: None }
    }
}

impl PartialEq for BackendUser {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for BackendUser {}

impl PartialOrd for BackendUser {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BackendUser {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl Hash for BackendUser {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::{Identity, Proof};
    use crate::standing::SubjectToken;

    fn shown(text: Option<&str>, expires: u64) -> Caller {
        let (mut credential, _) = Credential::new("corp/-", Some(expires));
        credential.token = text.map(SubjectToken::new);
        let standing = Standing { credential: Some(credential), ..Standing::default() };
        let identity = Caller::of(Principal::named("corp:ada"), Proof::Token, "http").identity().clone();
        Caller::new(Identity { standing: Some(Arc::new(standing)), ..identity })
    }

    fn user(caller: &Caller) -> BackendUser {
        BackendUser::of(caller.principal().clone(), caller)
    }

    #[test]
    fn users_of_one_principal_are_told_apart_by_their_tokens() {
        let (strong, weak, key) = (shown(Some("made-up-a"), 9), shown(Some("made-up-b"), 9), shown(None, 9));
        assert_eq!(user(&strong), user(&shown(Some("made-up-a"), 99)));
        assert!(user(&strong) != user(&weak) && user(&strong) != user(&key));
        assert!(user(&strong).is_shown_by(&strong) && !user(&strong).is_shown_by(&weak));
        assert!(user(&key).is_shown_by(&key) && !user(&key).is_shown_by(&weak) && !user(&weak).is_shown_by(&key));
        assert_eq!(user(&strong).without_token(), user(&key));
        assert!(!format!("{:?}", user(&strong)).contains("made-up"));
    }

    #[test]
    fn a_user_lapses_with_its_token() {
        let strong = user(&shown(Some("made-up-a"), 9));
        assert!(!strong.has_lapsed(8) && strong.has_lapsed(9));
        assert!(!BackendUser::from(Principal::named("corp:ada")).has_lapsed(u64::MAX));
    }
}
