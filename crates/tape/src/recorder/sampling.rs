//! Sampling of exchanges, as the configuration describes it.

use std::time::Duration;

/// Sampling mode. An exchange is on the tape completely or not at all.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Sampling {
    /// Keeps every exchange of the run.
    #[default]
    All,
    /// Keeps a share, chosen by a seeded hash, so that the same run picks the same exchanges again.
    Share {
        /// Share from 0 to 1.
        share: f64,
        /// Seed that determines which exchanges belong to the share.
        seed: u64,
        /// Trigger for further exchanges.
        always: SamplingTrigger,
    },
    /// Keeps about this many exchanges per second: all while there are few, and a smaller share the more there are.
    Adaptive {
        /// Target number per second.
        target: f64,
        /// Seed that determines which exchanges belong to the share.
        seed: u64,
        /// Trigger for further exchanges.
        always: SamplingTrigger,
    },
    /// Keeps the first of every `n` exchanges.
    EveryNth {
        /// Length of a round.
        n: u64,
        /// Trigger for further exchanges.
        always: SamplingTrigger,
    },
    /// Keeps the exchanges that did not end well, with their neighbours.
    Errors {
        /// Number of kept exchanges that ended before each.
        before: usize,
        /// Number of kept exchanges that end after each.
        after: usize,
    },
    /// Keeps the exchanges that took at least this long.
    Slow {
        /// Minimum duration of a kept exchange.
        took: Duration,
    },
    /// Keeps the latest exchanges in memory, and writes them when the trigger fires.
    Ring {
        /// Maximum number of exchanges in memory.
        exchanges: usize,
        /// Maximum age of exchanges in memory.
        within: Option<Duration>,
        /// Number of exchanges that are also written after the trigger has fired.
        after: usize,
        /// Trigger, besides an explicit call.
        on: SamplingTrigger,
    },
}

/// Conditions that make an exchange worth keeping.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SamplingTrigger {
    /// Fires for an exchange that did not end well, neither with a result nor cancelled by its client.
    pub errors: bool,
    /// Fires for an exchange that took at least this long.
    pub slower_than: Option<Duration>,
    /// Fires for an exchange with one of these verdicts on its messages.
    pub verdicts: Vec<String>,
}

impl SamplingTrigger {
    /// Returns true if the trigger never fires.
    #[must_use]
    pub fn is_never(&self) -> bool {
        !self.errors && self.slower_than.is_none() && self.verdicts.is_empty()
    }

    pub(crate) fn fires_at_end(&self, outcome: &str, took: u64) -> bool {
        let slow = self.slower_than.is_some_and(|least| u128::from(took) >= least.as_nanos());
        slow || self.errors && outcome != "success" && outcome != "cancelled"
    }

    fn words(&self) -> String {
        let mut words = Vec::new();
        if self.errors {
            words.push("errors".to_owned());
        }
        words.extend(self.slower_than.map(|least| format!("slower than {least:?}")));
        words.extend(self.verdicts.iter().map(|verdict| format!("verdict {verdict}")));
        words.join(", ")
    }
}

