//! Tokens received in exchange for tokens of callers, for one backend. Each is bound to the exact token that was
//! exchanged: another token of the same principal may have fewer rights.

use crate::secret_text::SecretText;
use crate::token_request::TokenSet;
use aws_lc_rs::digest::{SHA256, digest};
use signalbox_engine::bounded::make_room;
use signalbox_engine::lock::LockResultExt as _;
use std::collections::HashMap;
use std::sync::Mutex;

/// Maximum number of tokens in memory. Beyond it, the one that expires first is dropped.
const MAX_EXCHANGED: usize = 10_000;

#[derive(Default)]
pub(crate) struct ExchangedTokens(Mutex<HashMap<[u8; 32], TokenSet>>);

impl ExchangedTokens {
    /// Returns the token received in exchange for `subject`, unless it has expired. Times are in seconds since 1970.
    pub(crate) fn get(&self, subject: &SecretText, now: u64) -> Option<TokenSet> {
        self.0.lock().unpoisoned().get(&key(subject)).filter(|token| !token.is_over(now)).cloned()
    }

    pub(crate) fn keep(&self, subject: &SecretText, token: TokenSet, now: u64) {
        let mut all = self.0.lock().unpoisoned();
        if all.len() >= MAX_EXCHANGED {
            all.retain(|_, token| !token.is_over(now));
        }
        make_room(&mut all, MAX_EXCHANGED, |token| token.expires);
        all.insert(key(subject), token);
    }
}

fn key(subject: &SecretText) -> [u8; 32] {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, subject.expose().as_bytes()).as_ref());
    key
}
