//! The strict scan: what passes here means the same to every JSON reader behind us.

use crate::codes;
use crate::json;
use crate::keys::Keys;
use crate::limits::Limits;
use crate::number;

/// What was wrong.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanErrorKind {
    /// The bytes are not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// A byte order mark at the start.
    #[error("a byte order mark")]
    ByteOrderMark,
    /// The bytes end before the value does.
    #[error("unexpected end")]
    UnexpectedEnd,
    /// A byte that JSON does not allow here.
    #[error("unexpected byte")]
    UnexpectedByte,
    /// Something after the end of the value.
    #[error("something after the end of the message")]
    TrailingData,
    /// A number that does not follow the grammar.
    #[error("malformed number")]
    MalformedNumber,
    /// A backslash followed by something that is no escape.
    #[error("malformed escape")]
    MalformedEscape,
    /// A raw control character inside a string.
    #[error("control character in a string")]
    ControlCharacter,
    /// Half of a surrogate pair.
    #[error("lone surrogate in a string")]
    LoneSurrogate,
    /// An object has the same key twice.
    #[error("duplicate key")]
    DuplicateKey,
    /// A number too large for an f64.
    #[error("number out of range")]
    NumberOutOfRange,
    /// The message is larger than allowed.
    #[error("message too large")]
    TooLarge,
    /// Objects and arrays are nested deeper than allowed.
    #[error("nested too deeply")]
    TooDeep,
    /// An object or array has more members than allowed.
    #[error("too many members")]
    TooWide,
}

/// What was wrong and where.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("{kind} at byte {at}")]
pub struct ScanError {
    /// What was wrong.
    pub kind: ScanErrorKind,
    /// Position of the byte at which it was noticed.
    pub at: usize,
}

impl ScanError {
    /// The JSON-RPC error code: a parse error when the bytes are not JSON, an invalid request when they are JSON
    /// that we do not accept.
    #[must_use]
    pub fn code(&self) -> i64 {
        use ScanErrorKind as K;
        match self.kind {
            K::NotUtf8
            | K::ByteOrderMark
            | K::UnexpectedEnd
            | K::UnexpectedByte
            | K::TrailingData
            | K::MalformedNumber
            | K::MalformedEscape
            | K::ControlCharacter => codes::PARSE_ERROR,
            K::LoneSurrogate | K::DuplicateKey | K::NumberOutOfRange | K::TooLarge | K::TooDeep | K::TooWide => {
                codes::INVALID_REQUEST
            }
        }
    }
}

/// Checks that `bytes` are one JSON value after RFC 8259, in UTF-8, without duplicate keys or lone surrogates, with
/// numbers finite as f64, and within `limits`.
///
/// # Errors
/// The first thing found wrong. A duplicate key is noticed when its object closes.
pub fn scan(bytes: &[u8], limits: &Limits) -> Result<(), ScanError> {
    if bytes.len() > limits.message || u32::try_from(bytes.len()).is_err() {
        return fail(ScanErrorKind::TooLarge, limits.message.min(bytes.len()));
    }
    if let Err(error) = std::str::from_utf8(bytes) {
        return fail(ScanErrorKind::NotUtf8, error.valid_up_to());
    }
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return fail(ScanErrorKind::ByteOrderMark, 0);
    }
    let mut scanner = Scanner { bytes, at: 0, limits, open: Vec::with_capacity(ORDINARY_DEPTH), keys: Keys::new() };
    scanner.run()
}

/// Room for the nesting of an ordinary message, so that it costs one allocation.
const ORDINARY_DEPTH: usize = 16;

fn fail<T>(kind: ScanErrorKind, at: usize) -> Result<T, ScanError> {
    Err(ScanError { kind, at })
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    limits: &'a Limits,
    open: Vec<Container>,
    keys: Keys,
}

/// An object or array that is not closed yet.
struct Container {
    object: bool,
    /// Members or elements so far.
    width: usize,
    /// Where the keys of an object begin.
    keys: usize,
}

