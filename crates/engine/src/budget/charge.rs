//! Bytes charged to a share until the charge is dropped.

use super::{OverBudget, Share};
use bytes::Bytes;
use std::sync::Arc;

/// Number of bytes charged to a share. Dropping it releases them.
#[derive(Debug)]
pub struct Charge {
    share: Arc<Share>,
    bytes: usize,
}

impl Charge {
    pub(super) fn new(share: Arc<Share>, bytes: usize) -> Self {
        Self { share, bytes }
    }

    /// Returns the number of charged bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Grows the charge to this many bytes, if there is room for `ahead` more.
    ///
    /// # Errors
    /// Returns an error if the share does not allow it. The charge is then unchanged.
    pub fn grow(&mut self, to: usize, ahead: usize) -> Result<(), OverBudget> {
        if let Some(more) = to.checked_sub(self.bytes).filter(|more| *more > 0) {
            self.share.charge(more, ahead)?;
            self.bytes = to;
        }
        Ok(())
    }

    /// Shrinks the charge to this many bytes.
    pub fn shrink(&mut self, to: usize) {
        if let Some(less) = self.bytes.checked_sub(to) {
            self.share.release(less);
            self.bytes = to;
        }
    }

    /// Splits off up to this many bytes as a charge of their own.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { share: Arc::clone(&self.share), bytes }
    }

    /// Ties the charge to a message: it lasts as long as any copy of the message.
    #[must_use]
    pub fn attach(mut self, message: Bytes) -> Bytes {
        self.shrink(message.len());
        Bytes::from_owner(ChargedMessage { message, _charge: self })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.share.release(self.bytes);
    }
}

struct ChargedMessage {
    message: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for ChargedMessage {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}
