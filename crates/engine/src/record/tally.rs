//! Numbers over exchanges, gathered one exchange at a time.

use super::durations::Durations;
use super::query::{MethodStats, Stats};
use std::collections::BTreeMap;

/// Most methods and most tools that are told apart; the rest is one line.
const MAX_LINES: usize = 10_000;

/// The line of those beyond.
const OTHERS: &str = "(others)";

/// The word of an exchange that ended well.
pub const SUCCESS: &str = "success";

/// One exchange that is over.
#[derive(Copy, Clone, Debug)]
pub struct FinishedExchange<'a> {
    /// The method.
    pub method: &'a str,
    /// The tool, prompt or URI.
    pub subject: Option<&'a str>,
    /// True if it ended well.
    pub well: bool,
    /// How long it took, in nanoseconds.
    pub took: u64,
    /// Bytes of the request and of the answer.
    pub bytes: (u64, u64),
}

/// All of them.
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
    /// All together, in nanoseconds.
    sum: u128,
}

impl Tally {
    /// One more exchange.
    pub fn add(&mut self, finished: &FinishedExchange<'_>) {
        self.total.add(finished);
        line(&mut self.methods, finished.method).add(finished);
        if let ("tools/call", Some(tool)) = (finished.method, finished.subject) {
            line(&mut self.tools, tool).add(finished);
        }
    }

    /// Puts the numbers where they are told: all, for each method, for each tool.
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
