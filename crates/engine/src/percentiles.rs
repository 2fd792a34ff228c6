//! Percentiles of many numbers in bounded memory, and the steps they are based on.
//!
//! Numbers are counted in steps whose width grows with the number: every doubling is divided into `1 << BITS` steps, so
//! that a number of any size is known to one part in `1 << BITS`. Small numbers have a step each.

/// Returns the number of steps for 64 bits.
#[must_use]
pub const fn steps<const BITS: u32>() -> usize {
    (64 - BITS as usize + 1) << BITS
}

/// Returns the step that holds a number.
#[must_use]
pub fn step_of<const BITS: u32>(number: u64) -> usize {
    let bits = 64 - number.leading_zeros();
    match bits.checked_sub(BITS + 1) {
        None => number as usize,
        Some(shift) => ((shift as usize) << BITS) + (number >> shift) as usize,
    }
}

/// Returns the smallest number of a step.
#[must_use]
pub fn start_of<const BITS: u32>(step: usize) -> u64 {
    let shift = (step >> BITS).saturating_sub(1);
    ((step - (shift << BITS)) as u64) << shift
}

/// Returns the largest number of a step.
#[must_use]
pub fn end_of<const BITS: u32>(step: usize) -> u64 {
    let shift = (step >> BITS).saturating_sub(1);
    start_of::<BITS>(step) + ((1 << shift) - 1)
}

/// Sketch of the numbers added so far.
#[derive(Clone, Debug)]
pub struct Percentiles<const BITS: u32> {
    steps: Box<[u32]>,
    count: u64,
}

impl<const BITS: u32> Default for Percentiles<BITS> {
    fn default() -> Self {
        Self { steps: vec![0; steps::<BITS>()].into_boxed_slice(), count: 0 }
    }
}

impl<const BITS: u32> Percentiles<BITS> {
    /// Adds a number to the distribution.
    pub fn add(&mut self, number: u64) {
        self.count += 1;
        if let Some(step) = self.steps.get_mut(step_of::<BITS>(number)) {
            *step = step.saturating_add(1);
        }
    }

    /// Returns how many numbers were added.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the least number that this many of a hundred do not exceed, rounded up to the end of its step; zero
    /// without numbers.
    #[must_use]
    pub fn at(&self, percent: u64) -> u64 {
        let rank = rank(self.count, percent);
        let mut seen = 0;
        let place = self.steps.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        });
        place.map_or(0, end_of::<BITS>)
    }
}

/// Returns the rank, starting at 1, of the least of `count` sorted numbers that this many of a hundred do not exceed.
#[must_use]
pub fn rank(count: u64, percent: u64) -> u64 {
    (count * percent).div_ceil(100).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_hold_their_numbers<const BITS: u32>() {
        let some = (0..5_000).chain((4..64).flat_map(|octave| {
            let edge = 1_u64 << octave;
            [edge - 1, edge, edge + 1, edge + edge / 3, edge + edge / 2]
        }));
        for number in some.chain([u64::MAX / 3, u64::MAX]) {
            let step = step_of::<BITS>(number);
            let (start, end) = (start_of::<BITS>(step), end_of::<BITS>(step));
            assert!(step < steps::<BITS>() && start <= number && number <= end, "{number} in {step}");
            assert!(end - number <= number >> BITS, "{number} in {step}");
            assert!(step == 0 || end_of::<BITS>(step - 1) == start - 1, "{number} in {step}");
        }
        assert_eq!(step_of::<BITS>(u64::MAX), steps::<BITS>() - 1);
    }

    #[test]
    fn every_number_lies_in_its_step() {
        steps_hold_their_numbers::<3>();
        steps_hold_their_numbers::<7>();
    }

    #[test]
    fn a_percentile_is_good_to_one_part_of_its_steps() {
        let mut durations = Percentiles::<3>::default();
        assert_eq!((durations.at(95), durations.count()), (0, 0));
        (1..=1000).for_each(|number| durations.add(number * 1_000_000));
        for (percent, exact) in [(50, 500_000_000), (95, 950_000_000), (100, 1_000_000_000)] {
            let found = durations.at(percent);
            assert!(found >= exact && found <= exact + exact / 8, "{percent}: {found}");
        }
    }
}
