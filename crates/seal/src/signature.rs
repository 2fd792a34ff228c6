//! Signatures and their algorithm.

use std::fmt;

use signalbox_wire::hex::{hex, unhex};

/// Name of the algorithm. Names are compared without regard to case.
pub const ALGORITHM: &str = "Ed25519";
/// Length of a signature, in bytes.
pub const SIGNATURE_BYTES: usize = 64;

/// Ed25519 signature. Its text form is 128 hexadecimal digits.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct Signature([u8; SIGNATURE_BYTES]);

/// Reason why a signature is malformed or wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadSignature {
    /// The signature has the wrong length.
    #[error("a signature is {SIGNATURE_BYTES} bytes, not {0}")]
    Length(usize),
    /// The signature was made with another key, or over other bytes.
    #[error("the signature does not fit the key and what is signed")]
    Mismatch,
    /// The algorithm is not supported.
    #[error("signatures by {0:?} are not supported; {ALGORITHM} is")]
    UnsupportedAlgorithm(String),
}

/// Returns true if `name` is [`ALGORITHM`], in any case.
#[must_use]
pub fn is_supported_algorithm(name: &str) -> bool {
    name.eq_ignore_ascii_case(ALGORITHM)
}

impl Signature {
    /// Creates a signature from its bytes.
    ///
    /// # Errors
    /// If there are not [`SIGNATURE_BYTES`] of them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadSignature> {
        bytes.try_into().map(Self).map_err(|_| BadSignature::Length(bytes.len()))
    }

    /// Parses a signature from 128 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        Self::from_bytes(&unhex(text)?).ok()
    }

    /// Returns the bytes of the signature.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; SIGNATURE_BYTES] {
        &self.0
    }

    /// Formats the signature as hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }
}

impl AsRef<[u8]> for Signature {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({})", self.to_hex())
    }
}
