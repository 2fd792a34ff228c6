//! The tokens that callers proved themselves with, for backends that are reached with what an identity provider gives for them
//! (RFC 8693). A caller's token goes to that provider and nowhere else.
//!
//! They are kept in memory only, and only where a backend wants them. A call is made with the token of its own caller
//! ([`crate::standing::Credential::token`]). Requests of the gateway itself on behalf of a principal, such as lists,
//! are made with the token that was verified last of that principal, which stays here until it expires.

use crate::caller::Principal;
use crate::lock::LockResultExt as _;
use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most principals whose token is kept.
pub const MAX_CALLER_TOKENS: usize = 100_000;

/// Those tokens.
#[derive(Default)]
pub struct CallerTokens {
    wanted: AtomicBool,
    /// By principal: the token, and when it expires in milliseconds since 1970.
    kept: Mutex<HashMap<Principal, (Box<str>, u64)>>,
}

impl fmt::Debug for CallerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerTokens").finish_non_exhaustive()
    }
}

impl CallerTokens {
    /// Keeps tokens from now on.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// True if a backend wants tokens.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Keeps a token that was verified, in the place of the one before. Nothing is kept while no backend wants it.
    pub fn put(&self, principal: &Principal, token: &[u8], expires: u64, now: u64) {
        let Ok(token) = std::str::from_utf8(token) else { return };
        if !self.is_wanted() {
            return;
        }
        let mut kept = self.kept.lock().unpoisoned();
        if kept.len() >= MAX_CALLER_TOKENS && !kept.contains_key(principal) {
            kept.retain(|_, (_, expires)| *expires > now);
        }
        if kept.len() < MAX_CALLER_TOKENS || kept.contains_key(principal) {
            kept.insert(principal.clone(), (token.into(), expires));
        }
    }

    /// The token of a principal, if it is still good.
    #[must_use]
    pub fn get(&self, principal: &Principal, now: u64) -> Option<Box<str>> {
        let kept = self.kept.lock().unpoisoned();
        kept.get(principal).filter(|(_, expires)| *expires > now).map(|(token, _)| token.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_token_of_each_principal_is_kept_until_it_expires_and_only_where_it_is_wanted() {
        let (tokens, ada, eve) = (CallerTokens::default(), Principal::local("ada"), Principal::local("eve"));
        tokens.put(&ada, b"made-up-one", 100, 0);
        assert_eq!(tokens.get(&ada, 0), None);
        tokens.want();
        tokens.put(&ada, b"made-up-one", 100, 0);
        tokens.put(&ada, b"made-up-two", 200, 50);
        assert_eq!(tokens.get(&ada, 199).as_deref(), Some("made-up-two"));
        assert_eq!((tokens.get(&ada, 200), tokens.get(&eve, 0)), (None, None));
        assert!(!format!("{tokens:?}").contains("made-up"));
    }
}
