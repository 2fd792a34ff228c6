//! Server-sent events: a decoder for the WHATWG algorithm, and an encoder.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr2;

/// Comment that keeps an idle stream open.
pub const COMMENT_KEEPALIVE: &[u8] = b": keepalive\n\n";

/// Allowance for a field's name in addition to its data.
const FIELD_NAME: usize = 64;

/// Event decoded from a stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SseEvent {
    /// Event type, if given.
    pub event: Option<String>,
    /// Data lines joined by newlines.
    pub data: Bytes,
    /// Set if there was a data field. An event may carry only an id or a retry time.
    pub has_data: bool,
    /// Event id, if given.
    pub id: Option<String>,
    /// Reconnection delay in milliseconds, if given.
    pub retry: Option<u64>,
}

/// Reason why an event was not delivered.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SseError {
    /// The event exceeds the limit and was skipped.
    #[error("an event larger than {max} bytes was skipped")]
    TooLarge {
        /// Maximum size in bytes.
        max: usize,
    },
}

/// Decoder that splits a byte stream into events. Reports an oversized event once and skips it without buffering. Drops
/// an event that the end of the stream interrupts, as the algorithm requires.
#[derive(Debug)]
pub struct SseDecoder {
    max: usize,
    buffer: BytesMut,
    /// Length of the buffer prefix without line ends.
    searched: usize,
    /// Set if the last line ended with CR, so that a following LF belongs to it.
    after_cr: bool,
    /// Set until the first bytes, which may be a byte order mark.
    at_start: bool,
    skipping: Skipping,
    pending: Pending,
}

/// State of skipping an oversized event.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Skipping {
    No,
    /// Skip lines up to an empty one.
    Lines,
    /// Within a line whose start was dropped. Its end does not count as an empty line.
    MidLine,
}

#[derive(Debug, Default)]
struct Pending {
    event: Option<String>,
    id: Option<String>,
    retry: Option<u64>,
    /// First data line as a slice of the input. Only a second line requires a copy.
    data: Option<Bytes>,
    joined: Option<BytesMut>,
}

impl SseDecoder {
    /// Creates a decoder for events with at most `max_event` bytes of data.
    #[must_use]
    pub fn new(max_event: usize) -> Self {
        Self {
            max: max_event,
            buffer: BytesMut::new(),
            searched: 0,
            after_cr: false,
            at_start: true,
            skipping: Skipping::No,
            pending: Pending::default(),
        }
    }

    /// Appends received bytes to the buffer.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the next complete event. Call until it returns `None`.
    pub fn next_event(&mut self) -> Option<Result<SseEvent, SseError>> {
        loop {
            let end = match self.find_line_end()? {
                Ok(end) => end,
                Err(error) => return Some(Err(error)),
            };
            self.after_cr = self.buffer[end] == b'\r';
            self.searched = 0;
            if let Some(outcome) = self.take_line(end) {
                return Some(outcome);
            }
        }
    }

