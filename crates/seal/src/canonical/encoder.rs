//! Streaming encoder for canonical CBOR; builds no tree.
//!
//! A map accepts its entries in any order. They are written as they come and sorted when the map is closed, which costs
//! nothing if they came in order. The length of a map or array is only known at its end. One byte is reserved for it,
//! which suffices up to 23 elements; the content of a longer one is moved once.

use std::ops::Range;

use super::encode_error::EncodeError;
use super::float::{Shortest, fixed_point, shortest};
use super::read_json;
use crate::profile::Profile;

/// Maximum nesting depth of arrays and maps.
pub const MAX_DEPTH: usize = 192;
/// Maximum ratio of canonical form to message size, on top of [`SPARE`] bytes.
pub const MAX_GROWTH: usize = 4;
/// Number of canonical bytes allowed for a message of any size.
pub const SPARE: usize = 64 * 1024;

const UNSIGNED: u8 = 0 << 5;
const NEGATIVE: u8 = 1 << 5;
const BYTES: u8 = 2 << 5;
const TEXT: u8 = 3 << 5;
const ARRAY: u8 = 4 << 5;
const MAP: u8 = 5 << 5;
const TAG: u8 = 6 << 5;
const SIMPLE: u8 = 7 << 5;

/// Tag 1 of `mcp-cbor/1`: nanoseconds since 1970.
const TAG_TIME: u64 = 1;
/// Tag 24 of `mcp-cbor/1`: binary data.
const TAG_BINARY: u64 = 24;

/// Writes one value in the canonical form of a profile.
///
/// ```
/// use signalbox_seal::{Profile, canonical::Encoder};
///
/// let mut encoder = Encoder::new(Profile::Two);
/// encoder.value().map(|map| {
///     map.entry("names").array(|names| {
///         names.item().text("Ada");
///         Ok(())
///     })?;
///     map.entry("id").unsigned(7);
///     Ok(())
/// })?;
/// assert_eq!(encoder.finish()?, b"\xa2\x62id\x07\x65names\x81\x63Ada");
/// # Ok::<(), signalbox_seal::canonical::EncodeError>(())
/// ```
#[derive(Debug)]
pub struct Encoder {
    profile: Profile,
    out: Vec<u8>,
    /// Entries of all open maps, those of the innermost last.
    entries: Vec<Entry>,
    /// Buffer for sorting the entries of a map.
    scratch: Vec<u8>,
    depth: usize,
    values: usize,
    /// Maximum size of the output, in bytes. Only floats are checked against it: no other value is longer than the data
    /// it comes from.
    limit: usize,
}

/// Entry of an open map, as offsets in the output.
#[derive(Clone, Debug)]
struct Entry {
    /// Start of the key. The value follows, up to the next entry.
    start: usize,
    /// Text of the key, without its length.
    key: Range<usize>,
    /// End of the entry; set when the map is closed.
    end: usize,
}

