//! What a recorder needs to seal its tape.

use super::chain;
use super::salts::SEED_BYTES;
use super::signed_head::SignedHead;
use signalbox_engine::record::TapeInfo;
use signalbox_seal::canonical::EncodeError;
use signalbox_seal::{CHAIN_VERSION, ChainHash, Head, HeadKind, SignHeadError, SigningKey, TapeSeal};
use std::sync::Arc;
use std::time::Duration;

/// Told of signed heads, once the entries that they cover are kept.
pub trait HeadSink: Send + Sync {
    /// A place of the chain was signed. Must not wait: the thread that writes the tape calls it.
    fn signed(&self, head: SignedHead);
}

/// Why a tape cannot be sealed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSeal {
    /// Its head has no canonical form.
    #[error(transparent)]
    Form(#[from] EncodeError),
    /// It cannot be signed.
    #[error(transparent)]
    Sign(#[from] SignHeadError),
}

/// How one tape is sealed.
#[derive(Clone)]
pub struct SealSettings {
    pub(crate) tape: String,
    pub(crate) key: SigningKey,
    pub(crate) seed: [u8; SEED_BYTES],
    pub(crate) commit: Vec<Vec<String>>,
    pub(crate) head_every: u64,
    pub(crate) head_interval: Duration,
    /// The hash before the first entry.
    pub(crate) start: ChainHash,
    /// Signed over it.
    pub(crate) opening: Head,
    pub(crate) heads: Option<Arc<dyn HeadSink>>,
}

impl SealSettings {
    /// Seals the tape with this head, which gets what belongs to it. The seed is random and of this tape alone.
    ///
    /// # Errors
    /// If the head cannot be signed.
    pub fn begin(
        tape: &mut TapeInfo,
        key: SigningKey,
        seed: [u8; SEED_BYTES],
        commit: Vec<Vec<String>>,
        (head_every, head_interval): (u64, Duration),
    ) -> Result<Self, BadSeal> {
        let names: Vec<String> = commit.iter().map(|path| path.join(".")).collect();
        let start = chain::start(tape, &names)?;
        let opening = Head::sign(HeadKind::Opening, &tape.id, (0, &start), (tape.started, None), &key)?;
        let seal = TapeSeal {
            version: CHAIN_VERSION,
            seed: Some(seed.to_vec()),
            commit: names,
            opening: Some(opening.clone()),
            checkpoint: None,
            closing: None,
        };
        tape.seal = Some(seal.to_bytes());
        Ok(Self { tape: tape.id.clone(), key, seed, commit, head_every, head_interval, start, opening, heads: None })
    }

    /// Tells this sink of every head that is signed.
    #[must_use]
    pub fn telling(self, heads: Arc<dyn HeadSink>) -> Self {
        Self { heads: Some(heads), ..self }
    }

    /// The key that signs the tape.
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
