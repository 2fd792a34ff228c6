//! Tokens that were verified, kept by the hash of their bytes until they expire, so that each is verified once.

use aws_lc_rs::digest::{SHA256, digest};
use signalbox_engine::Principal;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::standing::{Revocation, Standing};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, RwLock};

/// The most tokens that are kept. When there are more, those that expire first go first.
pub const MAX_TOKENS: usize = 10_000;

/// A token that was verified.
#[derive(Clone, Debug)]
pub struct VerifiedToken {
    /// On whose behalf its holder calls.
    pub principal: Principal,
    /// What is known of it.
    pub standing: Arc<Standing>,
    /// What else the token says, as (name, value).
    pub claims: Vec<(Box<str>, Box<str>)>,
    /// The name of its issuer.
    pub issuer: Arc<str>,
    /// The key that signed it.
    pub kid: Option<Box<str>>,
    /// Ends it early, with all that was computed of it before.
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

/// The table. Copies share it.
#[derive(Clone, Debug, Default)]
pub struct VerifiedTokens(Arc<RwLock<HashMap<[u8; 32], VerifiedToken>>>);

impl VerifiedTokens {
    /// The token, if it was verified before and is still good.
    #[must_use]
    pub fn get(&self, token: &[u8], now: u64) -> Option<VerifiedToken> {
        self.0.read().unpoisoned().get(&key(token)).filter(|known| known.is_good(now)).cloned()
    }

    /// Keeps a token.
    pub fn insert(&self, token: &[u8], verified: VerifiedToken, now: u64) {
        let mut table = self.0.write().unpoisoned();
        if table.len() >= MAX_TOKENS {
            table.retain(|_, known| known.is_good(now));
        }
        if table.len() >= MAX_TOKENS {
            let mut times: Vec<u64> = table.values().map(VerifiedToken::expires).collect();
            times.sort_unstable();
            // A quarter goes at once, so that this is rare.
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

    /// Has every token verified again when it comes again, without revoking any.
    pub fn outdate(&self) {
        self.0.read().unpoisoned().values().for_each(|known| known.revocations.iter().for_each(Revocation::outdate));
    }

    /// Revokes all tokens that this is true of, and returns how many they were.
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

    /// How many are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.read().unpoisoned().len()
    }

    /// True if none is kept.
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
