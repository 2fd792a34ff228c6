//! Encryption of secrets, so that the owner of the key can restore them: `enc:KEY-ID:BASE64`.
//!
//! The cipher is AES-256-GCM with a random nonce, which precedes the ciphertext. The id of the key is authenticated, so
//! that a token cannot be passed off as one of another key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use signalbox_seal::{AEAD_KEY_BYTES, AEAD_OVERHEAD, AeadKey};
use signalbox_wire::hex::{hex, unhex};
use std::fmt;
use std::sync::Arc;

/// Prefix of a token.
pub(crate) const MARK: &str = "enc:";
/// Length of a key, in bytes.
pub const KEY_BYTES: usize = AEAD_KEY_BYTES;
/// Maximum length of a key id, in bytes.
pub const MAX_KEY_ID: usize = 64;

/// Encryption key with its id. Cheap to clone, and never shown.
#[derive(Clone)]
pub struct EncryptionKey(Arc<Inner>);

struct Inner {
    id: String,
    bytes: [u8; KEY_BYTES],
    sealer: AeadKey,
}

/// Error of reading a key. It never contains the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadKey {
    /// The text is not a key.
    #[error("a key is {KEY_BYTES} bytes, as 64 hex digits or as base64; `openssl rand -hex 32` makes one")]
    Text,
    /// The id cannot appear in a token.
    #[error("the id of a key is 1 to {MAX_KEY_ID} letters, digits, `_`, `.` and `-`")]
    Id,
}

/// Kind of the encrypted value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum PlaintextKind {
    /// Text, or a part of one.
    Text,
    /// JSON value that is not a string.
    Json,
}

impl EncryptionKey {
    /// Parses a key from 64 hex digits or base64, ignoring surrounding space. Without an id, its fingerprint is the id.
    ///
    /// # Errors
    /// Fails if the text is not a key or the id is invalid.
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

    /// Returns the id of the key, which appears in every token.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns the token for a secret; `None` if encryption fails.
    pub(crate) fn seal(&self, what: PlaintextKind, secret: &[u8]) -> Option<String> {
        // The base64 always ends with `=`, which marks the end of a token wherever it appears in a text.
        let fill = (AEAD_OVERHEAD + 1 + secret.len()).is_multiple_of(3);
        let mut text = Vec::with_capacity(secret.len() + 32);
        text.push(match (what, fill) {
            (PlaintextKind::Text, false) => b't',
            (PlaintextKind::Text, true) => b'T',
            (PlaintextKind::Json, false) => b'j',
            (PlaintextKind::Json, true) => b'J',
        });
        text.extend_from_slice(secret);
        text.extend(fill.then_some(0));
        let sealed = self.0.sealer.seal(self.id().as_bytes(), text)?;
        Some(format!("{MARK}{}:{}", self.id(), STANDARD.encode(sealed)))
    }

    /// Decrypts a token of this id, if it was made under this key, whatever id the key had then.
    pub(crate) fn open(&self, id: &[u8], sealed: &[u8]) -> Option<(PlaintextKind, Vec<u8>)> {
        let sealed = STANDARD.decode(sealed).ok()?;
        let plain = self.0.sealer.open(id, &sealed)?;
        let (kind, rest) = plain.split_first()?;
        let rest = if kind.is_ascii_uppercase() { rest.split_last()?.1 } else { rest };
        match kind.to_ascii_lowercase() {
            b't' => Some((PlaintextKind::Text, rest.to_vec())),
            b'j' => Some((PlaintextKind::Json, rest.to_vec())),
            _ => None,
        }
    }
}

/// Returns true if a byte may appear in the id of a key.
pub(crate) fn is_of_id(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)
}

/// Returns a name for a key that does not reveal it.
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
