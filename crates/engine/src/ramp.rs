//! Slow start: the number of concurrent calls that a backend gets after a restart, few at first and then more.

use std::time::Duration;

/// Concurrent calls right after the start.
pub const FIRST: usize = 4;
/// Concurrent calls at the end of the slow start, after which there is no limit.
pub const LAST: usize = 256;

/// The limit on concurrent calls at a backend that started this long ago. `None` once the slow start is over.
#[must_use]
pub fn allowed(since: Duration, slow_start: Duration) -> Option<usize> {
    if since >= slow_start {
        return None;
    }
    // Doubles in equal parts of the time, from the first limit to the last.
    let steps = (LAST / FIRST).ilog2();
    let done = since.as_secs_f64() / slow_start.as_secs_f64() * f64::from(steps);
    let done = (0..steps).filter(|step| f64::from(*step) < done.floor()).count();
    Some(FIRST << done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_doubles_until_there_is_no_bound() {
        let start = Duration::from_secs(3);
        let at = |millis| allowed(Duration::from_millis(millis), start);
        assert_eq!((at(0), at(499), at(500), at(1_000)), (Some(4), Some(4), Some(8), Some(16)));
        assert_eq!((at(2_999), at(3_000)), (Some(128), None));
        assert_eq!(allowed(Duration::ZERO, Duration::ZERO), None);
    }

    proptest! {
        #[test]
        fn it_never_shrinks_and_never_leaves_its_bounds(start in 1..100_000_u64, one in 0..100_000_u64, more in 0..100_000_u64) {
            let at = |millis| allowed(Duration::from_millis(millis), Duration::from_millis(start)).unwrap_or(usize::MAX);
            prop_assert!(at(one) <= at(one + more));
            prop_assert!(at(one) >= FIRST && (at(one) <= LAST || at(one) == usize::MAX));
        }
    }
}
