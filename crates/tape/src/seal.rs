//! Sealed tapes: a chain of hashes over all entries with signatures at intervals, which makes every change of a tape
//! detectable.
//!
//! `docs/seal.md` describes the hashes byte by byte. In short: `body` commits to a message so that parts of it can be
//! removed later, `form` is the canonical form of an entry, in which that commitment stands for the body, `Chain` links
//! the forms, and [`TapeVerifier`] recomputes all of it.

mod anchored;
mod body;
mod chain;
mod commitments;
mod derived;
mod form;
mod inclusion_proof;
mod pointer;
mod redaction;
mod report;
mod salts;
mod settings;
mod signed_head;
mod tape_sealer;
#[cfg(test)]
pub(crate) mod tests;
mod verify;

pub use anchored::{Anchors, NoAnchors};
pub(crate) use body::BodyDifference;
pub use body::{MAX_LEAVES, leaves};
pub use chain::join;
pub use inclusion_proof::{BadProof, InclusionProof, MAX_PROOF, NoProof, ProofFault, ProvedEntry};
pub use redaction::{NoRedaction, SealedRedaction};
pub use report::{RedactedEntry, SealFault, SealFaultKind, SealReport, SealVerdict, Signer, UncoveredRows};
pub use settings::{BadSeal, HeadInterval, HeadSink, SealSettings};
pub use signed_head::{NoHead, SignedHead};
pub use tape_sealer::TapeSealer;
pub use verify::TapeVerifier;

pub(crate) use body::{BodySealer, SealedBody};
pub(crate) use chain::{Chain, Draft};
pub(crate) use inclusion_proof::ProofMaker;
