//! Sealed tapes: a chain of hashes over all entries, signed from time to time, so that nobody changes a tape unseen.
//!
//! `docs/seal.md` describes the hashes byte by byte. In short: `body` commits to a message so that parts of it can be removed
//! later, `form` is the canonical form of an entry, in which the body is that commitment, `Chain` links the forms, and
//! [`Verifier`] does all of it again.

mod body;
mod chain;
mod form;
mod pointer;
mod redaction;
mod report;
mod salts;
mod settings;
mod tape_sealer;
#[cfg(test)]
mod tests;
mod verify;

pub use body::{MAX_LEAVES, leaves};
pub use redaction::{NoRedaction, SealedRedaction};
pub use report::{Fault, FaultKind, RedactedEntry, Report, Signer, Verdict};
pub use settings::{BadSeal, SealSettings};
pub use tape_sealer::TapeSealer;
pub use verify::Verifier;

pub(crate) use body::BodySealer;
pub(crate) use chain::{Chain, Draft};
