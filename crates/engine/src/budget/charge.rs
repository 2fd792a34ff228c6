//! Bytes charged to a share until the charge is dropped.

use super::{OverBudget, Share};
use bytes::Bytes;
use std::sync::Arc;

/// A charge.
#[derive(Debug)]
pub struct Charge {
    share: Arc<Share>,
    bytes: usize,
}

impl Charge {
    pub(super) fn new(share: Arc<Share>, bytes: usize) -> Self {
        Self { share, bytes }
    }

    /// How many bytes are charged.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Grows the charge to this many bytes, if there is room for `ahead` more.
    ///
    /// # Errors
    /// If the share does not allow it; the charge is unchanged then.
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
        Bytes::from_owner(Charged { message, _charge: self })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.share.release(self.bytes);
    }
}

struct Charged {
    message: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}
