//! The seal of a record that grows: what is kept with its head and with each entry, and what is signed of it.
//!
//! The entries make a chain of hashes. A [`Head`] says, signed, which hash the chain had at which entry. `docs/seal.md` tells how
//! the hashes are made.

use prost::Message as _;

use crate::canonical::{EncodeError, Encoder};
use crate::domain::Domain;
use crate::profile::Profile;
use crate::signature::Signature;
use crate::signing_key::{KeyError, SigningKey};
use crate::verifying_key::VerifyingKey;

/// Bytes of a hash of the chain.
pub const HASH_BYTES: usize = 32;
/// The version of the chain that is written.
pub const CHAIN_VERSION: u32 = 1;

/// A hash of the chain.
pub type ChainHash = [u8; HASH_BYTES];

/// What is kept with the head of a tape.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TapeSeal {
    /// [`CHAIN_VERSION`].
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// What the salts of all bodies are made of; a redacted copy does not have it.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub seed: Option<Vec<u8>>,
    /// The members of messages whose leaves are committed to one by one, with dots between their names.
    #[prost(string, repeated, tag = "3")]
    pub commit: Vec<String>,
    /// Signed before the first entry.
    #[prost(message, optional, tag = "4")]
    pub opening: Option<Head>,
    /// The last entry that was pruned.
    #[prost(message, optional, tag = "5")]
    pub checkpoint: Option<Head>,
    /// Signed after the last entry.
    #[prost(message, optional, tag = "6")]
    pub closing: Option<Head>,
}

/// A place of the chain, signed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Head {
    /// The number of the entry; 0 before the first.
    #[prost(uint64, tag = "1")]
    pub seq: u64,
    /// The hash of the chain at that entry.
    #[prost(bytes = "vec", tag = "2")]
    pub hash: Vec<u8>,
    /// When it was signed, in nanoseconds since 1970.
    #[prost(uint64, tag = "3")]
    pub at: u64,
    /// When the tape ended, in a closing head.
    #[prost(uint64, optional, tag = "4")]
    pub ended: Option<u64>,
    /// The id of the key.
    #[prost(string, tag = "5")]
    pub key_id: String,
    /// The public key.
    #[prost(bytes = "vec", tag = "6")]
    pub public_key: Vec<u8>,
    /// The signature.
    #[prost(bytes = "vec", tag = "7")]
    pub signature: Vec<u8>,
    /// Facts that could not be recorded, in a closing head.
    #[prost(uint64, tag = "8")]
    pub missing: u64,
}

/// What a head is signed for. A head of one kind is worth nothing as one of another.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum HeadKind {
    /// Before the first entry.
    Opening,
    /// Between entries.
    Interim,
    /// After the last entry.
    Closing,
    /// Everything up to there was pruned.
    Checkpoint,
}

impl HeadKind {
    /// Its name in what is signed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Interim => "interim",
            Self::Closing => "closing",
            Self::Checkpoint => "checkpoint",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Opening, Self::Interim, Self::Closing, Self::Checkpoint].into_iter().find(|kind| kind.name() == name)
    }
}

/// Why a head cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SignHeadError {
    /// It has no canonical form.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The key does not sign.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Head {
    /// Signs a place of the chain of a tape.
    ///
    /// # Errors
    /// If the library fails.
    pub fn sign(
        kind: HeadKind,
        tape: &str,
        (seq, hash): (u64, &ChainHash),
        (at, ended): (u64, Option<u64>),
        key: &SigningKey,
    ) -> Result<Self, SignHeadError> {
        Self { seq, hash: hash.to_vec(), at, ended, ..Self::default() }.signed(kind, tape, key)
    }

    /// Signs the end of a tape, and how many facts could not be recorded on it.
    ///
    /// # Errors
    /// If the library fails.
    pub fn sign_closing(
        tape: &str,
        (seq, hash): (u64, &ChainHash),
        (at, ended): (u64, u64),
        missing: u64,
        key: &SigningKey,
    ) -> Result<Self, SignHeadError> {
        let head = Self { seq, hash: hash.to_vec(), at, ended: Some(ended), missing, ..Self::default() };
        head.signed(HeadKind::Closing, tape, key)
    }

    fn signed(mut self, kind: HeadKind, tape: &str, key: &SigningKey) -> Result<Self, SignHeadError> {
        key.id().clone_into(&mut self.key_id);
        self.public_key = key.verifying_key().as_bytes().to_vec();
        let signature = key.sign(Profile::Two, Domain::Tape, &self.canonical(kind, tape)?)?;
        self.signature = signature.as_bytes().to_vec();
        Ok(self)
    }

    /// The key that signed this place; none where the signature does not fit. Whether that key is trusted is another question.
    #[must_use]
    pub fn signer(&self, kind: HeadKind, tape: &str) -> Option<VerifyingKey> {
        let key = VerifyingKey::from_bytes(&self.public_key).ok()?.named(&self.key_id).ok()?;
        let signature = Signature::from_bytes(&self.signature).ok()?;
        let canonical = self.canonical(kind, tape).ok()?;
        key.verify(Profile::Two, Domain::Tape, &canonical, &signature).ok()?;
        Some(key)
    }

    fn canonical(&self, kind: HeadKind, tape: &str) -> Result<Vec<u8>, EncodeError> {
        let mut encoder = Encoder::with_capacity(Profile::Two, 160);
        encoder.value().array(|head| {
            head.item().text(kind.name());
            head.item().text(tape);
            head.item().unsigned(self.seq);
            head.item().bytes(&self.hash);
            head.item().unsigned(self.at);
            match self.ended {
                Some(ended) => head.item().unsigned(ended),
                None => head.item().null(),
            }
            head.item().text(&self.key_id);
            head.item().bytes(&self.public_key);
            // Heads of tapes without gaps are signed as they were before gaps were counted.
            if self.missing > 0 {
                head.item().unsigned(self.missing);
            }
            Ok(())
        })?;
        encoder.finish()
    }
}

