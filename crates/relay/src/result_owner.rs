//! Ownership of the results of legacy calls.

use crate::random::hex;
use aws_lc_rs::digest::{SHA256, digest};
use signalbox_engine::{Caller, Proof};

/// Owner of a legacy call's result: only the caller that made the call may read it. An authenticated caller is
/// identified by its principal and its rights, so that a weaker key of a principal reads nothing that a stronger one
/// called; another is identified by the client id that it sends. Unauthenticated clients that send no id share the
/// results of a session, because the legacy protocol has no other way to distinguish them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultOwner(Box<str>);

impl ResultOwner {
    /// Returns the owner for a caller and the client id it sends, if any. `account_gone` is the time at which an
    /// account with the caller's name was removed, 0 for none: a later account of that name owns none of the earlier
    /// results.
    #[must_use]
    pub fn of(caller: &Caller, client_id: Option<&str>, account_gone: u64) -> Self {
        let identity = caller.identity();
        let rights = || identity.rights().to_text();
        let mut text = match (identity.proof, client_id) {
            (Proof::Unproved, None) => "anybody".to_owned(),
            (Proof::Unproved, Some(id)) => format!("client {id}"),
            (_, None) => format!("principal {} rights {}", identity.principal, rights()),
            (_, Some(id)) => format!("principal {} rights {} client {id}", identity.principal, rights()),
        };
        if account_gone > 0 {
            text.push_str(&format!(" after {account_gone}"));
        }
        Self(hex(&digest(&SHA256, text.as_bytes()).as_ref()[..16]).into())
    }

    /// Returns an opaque name of the owner.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::standing::{Credential, Standing, TrustLevel};
    use signalbox_engine::{Identity, Principal};
    use std::sync::Arc;

    #[test]
    fn callers_own_what_they_called_by_principal_or_else_by_their_own_id() {
        let known = |name: &str| Caller::of(Principal::named(name), Proof::ApiKey, "relay");
        let unknown = Caller::anonymous("relay");
        let of = |caller: &Caller, id| ResultOwner::of(caller, id, 0);
        assert_eq!(of(&known("ada"), None), of(&known("ada"), None));
        assert_ne!(of(&known("ada"), None), of(&known("eve"), None));
        assert_ne!(of(&known("ada"), None), of(&unknown, None));
        assert_ne!(of(&unknown, Some("a")), of(&unknown, Some("b")));
        assert_ne!(of(&unknown, Some("a")), of(&unknown, None));
        assert_ne!(of(&unknown, Some("principal ada")), of(&known("ada"), None));
        assert_eq!(of(&unknown, None), of(&unknown, None), "nothing tells them apart");
        let next = ResultOwner::of(&known("ada"), None, 1_790_000_000_000);
        assert_ne!(of(&known("ada"), None), next, "the next user of the name");
    }

    /// Attack F3b: another key of a principal owns its results only if it has the same rights.
    #[test]
    fn results_belong_to_keys_with_the_rights_of_the_one_that_called() {
        let of = |standing: Standing, id| {
            let known = Caller::of(Principal::named("ada"), Proof::ApiKey, "relay");
            let identity = Identity { standing: Some(Arc::new(standing)), ..known.identity().clone() };
            ResultOwner::of(&Caller::new(identity), id, 0)
        };
        let some = |name: &str| vec![Box::from(name)];
        let strong = || Standing { roles: some("root"), scopes: Some(some("write")), ..Standing::default() };
        let (credential, _) = Credential::new("another", Some(1));
        let renewed = Standing { credential: Some(credential), ..strong() };
        assert_eq!(of(strong(), None), of(renewed, None), "another key of the same rights");
        for weaker in [
            Standing { roles: some("reader"), ..strong() },
            Standing { roles: Vec::new(), ..strong() },
            Standing { roles: Vec::new(), groups: some("root"), ..strong() },
            Standing { scopes: Some(some("read")), ..strong() },
            Standing { scopes: Some(Vec::new()), ..strong() },
            Standing { scopes: None, ..strong() },
            Standing { resources: some("notes://*"), ..strong() },
            Standing { trust: TrustLevel::Community, ..strong() },
        ] {
            for id in [None, Some("a")] {
                assert_ne!(of(strong(), id), of(weaker.clone(), id), "{weaker:?}");
            }
        }
    }
}
