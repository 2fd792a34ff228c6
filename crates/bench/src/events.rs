//! Counter of notifications in a chunked stream of server-sent events, however it is fragmented.

use memchr::memmem;

/// Maximum length of a line that is inspected; the rest is skipped.
const LINE_LIMIT: usize = 256;

/// Number of notifications, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Changes of a list.
    pub lists: u64,
    /// Updates of a resource.
    pub updates: u64,
    /// Listen requests that were acknowledged.
    pub acknowledged: u64,
}

/// Position in the framing of a chunked body.
#[derive(Clone, Copy, Debug)]
enum Chunk {
    Size(usize),
    SizeEnd(usize),
    Data(usize),
    DataEnd,
    Over,
}

/// Parser of a chunked body that arrives in pieces.
#[derive(Debug)]
pub struct EventCounter {
    chunk: Chunk,
    /// Start of the current line.
    line: Vec<u8>,
    counts: EventCounts,
}

impl Default for EventCounter {
    fn default() -> Self {
        Self { chunk: Chunk::Size(0), line: Vec::new(), counts: EventCounts::default() }
    }
}

impl EventCounter {
    /// Processes a piece of the body.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            self.chunk = match self.chunk {
                Chunk::Data(left) => {
                    let (data, after) = bytes.split_at(left.min(bytes.len()));
                    self.data(data);
                    bytes = after;
                    self.chunk = if left == data.len() { Chunk::DataEnd } else { Chunk::Data(left - data.len()) };
                    continue;
                }
                Chunk::Over => return,
                Chunk::Size(size) => match (byte as char).to_digit(16) {
                    Some(digit) => Chunk::Size(size.saturating_mul(16).saturating_add(digit as usize)),
                    None if byte == b'\n' => begun(size),
                    None => Chunk::SizeEnd(size),
                },
                Chunk::SizeEnd(size) if byte == b'\n' => begun(size),
                Chunk::DataEnd if byte == b'\n' => Chunk::Size(0),
                other => other,
            };
            bytes = rest;
        }
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> EventCounts {
        self.counts
    }

    /// Returns true if the body has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.chunk, Chunk::Over)
    }

    fn data(&mut self, data: &[u8]) {
        let mut lines = data.split(|&byte| byte == b'\n').peekable();
        while let Some(part) = lines.next() {
            let room = LINE_LIMIT.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if lines.peek().is_some() {
                self.count();
                self.line.clear();
            }
        }
    }

    fn count(&mut self) {
        let has = |word: &[u8]| memmem::find(&self.line, word).is_some();
        if !self.line.starts_with(b"data:") {
        } else if has(b"list_changed\"") {
            self.counts.lists += 1;
        } else if has(b"notifications/resources/updated\"") {
            self.counts.updates += 1;
        } else if has(b"subscriptions/acknowledged\"") {
            self.counts.acknowledged += 1;
        }
    }
}

fn begun(size: usize) -> Chunk {
    if size == 0 { Chunk::Over } else { Chunk::Data(size) }
}

#[cfg(test)]
mod tests {
    use super::{EventCounter, EventCounts};

    #[test]
    fn counts_are_the_same_however_the_stream_is_cut() {
        let events = [
            "id: g1-0\nretry: 1000\ndata: \n\n",
            "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n: alive\n\n",
            "data: {\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"a\"}}\n\ndata: {\"method\":\"notif",
            "ications/resources/updated\"}\n\n",
        ];
        let mut body = String::new();
        for event in events {
            body += &format!("{:x};x=y\r\n{event}\r\n", event.len());
        }
        body += "0\r\n\r\n";
        for size in 1..body.len() {
            let mut counter = EventCounter::default();
            body.as_bytes().chunks(size).for_each(|piece| counter.feed(piece));
            assert_eq!(counter.counts(), EventCounts { lists: 1, updates: 2, acknowledged: 0 }, "pieces of {size}");
            assert!(counter.is_over());
        }
    }
}
