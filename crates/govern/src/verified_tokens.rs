//! Cache of verified tokens, keyed by the hash of their bytes, so that each is verified once until it expires.

use aws_lc_rs::digest::{SHA256, digest};
use signalbox_engine::Principal;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::standing::{Revocation, Standing};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, RwLock};

/// Maximum number of cached tokens. Beyond it, those that expire first are evicted.
pub const MAX_TOKENS: usize = 10_000;

/// Verified token with its standing.
#[derive(Clone, Debug)]
pub struct VerifiedToken {
    /// Principal on whose behalf the holder calls.
    pub principal: Principal,
    /// Standing of the principal.
    pub standing: Arc<Standing>,
    /// Other claims of the token, as (name, value).
    pub claims: Vec<(Box<str>, Box<str>)>,
    /// Name of its issuer.
    pub issuer: Arc<str>,
    /// Id of the key that signed it.
    pub kid: Option<Box<str>>,
    /// Revocations of every credential issued for the token, including outdated ones.
    pub revocations: Vec<Revocation>,
}

impl VerifiedToken {
    fn is_good(&self, now: u64) -> bool {
        self.standing.credential.as_ref().is_none_or(|credential| credential.is_current(now))
    }

    fn expires(&self) -> u64 {
        self.standing.credential.as_ref().and_then(|credential| credential.expires).unwrap_or(u64::MAX)
    }
}

/// Cache table. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct VerifiedTokens(Arc<RwLock<HashMap<[u8; 32], VerifiedToken>>>);

impl VerifiedTokens {
    /// Returns the token if it is cached and still valid.
    #[must_use]
    pub fn get(&self, token: &[u8], now: u64) -> Option<VerifiedToken> {
        self.0.read().unpoisoned().get(&key(token)).filter(|known| known.is_good(now)).cloned()
    }

    pub fn insert(&self, token: &[u8], verified: VerifiedToken, now: u64) {
        let mut table = self.0.write().unpoisoned();
        if table.len() >= MAX_TOKENS {
            table.retain(|_, known| known.is_good(now));
        }
        if table.len() >= MAX_TOKENS {
            let mut times: Vec<u64> = table.values().map(VerifiedToken::expires).collect();
            times.sort_unstable();
            // Evict a quarter at once, so that this is rare.
            let least = times.get(MAX_TOKENS / 4).copied().unwrap_or(u64::MAX);
            table.retain(|_, known| known.expires() > least);
        }
        match table.entry(key(token)) {
            Entry::Vacant(free) => drop(free.insert(verified)),
            Entry::Occupied(mut before) => {
                let mut verified = verified;
                verified.revocations.append(&mut before.get_mut().revocations);
                before.insert(verified);
            }
        }
    }

    /// Has every token verified anew at its next use, without revoking any.
    pub fn outdate(&self) {
        self.0.read().unpoisoned().values().for_each(|known| known.revocations.iter().for_each(Revocation::outdate));
    }

    /// Revokes all tokens that match, and returns their number.
    pub fn revoke(&self, which: impl Fn(&VerifiedToken) -> bool) -> usize {
        let mut table = self.0.write().unpoisoned();
        let before = table.len();
        table.retain(|_, known| {
            let meant = which(known);
            if meant {
                known.revocations.iter().for_each(Revocation::revoke);
            }
            !meant
        });
        before - table.len()
    }

    /// Returns the number of cached tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.read().unpoisoned().len()
    }

    /// Returns true if no token is cached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn key(token: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, token).as_ref());
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::standing::Credential;

    fn token(expires: u64, kid: &str) -> VerifiedToken {
        let (credential, revocation) = Credential::new("t", Some(expires));
        let standing = Arc::new(Standing { credential: Some(credential), ..Standing::default() });
        let (principal, issuer) = (Principal::named("corp:ada"), "corp".into());
        VerifiedToken {
            principal,
            standing,
            claims: Vec::new(),
            issuer,
            kid: Some(kid.into()),
            revocations: vec![revocation],
        }
    }

    #[test]
    fn a_token_is_known_until_it_expires_or_its_key_is_withdrawn() {
        let tokens = VerifiedTokens::default();
        tokens.insert(b"a", token(10, "k1"), 0);
        tokens.insert(b"b", token(10, "k2"), 0);
        assert!(tokens.get(b"a", 9).is_some() && tokens.get(b"a", 10).is_none() && tokens.get(b"c", 0).is_none());
        let copy = tokens.get(b"a", 0).unwrap();
        assert_eq!(tokens.revoke(|token| token.kid.as_deref() == Some("k1")), 1);
        assert!(tokens.get(b"a", 0).is_none() && tokens.get(b"b", 0).is_some());
        assert_eq!(copy.standing.credential.as_ref().unwrap().fault(0), Some("revoked"));
    }

    #[test]
    fn those_that_expire_first_make_room() {
        let tokens = VerifiedTokens::default();
        for n in 0..=MAX_TOKENS as u64 {
            tokens.insert(&n.to_be_bytes(), token(1_000 + n, "k"), 0);
        }
        assert!(tokens.len() <= MAX_TOKENS);
        assert!(tokens.get(&0_u64.to_be_bytes(), 0).is_none());
        assert!(tokens.get(&(MAX_TOKENS as u64).to_be_bytes(), 0).is_some());
    }
}
