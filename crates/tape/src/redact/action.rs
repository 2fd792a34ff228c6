//! What is put in the place of a secret.

use super::cipher::{EncryptionKey, Sealed};
use sha2::{Digest, Sha256};
use signalbox_wire::hex::push_hex;
use signalbox_wire::json;

/// What stands for a secret if nothing else is said.
pub(crate) const REPLACEMENT: &str = "[redacted]";
/// What stands for hidden characters; always as many, since the length may tell something.
const STARS: &str = "****";
/// How many bytes of a hash are written.
const HASH_BYTES: usize = 8;

/// What is done with a secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// The member goes with its key; of a text, the found part goes.
    Remove,
    /// This text takes its place.
    Replace(String),
    /// A keyed hash takes its place, so that equal secrets of a tape can be told to be equal.
    Hash,
    /// A token takes its place, from which whoever has the key gets it back.
    Encrypt(EncryptionKey),
    /// Only the last characters stay, and only of values more than twice as long.
    Mask {
        /// How many.
        visible: usize,
    },
}

impl Default for Action {
    fn default() -> Self {
        Self::Replace(REPLACEMENT.to_owned())
    }
}

impl Action {
    /// The word for it in the head of a tape.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Remove => "remove".to_owned(),
            Self::Replace(_) => "replace".to_owned(),
            Self::Hash => "hash".to_owned(),
            Self::Encrypt(key) => format!("encrypt {}", key.id()),
            Self::Mask { visible } => format!("mask {visible}"),
        }
    }

    /// What takes the place of a text.
    pub(crate) fn text(&self, secret: &[u8], hashing: &Hashing) -> String {
        match self {
            Self::Remove => String::new(),
            Self::Replace(text) => text.clone(),
            Self::Hash => hashing.of(secret),
            Self::Encrypt(key) => sealed(key, Sealed::Text, secret),
            Self::Mask { visible } => {
                let text = String::from_utf8_lossy(secret);
                let length = text.chars().count();
                let shown = if length > visible * 2 { *visible } else { 0 };
                STARS.chars().chain(text.chars().skip(length - shown)).collect()
            }
        }
    }

    /// What takes the place of a JSON value, as JSON.
    pub(crate) fn value(&self, raw: &[u8], hashing: &Hashing) -> String {
        let plain = json::string(raw);
        match (self, &plain) {
            // Objects and arrays have no last characters worth showing.
            (Self::Mask { .. }, None) if matches!(raw.first(), Some(b'{' | b'[')) => json::quote(STARS),
            (Self::Encrypt(key), None) => json::quote(&sealed(key, Sealed::Json, raw)),
            (_, Some(text)) => json::quote(&self.text(text.as_bytes(), hashing)),
            (_, None) => json::quote(&self.text(raw, hashing)),
        }
    }
}

/// A secret that cannot be encrypted is not kept either.
fn sealed(key: &EncryptionKey, what: Sealed, secret: &[u8]) -> String {
    key.seal(what, secret).unwrap_or_else(|| REPLACEMENT.to_owned())
}

/// Hashes under the key of a tape.
pub(crate) struct Hashing(Sha256);

impl Hashing {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(Sha256::new_with_prefix(key))
    }

    /// Only half of the hash is told, so that it cannot be continued to the hash of a longer value.
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
