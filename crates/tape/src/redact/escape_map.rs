//! Maps the decoded characters of a string to their positions in the message.

use signalbox_wire::{Span, json};

/// Position of each decoded byte of a string.
#[derive(Debug)]
pub(crate) struct EscapeMap {
    /// Offset of the string's inside in the message.
    start: usize,
    /// Offsets of all bytes and of the end; `None` if the string has no escapes.
    places: Option<Vec<u32>>,
}

impl EscapeMap {
    /// Maps the inside of a string that begins at `start` of the message. An escape is indivisible.
    pub(crate) fn new(inside: &[u8], start: usize) -> Self {
        if memchr::memchr(b'\\', inside).is_none() {
            return Self { start, places: None };
        }
        let mut places: Vec<u32> = Vec::with_capacity(inside.len() + 1);
        let mut at = 0;
        while let Some(byte) = inside.get(at) {
            let written = match (byte, inside.get(at + 1)) {
                (b'\\', Some(b'u')) if is_high(inside.get(at + 2..at + 6)) => 12,
                (b'\\', Some(b'u')) => 6,
                (b'\\', _) => 2,
                _ => 1,
            };
            let meant = if written == 6 || written == 12 { meant(inside.get(at..at + written)) } else { 1 };
            places.extend(std::iter::repeat_n(at as u32, meant));
            at += written;
        }
        places.push(inside.len() as u32);
        Self { start, places: Some(places) }
    }

    /// Returns the span in the message of the decoded bytes `from..to`.
    pub(crate) fn span(&self, from: usize, to: usize) -> Span {
        let place = |at: usize| match &self.places {
            None => self.start + at,
            Some(places) => self.start + places.get(at).or(places.last()).map_or(0, |place| *place as usize),
        };
        Span::new(place(from), place(to))
    }
}

/// Returns the number of bytes that an escape decodes to.
fn meant(escape: Option<&[u8]>) -> usize {
    let token = [b"\"", escape.unwrap_or_default(), b"\""].concat();
    json::string(&token).map_or(1, |text| text.len())
}

fn is_high(digits: Option<&[u8]>) -> bool {
    matches!(digits, Some([b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..]))
}
