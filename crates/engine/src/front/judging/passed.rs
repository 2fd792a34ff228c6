//! Messages that may go to the client.

use bytes::Bytes;
use signalbox_wire::Edits;

/// A message that may go to the client: judged by the interceptors, or the gateway's own. Only the module
/// that asks them makes one, so nothing can bypass them.
#[derive(Clone, Debug)]
pub(in crate::front) struct Passed {
    bytes: Bytes,
    own: bool,
}

impl Passed {
    /// A message that the interceptors let through.
    pub(super) fn judged(bytes: Bytes) -> Self {
        Self { bytes, own: false }
    }

    /// A message of the gateway itself: a fault, or a notification that no backend sent. It is recorded as such, and
    /// not judged.
    pub fn own(bytes: Bytes) -> Self {
        Self { bytes, own: true }
    }

    /// The same message with these edits.
    pub fn edited(self, edits: &Edits) -> Self {
        Self { bytes: edits.apply(&self.bytes), own: self.own }
    }

    /// The same message in the words of the governed dialect.
    pub fn reworded(self, bytes: Bytes) -> Self {
        Self { bytes, own: self.own }
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    pub fn is_own(&self) -> bool {
        self.own
    }
}
