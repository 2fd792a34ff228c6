//! Memory for messages that wait to be written.

use bytes::{Bytes, BytesMut};

/// Number of bytes allocated at once.
const CHUNK: usize = 32 << 10;
/// Maximum length of a message that is copied.
const MAX_COPIED: usize = 4 << 10;

/// Copies small messages into shared chunks. An incoming message is a slice of the buffer that its connection reads
/// into; holding the slice would force the connection to allocate a new buffer for every message.
#[derive(Default, Debug)]
pub(crate) struct MessageArena(BytesMut);

impl MessageArena {
    /// Returns the same bytes, independent of the connection's buffer.
    pub(crate) fn keep(&mut self, bytes: &Bytes) -> Bytes {
        if bytes.len() > MAX_COPIED {
            return bytes.clone();
        }
        if self.0.capacity() < bytes.len() {
            self.0 = BytesMut::with_capacity(CHUNK);
        }
        self.0.extend_from_slice(bytes);
        self.0.split().freeze()
    }
}

/// Returns the same bytes in memory of their own. A large message is charged to its sender until its last copy is
/// dropped; data that outlives its call must not hold that charge.
pub(crate) fn uncharged(bytes: &Bytes) -> Bytes {
    // Smaller messages were copied on arrival.
    if bytes.len() > MAX_COPIED { Bytes::copy_from_slice(bytes) } else { bytes.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_the_same_and_holds_on_to_nothing_but_itself() {
        let mut arena = MessageArena::default();
        let messages: Vec<Bytes> = (0..1_000usize).map(|n| vec![n as u8; n * 7].into()).collect();
        let kept: Vec<Bytes> = messages.iter().map(|message| arena.keep(message)).collect();
        assert_eq!(kept, messages);
        let small = &messages[10];
        assert_ne!(kept[10].as_ptr(), small.as_ptr());
        assert_eq!(kept[999].as_ptr(), messages[999].as_ptr(), "a long one is not copied");
    }
}
