//! Statistics over whole tapes: matches of a query by property, consecutive calls, the slowest calls, and tools that
//! became slower or less reliable. All of it reads through the store port, entry by entry, in bounded memory.

mod anomalies;
mod facets;
mod flow;
mod pages;
mod slowest;
mod value_counts;

pub use anomalies::{Anomalies, Anomaly, Oddness};
pub use facets::{Facets, facets_of};
pub use flow::Flow;
pub use pages::Pages;
pub use slowest::{Slow, Slowest};
pub use value_counts::{Most, ValueCounts};

use signalbox_engine::record::{Content, Entry, FinishedEntry, Query, StoreError, TapeInfo, TapeStore};

/// Statistics gathered in one walk over the ends of all calls.
#[derive(Debug, Default)]
pub struct Analysis {
    /// Pairs of calls that followed each other.
    pub flow: Flow,
    /// Calls that took longest.
    pub slowest: Slowest,
    /// Tools that became slower or failed more often towards the end.
    pub anomalies: Anomalies,
}

impl Analysis {
    /// Analyses the given tapes of a store, oldest first.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub fn of(store: &dyn TapeStore, tapes: &[TapeInfo]) -> Result<Self, StoreError> {
        let ends = |tape: &TapeInfo| Query { tape: Some(tape.id.clone()), only_ends: true, ..Query::default() };
        let mut span: Option<(u64, u64)> = None;
        for tape in tapes {
            for newest_first in [false, true] {
                let page = store.find(&Query { limit: Some(1), newest_first, ..ends(tape) })?;
                for at in page.hits.iter().map(|hit| hit.entry.at) {
                    let (first, last) = span.unwrap_or((at, at));
                    span = Some((first.min(at), last.max(at)));
                }
            }
        }
        let (first, last) = span.unwrap_or_default();
        let mut analysis = Self { anomalies: Anomalies::from(last - (last - first) / 10), ..Self::default() };
        for tape in tapes {
            analysis.flow.next_tape();
            for entry in Pages::new(store, ends(tape)) {
                let entry = entry?;
                if let Content::Finished(finished) = &entry.content {
                    analysis.add(&tape.id, &entry, finished);
                }
            }
        }
        Ok(analysis)
    }

    fn add(&mut self, tape: &str, entry: &Entry, finished: &FinishedEntry) {
        self.flow.add(entry, finished);
        self.slowest.add(tape, entry, finished);
        self.anomalies.add(entry.at, finished);
    }
}

/// Outcome of a call that ended well.
const SUCCESS: &str = "success";

/// Returns the name under which a call is counted: its tool, or its method if it is not a tool call.
fn label(finished: &FinishedEntry) -> &str {
    match &finished.subject {
        Some(tool) if &*finished.method == "tools/call" => tool,
        _ => &finished.method,
    }
}
