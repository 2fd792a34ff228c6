//! Tools that are much slower, or fail much more often, in the last tenth of the time than before.

use super::counts::name;
use super::{SUCCESS, label};
use signalbox_engine::percentiles::Percentiles;
use signalbox_engine::record::FinishedEntry;
use std::collections::BTreeMap;

/// Most tools and methods that are looked at.
const MAX_TOOLS: usize = 2_000;
/// Fewer calls than this, in the last tenth or before it, say nothing.
const LEAST: u64 = 20;
/// So many times as slow, or as often failed.
const TIMES: u64 = 3;
/// A difference in time below this does not matter, in nanoseconds.
const LEAST_DELAY: u64 = 5_000_000;
/// A difference in failures below this does not matter, in calls of a hundred.
const LEAST_SHARE: f64 = 10.0;

/// What is odd about a tool.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Oddness {
    /// 95 of 100 calls took at most this long before, and so long in the end, in nanoseconds, about.
    Slower(u64, u64),
    /// So many of a hundred calls failed before, and in the end.
    Fails(f64, f64),
}

/// A tool, or a method, that is odd.
#[derive(Clone, PartialEq, Debug)]
pub struct Anomaly {
    /// Which.
    pub what: String,
    /// How.
    pub how: Oddness,
    /// How many calls there were before, and in the end.
    pub calls: (u64, u64),
}

#[derive(Debug, Default)]
struct Part {
    errors: u64,
    /// Good to one part in eight.
    took: Percentiles<3>,
}

/// All calls, as they come.
#[derive(Debug, Default)]
pub struct Anomalies {
    /// Where the last tenth begins.
    late: u64,
    tools: BTreeMap<String, [Part; 2]>,
    /// Calls of tools beyond those that are looked at.
    beyond: u64,
}

impl Anomalies {
    /// What ends at or after this time is compared with what ended before.
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

    /// What is odd.
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

    /// How many calls were of tools beyond those that are looked at.
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

    #[test]
    fn what_is_far_slower_or_fails_far_more_in_the_end_is_told_and_nothing_else() {
        // SO-11
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
