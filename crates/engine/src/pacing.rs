//! Pacing of calls to a backend that failed or restarted: the delay before a retry, and the slow start after a restart.

use std::time::Duration;

/// Delay before the first retry, without jitter.
pub const FIRST_DELAY: Duration = Duration::from_millis(100);
/// Number of retries after which the delay stops growing.
const GROWING: u32 = 16;

/// Returns the delay before this retry, counted from 0: 100 ms x 2^n, plus up to half of that. `chance` is any random
/// number.
#[must_use]
pub fn retry_delay(retry: u32, chance: u64) -> Duration {
    let wait = FIRST_DELAY.saturating_mul(1 << retry.min(GROWING));
    let half = u64::try_from(wait.as_micros() / 2).unwrap_or(u64::MAX - 1);
    wait + Duration::from_micros(chance % (half + 1))
}

/// Limit on concurrent calls right after the start.
pub const FIRST_LIMIT: usize = 4;
/// Limit on concurrent calls at the end of the slow start, after which there is no limit.
pub const LAST_LIMIT: usize = 256;

/// Returns the limit on concurrent calls to a backend that started this long ago. `None` once the slow start is over.
#[must_use]
pub fn slow_start_limit(since: Duration, slow_start: Duration) -> Option<usize> {
    if since >= slow_start {
        return None;
    }
    // Doubles in equal parts of the time, from the first limit to the last.
    let steps = (LAST_LIMIT / FIRST_LIMIT).ilog2();
    let done = since.as_secs_f64() / slow_start.as_secs_f64() * f64::from(steps);
    let done = (0..steps).filter(|step| f64::from(*step) < done.floor()).count();
    Some(FIRST_LIMIT << done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 100 ms x 2^n + jitter 0..half.
    /// Proves NO-3.
    #[test]
    fn waits_double_from_a_tenth_of_a_second() {
        let waits: Vec<u128> = (0..5).map(|retry| retry_delay(retry, 0).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600]);
        assert_eq!(retry_delay(0, 50_000).as_millis(), 150);
        assert_eq!(retry_delay(0, 50_001).as_millis(), 100);
    }

    proptest! {
        /// Proves NO-3.
        #[test]
        fn jitter_is_at_most_half(retry in 0..100_u32, chance in any::<u64>()) {
            let plain = retry_delay(retry, 0);
            let wait = retry_delay(retry, chance);
            prop_assert!(wait >= plain && wait <= plain + plain / 2);
        }
    }

    #[test]
    fn it_doubles_until_there_is_no_bound() {
        let start = Duration::from_secs(3);
        let at = |millis| slow_start_limit(Duration::from_millis(millis), start);
        assert_eq!((at(0), at(499), at(500), at(1_000)), (Some(4), Some(4), Some(8), Some(16)));
        assert_eq!((at(2_999), at(3_000)), (Some(128), None));
        assert_eq!(slow_start_limit(Duration::ZERO, Duration::ZERO), None);
    }

    proptest! {
        #[test]
        fn it_never_shrinks_and_never_leaves_its_bounds(start in 1..100_000_u64, one in 0..100_000_u64, more in 0..100_000_u64) {
            let at = |millis| slow_start_limit(Duration::from_millis(millis), Duration::from_millis(start)).unwrap_or(usize::MAX);
            prop_assert!(at(one) <= at(one + more));
            prop_assert!(at(one) >= FIRST_LIMIT && (at(one) <= LAST_LIMIT || at(one) == usize::MAX));
        }
    }
}
