//! Result of the verification of a tape.

use signalbox_seal::VerifyingKey;

/// Verdict on a tape.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SealVerdict {
    /// All entries are as recorded, from the first that was not pruned to the end of the tape.
    Valid,
    /// All entries are as recorded, and the tape itself states that facts could not be recorded.
    ClosedWithGaps,
    /// Something was changed; [`SealReport::fault`] has the details.
    Broken,
    /// All entries are as recorded, but the tape was never closed: there may have been more.
    NeverClosed,
    /// The tape was not sealed when it was recorded.
    NeverSealed,
}

/// First mismatch of a tape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealFault {
    /// Number of the entry; `None` for a fault of the whole tape.
    pub entry: Option<u64>,
    /// Kind of the mismatch.
    pub kind: SealFaultKind,
    /// Explanation for the user.
    pub why: String,
}

/// Kind of a mismatch.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SealFaultKind {
    /// The head of the tape is not the sealed one.
    Head,
    /// An entry is not as recorded, or what is shown besides the entries is not what they give.
    Wrong,
    /// Entries are missing from the tape.
    Missing,
    /// Entries are in another order.
    Reordered,
    /// An entry was added by a party that did not seal the tape.
    Added,
    /// A signature is invalid.
    Signature,
    /// The chain differs from an anchor.
    Anchor,
    /// A part of the tape cannot be read.
    Unreadable,
}

impl SealFaultKind {
    /// Returns the name of the kind in JSON.
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
    /// Key, under the id that the tape names.
    pub key: VerifyingKey,
    /// Time of its last signature in nanoseconds since 1970, as stated by the signer.
    pub at: u64,
}

/// An entry from which values were removed after it was sealed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedactedEntry {
    pub entry: u64,
    /// JSON pointers of the removed values; empty if the whole message was removed.
    pub paths: Vec<String>,
}

/// Number of rows that only pruned entries could confirm.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct UncoveredRows {
    pub sessions: u64,
    pub exchanges: u64,
}

/// Result of the verification of a tape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealReport {
    /// Verdict on the tape.
    pub verdict: SealVerdict,
    /// Number of entries that were checked and are as recorded.
    pub entries: u64,
    /// Number of the last of these entries.
    pub last: u64,
    /// Number of the last entry that a signature covers.
    pub signed_up_to: u64,
    /// Number of the last entry that was pruned with a signature; 0 if none was.
    pub pruned_up_to: u64,
    /// Last position that an anchor confirms; `None` if none does.
    pub anchored_up_to: Option<u64>,
    /// Number of facts that could not be recorded, as the tape states.
    pub missing: u64,
    /// Keys that signed the tape.
    pub signers: Vec<Signer>,
    /// Entries from which values were removed.
    pub redacted: Vec<RedactedEntry>,
    /// Sessions and exchanges that are shown and that only pruned entries could confirm.
    pub uncovered: UncoveredRows,
    /// First mismatch, if there is one.
    pub fault: Option<SealFault>,
}
