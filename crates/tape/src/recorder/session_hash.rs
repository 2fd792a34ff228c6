//! Keyed hashes of session ids, which are credentials: the owner of the key can find a session by its id, and a reader
//! of the tape cannot use it.

use aws_lc_rs::hmac;
use signalbox_wire::hex::push_hex;

/// Prefix of a hash, which distinguishes it from an id.
const BEGINNING: &str = "hmac:";
/// Number of bytes of the hash that are written.
const BYTES: usize = 16;

/// Hashes session ids under one key.
#[derive(Clone)]
pub struct SessionHash(hmac::Key);

impl SessionHash {
    /// Creates a hash function with this key.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// Returns the hash that a tape has instead of this id.
    #[must_use]
    pub fn of(&self, id: &str) -> String {
        let tag = hmac::sign(&self.0, id.as_bytes());
        let mut text = BEGINNING.to_owned();
        push_hex(&mut text, &tag.as_ref()[..BYTES]);
        text
    }
}

impl std::fmt::Debug for SessionHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionHash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_hashes_an_id_the_same_each_time_and_another_key_does_not() {
        let (one, other) = (SessionHash::new(&[1; 32]), SessionHash::new(&[2; 32]));
        assert_eq!(one.of("secret"), one.of("secret"));
        assert_ne!(one.of("secret"), one.of("Secret"));
        assert_ne!(one.of("secret"), other.of("secret"));
        assert_eq!(one.of("secret").len(), BEGINNING.len() + 2 * BYTES);
        assert!(!format!("{one:?}{}", one.of("secret")).contains("secret"));
    }
}
