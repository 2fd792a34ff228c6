//! Seals data that clients must return unchanged, with a key that is lost when the process ends.

use signalbox_engine::bridge::ticket::Sealer;
use signalbox_engine::{Fault, FaultKind};
use signalbox_seal::{AeadKey, sha256};

/// Sealer with a key of this process.
pub struct ProcessSealer(AeadKey);

impl ProcessSealer {
    /// Creates a sealer with a new random key.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn new() -> Result<Self, Fault> {
        let failed = |why| Fault::new(FaultKind::Internal, format!("no key for parked calls: {why}"));
        AeadKey::generate().map(Self).map_err(failed)
    }
}

impl Sealer for ProcessSealer {
    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.seal(&[], plain.to_vec())
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        self.0.open(&[], sealed)
    }

    fn digest(&self, text: &[u8]) -> [u8; 32] {
        sha256(text)
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
        assert_eq!((theirs.open(&sealed), ours.open(b"")), (None, None));
    }
}
