//! Authenticates callers by the API keys of this gateway.

use crate::api_keys::{ApiKeys, PREFIX};
use crate::directory::{Directory, DirectoryClaims};
use crate::{bearer, invalid};
use arc_swap::ArcSwap;
use signalbox_engine::authenticator::{Arrival, Authenticator};
use signalbox_engine::caller::Identity;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::standing::{Credential, Revocation, Standing, TrustLevel};
use signalbox_engine::{Fault, Principal, Proof};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

/// State of a key that has been used.
#[derive(Debug)]
struct UsedKey {
    principal: Principal,
    /// Standing of the holder; recomputed after a change of the directory.
    standing: Option<Arc<Standing>>,
    /// Revocations of every credential issued for the key, including outdated ones.
    revocations: Vec<Revocation>,
}

/// Callback that reloads the keys, if they have changed, before a caller is authenticated.
pub type Refresh = Box<dyn Fn() + Send + Sync>;

/// Keys of a process, kept in sync with their file.
#[derive(Default)]
pub struct SharedKeys {
    keys: ArcSwap<ApiKeys>,
    used: Mutex<HashMap<String, UsedKey>>,
    refresh: OnceLock<Refresh>,
}

impl fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKeys").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl SharedKeys {
    /// Sets the callback to run before each lookup. Only the first call has an effect.
    pub fn refresh_by(&self, refresh: Refresh) {
        let _ = self.refresh.set(refresh);
    }

    /// Replaces the keys. Revokes the credentials of keys in use that have changed or are no longer valid.
    pub fn replace(&self, keys: ApiKeys, now: u64) {
        let mut used = self.used.lock().unpoisoned();
        let before = self.keys.swap(Arc::new(keys));
        let after = self.keys.load();
        used.retain(|id, key_in_use| {
            let find = |keys: &ApiKeys| keys.iter().find(|(known, _)| known == id).map(|(_, key)| key.clone());
            let kept = find(&after).filter(|key| key.fault(now).is_none());
            let same = kept.is_some() && kept == find(&before);
            if !same {
                key_in_use.revocations.iter().for_each(Revocation::revoke);
            }
            same
        });
    }

    /// Outdates all standings after a change of the directory. Each is recomputed at the next request of its key.
    pub fn forget_standings(&self) {
        for used in self.used.lock().unpoisoned().values_mut() {
            used.standing = None;
            used.revocations.iter().for_each(Revocation::outdate);
        }
    }

    /// Returns true if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.load().iter().next().is_none()
    }
}

/// Authenticator for API keys.
#[derive(Debug)]
pub struct KeyAuthenticator {
    keys: Arc<SharedKeys>,
    directory: Arc<ArcSwap<Directory>>,
}

impl KeyAuthenticator {
    /// Creates an authenticator for these keys.
    #[must_use]
    pub fn new(keys: Arc<SharedKeys>, directory: Arc<ArcSwap<Directory>>) -> Self {
        Self { keys, directory }
    }

    fn holder(&self, shown: &[u8], now: u64) -> Result<(String, Principal, Arc<Standing>), Fault> {
        if let Some(refresh) = self.keys.refresh.get() {
            refresh();
        }
        let keys = self.keys.keys.load();
        let (id, key) = keys.find(shown).ok_or_else(|| invalid("the API key is not known here"))?;
        if let Some(word) = key.fault(now) {
            return Err(invalid(&format!("the API key `{id}` is {word}")));
        }
        let mut used = self.keys.used.lock().unpoisoned();
        let used = used.entry(id.to_owned()).or_insert_with(|| UsedKey {
            principal: Principal::named(&key.subject),
            standing: None,
            revocations: Vec::new(),
        });
        let (principal, revocations) = (used.principal.clone(), &mut used.revocations);
        let standing = used.standing.get_or_insert_with(|| {
            let (credential, revocation) = Credential::new(&format!("key/{id}"), key.expires);
            revocations.push(revocation);
            let said = DirectoryClaims {
                roles: key.roles.clone(),
                groups: Vec::new(),
                scopes: key.scopes.clone(),
                trust: key.trust.as_deref().and_then(TrustLevel::of),
            };
            self.directory.load().standing(&key.subject, said, Some(credential))
        });
        Ok((id.to_owned(), principal, Arc::clone(standing)))
    }
}

