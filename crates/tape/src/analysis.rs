//! Statistics over whole tapes: what a query matches, by property; which calls follow each other, which are slow, which are odd.
//! Everything is read through the port of the stores, entry by entry, in bounded memory.

mod anomalies;
mod counts;
mod facets;
mod flow;
mod pages;
mod slowest;

pub use anomalies::{Anomalies, Anomaly, Oddness};
pub use counts::{Counts, Most};
pub use facets::{Facets, facets_of};
pub use flow::Flow;
pub use pages::Pages;
pub use slowest::{Slow, Slowest};

use signalbox_engine::record::{Content, Entry, FinishedEntry, Query, StoreError, TapeInfo, TapeStore};

/// The result of one walk over the ends of all calls.
#[derive(Debug, Default)]
pub struct Analysis {
    /// What followed what.
    pub flow: Flow,
    /// The calls that took longest.
    pub slowest: Slowest,
    /// What is worse at the end than before.
    pub anomalies: Anomalies,
}

impl Analysis {
    /// Reads these tapes of a store, the oldest first.
    ///
    /// # Errors
    /// What the store says.
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

/// The outcome of a call that ended well.
const SUCCESS: &str = "success";

/// What a call is called: its tool, or its method if it is not a call of a tool.
fn label(finished: &FinishedEntry) -> &str {
    match &finished.subject {
        Some(tool) if &*finished.method == "tools/call" => tool,
        _ => &finished.method,
    }
}