    /// Finds the end of the next line.
    fn find_line_end(&mut self) -> Option<Result<usize, SseError>> {
        if self.at_start && !self.strip_byte_order_mark() {
            return None;
        }
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer[0] == b'\n' {
                self.buffer.advance(1);
            }
        }
        let found = memchr2(b'\r', b'\n', self.buffer.get(self.searched..).unwrap_or(&[]));
        if let Some(found) = found {
            return Some(Ok(self.searched + found));
        }
        self.searched = self.buffer.len();
        self.drop_long_line()
    }

    /// Returns the number of bytes buffered for incomplete events.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffer.len() + self.pending.data_length_with(0)
    }

    /// Drops the buffer and skips the rest of the current event.
    pub fn skip_event(&mut self) {
        self.forget_buffer();
        self.give_up(Skipping::MidLine);
    }

    /// Removes a byte order mark. Returns `false` if more bytes are needed to decide.
    fn strip_byte_order_mark(&mut self) -> bool {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        if self.buffer.len() < MARK.len() && MARK.starts_with(&self.buffer) {
            return false;
        }
        if self.buffer.starts_with(MARK) {
            self.buffer.advance(MARK.len());
        }
        self.at_start = false;
        true
    }

    /// Bounds the buffer while a line does not end.
    fn drop_long_line(&mut self) -> Option<Result<usize, SseError>> {
        if self.skipping == Skipping::No && self.searched > self.longest_line() {
            self.forget_buffer();
            return Some(Err(self.give_up(Skipping::MidLine)));
        }
        if self.skipping != Skipping::No && self.searched > 0 {
            self.forget_buffer();
            self.skipping = Skipping::MidLine;
        }
        None
    }

    fn longest_line(&self) -> usize {
        self.max.saturating_add(FIELD_NAME)
    }

    fn forget_buffer(&mut self) {
        self.buffer = BytesMut::new();
        self.searched = 0;
    }

    fn give_up(&mut self, skipping: Skipping) -> SseError {
        self.skipping = skipping;
        self.pending = Pending::default();
        SseError::TooLarge { max: self.max }
    }

    /// Removes the line that ends at `end` from the buffer and processes it.
    fn take_line(&mut self, end: usize) -> Option<Result<SseEvent, SseError>> {
        match self.skipping {
            Skipping::No => {}
            Skipping::Lines | Skipping::MidLine => {
                let done = self.skipping == Skipping::Lines && end == 0;
                self.skipping = if done { Skipping::No } else { Skipping::Lines };
                self.buffer.advance(end + 1);
                return None;
            }
        }
        if end > self.longest_line() {
            self.buffer.advance(end + 1);
            return Some(Err(self.give_up(Skipping::Lines)));
        }
        if end == 0 {
            self.buffer.advance(1);
            return std::mem::take(&mut self.pending).dispatch().map(Ok);
        }
        let line = &self.buffer[..end];
        let colon = memchr::memchr(b':', line).unwrap_or(end);
        let mut start = (colon + 1).min(end);
        if line.get(start) == Some(&b' ') {
            start += 1;
        }
        if &line[..colon] != b"data" {
            self.pending.take_field(&line[..colon], &line[start..]);
            self.buffer.advance(end + 1);
            return None;
        }
        if self.pending.data_length_with(end - start) > self.max {
            self.buffer.advance(end + 1);
            return Some(Err(self.give_up(Skipping::Lines)));
        }
        let mut value = self.buffer.split_to(end + 1);
        value.truncate(end);
        value.advance(start);
        self.pending.add_data(value.freeze());
        None
    }
}