impl Authenticator for KeyAuthenticator {
    fn name(&self) -> &'static str {
        "key"
    }

    fn identify(&self, arrival: &Arrival<'_>) -> Result<Option<Identity>, Fault> {
        let header = (arrival.header)("x-api-key").map(<[u8]>::trim_ascii);
        let bearer = bearer(arrival).filter(|token| token.starts_with(PREFIX.as_bytes()));
        let shown = match (bearer, header) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err(invalid("give the API key in one header, not in two")),
            (Some(shown), None) | (None, Some(shown)) => shown,
        };
        let (id, principal, standing) = self.holder(shown, arrival.now)?;
        Ok(Some(Identity {
            principal,
            proof: Proof::ApiKey,
            claims: vec![("key".into(), id.into())],
            address: arrival.address,
            transport: arrival.transport,
            standing: Some(standing),
        }))
    }

    fn is_per_request(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_keys::{NewKey, RANDOM};

    fn keys(expires: Option<u64>) -> (ApiKeys, String) {
        let mut keys = ApiKeys::default();
        let new = NewKey { name: "ci".to_owned(), subject: "user:ada".to_owned(), expires, ..NewKey::default() };
        let (_, shown) = keys.add(new, &[3; RANDOM], 0);
        (keys, shown.reveal().to_owned())
    }

    fn ask(keys: &Arc<SharedKeys>, headers: &[(&str, &str)], now: u64) -> Result<Option<Identity>, Fault> {
        let authenticator = KeyAuthenticator::new(Arc::clone(keys), Arc::default());
        let header = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_bytes());
        authenticator.identify(&Arrival { transport: "http", address: None, shown: None, header: &header, now })
    }

    #[test]
    fn a_key_is_taken_from_either_header_and_from_one_only() {
        let (keys, shown) = keys(None);
        let shared = Arc::new(SharedKeys::default());
        shared.replace(keys, 0);
        let bearer = format!("Bearer {shown}");
        let ada = ask(&shared, &[("authorization", &bearer)], 0).unwrap().unwrap();
        assert_eq!((ada.principal.as_str(), ada.proof), ("user:ada", Proof::ApiKey));
        assert_eq!(ask(&shared, &[("x-api-key", &shown)], 0).unwrap().unwrap().principal, ada.principal);
        assert!(ask(&shared, &[("authorization", &bearer), ("x-api-key", &shown)], 0).is_err());
        assert_eq!(ask(&shared, &[("authorization", "Bearer a.b.c")], 0), Ok(None));
        let wrong = ask(&shared, &[("x-api-key", &format!("{PREFIX}030303030303_wrong"))], 0).unwrap_err();
        assert!(!wrong.to_string().contains("wrong"), "{wrong}");
    }

    #[test]
    fn revoking_a_key_reaches_whoever_it_identified() {
        let (mut keys, shown) = keys(Some(100));
        let shared = Arc::new(SharedKeys::default());
        shared.replace(keys.clone(), 0);
        let ada = ask(&shared, &[("x-api-key", &shown)], 0).unwrap().unwrap();
        let credential = ada.standing.unwrap().credential.clone().unwrap();
        assert_eq!((credential.fault(99), credential.fault(100)), (None, Some("expired")));
        assert!(ask(&shared, &[("x-api-key", &shown)], 100).unwrap_err().to_string().contains("expired"));
        keys.revoke("ci", 50);
        shared.replace(keys, 50);
        assert_eq!(credential.fault(50), Some("revoked"));
        assert!(ask(&shared, &[("x-api-key", &shown)], 51).unwrap_err().to_string().contains("revoked"));
    }
}
