//! Settings of a recorder that seals its tape.

use super::chain;
use super::salts::SEED_BYTES;
use super::signed_head::SignedHead;
use signalbox_engine::record::TapeInfo;
use signalbox_seal::canonical::EncodeError;
use signalbox_seal::{CHAIN_VERSION, ChainHash, Head, HeadContent, HeadKind, SignHeadError, SigningKey, TapeSeal};
use std::sync::Arc;
use std::time::Duration;

/// Receiver of signed heads, once the entries that they cover are stored.
pub trait HeadSink: Send + Sync {
    /// Receives a signed head. Must not block: the thread that writes the tape calls it.
    fn signed(&self, head: SignedHead);
}

/// Error of sealing a tape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSeal {
    /// The head of the tape has no canonical form.
    #[error(transparent)]
    Form(#[from] EncodeError),
    /// The head of the tape cannot be signed.
    #[error(transparent)]
    Sign(#[from] SignHeadError),
}

/// Distance between two signed heads: whichever of both comes first.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct HeadInterval {
    /// Maximum number of entries that no head covers.
    pub entries: u64,
    /// Maximum age of the last head, once there are entries behind it.
    pub time: Duration,
}

/// Seal settings of one tape.
#[derive(Clone)]
pub struct SealSettings {
    pub(crate) tape: String,
    pub(crate) key: SigningKey,
    pub(crate) seed: [u8; SEED_BYTES],
    pub(crate) commit: Vec<Vec<String>>,
    pub(crate) interval: HeadInterval,
    /// Hash before the first entry.
    pub(crate) start: ChainHash,
    /// Signature over the start of the chain.
    pub(crate) opening: Head,
    pub(crate) heads: Option<Arc<dyn HeadSink>>,
}

impl SealSettings {
    /// Seals the tape with this head, and adds the seal to it. The seed must be random and unique to the tape.
    ///
    /// # Errors
    /// Fails if the head cannot be signed.
    pub fn begin(
        tape: &mut TapeInfo,
        key: SigningKey,
        seed: [u8; SEED_BYTES],
        commit: Vec<Vec<String>>,
        interval: HeadInterval,
    ) -> Result<Self, BadSeal> {
        let names: Vec<String> = commit.iter().map(|path| path.join(".")).collect();
        let start = chain::start(tape, &names)?;
        let opening = Head::sign(HeadKind::Opening, &tape.id, HeadContent::of(0, &start, tape.started), &key)?;
        let seal = TapeSeal {
            version: CHAIN_VERSION,
            seed: Some(seed.to_vec()),
            commit: names,
            opening: Some(opening.clone()),
            checkpoint: None,
            closing: None,
        };
        tape.seal = Some(seal.to_bytes());
        Ok(Self { tape: tape.id.clone(), key, seed, commit, interval, start, opening, heads: None })
    }

    /// Reports every signed head to this sink.
    #[must_use]
    pub fn telling(self, heads: Arc<dyn HeadSink>) -> Self {
        Self { heads: Some(heads), ..self }
    }

    /// Returns the key that signs the tape.
    #[must_use]
    pub fn key(&self) -> &SigningKey {
        &self.key
    }
}

impl std::fmt::Debug for SealSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealSettings").field("tape", &self.tape).field("key", &self.key).finish_non_exhaustive()
    }
}
