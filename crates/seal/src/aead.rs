//! Authenticated encryption: AES-256-GCM with a random nonce in front of the ciphertext.

use aws_lc_rs::aead::{AES_256_GCM, Aad, MAX_TAG_LEN, NONCE_LEN, Nonce, RandomizedNonceKey};

use crate::signing_key::KeyError;

/// Length of a key, in bytes.
pub const AEAD_KEY_BYTES: usize = 32;
/// Number of bytes that sealing adds to a plaintext.
pub const AEAD_OVERHEAD: usize = NONCE_LEN + MAX_TAG_LEN;

/// Key for authenticated encryption.
pub struct AeadKey(RandomizedNonceKey);

impl AeadKey {
    /// Creates a key from its bytes.
    ///
    /// # Errors
    /// If the cryptographic library rejects them.
    pub fn new(bytes: &[u8; AEAD_KEY_BYTES]) -> Result<Self, KeyError> {
        RandomizedNonceKey::new(&AES_256_GCM, bytes)
            .map(Self)
            .map_err(|_| KeyError::Library("take a key for AES-256-GCM"))
    }

    /// Generates a random key, which lives only as long as this value.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn generate() -> Result<Self, KeyError> {
        let mut bytes = [0; AEAD_KEY_BYTES];
        aws_lc_rs::rand::fill(&mut bytes).map_err(|_| KeyError::Library("give random bytes"))?;
        Self::new(&bytes)
    }

    /// Encrypts a text. `bound` is authenticated but not included: [`AeadKey::open`] needs the same bytes.
    #[must_use]
    pub fn seal(&self, bound: &[u8], mut text: Vec<u8>) -> Option<Vec<u8>> {
        let nonce = self.0.seal_in_place_append_tag(Aad::from(bound), &mut text).ok()?;
        let mut sealed = Vec::with_capacity(NONCE_LEN + text.len());
        sealed.extend_from_slice(nonce.as_ref());
        sealed.append(&mut text);
        Some(sealed)
    }

    /// Decrypts a text. `None` if it was sealed under another key or with other bound bytes, or was modified.
    #[must_use]
    pub fn open(&self, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let length = self.0.open_in_place(Nonce::from(nonce), Aad::from(bound), &mut text).ok()?.len();
        text.truncate(length);
        Some(text)
    }
}

impl std::fmt::Debug for AeadKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AeadKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_with_this_key_and_binding_can_be_opened() {
        let (ours, theirs) = (AeadKey::generate().unwrap(), AeadKey::generate().unwrap());
        let sealed = ours.seal(b"a", b"park 7".to_vec()).unwrap();
        assert_eq!(sealed.len(), 6 + AEAD_OVERHEAD);
        assert_eq!(ours.open(b"a", &sealed).as_deref(), Some(&b"park 7"[..]));
        assert_eq!((theirs.open(b"a", &sealed), ours.open(b"b", &sealed), ours.open(b"a", b"")), (None, None, None));
        assert_ne!(ours.seal(b"a", b"park 7".to_vec()).unwrap(), sealed, "no text is sealed to the same bytes twice");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(ours.open(b"a", &changed), None, "byte {at}");
        }
    }
}