impl Encoder {
    /// Creates an encoder that follows the rules of `profile`.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self::with_capacity(profile, 0)
    }

    /// Creates an encoder with an initial capacity in bytes.
    #[must_use]
    pub fn with_capacity(profile: Profile, capacity: usize) -> Self {
        let out = Vec::with_capacity(capacity);
        Self { profile, out, entries: Vec::new(), scratch: Vec::new(), depth: 0, values: 0, limit: usize::MAX }
    }

    /// Creates an encoder that appends to `out`, which may already contain a frame.
    #[must_use]
    pub fn after(profile: Profile, out: Vec<u8>) -> Self {
        Self { out, ..Self::new(profile) }
    }

    /// Limits the output relative to the size of the message it represents. `mcp-cbor/1` writes `1e308` as 318 digits,
    /// so without a limit, senders without any key could make the verifier produce very long output from short
    /// messages.
    #[must_use]
    pub fn made_of(self, message_bytes: usize) -> Self {
        Self { limit: message_bytes.saturating_mul(MAX_GROWTH).saturating_add(SPARE), ..self }
    }

    /// Returns the place of the single value.
    pub fn value(&mut self) -> Value<'_> {
        self.values += 1;
        Value { encoder: self }
    }

    /// Returns the encoded bytes.
    ///
    /// # Errors
    /// Unless exactly one value was written.
    pub fn finish(self) -> Result<Vec<u8>, EncodeError> {
        match self.values {
            0 => Err(EncodeError::NoValue),
            1 if self.out.is_empty() => Err(EncodeError::NoValue),
            1 => Ok(self.out),
            _ => Err(EncodeError::ManyValues),
        }
    }

    /// Writes the initial byte of an item with its argument, in as few bytes as possible.
    fn head(&mut self, major: u8, number: u64) {
        // The common case.
        if number < 24 {
            return self.out.push(major | number as u8);
        }
        let (head, length) = head(major, number);
        self.out.extend_from_slice(head.get(..length).unwrap_or_default());
    }

    /// Writes a map or an array, and fills in its length afterwards.
    fn container(
        &mut self,
        major: u8,
        fill: impl FnOnce(&mut Self) -> Result<usize, EncodeError>,
    ) -> Result<(), EncodeError> {
        if self.depth == MAX_DEPTH {
            return Err(EncodeError::TooDeep(MAX_DEPTH));
        }
        let (start, entries) = (self.out.len(), self.entries.len());
        self.depth += 1;
        self.out.push(major);
        let filled = fill(self);
        self.depth -= 1;
        self.entries.truncate(entries);
        match filled {
            Ok(count) => {
                let (head, length) = head(major, count as u64);
                match self.out.get_mut(start) {
                    Some(place) if length == 1 => *place = head[0],
                    _ => drop(self.out.splice(start..=start, head.into_iter().take(length))),
                }
                Ok(())
            }
            Err(error) => {
                self.out.truncate(start);
                Err(error)
            }
        }
    }

    /// Sorts the entries from index `base`, and returns their number.
    fn close_map(&mut self, base: usize) -> Result<usize, EncodeError> {
        let Self { profile, out, entries, scratch, .. } = self;
        let entries = entries.get_mut(base..).unwrap_or_default();
        let mut end = out.len();
        for entry in entries.iter_mut().rev() {
            if entry.key.end == end {
                return Err(EncodeError::NoValue);
            }
            entry.end = end;
            end = entry.start;
        }
        let bytes = |range: Range<usize>| out.get(range).unwrap_or_default();
        let key = |entry: &Entry| match profile {
            Profile::One => bytes(entry.key.clone()),
            Profile::Two => bytes(entry.start..entry.key.end),
        };
        if !entries.is_sorted_by(|one, next| key(one) < key(next)) {
            let whole = entries.first().map_or(0, |entry| entry.start)..out.len();
            entries.sort_unstable_by(|one, other| key(one).cmp(key(other)));
            if let Some(twice) = entries.windows(2).find(|pair| matches!(pair, [a, b] if key(a) == key(b))) {
                let twice = twice.first().map(|entry| bytes(entry.key.clone())).unwrap_or_default();
                return Err(EncodeError::DuplicateKey(String::from_utf8_lossy(twice).into_owned()));
            }
            scratch.clear();
            for entry in entries.iter() {
                scratch.extend_from_slice(bytes(entry.start..entry.end));
            }
            out.splice(whole, scratch.iter().copied());
        }
        Ok(entries.len())
    }
}

/// Encodes an initial byte with its argument. Returns the bytes and the number of them that are used.
fn head(major: u8, number: u64) -> ([u8; 9], usize) {
    let (info, length) = match number {
        0..=23 => (u8::try_from(number).unwrap_or(0), 0),
        24..=0xff => (24, 1),
        0x100..=0xffff => (25, 2),
        0x1_0000..=0xffff_ffff => (26, 4),
        _ => (27, 8),
    };
    let mut bytes = [0; 9];
    let digits = number.to_be_bytes();
    for (place, digit) in bytes.iter_mut().skip(1).zip(digits.into_iter().skip(8 - length)) {
        *place = digit;
    }
    bytes[0] = major | info;
    (bytes, 1 + length)
}

/// Place of one value. Call exactly one of its methods.
#[must_use = "a value has to be written here"]
#[derive(Debug)]
pub struct Value<'a> {
    encoder: &'a mut Encoder,
}