impl Scanner<'_> {
    fn run(&mut self) -> Result<(), ScanError> {
        self.whitespace();
        loop {
            // A value begins here. Opening a container that is not empty leads to its first value.
            if self.value()? {
                continue;
            }
            // A value ended here. Closing brackets end more values.
            while self.next_value()? {
                let Some(container) = self.open.pop() else {
                    return self.end();
                };
                if container.object {
                    self.close_object(container.keys)?;
                }
            }
        }
    }

    fn end(&self) -> Result<(), ScanError> {
        if self.at == self.bytes.len() { Ok(()) } else { fail(ScanErrorKind::TrailingData, self.at) }
    }

    /// Reads one value. `true` when it is a container of which the first value comes next.
    fn value(&mut self) -> Result<bool, ScanError> {
        match self.bytes.get(self.at) {
            Some(b'"') => self.string().map(|_| false),
            Some(b'{') => self.open(true),
            Some(b'[') => self.open(false),
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| false),
            Some(b't') => self.literal(b"true").map(|()| false),
            Some(b'f') => self.literal(b"false").map(|()| false),
            Some(b'n') => self.literal(b"null").map(|()| false),
            _ => self.unexpected(),
        }
    }

    /// After a value: `true` when the innermost container closes (or the message ends), `false` when another value
    /// of it comes next.
    fn next_value(&mut self) -> Result<bool, ScanError> {
        self.whitespace();
        let Some(container) = self.open.last_mut() else {
            return Ok(true);
        };
        match (self.bytes.get(self.at), container.object) {
            (Some(b'}'), true) | (Some(b']'), false) => {
                self.at += 1;
                Ok(true)
            }
            (Some(b','), object) => {
                container.width += 1;
                if container.width > self.limits.width {
                    return fail(ScanErrorKind::TooWide, self.at);
                }
                self.at += 1;
                self.whitespace();
                if object {
                    self.key()?;
                }
                Ok(false)
            }
            _ => self.unexpected(),
        }
    }

    fn open(&mut self, object: bool) -> Result<bool, ScanError> {
        if self.open.len() >= self.limits.depth {
            return fail(ScanErrorKind::TooDeep, self.at);
        }
        self.at += 1;
        self.whitespace();
        let closing = if object { b'}' } else { b']' };
        if self.bytes.get(self.at) == Some(&closing) {
            self.at += 1;
            return Ok(false);
        }
        if self.limits.width == 0 {
            return fail(ScanErrorKind::TooWide, self.at);
        }
        let keys = self.keys.open();
        self.open.push(Container { object, width: 1, keys });
        if object {
            self.key()?;
        }
        Ok(true)
    }

    fn close_object(&mut self, keys: usize) -> Result<(), ScanError> {
        match self.keys.close(self.bytes, keys) {
            None => Ok(()),
            Some(at) => fail(ScanErrorKind::DuplicateKey, at),
        }
    }

    /// Reads a key, its colon, and goes to its value.
    fn key(&mut self) -> Result<(), ScanError> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return self.unexpected();
        }
        let start = self.at;
        let escaped = self.string()?;
        self.keys.push(self.bytes, start..self.at, escaped);
        self.whitespace();
        if self.bytes.get(self.at) != Some(&b':') {
            return self.unexpected();
        }
        self.at += 1;
        self.whitespace();
        Ok(())
    }

    /// Reads a string. `true` when it holds escapes.
    #[inline]
    fn string(&mut self) -> Result<bool, ScanError> {
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at += plain_length(self.bytes.get(self.at..).unwrap_or(&[]));
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return fail(ScanErrorKind::ControlCharacter, self.at),
                None => return fail(ScanErrorKind::UnexpectedEnd, self.at),
            }
        }
    }

    fn escape(&mut self) -> Result<(), ScanError> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => {
                let rest = self.bytes.get(self.at..).unwrap_or(&[]);
                if let Some((_, used)) = json::unicode_escape(rest) {
                    self.at += used;
                    return Ok(());
                }
                let digits = rest.get(2..6).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
                let kind = if digits { ScanErrorKind::LoneSurrogate } else { ScanErrorKind::MalformedEscape };
                fail(kind, self.at)
            }
            Some(_) => fail(ScanErrorKind::MalformedEscape, self.at),
            None => fail(ScanErrorKind::UnexpectedEnd, self.at + 1),
        }
    }

    fn number(&mut self) -> Result<(), ScanError> {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        let Some(length) = number::length(rest) else {
            return fail(ScanErrorKind::MalformedNumber, self.at);
        };
        if !number::is_finite(rest.get(..length).unwrap_or(&[])) {
            return fail(ScanErrorKind::NumberOutOfRange, self.at);
        }
        self.at += length;
        Ok(())
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), ScanError> {
        if self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            return Ok(());
        }
        self.unexpected()
    }

    #[inline]
    fn whitespace(&mut self) {
        self.at = json::skip_whitespace(self.bytes, self.at);
    }

    fn unexpected<T>(&self) -> Result<T, ScanError> {
        let end = self.at >= self.bytes.len();
        fail(if end { ScanErrorKind::UnexpectedEnd } else { ScanErrorKind::UnexpectedByte }, self.at)
    }
}

