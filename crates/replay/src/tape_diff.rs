//! Compares two tapes: call by call, field by field, in time, and by what their servers offered.
//!
//! Each tape is read once. Of every call its key, a digest of its answer and its place are kept in memory; requests and answers
//! go to a temporary file and come back one pair at a time, so that memory grows by a few hundred bytes a call. Calls are
//! aligned by [`crate::MatchKey`]: equal calls in the same order are pairs, equal calls in another order are pairs that moved, and
//! calls of the same tool between the same neighbours are pairs whose request changed.
//!
//! What a tape does not hold is never taken for a difference in silence. Bodies that were left out are counted as not
//! comparable, redacted and encrypted members are counted and not compared, and sampled tapes, gaps and incomplete files are
//! announced, since calls that seem to be missing may just not be recorded.

mod aligned;
mod compared;
mod names;
mod offers;
mod reel;
mod spool;
#[cfg(test)]
mod tests;
mod timing;

use crate::contract::{Change, Tier};
use crate::diff::{Comparison, DifferenceKind, Masks};
use aligned::Aligned;
use compared::Comparer;
use names::Names;
use reel::Reel;
use serde_json::Value;
use signalbox_engine::record::StoreError;
use signalbox_tape::TapeSource;
use signalbox_tape::redact::Decryptor;
use std::io;
pub use timing::{Timing, TimingRow};

/// Most differences that are listed of one call; the rest are counted.
pub const MAX_FIELDS: usize = 100;

/// How two tapes are compared.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct TapeDiffSettings {
    /// How messages are compared. Its ignored paths also count for telling which calls are equal.
    pub comparison: Comparison,
    /// Only calls of these methods; `*` stands for any run of characters. All if there are none.
    pub methods: Vec<String>,
    /// Only calls of this tool, prompt or URI.
    pub tool: Option<String>,
    /// Only calls of this session of the old and of the new tape.
    pub sessions: [Option<u64>; 2],
    /// When a call is so much slower that it is named.
    pub timing: Option<TimingBudget>,
    /// Calls that come in another order are no difference.
    pub any_order: bool,
    /// Most calls that are listed; the rest are counted.
    pub limit: usize,
}

/// By how much a call must be slower to be named: by more than the budget, and by more than the factor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimingBudget {
    /// In nanoseconds.
    pub budget: u64,
    /// As a multiple of what the old call took.
    pub factor: f64,
}

/// Why two tapes cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum TapeDiffError {
    /// A tape cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no room for what has to be put aside.
    #[error("cannot use a temporary file for the messages of the tapes: {0}; see that TMPDIR has room")]
    Spool(#[from] io::Error),
}

/// The differences between two tapes.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct TapeDiff {
    /// What a reader has to know before anything else: what is not on the tapes.
    pub notes: Vec<String>,
    /// The calls that differ, in the order of the old tape, as many as are wanted.
    pub calls: Vec<CallChange>,
    /// How much of everything there is.
    pub counts: Counts,
    /// How long calls took, by method and by tool.
    pub timings: Vec<TimingRow>,
    /// What changed in what the servers offer.
    pub offers: Vec<OfferChange>,
}

impl TapeDiff {
    /// True if nothing differs.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.counts.differing == 0 && self.offers.is_empty()
    }

    /// True if something differs on which a client may have relied.
    #[must_use]
    pub fn is_breaking(&self) -> bool {
        self.counts.breaking > 0 || self.offers.iter().any(|offer| offer.change.tier == Tier::Breaking)
    }
}

/// Numbers over all calls, listed or not.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Calls of the old tape.
    pub old: u64,
    /// Calls of the new tape.
    pub new: u64,
    /// Calls that have their like on the other tape.
    pub paired: u64,
    /// Calls that differ in anything, those on one tape only included.
    pub differing: u64,
    /// Calls of which a result breaks who relied on it.
    pub breaking: u64,
    /// Calls on the old tape only.
    pub removed: u64,
    /// Calls on the new tape only.
    pub added: u64,
    /// Calls that came in another order.
    pub moved: u64,
    /// Calls that are slower than the budget allows.
    pub slower: u64,
    /// Calls with a body that is not on its tape.
    pub not_comparable: u64,
    /// Places that were redacted or encrypted.
    pub masked: u64,
}

/// What became of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is on both tapes.
    Paired,
    /// It is on both tapes, at another place in the order.
    Moved,
    /// The same tool was called with something else.
    Rewritten,
    /// Only on the old tape.
    Removed,
    /// Only on the new tape.
    Added,
}

impl Fate {
    /// The word for it in reports.
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

/// A call that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct CallChange {
    /// What became of it.
    pub fate: Fate,
    /// Its number on the old tape.
    pub old: Option<u64>,
    /// Its number on the new tape.
    pub new: Option<u64>,
    /// Its method.
    pub method: String,
    /// The tool, prompt or URI.
    pub subject: Option<String>,
    /// How it ended before and now, if that differs.
    pub outcome: Option<(String, String)>,
    /// How long it took before and now, in nanoseconds, if it is slower than the budget allows.
    pub slower: Option<(u64, u64)>,
    /// Where its request and its answer differ.
    pub fields: Vec<FieldChange>,
    /// How many more places differ.
    pub more: u64,
    /// The worst of all of it.
    pub tier: Tier,
}

/// Which message of a call differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// What the client sent.
    Request,
    /// What it got.
    Answer,
}

/// One place at which the messages of a call differ.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldChange {
    /// In which message.
    pub part: Part,
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// How.
    pub kind: DifferenceKind,
    /// What that means.
    pub tier: Tier,
    /// What was recorded, in short.
    pub recorded: String,
    /// What there is now, in short.
    pub new: String,
    /// Both values, where they are small.
    pub values: [Option<Value>; 2],
}

/// A change of what a backend offers.
#[derive(Clone, PartialEq, Debug)]
pub struct OfferChange {
    /// The backend; none for what clients were shown, where a tape has nothing else.
    pub backend: Option<String>,
    /// What changed.
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
        Reel::read(source, session, settings, &both, &mut names, decryptor.as_deref_mut())
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
    let steps: Vec<Aligned> = aligned::align(&first.calls, &second.calls);
    let mut comparer = Comparer { settings, masks: &masks, names: &names, found };
    for step in steps {
        comparer.step(step, &mut first, &mut second)?;
    }
    Ok(comparer.found)
}
