//! Says whether a backend wants the tokens that callers show, to exchange them for others (RFC 8693). While none does,
//! no token outlives its verification.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set once a backend is reached with what tokens of callers are exchanged for.
#[derive(Debug, Default)]
pub struct CallerTokens {
    wanted: AtomicBool,
}

impl CallerTokens {
    /// Has tokens kept with the credentials of callers from now on.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// True if a backend wants tokens.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }
}
