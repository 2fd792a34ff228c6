//! Seals data that clients must bring back unchanged, with a key that is lost when the process ends.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest;
use signalbox_engine::bridge::ticket::Sealer;
use signalbox_engine::{Fault, FaultKind};

/// A key of this process.
pub struct ProcessSealer(RandomizedNonceKey);

impl ProcessSealer {
    /// A sealer with a new random key.
    ///
    /// # Errors
    /// A fault if the system gives no randomness.
    pub fn new() -> Result<Self, Fault> {
        let failed = |why: String| Fault::new(FaultKind::Internal, format!("no key for parked calls: {why}"));
        let mut key = [0_u8; 32];
        getrandom::fill(&mut key).map_err(|error| failed(error.to_string()))?;
        RandomizedNonceKey::new(&AES_256_GCM, &key).map(Self).map_err(|error| failed(error.to_string()))
    }
}

impl Sealer for ProcessSealer {
    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut text = plain.to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::empty(), &mut text).ok()?;
        let mut sealed = nonce.as_ref().to_vec();
        sealed.append(&mut text);
        Some(sealed)
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let plain = self.0.open_in_place(Nonce::from(nonce), Aad::empty(), &mut text).ok()?;
        Some(plain.to_vec())
    }

    fn digest(&self, text: &[u8]) -> [u8; 32] {
        let mut sum = [0; 32];
        sum.copy_from_slice(digest::digest(&digest::SHA256, text).as_ref());
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_here_can_be_opened() {
        let (ours, theirs) = (ProcessSealer::new().unwrap(), ProcessSealer::new().unwrap());
        let sealed = ours.seal(b"park 7").unwrap();
        assert_eq!(ours.open(&sealed).as_deref(), Some(&b"park 7"[..]));
        assert_eq!(theirs.open(&sealed), None);
        assert_ne!(ours.seal(b"park 7").unwrap(), sealed, "the same text is never sealed to the same bytes");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(ours.open(&changed), None, "byte {at}");
        }
        assert_eq!(ours.open(b""), None);
    }
}
