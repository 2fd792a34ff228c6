//! Delay before a request that certainly was not processed is sent again.

use std::time::Duration;

/// The first wait, before jitter.
pub const FIRST: Duration = Duration::from_millis(100);
/// Number of retries after which the delay stops growing.
const GROWING: u32 = 16;

/// The wait before this retry, counted from 0: 100 ms x 2^n, and up to half of that on top. `chance` is any random number.
#[must_use]
pub fn delay(retry: u32, chance: u64) -> Duration {
    let wait = FIRST.saturating_mul(1 << retry.min(GROWING));
    let half = u64::try_from(wait.as_micros() / 2).unwrap_or(u64::MAX - 1);
    wait + Duration::from_micros(chance % (half + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// NO-3: 100 ms x 2^n + jitter 0..half.
    #[test]
    fn no3_waits_double_from_a_tenth_of_a_second() {
        let waits: Vec<u128> = (0..5).map(|retry| delay(retry, 0).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600]);
        assert_eq!(delay(0, 50_000).as_millis(), 150);
        assert_eq!(delay(0, 50_001).as_millis(), 100);
    }

    proptest! {
        #[test]
        fn no3_jitter_is_at_most_half(retry in 0..100_u32, chance in any::<u64>()) {
            let plain = delay(retry, 0);
            let wait = delay(retry, chance);
            prop_assert!(wait >= plain && wait <= plain + plain / 2);
        }
    }
}
