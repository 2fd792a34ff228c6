//! Compares two tapes: call by call, field by field, by duration, and by what their servers offered.
//!
//! Each tape is read once. The key, answer digest and position of every call stay in memory. Requests and answers go to
//! a temporary file and come back one pair at a time, so memory grows by a few hundred bytes per call. Calls are
//! aligned by [`crate::MatchKey`]: equal calls in the same order are pairs, equal calls in another order are moved
//! pairs, and calls of the same tool between the same neighbours are pairs with a changed request.
//!
//! Missing data is never silently taken for a difference. Omitted bodies are counted as not comparable. Redacted and
//! encrypted members are counted but not compared. Sampled tapes, gaps and incomplete files are reported, because calls
//! that seem to be missing may just not have been recorded.

mod alignment;
mod comparer;
mod names;
mod offers;
mod spool;
mod tape_index;
#[cfg(test)]
mod tests;
mod timing;

use crate::contract::{Change, Tier};
use crate::diff::{Comparison, DifferenceKind, Masks};
use alignment::AlignmentStep;
use comparer::Comparer;
use names::Names;
use serde_json::Value;
use signalbox_engine::record::StoreError;
use signalbox_tape::TapeSource;
use signalbox_tape::redact::Decryptor;
use std::io;
use tape_index::TapeIndex;
pub use timing::{Timing, TimingRow};

/// Maximum number of differences listed for one call. The rest are counted.
pub const MAX_FIELDS: usize = 100;

/// Settings for a comparison of two tapes.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct TapeDiffSettings {
    /// Message comparison. Its ignored paths also apply when equal calls are paired.
    pub comparison: Comparison,
    /// Restricts the comparison to calls of these methods, where `*` matches any run of characters. Empty for all.
    pub methods: Vec<String>,
    /// Restricts the comparison to calls of this tool, prompt or URI.
    pub tool: Option<String>,
    /// Restricts the comparison to these sessions of the old and the new tape.
    pub sessions: [Option<u64>; 2],
    /// Threshold above which a slower call is reported.
    pub timing: Option<TimingBudget>,
    /// Ignores the order of calls.
    pub any_order: bool,
    /// Maximum number of calls listed. The rest are counted.
    pub limit: usize,
}

/// Thresholds for slower calls. A call is reported if it exceeds both.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimingBudget {
    /// Additional time in nanoseconds.
    pub budget: u64,
    /// Factor relative to the old duration.
    pub factor: f64,
}

/// Reasons why a comparison of tapes fails.
#[derive(Debug, thiserror::Error)]
pub enum TapeDiffError {
    /// A tape cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The temporary file cannot be used.
    #[error("cannot use a temporary file for the messages of the tapes: {0}; see that TMPDIR has room")]
    Spool(#[from] io::Error),
}

/// Differences between two tapes.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct TapeDiff {
    /// Notes to show first, on data missing from the tapes.
    pub notes: Vec<String>,
    /// Calls that differ, in the order of the old tape, up to [`TapeDiffSettings::limit`].
    pub calls: Vec<CallChange>,
    /// Totals over all calls.
    pub counts: DiffCounts,
    /// Call durations by method and by tool.
    pub timings: Vec<TimingRow>,
    /// Changes in what the servers offer.
    pub offers: Vec<OfferChange>,
}

impl TapeDiff {
    /// Returns `true` if nothing differs.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.counts.differing == 0 && self.offers.is_empty()
    }

    /// Returns `true` if a difference may break a client.
    #[must_use]
    pub fn is_breaking(&self) -> bool {
        self.counts.breaking > 0 || self.offers.iter().any(|offer| offer.change.tier == Tier::Breaking)
    }
}

