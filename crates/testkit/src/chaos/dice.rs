//! A random source that can be repeated: the same seed, the same throws.

/// The source, SplitMix64.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// A source that begins here.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another source, which throws otherwise.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.throw())
    }

    /// Any number.
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one; 0 below 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.throw().checked_rem(end).unwrap_or(0)
    }

    /// A number of this range, its end included.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// True once in so many throws.
    pub fn once_in(&mut self, throws: u64) -> bool {
        self.below(throws) == 0
    }

    /// One of these; none of an empty slice.
    pub fn pick<'a, T>(&mut self, among: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(among.len() as u64)).unwrap_or(0);
        among.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_throws_the_same_and_every_face_comes_up() {
        let throws = |seed| {
            let mut dice = Dice::new(seed);
            (0..100).map(|_| dice.between(1, 6)).collect::<Vec<_>>()
        };
        assert_eq!(throws(7), throws(7));
        assert_ne!(throws(7), throws(8));
        assert!((1..=6).all(|face| throws(7).contains(&face)));
        assert!(Dice::new(1).pick::<u8>(&[]).is_none());
    }
}
