//! About how long most calls took, in little memory: good to one part in eight.

/// Steps for each doubling, as a power of two.
const STEP_BITS: u32 = 3;
/// All steps of 64 bits.
const STEPS: usize = (64 - STEP_BITS as usize + 1) << STEP_BITS;

/// Durations, as they come.
#[derive(Clone, Debug)]
pub(super) struct Durations {
    steps: Box<[u32; STEPS]>,
    count: u64,
}

impl Default for Durations {
    fn default() -> Self {
        Self { steps: Box::new([0; STEPS]), count: 0 }
    }
}

impl Durations {
    pub fn add(&mut self, took: u64) {
        self.count += 1;
        if let Some(step) = self.steps.get_mut(step_of(took)) {
            *step = step.saturating_add(1);
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The duration that this many of a hundred do not exceed, rounded up to its step.
    pub fn at(&self, percent: u64) -> u64 {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let place = self.steps.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        });
        place.map_or(0, end_of)
    }
}

fn step_of(took: u64) -> usize {
    let bits = 64 - took.leading_zeros();
    if bits <= STEP_BITS {
        return took as usize;
    }
    let shift = bits - STEP_BITS - 1;
    ((shift as usize) << STEP_BITS) + (took >> shift) as usize
}

/// The longest duration of a step.
fn end_of(step: usize) -> u64 {
    if step < 2 << STEP_BITS {
        return step as u64;
    }
    let shift = (step >> STEP_BITS) - 1;
    let low = ((step - (shift << STEP_BITS)) as u64) << shift;
    low + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_good_to_one_part_in_eight() {
        let mut durations = Durations::default();
        assert_eq!(durations.at(95), 0);
        (1..=1000).for_each(|number| durations.add(number * 1_000_000));
        for (percent, exact) in [(50, 500_000_000), (95, 950_000_000), (100, 1_000_000_000)] {
            let found = durations.at(percent);
            assert!(found >= exact && found <= exact + exact / 8, "{percent}: {found}");
        }
        for took in [0, 1, 7, 8, 9, 15, 16, 1_000_003, u64::MAX] {
            assert!(end_of(step_of(took)) >= took && step_of(took) < STEPS, "{took}");
        }
    }
}
