//! Seal of a growing record: what is stored with its head and its entries, and what is signed.
//!
//! The entries form a hash chain. A [`Head`] is a signed statement of the hash of the chain at an entry. `docs/seal.md`
//! specifies the hashes.

use prost::Message as _;

use crate::canonical::{EncodeError, Encoder};
use crate::domain::Domain;
use crate::profile::Profile;
use crate::signature::Signature;
use crate::signing_key::{KeyError, SigningKey};
use crate::verifying_key::VerifyingKey;

/// Length of a hash of the chain, in bytes.
pub const HASH_BYTES: usize = 32;
/// Version of the chain that this crate writes.
pub const CHAIN_VERSION: u32 = 1;

/// Hash of the chain at an entry.
pub type ChainHash = [u8; HASH_BYTES];

/// Seal stored with the head of a tape.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TapeSeal {
    /// Version of the chain: [`CHAIN_VERSION`].
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// Seed of the salts of all bodies; absent in a redacted copy.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub seed: Option<Vec<u8>>,
    /// Members of messages whose leaves are committed to individually, as names joined by dots.
    #[prost(string, repeated, tag = "3")]
    pub commit: Vec<String>,
    /// Head signed before the first entry.
    #[prost(message, optional, tag = "4")]
    pub opening: Option<Head>,
    /// Head of the last pruned entry.
    #[prost(message, optional, tag = "5")]
    pub checkpoint: Option<Head>,
    /// Head signed after the last entry.
    #[prost(message, optional, tag = "6")]
    pub closing: Option<Head>,
}

/// Signed position of the chain.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Head {
    /// Number of the entry; 0 before the first.
    #[prost(uint64, tag = "1")]
    pub seq: u64,
    /// Hash of the chain at that entry.
    #[prost(bytes = "vec", tag = "2")]
    pub hash: Vec<u8>,
    /// Time of signing, in nanoseconds since 1970.
    #[prost(uint64, tag = "3")]
    pub at: u64,
    /// End of the tape, in a closing head.
    #[prost(uint64, optional, tag = "4")]
    pub ended: Option<u64>,
    /// Id of the signing key.
    #[prost(string, tag = "5")]
    pub key_id: String,
    /// Public key of the signer.
    #[prost(bytes = "vec", tag = "6")]
    pub public_key: Vec<u8>,
    /// Signature over all other fields.
    #[prost(bytes = "vec", tag = "7")]
    pub signature: Vec<u8>,
    /// Number of facts that could not be recorded, in a closing head.
    #[prost(uint64, tag = "8")]
    pub missing: u64,
}

/// Kind of a head. A signature over one kind is invalid for any other.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum HeadKind {
    /// Signed before the first entry.
    Opening,
    /// Signed between two entries of the tape.
    Interim,
    /// Signed after the last entry.
    Closing,
    /// Signed when all entries up to it were pruned.
    Checkpoint,
}

impl HeadKind {
    /// Returns the name of the kind in the signed data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Interim => "interim",
            Self::Closing => "closing",
            Self::Checkpoint => "checkpoint",
        }
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Opening, Self::Interim, Self::Closing, Self::Checkpoint].into_iter().find(|kind| kind.name() == name)
    }
}

/// Error when a head cannot be signed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SignHeadError {
    /// The head has no canonical form.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The key cannot sign.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Position of a tape's chain to be signed.
#[derive(Copy, Clone, Debug)]
pub struct HeadContent<'a> {
    /// Number of the last entry.
    pub seq: u64,
    /// Hash of the chain at that entry.
    pub hash: &'a ChainHash,
    /// Time of signing, in nanoseconds since 1970.
    pub at: u64,
    /// End of the tape, for the head that closes it.
    pub ended: Option<u64>,
    /// Number of facts that could not be recorded, for the head that closes the tape.
    pub missing: u64,
}

impl<'a> HeadContent<'a> {
    /// Returns the position of a tape that goes on.
    #[must_use]
    pub fn of(seq: u64, hash: &'a ChainHash, at: u64) -> Self {
        Self { seq, hash, at, ended: None, missing: 0 }
    }
}

impl Head {
    /// Signs a position of a tape's chain.
    ///
    /// # Errors
    /// If the cryptographic library fails.
    pub fn sign(kind: HeadKind, tape: &str, content: HeadContent<'_>, key: &SigningKey) -> Result<Self, SignHeadError> {
        let HeadContent { seq, hash, at, ended, missing } = content;
        let mut head = Self { seq, hash: hash.to_vec(), at, ended, missing, ..Self::default() };
        key.id().clone_into(&mut head.key_id);
        head.public_key = key.verifying_key().as_bytes().to_vec();
        let signature = key.sign(Profile::Two, Domain::Tape, &head.canonical(kind, tape)?)?;
        head.signature = signature.as_bytes().to_vec();
        Ok(head)
    }

