//! A random source that can be repeated: the same seed, the same throws.

/// The dice (splitmix64).
pub struct Dice(u64);

impl Dice {
    /// Dice that are thrown as this seed says.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5A5A_5A5A)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one; 0 where there is none.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }

    /// A number of milliseconds within these bounds, the upper one left out.
    pub fn millis(&mut self, range: std::ops::Range<u64>) -> std::time::Duration {
        let span = range.end.saturating_sub(range.start).max(1);
        std::time::Duration::from_millis(range.start + self.next() % span)
    }

    /// True in this many of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// The seed of other dice.
    pub fn seed(&mut self) -> u64 {
        self.next()
    }
}
