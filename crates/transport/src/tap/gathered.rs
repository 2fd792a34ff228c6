//! The body of a message that comes in parts.

use bytes::{Bytes, BytesMut};

/// A body as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    held: BytesMut,
    broken: bool,
}

impl Gathered {
    /// How much of it is held.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Takes a part in.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Gives away what is held, since no more can be; what comes is a part only from here on.
    pub(super) fn piece(&mut self) -> Option<Bytes> {
        self.broken = true;
        (!self.held.is_empty()).then(|| std::mem::take(&mut self.held).freeze())
    }

    /// The rest of it, and whether that is all of it.
    pub(super) fn finish(&mut self) -> Option<(Bytes, bool)> {
        let whole = !std::mem::take(&mut self.broken);
        (!self.held.is_empty()).then(|| (std::mem::take(&mut self.held).freeze(), whole))
    }
}
