//! A signature, and the one algorithm there is.

use std::fmt;

use signalbox_wire::hex::{hex, unhex};

/// The name of the algorithm. Names are compared without regard to case.
pub const ALGORITHM: &str = "Ed25519";
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;

/// An Ed25519 signature. It is written as 128 hexadecimal digits in texts.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct Signature([u8; SIGNATURE_BYTES]);

/// Why bytes are no signature, or not one of these bytes by this key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadSignature {
    /// It has another length.
    #[error("a signature is {SIGNATURE_BYTES} bytes, not {0}")]
    Length(usize),
    /// It was made with another key, or over other bytes.
    #[error("the signature does not fit the key and what is signed")]
    Mismatch,
    /// It was made by an algorithm that is not known here.
    #[error("signatures by {0:?} are not supported; {ALGORITHM} is")]
    UnsupportedAlgorithm(String),
}

/// Whether that is the name of [`ALGORITHM`], in whatever case.
#[must_use]
pub fn is_supported_algorithm(name: &str) -> bool {
    name.eq_ignore_ascii_case(ALGORITHM)
}

impl Signature {
    /// A signature from its bytes.
    ///
    /// # Errors
    /// If there are not [`SIGNATURE_BYTES`] of them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadSignature> {
        bytes.try_into().map(Self).map_err(|_| BadSignature::Length(bytes.len()))
    }

    /// A signature from 128 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        Self::from_bytes(&unhex(text)?).ok()
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; SIGNATURE_BYTES] {
        &self.0
    }

    /// Its bytes as hexadecimal digits.
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
