//! Percentiles of durations: exact for small numbers, in bounded memory beyond.

use crate::percentiles::{Percentiles as Sketch, rank};

/// Maximum number of durations with exact percentiles.
const MAX_EXACT: usize = 65_536;

/// Precision beyond that, in bits: a duration is known to one part in 128.
const STEP_BITS: u32 = 7;

/// Durations collected for percentiles.
#[derive(Clone, Debug)]
pub enum Durations {
    /// Every duration, while there are few.
    Few(Vec<u64>),
    /// Number of durations in each step.
    Many(Sketch<STEP_BITS>),
}

impl Default for Durations {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Durations {
    /// Adds a duration, in nanoseconds.
    pub fn add(&mut self, took: u64) {
        match self {
            Self::Few(few) if few.len() < MAX_EXACT => few.push(took),
            Self::Few(few) => {
                let mut many = Sketch::default();
                few.iter().for_each(|took| many.add(*took));
                many.add(took);
                *self = Self::Many(many);
            }
            Self::Many(many) => many.add(took),
        }
    }

    /// Returns the percentiles in `wanted`: for each, the least duration that this many of a hundred do not exceed.
    pub fn at<const N: usize>(self, wanted: [u64; N]) -> [u64; N] {
        match self {
            Self::Few(mut few) => {
                few.sort_unstable();
                let at = |percent| few.get(rank(few.len() as u64, percent) as usize - 1).copied().unwrap_or(0);
                wanted.map(at)
            }
            Self::Many(many) => wanted.map(|percent| many.at(percent)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_durations_are_exact() {
        let mut few = Durations::default();
        (1..=200).rev().for_each(|took| few.add(took));
        assert_eq!(few.at([50, 95, 99]), [100, 190, 198]);
        assert_eq!(Durations::default().at([50]), [0]);
    }

    #[test]
    fn many_durations_are_known_to_one_percent() {
        let mut many = Durations::default();
        (0..200_000u64).for_each(|n| many.add(n * 1_000));
        for (found, exact) in many.at([50, 95, 99]).into_iter().zip([99_999_000u64, 189_999_000, 197_999_000]) {
            assert!(found >= exact && found <= exact + exact / 100, "{found} {exact}");
        }
    }
}