impl Value<'_> {
    /// Writes null, a simple value of CBOR.
    pub fn null(self) {
        self.encoder.out.push(SIMPLE | 22);
    }

    /// Writes a Boolean: true or false.
    pub fn bool(self, value: bool) {
        self.encoder.out.push(SIMPLE | if value { 21 } else { 20 });
    }

    /// Writes an unsigned integer, in the shortest form.
    pub fn unsigned(self, value: u64) {
        self.encoder.head(UNSIGNED, value);
    }

    /// Writes a signed integer, in the shortest form.
    pub fn signed(self, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.encoder.head(UNSIGNED, value),
            Err(_) => self.encoder.head(NEGATIVE, (!value).unsigned_abs()),
        }
    }

    /// Writes a float. It stays a float even if its value is whole.
    ///
    /// # Errors
    /// If it is NaN or infinite, or the output becomes too large for the message that it is [made
    /// of](Encoder::made_of).
    pub fn float(self, value: f64) -> Result<(), EncodeError> {
        if !value.is_finite() {
            return Err(EncodeError::NotFinite(value.to_string()));
        }
        if self.encoder.out.len() >= self.encoder.limit {
            return Err(EncodeError::TooLarge(self.encoder.limit));
        }
        if self.encoder.profile == Profile::One {
            self.text(&fixed_point(value));
            return Ok(());
        }
        let out = &mut self.encoder.out;
        match shortest(value) {
            Shortest::Half(bits) => {
                out.push(SIMPLE | 25);
                out.extend_from_slice(&bits.to_be_bytes());
            }
            Shortest::Single(bits) => {
                out.push(SIMPLE | 26);
                out.extend_from_slice(&bits.to_be_bytes());
            }
            Shortest::Double(bits) => {
                out.push(SIMPLE | 27);
                out.extend_from_slice(&bits.to_be_bytes());
            }
        }
        Ok(())
    }

    /// Writes a text string.
    pub fn text(self, value: &str) {
        self.encoder.head(TEXT, value.len() as u64);
        self.encoder.out.extend_from_slice(value.as_bytes());
    }

    /// Writes binary data, as a byte string.
    pub fn bytes(self, value: &[u8]) {
        if self.encoder.profile == Profile::One {
            self.encoder.head(TAG, TAG_BINARY);
        }
        self.encoder.head(BYTES, value.len() as u64);
        self.encoder.out.extend_from_slice(value);
    }

    /// Writes a timestamp, in nanoseconds since 1970.
    pub fn time(self, nanos: i64) {
        if self.encoder.profile == Profile::One {
            self.encoder.head(TAG, TAG_TIME);
        }
        self.signed(nanos);
    }

    /// Writes a map. `fill` may add the entries in any order.
    ///
    /// # Errors
    /// If `fill` fails, if a key is repeated or has no value, or if the nesting is too deep.
    pub fn map(self, fill: impl FnOnce(&mut MapEncoder<'_>) -> Result<(), EncodeError>) -> Result<(), EncodeError> {
        self.encoder.container(MAP, |encoder| {
            let base = encoder.entries.len();
            fill(&mut MapEncoder { encoder })?;
            encoder.close_map(base)
        })
    }

    /// Writes an array, whose items `fill` adds.
    ///
    /// # Errors
    /// If `fill` fails, if an item has no value, or if the nesting is too deep.
    pub fn array(self, fill: impl FnOnce(&mut ArrayEncoder<'_>) -> Result<(), EncodeError>) -> Result<(), EncodeError> {
        self.encoder.container(ARRAY, |encoder| {
            let last = encoder.out.len();
            let mut array = ArrayEncoder { encoder, count: 0, last, hollow: false };
            fill(&mut array)?;
            array.close()
        })
    }

    /// Writes the value of a JSON text, by the rules in the [module's introduction](super).
    ///
    /// # Errors
    /// If the text is not JSON or has no canonical form.
    pub fn json(self, text: &[u8]) -> Result<(), EncodeError> {
        read_json::write(self, text)
    }
}

/// Map that is being written.
#[derive(Debug)]
pub struct MapEncoder<'a> {
    encoder: &'a mut Encoder,
}

impl MapEncoder<'_> {
    /// Starts an entry, and returns the place of its value.
    pub fn entry(&mut self, key: &str) -> Value<'_> {
        let start = self.encoder.out.len();
        self.encoder.head(TEXT, key.len() as u64);
        let text = self.encoder.out.len();
        self.encoder.out.extend_from_slice(key.as_bytes());
        self.encoder.entries.push(Entry { start, key: text..self.encoder.out.len(), end: 0 });
        Value { encoder: self.encoder }
    }
}

/// Array that is being written.
#[derive(Debug)]
pub struct ArrayEncoder<'a> {
    encoder: &'a mut Encoder,
    count: usize,
    last: usize,
    hollow: bool,
}

impl ArrayEncoder<'_> {
    /// Starts an item, and returns the place of its value.
    pub fn item(&mut self) -> Value<'_> {
        self.hollow |= self.is_hollow();
        self.count += 1;
        self.last = self.encoder.out.len();
        Value { encoder: self.encoder }
    }

    /// Returns true if the latest item has no value.
    fn is_hollow(&self) -> bool {
        self.count > 0 && self.encoder.out.len() == self.last
    }

    fn close(self) -> Result<usize, EncodeError> {
        if self.hollow || self.is_hollow() { Err(EncodeError::NoValue) } else { Ok(self.count) }
    }
}