impl Sampling {
    /// Returns the line for the head of the tape.
    #[must_use]
    pub fn words(&self) -> String {
        let besides = |text: String, always: &SamplingTrigger| match always.is_never() {
            true => text,
            false => format!("{text}, and {}", always.words()),
        };
        match self {
            Self::All => "all".to_owned(),
            Self::Share { share, always, .. } => besides(format!("share {share}"), always),
            Self::Adaptive { target, always, .. } => besides(format!("about {target} a second"), always),
            Self::EveryNth { n, always } => besides(format!("every {n}"), always),
            Self::Errors { before: 0, after: 0 } => "errors".to_owned(),
            Self::Errors { before, after } => format!("errors with {before} before and {after} after"),
            Self::Slow { took } => format!("slower than {took:?}"),
            Self::Ring { exchanges, within, after, on } => {
                let age = within.map(|age| format!(" of {age:?}")).unwrap_or_default();
                format!("ring of {exchanges}{age} with {after} after, on {}", on.words())
                    .trim_end_matches(", on ")
                    .to_owned()
            }
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        match self {
            Self::All => plan.pick = Pick::All,
            Self::Share { share, seed, always } => {
                plan.pick = Pick::Share { share: *share, seed: *seed };
                plan.trigger = always.clone();
            }
            Self::Adaptive { target, seed, always } => {
                plan.pick = Pick::Share { share: 1.0, seed: *seed };
                plan.target = Some(*target);
                plan.trigger = always.clone();
            }
            Self::EveryNth { n, always } => {
                plan.pick = Pick::EveryNth((*n).max(1));
                plan.trigger = always.clone();
            }
            Self::Errors { before, after } => {
                (plan.before, plan.after) = (*before, *after);
                plan.trigger.errors = true;
            }
            Self::Slow { took } => plan.trigger.slower_than = Some(*took),
            Self::Ring { exchanges, within, after, on } => {
                (plan.before, plan.after, plan.within) = (*exchanges, *after, *within);
                plan.trigger = on.clone();
                plan.ring = true;
            }
        }
        plan
    }
}

/// Sampling mode in the form that the sampling buffer evaluates.
#[derive(Clone, Default, Debug)]
pub(crate) struct Plan {
    pub(crate) pick: Pick,
    pub(crate) trigger: SamplingTrigger,
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) within: Option<Duration>,
    /// Number of exchanges to keep per second, for a share that follows the traffic.
    pub(crate) target: Option<f64>,
    /// True if a long-open exchange is dropped rather than kept.
    pub(crate) ring: bool,
}

/// Selection of the exchanges that are kept from their beginning.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) enum Pick {
    All,
    Share {
        share: f64,
        seed: u64,
    },
    EveryNth(u64),
    #[default]
    None,
}

impl Pick {
    /// Returns a copy with another share, if it is a share.
    pub(crate) fn with_share(self, other: f64) -> Self {
        match self {
            Self::Share { seed, .. } => Self::Share { share: other, seed },
            same => same,
        }
    }

    /// Returns true if the exchange of this number is selected.
    pub(crate) fn picks(self, number: u64) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::EveryNth(n) => number % n == 1 % n,
            Self::Share { share, seed } => {
                // An `f64` distinguishes 53 bits.
                let spread = mix(number ^ mix(seed)) >> 11;
                (spread as f64) < share * (1u64 << 53) as f64
            }
        }
    }
}

/// Finalizer of SplitMix64: every bit of the input affects every bit of the output.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves S-33.
    #[test]
    fn a_share_is_a_share_and_the_same_one_again() {
        for share in [0.0, 0.1, 0.5, 1.0] {
            let pick = Pick::Share { share, seed: 7 };
            let picked = (1..=100_000).filter(|number| pick.picks(*number)).count() as f64 / 100_000.0;
            assert!((picked - share).abs() < 0.01, "{picked} of {share}");
        }
        let of = |seed| (1..100).filter(|number| Pick::Share { share: 0.5, seed }.picks(*number)).collect::<Vec<u64>>();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    /// Proves S-33.
    #[test]
    fn every_nth_is_the_first_of_each_round() {
        let picked: Vec<u64> = (1..=9).filter(|number| Pick::EveryNth(4).picks(*number)).collect();
        assert_eq!(picked, [1, 5, 9]);
        assert!((1..9).all(|number| Pick::EveryNth(1).picks(number)));
    }

    #[test]
    fn the_head_of_a_tape_says_it_in_words() {
        let always = SamplingTrigger { errors: true, slower_than: Some(Duration::from_secs(2)), verdicts: vec![] };
        assert_eq!(Sampling::Share { share: 0.1, seed: 1, always }.words(), "share 0.1, and errors, slower than 2s");
        assert_eq!(Sampling::Errors { before: 3, after: 2 }.words(), "errors with 3 before and 2 after");
        let adaptive = Sampling::Adaptive { target: 50.0, seed: 1, always: SamplingTrigger::default() };
        assert_eq!(adaptive.words(), "about 50 a second");
        let ring = Sampling::Ring { exchanges: 50, within: None, after: 5, on: SamplingTrigger::default() };
        assert_eq!(ring.words(), "ring of 50 with 5 after");
    }
}
