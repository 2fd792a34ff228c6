//! Messages that may go to the client.

use bytes::Bytes;
use signalbox_wire::Edits;

/// Message that may go to the client: judged by the interceptors, or the gateway's own. Only the judging module can
/// create one, so no message bypasses them.
#[derive(Clone, Debug)]
pub(in crate::front) struct ClientMessage {
    bytes: Bytes,
    own: bool,
}

impl ClientMessage {
    /// Wraps a message that the interceptors let through.
    pub(super) fn judged(bytes: Bytes) -> Self {
        Self { bytes, own: false }
    }

    /// Wraps a message of the gateway itself: a fault, or a notification that no backend sent. It is recorded as such
    /// and not judged.
    pub fn own(bytes: Bytes) -> Self {
        Self { bytes, own: true }
    }

    /// Applies edits to the message.
    pub fn edited(self, edits: &Edits) -> Self {
        Self { bytes: edits.apply(&self.bytes), own: self.own }
    }

    /// Replaces the message with its translation into the governed dialect.
    pub fn translated(self, bytes: Bytes) -> Self {
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