/// Totals over all calls, whether or not they are listed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DiffCounts {
    /// Calls of the old tape.
    pub old: u64,
    /// Calls of the new tape.
    pub new: u64,
    /// Calls with a counterpart on the other tape.
    pub paired: u64,
    /// Calls that differ in any way, including those on one tape only.
    pub differing: u64,
    /// Calls whose change may break a client that relies on the result.
    pub breaking: u64,
    /// Calls on the old tape only.
    pub removed: u64,
    /// Calls on the new tape only.
    pub added: u64,
    /// Calls in a different order.
    pub moved: u64,
    /// Calls that are slower than the budget allows.
    pub slower: u64,
    /// Calls with a body that was not recorded.
    pub not_comparable: u64,
    /// Redacted or encrypted places.
    pub masked: u64,
}

/// Relation of a call to the other tape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Paired,
    /// On both tapes, at a different place in the order.
    Moved,
    /// Same tool, different request.
    Rewritten,
    Removed,
    Added,
}

impl Fate {
    /// Returns the name used in reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Paired => "paired",
            Self::Moved => "moved",
            Self::Rewritten => "rewritten",
            Self::Removed => "removed",
            Self::Added => "added",
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct CallChange {
    pub fate: Fate,
    /// Call number on the old tape.
    pub old: Option<u64>,
    /// Call number on the new tape.
    pub new: Option<u64>,
    pub method: String,
    /// Tool, prompt or URI.
    pub subject: Option<String>,
    /// Old and new outcome, if they differ.
    pub outcome: Option<(String, String)>,
    /// Old and new duration in nanoseconds, if the call exceeds the timing budget.
    pub slower: Option<(u64, u64)>,
    /// Differences in the request and the answer.
    pub fields: Vec<FieldChange>,
    /// Number of differences beyond those in `fields`.
    pub more: u64,
    /// Highest tier of all changes.
    pub tier: Tier,
}

/// Message of a call that contains a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Request,
    Answer,
}

/// Difference at one place in the messages of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldChange {
    pub part: Part,
    /// Place in the message, as a JSON pointer.
    pub pointer: String,
    pub kind: DifferenceKind,
    /// Severity of the difference for clients.
    pub tier: Tier,
    /// Recorded value, shortened for display.
    pub recorded: String,
    /// New value, shortened for display.
    pub new: String,
    /// Recorded and new value, if small.
    pub values: [Option<Value>; 2],
}

/// Change in what a backend offers.
#[derive(Clone, PartialEq, Debug)]
pub struct OfferChange {
    /// Backend name, or `None` for the lists shown to clients on a tape that records no backend.
    pub backend: Option<String>,
    pub change: Change,
}

/// Compares two tapes.
///
/// # Errors
/// If one of them cannot be read, or there is no room for temporary files.
pub fn diff(
    old: &mut TapeSource,
    new: &mut TapeSource,
    settings: &TapeDiffSettings,
    mut decryptor: Option<&mut Decryptor>,
) -> Result<TapeDiff, TapeDiffError> {
    let masks = [&*old, &*new].map(|source| Masks::of_rules(&source.info().redaction));
    let both = masks[0].and(&masks[1]);
    let mut names = Names::default();
    let mut read = |source: &mut TapeSource, session| {
        TapeIndex::read(source, session, settings, &both, &mut names, decryptor.as_deref_mut())
    };
    let (mut first, mut second) = (read(old, settings.sessions[0])?, read(new, settings.sessions[1])?);
    let mut found = TapeDiff::default();
    found.notes.extend(first.notes(old, "the old tape"));
    found.notes.extend(second.notes(new, "the new tape"));
    let descends = |child: &TapeSource, parent: &TapeSource| child.info().parent.as_ref() == Some(&parent.info().id);
    let related = descends(new, old) || descends(old, new);
    found.offers = offers::compare(&first.offers, &second.offers, related, &both, &mut found.notes);
    found.timings = timing::table(&first.calls, &second.calls, &names);
    found.counts.old = first.calls.len() as u64;
    found.counts.new = second.calls.len() as u64;
    let steps: Vec<AlignmentStep> = alignment::align(&first.calls, &second.calls);
    let mut comparer = Comparer { settings, masks: &masks, names: &names, found };
    for step in steps {
        comparer.step(step, &mut first, &mut second)?;
    }
    Ok(comparer.found)
}
