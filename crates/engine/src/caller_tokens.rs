//! Switch for keeping the tokens of callers, which some backends exchange for others (RFC 8693). While no backend does,
//! tokens are dropped after their verification.

use std::sync::atomic::{AtomicBool, Ordering};

/// True once a backend is reached with tokens obtained in exchange for those of callers.
#[derive(Debug, Default)]
pub struct CallerTokens {
    wanted: AtomicBool,
}

impl CallerTokens {
    /// Keeps tokens with the credentials of callers from now on.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Returns true if a backend needs tokens.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }
}