/// How many bytes at the start of `bytes` are neither quote nor backslash nor control character.
///
/// Short strings are looked at word by word; long ones in blocks that the compiler turns into vector code.
#[inline]
fn plain_length(bytes: &[u8]) -> usize {
    const WORDS: usize = 4;
    let (words, _) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().take(WORDS).enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return index * 8 + (special.trailing_zeros() / 8) as usize;
        }
    }
    let looked = words.len().min(WORDS) * 8;
    looked + plain_blocks(bytes.get(looked..).unwrap_or(&[]))
}

fn plain_blocks(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<64>();
    let plain = blocks.iter().position(|block| block.iter().fold(false, |any, &byte| any | is_special(byte)));
    let looked = plain.unwrap_or(blocks.len()) * 64;
    let rest = bytes.get(looked..).unwrap_or(&[]);
    looked + rest.iter().position(|&byte| is_special(byte)).unwrap_or(rest.len())
}

#[inline]
fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

/// The lowest bit set marks the first special byte of `word`. Bits above it may be wrong.
#[inline]
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (zero(word ^ (ONES * 0x22)) | zero(word ^ (ONES * 0x5C)) | control) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScanErrorKind as K;

    fn check(text: impl AsRef<[u8]>) -> Result<(), (K, usize)> {
        let limits = Limits { message: 1000, depth: 4, width: 20, ..Limits::default() };
        scan(text.as_ref(), &limits).map_err(|error| (error.kind, error.at))
    }

    #[test]
    fn accepts_json() {
        for text in [
            "{}",
            "[]",
            " [ ] ",
            "0",
            "\"\"",
            "null",
            r#"{"a":[1,-2.5e3,true,false,null,{"b":"\u00e9\ud83d\ude00é"}],"":{}}"#,
            "[[[[]]]]",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn s_66_says_what_is_wrong_and_where() {
        assert_eq!(check(""), Err((K::UnexpectedEnd, 0)));
        assert_eq!(check("{\"a\":1"), Err((K::UnexpectedEnd, 6)));
        assert_eq!(check("[1,]"), Err((K::UnexpectedByte, 3)));
        assert_eq!(check("{\"a\" 1}"), Err((K::UnexpectedByte, 5)));
        assert_eq!(check("[1}"), Err((K::UnexpectedByte, 2)));
        assert_eq!(check("{,}"), Err((K::UnexpectedByte, 1)));
        assert_eq!(check("tru"), Err((K::UnexpectedByte, 0)));
        assert_eq!(check("{} x"), Err((K::TrailingData, 3)));
        assert_eq!(check("[01]"), Err((K::UnexpectedByte, 2)));
        assert_eq!(check("[-]"), Err((K::MalformedNumber, 1)));
        assert_eq!(check("[1e999]"), Err((K::NumberOutOfRange, 1)));
        assert_eq!(check("\"a\nb\""), Err((K::ControlCharacter, 2)));
        assert_eq!(check("\"a"), Err((K::UnexpectedEnd, 2)));
        assert_eq!(check("\"\\"), Err((K::UnexpectedEnd, 2)));
        assert_eq!(check(r#""\x""#), Err((K::MalformedEscape, 1)));
        assert_eq!(check(r#""\u12G4""#), Err((K::MalformedEscape, 1)));
        assert_eq!(check(r#""\ud800x""#), Err((K::LoneSurrogate, 1)));
        assert_eq!(check(r#""\udc00""#), Err((K::LoneSurrogate, 1)));
        assert_eq!(check(b"\"\xff\""), Err((K::NotUtf8, 1)));
        assert_eq!(check("\u{feff}{}"), Err((K::ByteOrderMark, 0)));
    }

    #[test]
    fn duplicate_keys_are_found_in_any_spelling_and_at_any_depth() {
        assert_eq!(check(r#"{"a":1,"a":2}"#), Err((K::DuplicateKey, 7)));
        assert_eq!(check(r#"[{"b":{"a":1,"\u0061":2}}]"#), Err((K::DuplicateKey, 13)));
        assert_eq!(check(r#"{"a":{"a":1},"b":{"a":1}}"#), Ok(()));
        let many: String = (0..18).map(|n| format!("\"{n}\":0,")).collect();
        assert_eq!(check(format!("{{{many}\"x\":0}}")), Ok(()));
        let at = 1 + many.len();
        assert_eq!(check(format!("{{{many}\"3\":0}}")), Err((K::DuplicateKey, at)));
    }

    #[test]
    fn size_depth_and_width_are_bounded() {
        assert_eq!(check("[[[[[]]]]]"), Err((K::TooDeep, 4)));
        let wide = |count: usize| format!("[{}]", vec!["1"; count].join(","));
        assert_eq!(check(wide(20)), Ok(()));
        assert_eq!(check(wide(21)), Err((K::TooWide, 40)));
        assert_eq!(check(format!("\"{}\"", "x".repeat(998))), Ok(()));
        assert_eq!(check(format!("\"{}\"", "x".repeat(999))), Err((K::TooLarge, 1000)));
        let deep = "[".repeat(10_000_000);
        assert_eq!(scan(deep.as_bytes(), &Limits::default()).unwrap_err().kind, K::TooDeep);
    }

    #[test]
    fn every_special_byte_is_found_at_every_place() {
        for length in 0..200 {
            for (byte, expected) in [(b'"', K::TrailingData), (b'\\', K::MalformedEscape), (7, K::ControlCharacter)] {
                let mut text = vec![b'x'; length + 2];
                text[0] = b'"';
                text[length + 1] = byte;
                text.extend_from_slice(b"yyyyyyyyyyyyyyyyyyyyyyyyy");
                assert_eq!(check(&text).unwrap_err().0, expected, "{length}");
            }
            let high = format!("\"{}é\u{7f}\"", "x".repeat(length));
            assert_eq!(check(&high), Ok(()));
        }
    }

    #[test]
    fn codes_tell_what_is_not_json_from_what_is_not_accepted() {
        let code = |text: &str| scan(text.as_bytes(), &Limits::default()).unwrap_err().code();
        assert_eq!(code("{"), codes::PARSE_ERROR);
        assert_eq!(code(r#"{"a":1,"a":1}"#), codes::INVALID_REQUEST);
        let error = ScanError { kind: K::DuplicateKey, at: 7 };
        assert_eq!(error.to_string(), "duplicate key at byte 7");
    }
}
