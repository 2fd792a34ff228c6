//! Actions of redaction rules, and the replacements they make for secrets.

use super::cipher::{EncryptionKey, PlaintextKind};
use sha2::{Digest, Sha256};
use signalbox_wire::hex::push_hex;
use signalbox_wire::json;

/// Default replacement of a secret.
pub(crate) const REPLACEMENT: &str = "[redacted]";
/// Replacement of hidden characters. Its length is fixed, because the true length may be revealing.
const STARS: &str = "****";
/// Number of bytes of a hash that are written.
const HASH_BYTES: usize = 8;

/// Treatment of a secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Removes the member together with its key, or the matched part of a text.
    Remove,
    /// Replaces it by this text.
    Replace(String),
    /// Replaces it by a keyed hash, which shows equal secrets of a tape to be equal.
    Hash,
    /// Replaces it by a token that the owner of the key can decrypt.
    Encrypt(EncryptionKey),
    /// Keeps only the last characters, and only of values more than twice as long.
    Mask {
        /// Number of visible characters.
        visible: usize,
    },
}

impl Default for Action {
    fn default() -> Self {
        Self::Replace(REPLACEMENT.to_owned())
    }
}

impl Action {
    /// Returns the name of the action in the head of a tape.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Remove => "remove".to_owned(),
            Self::Replace(_) => "replace".to_owned(),
            Self::Hash => "hash".to_owned(),
            Self::Encrypt(key) => format!("encrypt {}", key.id()),
            Self::Mask { visible } => format!("mask {visible}"),
        }
    }

    /// Returns the replacement of a text.
    pub(crate) fn text(&self, secret: &[u8], hashing: &Hashing) -> String {
        match self {
            Self::Remove => String::new(),
            Self::Replace(text) => text.clone(),
            Self::Hash => hashing.of(secret),
            Self::Encrypt(key) => sealed(key, PlaintextKind::Text, secret),
            Self::Mask { visible } => {
                let text = String::from_utf8_lossy(secret);
                let length = text.chars().count();
                let shown = if length > visible * 2 { *visible } else { 0 };
                STARS.chars().chain(text.chars().skip(length - shown)).collect()
            }
        }
    }

    /// Returns the replacement of a JSON value, as JSON.
    pub(crate) fn value(&self, raw: &[u8], hashing: &Hashing) -> String {
        let plain = json::string(raw);
        match (self, &plain) {
            // Objects and arrays have no last characters worth showing.
            (Self::Mask { .. }, None) if matches!(raw.first(), Some(b'{' | b'[')) => json::quote(STARS),
            (Self::Encrypt(key), None) => json::quote(&sealed(key, PlaintextKind::Json, raw)),
            (_, Some(text)) => json::quote(&self.text(text.as_bytes(), hashing)),
            (_, None) => json::quote(&self.text(raw, hashing)),
        }
    }
}

/// Encrypts a secret, and drops one that cannot be encrypted.
fn sealed(key: &EncryptionKey, what: PlaintextKind, secret: &[u8]) -> String {
    key.seal(what, secret).unwrap_or_else(|| REPLACEMENT.to_owned())
}

/// Hash function with the key of a tape.
pub(crate) struct Hashing(Sha256);

impl Hashing {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(Sha256::new_with_prefix(key))
    }

    /// Returns half of the hash, which prevents length extension to the hash of a longer value.
    fn of(&self, secret: &[u8]) -> String {
        let hash = self.0.clone().chain_update(secret).finalize();
        let mut text = "hash:".to_owned();
        push_hex(&mut text, &hash[..HASH_BYTES]);
        text
    }
}

impl std::fmt::Debug for Hashing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hashing")
    }
}
