//! Secrets that are put aside under a key rather than thrown away: `enc:KEY-ID:BASE64`.
//!
//! AES-256-GCM with a random nonce, which precedes the ciphertext. The id of the key is authenticated with it, so that a
//! token cannot be passed off as one of another key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use signalbox_seal::{AEAD_KEY_BYTES, AEAD_OVERHEAD, AeadKey};
use signalbox_wire::hex::{hex, unhex};
use std::fmt;
use std::sync::Arc;

/// What a token begins with.
pub(crate) const MARK: &str = "enc:";
/// Bytes of a key.
pub const KEY_BYTES: usize = AEAD_KEY_BYTES;
/// Longest id of a key, in bytes.
pub const MAX_KEY_ID: usize = 64;

/// A key that secrets are encrypted under, and its name. Cheap to copy, and never shown.
#[derive(Clone)]
pub struct EncryptionKey(Arc<Inner>);

struct Inner {
    id: String,
    bytes: [u8; KEY_BYTES],
    sealer: AeadKey,
}

/// Why a key cannot be used. What it is is not told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadKey {
    /// The text is no key.
    #[error("a key is {KEY_BYTES} bytes, as 64 hex digits or as base64; `openssl rand -hex 32` makes one")]
    Text,
    /// The id cannot appear in a token.
    #[error("the id of a key is 1 to {MAX_KEY_ID} letters, digits, `_`, `.` and `-`")]
    Id,
}

/// What was encrypted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sealed {
    /// A text, or a part of one.
    Text,
    /// A JSON value that is not a string.
    Json,
}

impl EncryptionKey {
    /// A key from its text: 64 hex digits or base64, with space around it. Without an id it is named by its fingerprint.
    ///
    /// # Errors
    /// If that is no key, or no id.
    pub fn read(text: &str, id: Option<&str>) -> Result<Self, BadKey> {
        let text = text.trim();
        let bytes = unhex(text)
            .filter(|bytes| bytes.len() == KEY_BYTES)
            .or_else(|| STANDARD.decode(text).ok())
            .ok_or(BadKey::Text)?;
        let bytes: [u8; KEY_BYTES] = bytes.try_into().map_err(|_| BadKey::Text)?;
        let id = id.map_or_else(|| fingerprint(&bytes), str::to_owned);
        if !(1..=MAX_KEY_ID).contains(&id.len()) || !id.bytes().all(is_of_id) {
            return Err(BadKey::Id);
        }
        let sealer = AeadKey::new(&bytes).map_err(|_| BadKey::Text)?;
        Ok(Self(Arc::new(Inner { id, bytes, sealer })))
    }

    /// Its name, which appears in every token.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The token for a secret; none if it cannot be encrypted.
    pub(crate) fn seal(&self, what: Sealed, secret: &[u8]) -> Option<String> {
        // The base64 always ends with `=`, so that the end of a token is known wherever it appears in a text.
        let fill = (AEAD_OVERHEAD + 1 + secret.len()).is_multiple_of(3);
        let mut text = Vec::with_capacity(secret.len() + 32);
        text.push(match (what, fill) {
            (Sealed::Text, false) => b't',
            (Sealed::Text, true) => b'T',
            (Sealed::Json, false) => b'j',
            (Sealed::Json, true) => b'J',
        });
        text.extend_from_slice(secret);
        text.extend(fill.then_some(0));
        let sealed = self.0.sealer.seal(self.id().as_bytes(), text)?;
        Some(format!("{MARK}{}:{}", self.id(), STANDARD.encode(sealed)))
    }

    /// What a token of this id holds, if it was made under this key, whatever the key was called.
    pub(crate) fn open(&self, id: &[u8], sealed: &[u8]) -> Option<(Sealed, Vec<u8>)> {
        let sealed = STANDARD.decode(sealed).ok()?;
        let plain = self.0.sealer.open(id, &sealed)?;
        let (kind, rest) = plain.split_first()?;
        let rest = if kind.is_ascii_uppercase() { rest.split_last()?.1 } else { rest };
        match kind.to_ascii_lowercase() {
            b't' => Some((Sealed::Text, rest.to_vec())),
            b'j' => Some((Sealed::Json, rest.to_vec())),
            _ => None,
        }
    }
}

/// What may appear in the id of a key.
pub(crate) fn is_of_id(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)
}

/// Names a key without telling it.
fn fingerprint(bytes: &[u8; KEY_BYTES]) -> String {
    let hash = Sha256::new_with_prefix(b"signalbox key id\0").chain_update(bytes).finalize();
    hex(&hash[..4])
}

impl PartialEq for EncryptionKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id && self.0.bytes == other.0.bytes
    }
}

impl Eq for EncryptionKey {}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EncryptionKey").field(&self.0.id).finish()
    }
}
