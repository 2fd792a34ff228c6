//! Statistics over exchanges, gathered one exchange at a time.

use super::durations::Durations;
use super::query::{MethodStats, Stats};
use std::collections::BTreeMap;

/// Maximum number of methods, and of tools, with a line of their own; the rest share one.
const MAX_LINES: usize = 10_000;

/// Name of the line of the rest.
const OTHERS: &str = "(others)";

/// Label of an exchange that succeeded.
pub const SUCCESS: &str = "success";

/// An exchange that has ended.
#[derive(Copy, Clone, Debug)]
pub struct FinishedExchange<'a> {
    /// Method of the request.
    pub method: &'a str,
    /// Tool, prompt or URI.
    pub subject: Option<&'a str>,
    /// True if the exchange succeeded.
    pub well: bool,
    /// Duration of the exchange, in nanoseconds.
    pub took: u64,
    /// Sizes of the request and of the answer in bytes.
    pub bytes: (u64, u64),
}

/// Statistics gathered so far.
#[derive(Default, Debug)]
pub struct Tally {
    total: Line,
    methods: BTreeMap<String, Line>,
    tools: BTreeMap<String, Line>,
}

#[derive(Default, Debug)]
struct Line {
    stats: MethodStats,
    took: Durations,
    /// Sum of the durations, in nanoseconds.
    sum: u128,
}

impl Tally {
    /// Adds one exchange to the totals.
    pub fn add(&mut self, finished: &FinishedExchange<'_>) {
        self.total.add(finished);
        line(&mut self.methods, finished.method).add(finished);
        if let ("tools/call", Some(tool)) = (finished.method, finished.subject) {
            line(&mut self.tools, tool).add(finished);
        }
    }

    /// Writes the totals to `stats`: for all exchanges, for each method, for each tool.
    pub fn tell(self, stats: &mut Stats) {
        let lines = |map: BTreeMap<String, Line>| map.into_iter().map(|(name, line)| (name, line.finish())).collect();
        stats.total = self.total.finish();
        stats.methods = lines(self.methods);
        stats.tools = lines(self.tools);
    }
}

impl Line {
    fn add(&mut self, finished: &FinishedExchange<'_>) {
        self.stats.count += 1;
        self.stats.errors += u64::from(!finished.well);
        self.stats.bytes_in = self.stats.bytes_in.saturating_add(finished.bytes.0);
        self.stats.bytes_out = self.stats.bytes_out.saturating_add(finished.bytes.1);
        self.took.add(finished.took);
        self.sum += u128::from(finished.took);
    }

    fn finish(self) -> MethodStats {
        let [p50, p95, p99] = self.took.at([50, 95, 99]);
        let mean = (self.sum / u128::from(self.stats.count.max(1))) as u64;
        MethodStats { mean, p50, p95, p99, ..self.stats }
    }
}

fn line<'a>(lines: &'a mut BTreeMap<String, Line>, name: &str) -> &'a mut Line {
    let name = if lines.contains_key(name) || lines.len() < MAX_LINES { name } else { OTHERS };
    lines.entry(name.to_owned()).or_default()
}
