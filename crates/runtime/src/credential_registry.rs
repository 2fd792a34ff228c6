//! Valid credentials of each principal, so that what was opened with a credential ends with it.
//!
//! A client that refreshes its token presents the new one before or after the old one expires. Its sessions belong to
//! the principal and not to a token. Whatever a credential holds open continues after its expiry only while another
//! valid credential gives the same rights. A revoked credential ends what was opened with it.

use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::standing::Credential;
use signalbox_engine::{Caller, Principal};
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::sync::Notify;

/// Maximum number of credentials remembered per principal. The oldest is forgotten first.
const MAX_EACH: usize = 64;

/// Maximum number of removed accounts that are remembered. The oldest is forgotten first.
const MAX_GONE: usize = 10_000;

/// Callers whose credential can expire or be revoked, by principal, each credential once.
#[derive(Default)]
pub struct CredentialRegistry {
    callers: Mutex<HashMap<Principal, Vec<Caller>>>,
    /// Removal times of accounts by principal, in milliseconds since 1970.
    gone: Mutex<HashMap<Principal, u64>>,
    noted: Notify,
}

impl CredentialRegistry {
    /// Records the credential that identified a caller.
    pub fn note(&self, caller: &Caller) {
        let Some(credential) = credential_of(caller) else { return };
        let mut all = self.callers.lock().unpoisoned();
        let known = all.entry(caller.principal().clone()).or_default();
        if let Some(one) = known.iter_mut().find(|one| credential_of(one) == Some(credential)) {
            // The rights of the credential may have changed.
            return one.clone_from(caller);
        }
        if known.len() >= MAX_EACH {
            known.remove(0);
        }
        known.push(caller.clone());
        drop(all);
        self.noted.notify_one();
    }

    /// Waits until an unknown credential is recorded.
    pub async fn noted(&self) {
        self.noted.notified().await;
    }

    /// Returns true if no principal has a credential that can end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.callers.lock().unpoisoned().is_empty()
    }

    /// Removes credentials that are invalid at this time. Returns the principals that have none left.
    pub fn sweep(&self, now: u64) -> Vec<Principal> {
        let mut lapsed = Vec::new();
        self.callers.lock().unpoisoned().retain(|principal, known| {
            known.retain(|caller| caller.credential_fault(now).is_none());
            if known.is_empty() {
                lapsed.push(principal.clone());
            }
            !known.is_empty()
        });
        lapsed
    }

    /// Returns the time at which the previous account of this principal's name was removed, in milliseconds since 1970,
    /// or 0 if none is known. It separates what belongs to the present account from what the previous one left.
    #[must_use]
    pub fn account_gone(&self, principal: &Principal) -> u64 {
        self.gone.lock().unpoisoned().get(principal).copied().unwrap_or(0)
    }

    pub(crate) fn record_removal(&self, principal: &Principal, now: u64) {
        let mut gone = self.gone.lock().unpoisoned();
        if gone.len() >= MAX_GONE {
            let oldest = gone.iter().min_by_key(|(_, at)| **at).map(|(principal, _)| principal.clone());
            oldest.map(|principal| gone.remove(&principal));
        }
        gone.insert(principal.clone(), now);
    }

    /// Returns true if a principal is known to have a valid credential.
    #[must_use]
    pub fn is_there(&self, principal: &Principal) -> bool {
        self.callers.lock().unpoisoned().contains_key(principal)
    }

    /// Returns true if a valid credential is known that gives the same rights as this caller's.
    #[must_use]
    pub fn has_equal(&self, caller: &Caller) -> bool {
        let all = self.callers.lock().unpoisoned();
        let known = all.get(caller.principal());
        known.is_some_and(|known| known.iter().any(|one| one.identity().has_rights_of(caller.identity())))
    }
}

/// Returns the credential of a caller, if it can end.
pub(crate) fn credential_of(caller: &Caller) -> Option<&Credential> {
    caller.identity().standing.as_ref()?.credential.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::standing::{Revocation, Standing};
    use signalbox_engine::{Identity, Proof};
    use std::sync::Arc;

    fn caller(id: &str, expires: u64) -> (Caller, Revocation) {
        let (credential, revocation) = Credential::new(id, Some(expires));
        let standing = Standing { credential: Some(credential), ..Standing::default() };
        let caller = Caller::new(Identity {
            principal: Principal::named("corp:ada"),
            proof: Proof::Token,
            claims: Vec::new(),
            address: None,
            transport: "http",
            standing: Some(Arc::new(standing)),
        });
        (caller, revocation)
    }

    #[test]
    fn a_principal_is_there_as_long_as_one_of_its_credentials_is_good() {
        let presence = CredentialRegistry::default();
        let ((first, _), (second, revocation)) = (caller("a", 10), caller("b", 20));
        presence.note(&first);
        assert!(presence.sweep(9).is_empty());
        presence.note(&second);
        assert!(presence.sweep(10).is_empty() && presence.is_there(first.principal()));
        revocation.revoke();
        assert_eq!(presence.sweep(11), [Principal::named("corp:ada")]);
        assert!(presence.sweep(12).is_empty(), "told once");
    }

    #[test]
    fn only_a_credential_with_the_same_rights_stands_for_another() {
        let presence = CredentialRegistry::default();
        let ((first, _), (weak, _), (next, _)) = (caller("a", 10), caller("b", 20), caller("c", 30));
        let strong = |caller: &Caller| {
            let mut identity = caller.identity().clone();
            let mut standing = identity.standing.as_deref().cloned().unwrap_or_default();
            standing.roles.push("admin".into());
            identity.standing = Some(Arc::new(standing));
            Caller::new(identity)
        };
        let first = strong(&first);
        presence.note(&first);
        presence.note(&weak);
        presence.sweep(10);
        assert!(presence.is_there(first.principal()) && !presence.has_equal(&first) && presence.has_equal(&weak));
        presence.note(&strong(&next));
        assert!(presence.has_equal(&first));
    }

    #[test]
    fn a_token_refreshed_every_second_for_an_hour_never_lapses() {
        let presence = CredentialRegistry::default();
        for second in 0..3_600_u64 {
            let now = second * 1_000;
            // Each token is good for two seconds, and the next one comes after one.
            presence.note(&caller(&second.to_string(), now + 2_000).0);
            for tick in [now, now + 500, now + 999] {
                assert!(presence.sweep(tick).is_empty(), "at {tick}");
            }
        }
        assert_eq!(presence.sweep(3_602_000).len(), 1);
    }
}
