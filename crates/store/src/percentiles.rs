//! Percentiles of many durations, in bounded memory.

/// Up to this many durations percentiles are exact.
const MAX_EXACT: usize = 65_536;

/// Beyond that a duration is known to one part in 128.
const STEP_BITS: u32 = 7;

/// Durations, as they come.
#[derive(Clone, Default, Debug)]
pub struct Percentiles {
    exact: Vec<u64>,
    steps: Vec<u64>,
    count: u64,
}

impl Percentiles {
    /// One more.
    pub fn add(&mut self, took: u64) {
        self.count += 1;
        if !self.steps.is_empty() {
            self.step(took);
        } else if self.exact.len() < MAX_EXACT {
            self.exact.push(took);
        } else {
            self.steps = vec![0; step_of(u64::MAX) + 1];
            for took in std::mem::take(&mut self.exact) {
                self.step(took);
            }
            self.step(took);
        }
    }

    fn step(&mut self, took: u64) {
        self.steps[step_of(took)] += 1;
    }

    /// The least durations that this many of a hundred do not exceed, for each of `wanted`.
    pub fn at<const N: usize>(mut self, wanted: [u64; N]) -> [u64; N] {
        self.exact.sort_unstable();
        wanted.map(|percent| {
            let rank = (self.count * percent).div_ceil(100).max(1);
            if self.steps.is_empty() {
                return self.exact.get(rank as usize - 1).copied().unwrap_or(0);
            }
            let mut seen = 0;
            let place = self.steps.iter().position(|count| {
                seen += count;
                seen >= rank
            });
            place.map_or(0, end_of)
        })
    }
}

/// The step that holds a duration: exact below 128, then 128 steps for each doubling.
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
    fn few_durations_are_exact() {
        let mut few = Percentiles::default();
        (1..=200).rev().for_each(|took| few.add(took));
        assert_eq!(few.at([50, 95, 99]), [100, 190, 198]);
        assert_eq!(Percentiles::default().at([50]), [0]);
    }

    #[test]
    fn many_durations_are_known_to_one_percent() {
        let mut many = Percentiles::default();
        (0..200_000u64).for_each(|n| many.add(n * 1_000));
        for (found, exact) in many.at([50, 95, 99]).into_iter().zip([99_999_000u64, 189_999_000, 197_999_000]) {
            assert!(found >= exact && found <= exact + exact / 100, "{found} {exact}");
        }
    }

    #[test]
    fn every_duration_lies_in_its_step() {
        for took in [0, 1, 127, 128, 129, 255, 256, 1_000_000, u64::MAX / 3, u64::MAX] {
            let step = step_of(took);
            assert!(end_of(step) >= took && end_of(step) - took <= took >> STEP_BITS, "{took}");
            assert!(step == 0 || end_of(step - 1) < took, "{took}");
        }
    }
}
