//! Where messages are kept while they wait to be written.

use bytes::{Bytes, BytesMut};

/// How many bytes are set aside at once.
const CHUNK: usize = 32 << 10;
/// Longer messages are not copied.
const MAX_COPIED: usize = 4 << 10;

/// Takes copies of small messages, many after each other. A message as it came is a part of the buffer that a connection
/// reads into; whoever held on to it would have the connection take another buffer for every message.
#[derive(Default, Debug)]
pub(crate) struct MessageArena(BytesMut);

impl MessageArena {
    /// The same bytes, to be held as long as one likes.
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

/// The same bytes in memory of their own. A large message is charged to its sender until its last copy is gone; what outlives
/// its call must not hold that charge.
pub(crate) fn uncharged(bytes: &Bytes) -> Bytes {
    // Smaller ones were copied when they came.
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