    /// Returns the key that signed this position; `None` if the signature is wrong. The caller decides if that key is
    /// trusted.
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
            // Omitted if there are no gaps, so that these heads match those signed before gaps were counted.
            if self.missing > 0 {
                head.item().unsigned(self.missing);
            }
            Ok(())
        })?;
        encoder.finish()
    }
}

/// Seal stored with an entry: 32 bytes of its hash, followed by [`SealDetails`] in some entries.
#[derive(Clone, PartialEq, Debug)]
pub struct EntrySeal {
    /// Hash of the chain at this entry.
    pub hash: ChainHash,
    /// Parts that only some entries have.
    pub details: SealDetails,
}

/// Parts of a seal that only some entries have.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SealDetails {
    /// Signed head at this position of the chain.
    #[prost(message, optional, tag = "1")]
    pub head: Option<Head>,
    /// Entry whose salts are used to commit to the body; 0 for this entry itself.
    #[prost(uint64, tag = "2")]
    pub salted_as: u64,
    /// In a redacted copy: the salts of the body and of its leaves, empty for removed leaves.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub salts: Vec<Vec<u8>>,
    /// In a redacted copy: the hashes of the removed leaves, in order.
    #[prost(bytes = "vec", repeated, tag = "4")]
    pub removed: Vec<Vec<u8>>,
    /// In a redacted copy: the commitment to a body that was removed as a whole.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub body: Option<Vec<u8>>,
}

impl EntrySeal {
    /// Serializes the seal for storage.
    #[must_use]
    pub fn to_bytes(&self) -> Box<[u8]> {
        let mut bytes = Vec::with_capacity(HASH_BYTES + self.details.encoded_len());
        bytes.extend_from_slice(&self.hash);
        bytes.extend_from_slice(&self.details.encode_to_vec());
        bytes.into()
    }

    /// Parses a stored seal. `None` if it is malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (hash, rest) = bytes.split_first_chunk()?;
        let details = if rest.is_empty() { SealDetails::default() } else { SealDetails::decode(rest).ok()? };
        Some(Self { hash: *hash, details })
    }

    /// Returns the hash of a stored seal, without parsing the rest.
    #[must_use]
    pub fn hash_of(bytes: &[u8]) -> Option<ChainHash> {
        bytes.first_chunk().copied()
    }
}

impl TapeSeal {
    /// Serializes the seal for storage.
    #[must_use]
    pub fn to_bytes(&self) -> Box<[u8]> {
        self.encode_to_vec().into()
    }

    /// Parses a stored seal. `None` if it is malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::decode(bytes).ok()
    }

    /// Adds a closing head to a stored seal. Returns the seal unchanged if it cannot be parsed.
    #[must_use]
    pub fn closed(stored: &[u8], closing: &[u8]) -> Box<[u8]> {
        match (Self::from_bytes(stored), Head::decode(closing)) {
            (Some(seal), Ok(closing)) => Self { closing: Some(closing), ..seal }.to_bytes(),
            _ => stored.into(),
        }
    }

    /// Adds a checkpoint, signed by `key`, at the last pruned entry to a stored seal. Returns the seal unchanged if the
    /// entry is not sealed.
    ///
    /// # Errors
    /// If the checkpoint cannot be signed.
    pub fn pruned(
        stored: &[u8],
        tape: &str,
        seq: u64,
        entry: &[u8],
        at: u64,
        key: &SigningKey,
    ) -> Result<Box<[u8]>, SignHeadError> {
        let (Some(seal), Some(hash)) = (Self::from_bytes(stored), EntrySeal::hash_of(entry)) else {
            return Ok(stored.into());
        };
        let checkpoint = Head::sign(HeadKind::Checkpoint, tape, HeadContent::of(seq, &hash, at), key)?;
        Ok(Self { checkpoint: Some(checkpoint), ..seal }.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_serves_one_tape_and_one_kind() {
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        let head = Head::sign(HeadKind::Interim, "tape", HeadContent::of(3, &[1; 32], 9), &key).unwrap();
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
        let content = HeadContent { ended: Some(9), ..HeadContent::of(3, &[1; 32], 9) };
        let head = Head::sign(HeadKind::Closing, "tape", content, &key).unwrap();
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
