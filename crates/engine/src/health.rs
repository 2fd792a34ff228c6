//! Health of a backend, measured by pings.
//!
//! A number of consecutive unanswered pings makes a backend unhealthy, a number of answered ones healthy again. While
//! it is in doubt it is pinged more often.

use std::time::Duration;

/// Ping intervals and thresholds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PingRules {
    /// Interval while the backend is healthy.
    pub interval: Duration,
    /// Interval while the backend is in doubt.
    pub doubt_interval: Duration,
    /// Time limit for an answer.
    pub timeout: Duration,
    /// Number of consecutive unanswered pings that make it unhealthy.
    pub failures: u32,
    /// Number of consecutive answered pings that make it healthy again.
    pub successes: u32,
}

impl Default for PingRules {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(300),
            doubt_interval: Duration::from_secs(30),
            timeout: Duration::from_secs(5),
            failures: 3,
            successes: 2,
        }
    }
}

/// Health of a backend.
#[derive(Clone, Debug)]
pub struct Health {
    rules: PingRules,
    well: bool,
    /// Number of consecutive results that contradict the current state.
    against: u32,
    asked: bool,
}

impl Health {
    /// Creates the state of a backend that is assumed healthy.
    #[must_use]
    pub fn new(rules: PingRules) -> Self {
        Self { rules, well: true, against: 0, asked: false }
    }

    /// Counts the result of a ping. Returns true if it made the backend unhealthy.
    pub fn pinged(&mut self, answered: bool) -> bool {
        self.asked = true;
        if answered == self.well {
            self.against = 0;
            return false;
        }
        self.against += 1;
        let enough = if self.well { self.rules.failures } else { self.rules.successes };
        if self.against < enough {
            return false;
        }
        self.well = answered;
        self.against = 0;
        !self.well
    }

    /// Returns true if the backend is healthy.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.well
    }

    /// Returns the delay before the next ping.
    #[must_use]
    pub fn wait(&self) -> Duration {
        if self.well && self.against == 0 && self.asked {
            self.rules.interval
        } else {
            self.rules.doubt_interval.min(self.rules.interval)
        }
    }

    /// Returns the state as a word for users.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match (self.well, self.against, self.asked) {
            (true, _, false) => "not pinged yet",
            (true, 0, true) => "well",
            (true, _, true) => "in doubt",
            (false, ..) => "unwell",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two up, three down.
    /// Proves SO-15.
    #[test]
    fn three_silences_make_it_unwell_and_two_answers_well_again() {
        let mut health = Health::new(PingRules::default());
        let told: Vec<(bool, bool, &str)> = [true, false, true, false, false, false, true, false, true, true]
            .map(|answered| (health.pinged(answered), health.is_well(), health.as_str()))
            .to_vec();
        let expected = [
            (false, true, "well"),
            (false, true, "in doubt"),
            (false, true, "well"),
            (false, true, "in doubt"),
            (false, true, "in doubt"),
            (true, false, "unwell"),
            (false, false, "unwell"),
            (false, false, "unwell"),
            (false, false, "unwell"),
            (false, true, "well"),
        ];
        assert_eq!(told, expected);
    }

    /// Every 300 s; every 30 s while there is doubt.
    /// Proves SO-15 and NO-10.
    #[test]
    fn a_backend_that_is_well_is_asked_seldom() {
        let mut health = Health::new(PingRules::default());
        assert_eq!(health.wait().as_secs(), 30, "whether it answers pings at all is found out early");
        health.pinged(true);
        assert_eq!(health.wait().as_secs(), 300);
        health.pinged(false);
        assert_eq!(health.wait().as_secs(), 30);
    }

    proptest! {
        #[test]
        fn it_changes_only_after_enough_in_a_row(
            failures in 1..5_u32, successes in 1..5_u32, answers in proptest::collection::vec(any::<bool>(), 0..200)
        ) {
            let mut health = Health::new(PingRules { failures, successes, ..PingRules::default() });
            let mut row: (bool, u32) = (true, 0);
            for answered in answers {
                let before = health.is_well();
                row = if row.0 == answered { (answered, row.1 + 1) } else { (answered, 1) };
                let fell = health.pinged(answered);
                prop_assert_eq!(fell, before && !health.is_well());
                if health.is_well() != before {
                    prop_assert_eq!(health.is_well(), answered);
                    let enough = if before { failures } else { successes };
                    prop_assert!(row.1 >= enough);
                }
            }
        }
    }
}
