//! Restores message bodies that are stored as a difference from an earlier one.

use bytes::Bytes;
use signalbox_engine::record::{Body, Content, Entry};
use std::collections::{HashMap, VecDeque};

/// Default maximum number of bytes of earlier bodies that are remembered; the oldest are dropped first.
const MAX_REMEMBERED: usize = 64 << 20;
/// Maximum number of earlier bodies that are remembered.
const MAX_BODIES: usize = 100_000;
/// Maximum size of a restored body.
const MAX_BODY: usize = 64 << 20;
/// A recorder stores at most this many messages as differences from one body, so no more are restored from it.
const MAX_LIKE: u64 = 8;
/// Number of restored bytes that is allowed for any tape, however small.
const MAX_MADE: u64 = 64 << 20;

/// Restores the bodies of entries that are passed in their order. The body that an entry refers to must have been among
/// the entries shortly before it, which recorders guarantee.
#[derive(Debug)]
pub struct Bodies {
    whole: HashMap<u64, Bytes>,
    order: VecDeque<u64>,
    bytes: usize,
    most: usize,
    /// Bytes of all bodies that were stored whole, and of all bodies restored from them. The ratio is bounded so that a
    /// small file cannot expand to gigabytes.
    came: u64,
    made: u64,
}

impl Default for Bodies {
    fn default() -> Self {
        Self::remembering(MAX_REMEMBERED)
    }
}

impl Bodies {
    /// Creates a restorer that remembers at most `most` bytes of earlier bodies.
    #[must_use]
    pub fn remembering(most: usize) -> Self {
        Self { whole: HashMap::new(), order: VecDeque::new(), bytes: 0, most, came: 0, made: 0 }
    }

    /// Returns the entry with its body restored, or left out if the body it refers to is not remembered.
    #[must_use]
    pub fn whole(&mut self, mut entry: Entry) -> Entry {
        let seq = entry.seq;
        let in_exchange = entry.exchange.is_some();
        if let Content::Message(message) = &mut entry.content {
            match &message.body {
                Body::Whole(bytes) => {
                    self.came += bytes.len() as u64;
                    if in_exchange {
                        self.remember(seq, bytes.clone());
                    }
                }
                Body::Like { seq, prefix, suffix, middle } => {
                    self.came += middle.len() as u64;
                    let made = self.whole.get(seq).and_then(|base| join(base, *prefix, *suffix, middle));
                    message.body = made.filter(|made| self.affords(made)).map_or(Body::Left, Body::Whole);
                }
                Body::Left => {}
            }
        }
        entry
    }

    fn affords(&mut self, made: &Bytes) -> bool {
        self.made += made.len() as u64;
        self.made <= self.came.saturating_mul(MAX_LIKE).saturating_add(MAX_MADE)
    }

    fn remember(&mut self, seq: u64, bytes: Bytes) {
        self.bytes += bytes.len();
        if self.whole.insert(seq, bytes).is_none() {
            self.order.push_back(seq);
        }
        while (self.bytes > self.most || self.order.len() > MAX_BODIES) && self.order.len() > 1 {
            let oldest = self.order.pop_front();
            let gone = oldest.and_then(|oldest| self.whole.remove(&oldest));
            self.bytes -= gone.map_or(0, |gone| gone.len()).min(self.bytes);
        }
    }
}

/// Restores a body from the beginning and end of `base` and the differing `middle`.
pub(crate) fn join(base: &Bytes, prefix: u64, suffix: u64, middle: &Bytes) -> Option<Bytes> {
    let (prefix, suffix) = (usize::try_from(prefix).ok()?, usize::try_from(suffix).ok()?);
    let head = base.get(..prefix)?;
    let tail = base.get(base.len().checked_sub(suffix)?..)?;
    if middle.is_empty() && suffix == 0 && prefix == base.len() {
        return Some(base.clone());
    }
    (head.len() + middle.len() + tail.len() <= MAX_BODY).then(|| Bytes::from([head, middle, tail].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::fact::Point;
    use signalbox_engine::record::{MessageEntry, MessageKind};
    use std::sync::Arc;

    #[test]
    fn differences_that_do_not_fit_make_nothing() {
        let base = Bytes::from_static(b"abcdef");
        let made = |prefix, suffix| join(&base, prefix, suffix, &Bytes::from_static(b"-"));
        assert_eq!(made(2, 1).unwrap(), "ab-f");
        assert_eq!((made(7, 0), made(0, 7), made(u64::MAX, 0)), (None, None, None));
    }

    /// A file of a few kilobytes in which thousands of messages are like one large one.
    #[test]
    fn what_bodies_expand_to_is_bounded() {
        let entry = |seq, body| {
            let message = MessageEntry::new(Point::ClientOut, MessageKind::Result, 0, body);
            Entry { exchange: Some(1), ..Entry::new(seq, 0, Arc::default(), Content::Message(message)) }
        };
        let mut bodies = Bodies::default();
        let size = 16 << 20;
        let mut made = 0;
        let _ = bodies.whole(entry(1, Body::Whole(Bytes::from(vec![b'x'; size]))));
        for seq in 2..1000 {
            let like = Body::Like { seq: 1, prefix: 0, suffix: size as u64, middle: Bytes::from_static(b"y") };
            if let Content::Message(MessageEntry { body: Body::Whole(bytes), .. }) =
                bodies.whole(entry(seq, like)).content
            {
                made += bytes.len();
            }
        }
        assert!(made > size && made < 13 * size, "{made}");
    }
}
