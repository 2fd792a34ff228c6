//! Public keys for Ed25519 signatures.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{ED25519, ParsedPublicKey};

use crate::domain::Domain;
use crate::hash::sha256;
use crate::profile::Profile;
use crate::signature::{BadSignature, Signature};
use crate::signing_key::KeyError;
use signalbox_wire::hex::{hex, unhex};

/// Length of a public key, in bytes.
pub const PUBLIC_KEY_BYTES: usize = 32;
/// Number of hash bytes in a derived id.
const ID_BYTES: usize = 20;
const MAX_ID: usize = 128;

/// Points of small order without their sign bit, in all encodings that a reader may accept. Any signer can forge
/// signatures that match such a key.
const SMALL_ORDER: [[u8; PUBLIC_KEY_BYTES]; 7] = [
    first_last(0, 0, 0),
    first_last(1, 0, 0),
    first_last(0xec, 0xff, 0x7f),
    first_last(0xed, 0xff, 0x7f),
    first_last(0xee, 0xff, 0x7f),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf,
        0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20,
        0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
];

const fn first_last(first: u8, middle: u8, last: u8) -> [u8; PUBLIC_KEY_BYTES] {
    let mut bytes = [middle; PUBLIC_KEY_BYTES];
    bytes[0] = first;
    bytes[PUBLIC_KEY_BYTES - 1] = last;
    bytes
}

/// Public Ed25519 key with its id. Cheap to clone.
#[derive(Clone)]
pub struct VerifyingKey {
    bytes: [u8; PUBLIC_KEY_BYTES],
    parsed: Arc<ParsedPublicKey>,
    id: Arc<str>,
}

impl VerifyingKey {
    /// Creates a public key from its 32 bytes. Its id is derived from them.
    ///
    /// # Errors
    /// If they are not a public key, or one of small order.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let length = KeyError::Length { what: "a public key", length: bytes.len() };
        let bytes: [u8; PUBLIC_KEY_BYTES] = bytes.try_into().map_err(|_| length)?;
        let mut unsigned = bytes;
        unsigned[PUBLIC_KEY_BYTES - 1] &= 0x7f;
        if SMALL_ORDER.contains(&unsigned) {
            return Err(KeyError::SmallOrder);
        }
        let parsed = ParsedPublicKey::new(&ED25519, bytes).map_err(|error| KeyError::Rejected(error.to_string()))?;
        let id = derived_id(&bytes);
        Ok(Self { bytes, parsed: Arc::new(parsed), id: id.into() })
    }

    /// Parses a public key from 64 hexadecimal digits.
    ///
    /// # Errors
    /// If the text is not a public key.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        let bytes =
            unhex(text).ok_or_else(|| KeyError::Rejected("a public key is 64 hexadecimal digits".to_owned()))?;
        Self::from_bytes(&bytes)
    }

    /// Replaces the id that is derived from the bytes.
    ///
    /// # Errors
    /// If the id is empty, too long or contains an invalid character.
    pub fn named(mut self, id: &str) -> Result<Self, KeyError> {
        check_key_id(id)?;
        self.id = id.into();
        Ok(self)
    }

    /// Returns the id of the key.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the bytes of the key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; PUBLIC_KEY_BYTES] {
        &self.bytes
    }

    /// Formats the key as hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex(&self.bytes)
    }

    /// Verifies a signature of [`SigningKey::sign`](crate::SigningKey::sign).
    ///
    /// # Errors
    /// If it was made with another key, over other bytes, or for another profile or domain.
    pub fn verify(
        &self,
        profile: Profile,
        domain: Domain,
        canonical: &[u8],
        signature: &Signature,
    ) -> Result<(), BadSignature> {
        self.verify_prepared(&domain.frame(profile, canonical), signature)
    }

    /// Verifies a signature of [`SigningKey::sign_prepared`](crate::SigningKey::sign_prepared) over bytes as they are.
    ///
    /// # Errors
    /// If it was made with another key or over other bytes.
    pub fn verify_prepared(&self, prepared: &[u8], signature: &Signature) -> Result<(), BadSignature> {
        self.parsed.verify_sig(prepared, signature.as_ref()).map_err(|_| BadSignature::Mismatch)
    }
}

/// Derives the id of a public key: `ed25519-` and the first 20 bytes of its SHA-256.
fn derived_id(bytes: &[u8; PUBLIC_KEY_BYTES]) -> String {
    let hash = sha256(bytes);
    format!("ed25519-{}", hex(hash.first_chunk::<ID_BYTES>().unwrap_or(&[0; ID_BYTES])))
}

/// Checks the id of a key. Ids are written into file names, headers and log lines.
pub(crate) fn check_key_id(id: &str) -> Result<(), KeyError> {
    let fits = (1..=MAX_ID).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:@-".contains(&byte));
    if fits { Ok(()) } else { Err(KeyError::Id(id.chars().take(MAX_ID).collect())) }
}

impl PartialEq for VerifyingKey {
    /// Compares the keys only; their ids may differ.
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for VerifyingKey {}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingKey").field("id", &self.id).field("bytes", &self.to_hex()).finish()
    }
}
