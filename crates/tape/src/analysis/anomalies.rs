//! Tools that are much slower, or fail much more often, in the last tenth of the time span than before.

use super::value_counts::name;
use super::{SUCCESS, label};
use signalbox_engine::percentiles::Percentiles;
use signalbox_engine::record::FinishedEntry;
use std::collections::BTreeMap;

/// Maximum number of tools and methods that are compared.
const MAX_TOOLS: usize = 2_000;
/// Minimum number of calls, in the last tenth and before it, for a comparison to mean anything.
const LEAST: u64 = 20;
/// Factor by which durations or failures must have grown.
const TIMES: u64 = 3;
/// Smallest difference in duration that is reported, in nanoseconds.
const LEAST_DELAY: u64 = 5_000_000;
/// Smallest difference in the failure rate that is reported, in percentage points.
const LEAST_SHARE: f64 = 10.0;

/// Kind of anomaly, with its measure before the last tenth and within it.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Oddness {
    /// Approximate 95th percentile of the durations, in nanoseconds.
    Slower(u64, u64),
    /// Percentage of calls that failed.
    Fails(f64, f64),
}

/// A tool or method that behaves worse than before.
#[derive(Clone, PartialEq, Debug)]
pub struct Anomaly {
    /// Name of the tool or method.
    pub what: String,
    /// Kind and extent of the change.
    pub how: Oddness,
    /// Number of calls before the last tenth, and within it.
    pub calls: (u64, u64),
}

#[derive(Debug, Default)]
struct Part {
    errors: u64,
    /// Durations, accurate to one part in eight.
    took: Percentiles<3>,
}

/// Durations and failures of each tool, before the last tenth and within it.
#[derive(Debug, Default)]
pub struct Anomalies {
    /// Time at which the last tenth begins.
    late: u64,
    tools: BTreeMap<String, [Part; 2]>,
    /// Number of calls of tools beyond [`MAX_TOOLS`].
    beyond: u64,
}

impl Anomalies {
    /// Compares the calls that end at `late` or after it with those that ended before.
    pub(super) fn from(late: u64) -> Self {
        Self { late, ..Self::default() }
    }

    pub(super) fn add(&mut self, at: u64, finished: &FinishedEntry) {
        let what = name(label(finished));
        if self.tools.len() >= MAX_TOOLS && !self.tools.contains_key(&what) {
            self.beyond += 1;
            return;
        }
        let [before, late] = self.tools.entry(what).or_default();
        let part = if at < self.late { before } else { late };
        part.errors += u64::from(finished.outcome != SUCCESS);
        part.took.add(finished.took);
    }

    /// Returns the anomalies found so far.
    #[must_use]
    pub fn list(&self) -> Vec<Anomaly> {
        let mut all = Vec::new();
        for (what, [before, late]) in &self.tools {
            let calls = (before.took.count(), late.took.count());
            if calls.0 < LEAST || calls.1 < LEAST {
                continue;
            }
            let mut found = |how| all.push(Anomaly { what: what.clone(), how, calls });
            let (was, is) = (before.took.at(95), late.took.at(95));
            if is > was.saturating_mul(TIMES) && is - was > LEAST_DELAY {
                found(Oddness::Slower(was, is));
            }
            let share = |part: &Part| 100.0 * part.errors as f64 / part.took.count() as f64;
            let (was, is) = (share(before), share(late));
            if is > was * TIMES as f64 && is - was > LEAST_SHARE {
                found(Oddness::Fails(was, is));
            }
        }
        all
    }

    /// Returns the number of calls of tools beyond the maximum that is compared.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, took: u64, well: bool) -> FinishedEntry {
        FinishedEntry {
            method: "tools/call".into(),
            subject: Some(tool.into()),
            outcome: if well { "success" } else { "tool_error" }.into(),
            took: took * 1_000_000,
            ..FinishedEntry::default()
        }
    }

    /// Proves SO-11.
    #[test]
    fn what_is_far_slower_or_fails_far_more_in_the_end_is_told_and_nothing_else() {
        let mut anomalies = Anomalies::from(900);
        for at in 0..1000 {
            let late = at >= 900;
            anomalies.add(at, &call("steady", 10, true));
            anomalies.add(at, &call("slow", if late { 100 } else { 10 }, true));
            anomalies.add(at, &call("failing", 10, !late || at % 2 == 0));
            anomalies.add(at, &call("always failing", 10, at % 2 == 0));
            // Twice as long is no more than noise.
            anomalies.add(at, &call("noisy", if late { 20 } else { 10 }, true));
            if at % 90 == 0 {
                anomalies.add(at, &call("rare", if late { 500 } else { 1 }, true));
            }
        }
        let told = anomalies.list();
        assert_eq!(told.iter().map(|one| &*one.what).collect::<Vec<_>>(), ["failing", "slow"]);
        assert_eq!(told[0].how, Oddness::Fails(0.0, 50.0));
        assert_eq!(told[0].calls, (900, 100));
        assert!(matches!(told[1].how, Oddness::Slower(was, is) if was < 12_000_000 && is >= 100_000_000), "{told:?}");
    }

    #[test]
    fn only_so_many_tools_are_looked_at() {
        let mut anomalies = Anomalies::from(0);
        (0..MAX_TOOLS + 3).for_each(|number| anomalies.add(0, &call(&number.to_string(), 1, true)));
        assert_eq!(anomalies.beyond(), 3);
    }
}