/// What is kept with an entry: 32 bytes of its hash, and then, in some, a [`SealDetails`].
#[derive(Clone, PartialEq, Debug)]
pub struct EntrySeal {
    /// The hash of the chain at this entry.
    pub hash: ChainHash,
    /// What only some entries have.
    pub details: SealDetails,
}

/// What only some entries have in their seal.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SealDetails {
    /// This place of the chain, signed.
    #[prost(message, optional, tag = "1")]
    pub head: Option<Head>,
    /// The entry with whose salts the body is committed to; 0 for its own.
    #[prost(uint64, tag = "2")]
    pub salted_as: u64,
    /// In a redacted copy: the salt of the body, and those of its leaves, empty for leaves that were removed.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub salts: Vec<Vec<u8>>,
    /// In a redacted copy: the hashes of the leaves that were removed, in their order.
    #[prost(bytes = "vec", repeated, tag = "4")]
    pub removed: Vec<Vec<u8>>,
    /// In a redacted copy: the commitment to a body that was removed as a whole.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub body: Option<Vec<u8>>,
}

impl EntrySeal {
    /// Its stored form.
    #[must_use]
    pub fn to_bytes(&self) -> Box<[u8]> {
        let mut bytes = Vec::with_capacity(HASH_BYTES + self.details.encoded_len());
        bytes.extend_from_slice(&self.hash);
        bytes.extend_from_slice(&self.details.encode_to_vec());
        bytes.into()
    }

    /// From its stored form; none if it is none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (hash, rest) = bytes.split_first_chunk()?;
        let details = if rest.is_empty() { SealDetails::default() } else { SealDetails::decode(rest).ok()? };
        Some(Self { hash: *hash, details })
    }

    /// The hash in a stored form, without reading the rest.
    #[must_use]
    pub fn hash_of(bytes: &[u8]) -> Option<ChainHash> {
        bytes.first_chunk().copied()
    }
}

impl TapeSeal {
    /// Its stored form.
    #[must_use]
    pub fn to_bytes(&self) -> Box<[u8]> {
        self.encode_to_vec().into()
    }

    /// From its stored form; none if it is none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::decode(bytes).ok()
    }

    /// The stored form with the head that closes the tape; as it is if it cannot be read.
    #[must_use]
    pub fn closed(stored: &[u8], closing: &[u8]) -> Box<[u8]> {
        match (Self::from_bytes(stored), Head::decode(closing)) {
            (Some(seal), Ok(closing)) => Self { closing: Some(closing), ..seal }.to_bytes(),
            _ => stored.into(),
        }
    }

    /// The stored form with a checkpoint, signed by `key`, at the last entry that is pruned; as it is if that is no sealed entry.
    ///
    /// # Errors
    /// If it cannot be signed.
    pub fn pruned(
        stored: &[u8],
        tape: &str,
        (seq, entry): (u64, &[u8]),
        at: u64,
        key: &SigningKey,
    ) -> Result<Box<[u8]>, SignHeadError> {
        let (Some(seal), Some(hash)) = (Self::from_bytes(stored), EntrySeal::hash_of(entry)) else {
            return Ok(stored.into());
        };
        let checkpoint = Head::sign(HeadKind::Checkpoint, tape, (seq, &hash), (at, None), key)?;
        Ok(Self { checkpoint: Some(checkpoint), ..seal }.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_serves_one_tape_and_one_kind() {
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        let head = Head::sign(HeadKind::Interim, "tape", (3, &[1; 32]), (9, None), &key).unwrap();
        assert_eq!(head.signer(HeadKind::Interim, "tape").unwrap().id(), key.id());
        assert!(head.signer(HeadKind::Closing, "tape").is_none());
        assert!(head.signer(HeadKind::Interim, "other").is_none());
        for changed in [
            Head { seq: 4, ..head.clone() },
            Head { hash: vec![2; 32], ..head.clone() },
            Head { at: 8, ..head.clone() },
            Head { ended: Some(1), ..head.clone() },
            Head { key_id: "other".to_owned(), ..head.clone() },
        ] {
            assert!(changed.signer(HeadKind::Interim, "tape").is_none(), "{changed:?}");
        }
    }

    #[test]
    fn seals_are_read_as_they_were_written() {
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        let head = Head::sign(HeadKind::Closing, "tape", (3, &[1; 32]), (9, Some(9)), &key).unwrap();
        let plain = EntrySeal { hash: [5; 32], details: SealDetails::default() };
        assert_eq!((plain.to_bytes().len(), EntrySeal::from_bytes(&plain.to_bytes())), (32, Some(plain)));
        let more = EntrySeal { hash: [5; 32], details: SealDetails { head: Some(head.clone()), ..Default::default() } };
        assert_eq!(EntrySeal::from_bytes(&more.to_bytes()), Some(more));
        assert_eq!(EntrySeal::from_bytes(&[1; 31]), None);
        let seal = TapeSeal { version: CHAIN_VERSION, ..TapeSeal::default() };
        let closed = TapeSeal::closed(&seal.to_bytes(), &head.encode_to_vec());
        assert_eq!(TapeSeal::from_bytes(&closed).unwrap().closing, Some(head));
    }
}
