//! What verifying a tape found.

use signalbox_seal::VerifyingKey;

/// What a tape proves.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Everything is as it was recorded, from the first entry that is kept to the last there was.
    Valid,
    /// Everything that is there is as it was recorded, and the tape itself says that facts could not be recorded.
    ClosedWithGaps,
    /// Something was changed; [`Report::fault`] says what.
    Broken,
    /// Everything that is there is as it was recorded, but the tape was never closed: there may have been more.
    NeverClosed,
    /// The tape was not sealed when it was recorded.
    NeverSealed,
}

/// The first thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The number of the entry; none if it is about the tape as a whole.
    pub entry: Option<u64>,
    /// What is wrong with it.
    pub kind: FaultKind,
    /// The same for a person.
    pub why: String,
}

/// What is wrong with an entry or a tape.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The head of the tape is not the one that was sealed.
    Head,
    /// An entry is not as it was recorded.
    Wrong,
    /// Entries are missing.
    Missing,
    /// Entries are in another order.
    Reordered,
    /// An entry was not recorded by whoever sealed the tape.
    Added,
    /// A signature does not fit.
    Signature,
    /// The chain was another one when somebody anchored it elsewhere.
    Anchor,
    /// Something cannot be read.
    Unreadable,
}

impl FaultKind {
    /// The word for it in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Wrong => "wrong",
            Self::Missing => "missing",
            Self::Reordered => "reordered",
            Self::Added => "added",
            Self::Signature => "signature",
            Self::Anchor => "anchor",
            Self::Unreadable => "unreadable",
        }
    }
}

/// A key that signed the tape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signer {
    /// The key, under the id that the tape names.
    pub key: VerifyingKey,
    /// When it signed last, in nanoseconds since 1970, as it says itself.
    pub at: u64,
}

/// An entry of which something was removed after it was sealed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedactedEntry {
    /// Its number.
    pub entry: u64,
    /// Where the values were, as JSON pointers; none if the whole message was removed.
    pub paths: Vec<String>,
}

/// What verifying a tape found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// What the tape proves.
    pub verdict: Verdict,
    /// How many entries were checked and found as they were recorded.
    pub entries: u64,
    /// The last of them.
    pub last: u64,
    /// The last that a signature covers.
    pub signed_up_to: u64,
    /// The last that was pruned, with a signature; 0 if nothing was.
    pub pruned_up_to: u64,
    /// The last place that an anchor kept elsewhere confirms; none if none does.
    pub anchored_up_to: Option<u64>,
    /// Facts that could not be recorded, as the tape says.
    pub missing: u64,
    /// Who signed.
    pub signers: Vec<Signer>,
    /// Entries of which something was removed.
    pub redacted: Vec<RedactedEntry>,
    /// The first thing that is wrong.
    pub fault: Option<Fault>,
}
