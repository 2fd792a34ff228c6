//! Rate limits (GCRA): a bucket that is full at first and refills evenly. The only state of a bucket is the time at
//! which it will be full again.

use core::net::IpAddr;
use std::time::{Duration, Instant};

/// Rate limit. The whole limit may be used at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Number of events allowed per period.
    pub limit: u64,
    /// Period in which that many are allowed.
    pub per: Duration,
}

impl Rate {
    /// Takes one from the bucket that will be full at this time (`None`: it is full). Returns the new time at which it
    /// will be full.
    ///
    /// # Errors
    /// Returns the time until the next one is available, if the bucket is empty.
    pub fn take(self, full: Option<Instant>, now: Instant) -> Result<Instant, Duration> {
        let after = self.used(full, now) + self.each();
        match after.checked_sub(self.each() * u128::from(self.limit)) {
            None | Some(0) => Ok(now + nanos(after)),
            Some(over) => Err(nanos(over)),
        }
    }

    /// Returns the number left in the bucket.
    #[must_use]
    pub fn left(self, full: Option<Instant>, now: Instant) -> u64 {
        let used = u64::try_from(self.used(full, now).div_ceil(self.each())).unwrap_or(u64::MAX);
        self.limit.saturating_sub(used)
    }

    /// Returns the time in which one is refilled, in nanoseconds.
    fn each(self) -> u128 {
        (self.per.as_nanos() / u128::from(self.limit.max(1))).max(1)
    }

    fn used(self, full: Option<Instant>, now: Instant) -> u128 {
        full.map_or(0, |full| full.saturating_duration_since(now).as_nanos())
    }
}

/// Returns an address as the key of a bucket. An IPv6 address counts as its /64 network, because its holder controls
/// the whole network.
#[must_use]
pub fn address_key(address: Option<IpAddr>) -> String {
    match address.map(|address| address.to_canonical()) {
        None => "-".to_owned(),
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}")
        }
    }
}

fn nanos(number: u128) -> Duration {
    Duration::from_nanos(u64::try_from(number).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_full_at_first_and_fills_again_evenly() {
        let (rate, start) = (Rate { limit: 3, per: Duration::from_secs(60) }, Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut full = None;
        for left in [2, 1, 0] {
            full = Some(rate.take(full, start).unwrap());
            assert_eq!(rate.left(full, start), left);
        }
        assert_eq!(rate.take(full, start), Err(Duration::from_secs(20)));
        assert_eq!(rate.take(full, at(19)), Err(Duration::from_secs(1)));
        full = Some(rate.take(full, at(20)).unwrap());
        assert_eq!((rate.left(full, at(20)), rate.left(full, at(500))), (0, 3));
    }

    #[test]
    fn over_any_time_no_more_happen_than_the_limit_and_what_came_back() {
        let (rate, start) = (Rate { limit: 10, per: Duration::from_secs(1) }, Instant::now());
        let mut full = None;
        let mut passed = 0;
        for ms in 0..10_000 {
            if let Ok(next) = rate.take(full, start + Duration::from_millis(ms)) {
                full = Some(next);
                passed += 1;
            }
        }
        assert_eq!(passed, 10 + 99);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let key = |text: &str| address_key(Some(text.parse().unwrap()));
        assert_eq!(key("2001:db8::1"), key("2001:db8::2"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_eq!(key("::ffff:10.0.0.1"), "10.0.0.1");
    }
}
