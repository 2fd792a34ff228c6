//! Time and randomness of a request, passed in by the caller.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::sync::atomic::{AtomicU8, Ordering};

/// Time and randomness of one request.
pub struct Moment {
    /// Current time, in milliseconds since 1970.
    pub now: u64,
    seed: [u8; 32],
    drawn: AtomicU8,
}

impl Moment {
    /// Creates a moment. The seed must be secret, and used for nothing else.
    #[must_use]
    pub fn new(now: u64, seed: [u8; 32]) -> Self {
        Self { now, seed, drawn: AtomicU8::new(0) }
    }

    /// Returns an unguessable value of 256 bits, different on each call.
    #[must_use]
    pub fn draw(&self) -> String {
        let turn = self.drawn.fetch_add(1, Ordering::Relaxed);
        let mut input = self.seed.to_vec();
        input.push(turn);
        URL_SAFE_NO_PAD.encode(digest(&SHA256, &input))
    }

    /// Returns the time `seconds` later.
    #[must_use]
    pub fn after(&self, seconds: u64) -> u64 {
        self.now.saturating_add(seconds.saturating_mul(1_000))
    }
}

/// Hashes a secret for storage.
#[must_use]
pub(crate) fn hashed(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, secret.as_bytes()))
}

/// Compares two texts in constant time.
#[must_use]
pub(crate) fn same(one: &str, other: &str) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_is_another_value_and_another_seed_gives_others() {
        let moment = Moment::new(0, [1; 32]);
        let (one, two) = (moment.draw(), moment.draw());
        assert!(one != two && one.len() == 43);
        assert_eq!(Moment::new(0, [1; 32]).draw(), one);
        assert_ne!(Moment::new(0, [2; 32]).draw(), one);
        assert!(same(&one, &one) && !same(&one, &two) && !same("", &one));
    }
}