impl Pending {
    /// Processes any field except data.
    fn take_field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"event" => self.event = Some(text(value)),
            b"id" if !value.contains(&0) => self.id = Some(text(value)),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry = text(value).parse().ok().or(self.retry);
            }
            _ => {}
        }
    }

    fn data_length_with(&self, more: usize) -> usize {
        match (&self.joined, &self.data) {
            (Some(joined), _) => joined.len() + 1 + more,
            (None, Some(data)) => data.len() + 1 + more,
            (None, None) => more,
        }
    }

    fn add_data(&mut self, value: Bytes) {
        if let Some(joined) = &mut self.joined {
            joined.extend_from_slice(b"\n");
            joined.extend_from_slice(&value);
        } else if let Some(first) = &self.data {
            let mut joined = BytesMut::with_capacity(first.len() + 1 + value.len());
            joined.extend_from_slice(first);
            joined.extend_from_slice(b"\n");
            joined.extend_from_slice(&value);
            self.joined = Some(joined);
        } else {
            self.data = Some(value);
        }
    }

    /// Builds the event. Drops an event with only a type, which says nothing.
    fn dispatch(self) -> Option<SseEvent> {
        let has_data = self.data.is_some();
        if !has_data && self.id.is_none() && self.retry.is_none() {
            return None;
        }
        let data = self.joined.map(BytesMut::freeze).or(self.data).unwrap_or_default();
        Some(SseEvent { event: self.event, data, has_data, id: self.id, retry: self.retry })
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// Appends the start of an event whose data has no line breaks. The caller appends the data and two line breaks.
pub fn begin_data(out: &mut BytesMut, id: Option<&str>, event: Option<&str>) {
    begin_event(out, id, event);
    out.extend_from_slice(b"data: ");
}

fn begin_event(out: &mut BytesMut, id: Option<&str>, event: Option<&str>) {
    if let Some(id) = id {
        field(out, b"id: ", id);
    }
    if let Some(event) = event {
        field(out, b"event: ", event);
    }
}

/// Appends an event to `out`. Line breaks in `data` start new data lines. Those in `id` and `event` are removed.
pub fn encode_event(out: &mut BytesMut, id: Option<&str>, event: Option<&str>, retry: Option<u64>, data: &[u8]) {
    out.reserve(data.len() + id.map_or(0, str::len) + event.map_or(0, str::len) + FIELD_NAME);
    begin_event(out, id, event);
    if let Some(retry) = retry {
        field(out, b"retry: ", &retry.to_string());
    }
    let mut rest = data;
    loop {
        out.extend_from_slice(b"data: ");
        let Some(end) = memchr2(b'\r', b'\n', rest) else {
            out.extend_from_slice(rest);
            break;
        };
        out.extend_from_slice(&rest[..end]);
        out.extend_from_slice(b"\n");
        let ending = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[end + ending..];
    }
    out.extend_from_slice(b"\n\n");
}

fn field(out: &mut BytesMut, name: &[u8], value: &str) {
    out.extend_from_slice(name);
    for part in value.as_bytes().split(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: Result<SseEvent, SseError> = Err(SseError::TooLarge { max: 16 });

    fn data(text: &str) -> SseEvent {
        SseEvent { data: Bytes::copy_from_slice(text.as_bytes()), has_data: true, ..SseEvent::default() }
    }

    /// Feeds `text` whole and in small pieces; all must give the same events.
    fn check(text: &[u8], expected: &[Result<SseEvent, SseError>]) {
        for size in [text.len().max(1), 1, 2, 3, 7] {
            let mut decoder = SseDecoder::new(16);
            let mut events = Vec::new();
            for chunk in text.chunks(size) {
                decoder.push(chunk);
                events.extend(std::iter::from_fn(|| decoder.next_event()));
            }
            assert_eq!(events, expected, "{:?} in pieces of {size}", String::from_utf8_lossy(text));
        }
    }

    /// Proves S-8.
    #[test]
    fn events_with_all_fields_and_line_ends() {
        check(b"data: a\n\n", &[Ok(data("a"))]);
        check(b"data:a\r\n\r\ndata: b\r\rdata:c\n\n", &[Ok(data("a")), Ok(data("b")), Ok(data("c"))]);
        check(b"data:  a\ndata\ndata:b\n\n", &[Ok(data(" a\n\nb"))]);
        check(b"\xEF\xBB\xBFdata: a\n\n", &[Ok(data("a"))]);
        let full = SseEvent { event: Some("e".into()), id: Some("7".into()), retry: Some(5), ..data("a") };
        check(b"event: e\nid: 7\nretry: 5\ndata: a\n\n", &[Ok(full)]);
    }

    /// Proves S-8.
    #[test]
    fn comments_and_unknown_fields_are_ignored() {
        check(b": hello\n\nunknown: x\ndata: a\n: x\n\n", &[Ok(data("a"))]);
        check(COMMENT_KEEPALIVE, &[]);
        check(b"id: a\0b\nretry: 1x\nretry:\ndata: a\n\n", &[Ok(data("a"))]);
        check(b"event: only\n\n", &[]);
        check(b"data: never ended\n", &[]);
    }

    #[test]
    fn an_event_may_have_an_id_and_no_data() {
        let primer = SseEvent { id: Some("1".into()), ..SseEvent::default() };
        check(b"id: 1\n\n", &[Ok(primer.clone())]);
        check(b"id: 1\ndata:\n\n", &[Ok(SseEvent { has_data: true, ..primer })]);
        check(b"retry: 9\n\n", &[Ok(SseEvent { retry: Some(9), ..SseEvent::default() })]);
    }

    /// Proves S-66.
    #[test]
    fn a_large_event_is_reported_once_and_skipped() {
        check(b"data: 1234567890123456\n\n", &[Ok(data("1234567890123456"))]);
        check(b"data: 12345678901234567\ndata: x\n\ndata: a\n\n", &[LARGE, Ok(data("a"))]);
        check(b"data: 123456789\ndata: 123456789\nid: 3\n\ndata: a\n\n", &[LARGE, Ok(data("a"))]);
        let long = "x".repeat(200);
        check(format!("data: {long}\r\ndata: {long}\r\n\r\ndata: a\r\n\r\n").as_bytes(), &[LARGE, Ok(data("a"))]);
        check(format!("data: {long}\r\rdata: a\r\r").as_bytes(), &[LARGE, Ok(data("a"))]);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut out = BytesMut::new();
        encode_event(&mut out, Some("7\n8"), Some("message"), Some(5), b"{}");
        assert_eq!(&out[..], b"id: 78\nevent: message\nretry: 5\ndata: {}\n\n");
        out.clear();
        encode_event(&mut out, None, None, None, b"a\r\nb\rc\n");
        check(&out, &[Ok(data("a\nb\nc\n"))]);
        out.clear();
        encode_event(&mut out, Some("1"), None, None, b"");
        check(&out, &[Ok(SseEvent { id: Some("1".into()), ..data("") })]);
    }
}
