//! Keyed hashes of runs of characters.
//!
//! A hash is a polynomial over the characters, at a secret point of the field of integers modulo 2^61 - 1. Two
//! different runs of length `n` agree for at most `n` of the 2^61 possible points, so that an attacker who does not
//! know the point cannot make texts that agree.

use super::{FlowKey, FlowLimits};

/// Modulus of the field, a Mersenne prime.
const PRIME: u64 = (1 << 61) - 1;

/// Hash function of one tracker, with the lengths that follow from its limits.
#[derive(Copy, Clone)]
pub(super) struct GramHasher {
    /// Secret point of the polynomials.
    point: u64,
    /// Secret factor that joins two hashes.
    factor: u64,
    /// Factor that takes the oldest character out of a hash.
    outdated: u64,
    /// Length of the runs that are hashed one by one.
    pub(super) inner: usize,
    /// Number of inner runs on the way from the first to the last one of a gram.
    pub(super) spread: usize,
}

impl GramHasher {
    pub(super) fn new(key: FlowKey, limits: &FlowLimits) -> Self {
        let spread = (limits.min_chars / 5).clamp(1, 16);
        // Any `spread` successive grams hold a selected one, so that a run of `min_chars` holds one.
        let gram = limits.min_chars + 1 - spread;
        let inner = gram - spread;
        let random = u128::from_le_bytes(key.0);
        let point = field_element(random as u64);
        let outdated = PRIME - (0..inner).fold(1, |power, _| multiply_add(power, point, 0));
        Self { point, factor: field_element((random >> 64) as u64), outdated, inner, spread }
    }

    /// Returns the length of a gram.
    pub(super) const fn gram(&self) -> usize {
        self.inner + self.spread
    }

    /// Returns the hash of the inner run that is one character further.
    #[inline]
    pub(super) fn advance(&self, hash: u64, character: u32, oldest: u32) -> u64 {
        let leaving = u128::from(oldest) * u128::from(self.outdated) + u128::from(character);
        reduce(u128::from(hash) * u128::from(self.point) + leaving)
    }

    /// Returns the hash of a gram from those of its first and last inner run, which overlap.
    pub(super) fn join(&self, first: u64, last: u64) -> u64 {
        multiply_add(first, self.factor, last)
    }

    /// Returns the hash of a whole value. It never is that of a gram, except by chance.
    pub(super) fn value(&self, mark: u32, characters: impl Iterator<Item = char>) -> u64 {
        let start = u64::from(u32::from(char::MAX) + 1 + mark);
        let hash = characters
            .fold(start, |hash, character| multiply_add(hash, self.point, u64::from(u32::from(character)) + 1));
        self.join(hash, start)
    }
}

/// Returns an element of the field that is neither small nor predictable.
const fn field_element(random: u64) -> u64 {
    let floor = 1 << 32;
    floor + random % (PRIME - floor)
}

fn multiply_add(one: u64, other: u64, more: u64) -> u64 {
    reduce(u128::from(one) * u128::from(other) + u128::from(more))
}

/// Returns the remainder of a number below 2^124.
#[inline]
const fn reduce(number: u128) -> u64 {
    let once = (number as u64 & PRIME) + (number >> 61) as u64;
    let twice = (once & PRIME) + (once >> 61);
    if twice >= PRIME { twice - PRIME } else { twice }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reduced() {
        let prime = u128::from(PRIME);
        for number in [0, 1, prime - 1, prime, prime + 1, prime * prime, (1 << 123) + 7, (1 << 124) - 1] {
            assert_eq!(u128::from(reduce(number)), number % prime, "{number}");
        }
    }

    #[test]
    fn a_hash_depends_on_the_latest_characters_and_the_key_alone() {
        let hash = |key: u8, text: &str| {
            let hasher = GramHasher::new(FlowKey([key; 16]), &FlowLimits { min_chars: 8, ..FlowLimits::default() });
            let symbols: Vec<u32> = std::iter::repeat_n(0, hasher.inner).chain(text.chars().map(u32::from)).collect();
            symbols
                .windows(hasher.inner + 1)
                .fold(0, |hash, window| hasher.advance(hash, window[hasher.inner], window[0]))
        };
        assert_eq!(hash(1, "before the end"), hash(1, "another way to the end"));
        assert_ne!(hash(1, "before the end"), hash(1, "before the enf"));
        assert_ne!(hash(1, "before the end"), hash(2, "before the end"));
    }

    #[test]
    fn a_gram_is_covered_by_its_first_and_last_inner_run() {
        for min_chars in 8..=1024 {
            let hasher = GramHasher::new(FlowKey([1; 16]), &FlowLimits { min_chars, ..FlowLimits::default() });
            assert!(hasher.spread <= hasher.inner && hasher.spread >= 1, "{min_chars}");
            assert_eq!(hasher.gram() + hasher.spread - 1, min_chars);
        }
    }
}
