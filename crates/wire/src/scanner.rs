//! Single-pass scanner that enforces the strict rules and reports the positions of members.

use crate::json;
use crate::keys::Keys;
use crate::limits::Limits;
use crate::number;
use crate::scan::{ScanError, ScanErrorKind};
use crate::span::Span;
use crate::strings;

/// Receiver of member positions during the scan.
pub(crate) trait Sink {
    /// Maximum depth of the objects whose members are reported. The outermost object has depth 1.
    const DEPTH: usize;
    /// Reports a member of an object at `depth`: its key, `true` if that has escapes, and the start of its value.
    fn member(&mut self, depth: usize, bytes: &[u8], key: Span, escaped: bool, value: usize);
    /// Reports the end of the latest member's value at `depth`.
    fn end(&mut self, depth: usize, at: usize);
}

/// Sink that ignores everything.
pub(crate) struct NullSink;

impl Sink for NullSink {
    const DEPTH: usize = 0;
    fn member(&mut self, _: usize, _: &[u8], _: Span, _: bool, _: usize) {}
    fn end(&mut self, _: usize, _: usize) {}
}

/// Scans one value by the rules of [`crate::scan::scan`].
#[inline(always)]
pub(crate) fn run(bytes: &[u8], limits: &Limits, sink: &mut impl Sink) -> Result<(), ScanError> {
    if bytes.len() > limits.message || u32::try_from(bytes.len()).is_err() {
        return fail(ScanErrorKind::TooLarge, limits.message.min(bytes.len()));
    }
    let mut scanner = Scanner {
        bytes,
        at: 0,
        limits,
        here: Container::default(),
        open: Stack::default(),
        keys: Keys::new(),
        seen: 0,
        sink,
    };
    let outcome = scanner.run();
    // Only strings may contain non-ASCII bytes, and the scan detects those on the way.
    if (outcome.is_err() || scanner.seen & strings::HIGH != 0)
        && let Err(error) = std::str::from_utf8(bytes)
    {
        return fail(ScanErrorKind::NotUtf8, error.valid_up_to());
    }
    if outcome.is_err() && bytes.starts_with(b"\xEF\xBB\xBF") {
        return fail(ScanErrorKind::ByteOrderMark, 0);
    }
    outcome
}

fn fail<T>(kind: ScanErrorKind, at: usize) -> Result<T, ScanError> {
    Err(ScanError { kind, at })
}

struct Scanner<'a, S> {
    bytes: &'a [u8],
    at: usize,
    limits: &'a Limits,
    /// Innermost open container, if `open` is not empty.
    here: Container,
    open: Stack,
    keys: Keys,
    /// Bitwise OR of the bytes of all strings.
    seen: u64,
    sink: &'a mut S,
}

/// Open object or array.
#[derive(Copy, Clone, Default)]
struct Container {
    object: bool,
    /// Number of members or elements so far.
    width: usize,
    /// Index of the object's first key.
    keys: usize,
}

/// Containers around the innermost one. Allocates only at unusual depths.
#[derive(Default)]
struct Stack {
    /// Number of open containers, including the innermost one.
    depth: usize,
    near: [Container; NEAR],
    far: Vec<Container>,
}

const NEAR: usize = 8;

impl Stack {
    #[inline]
    fn push(&mut self, outer: Container) {
        match self.near.get_mut(self.depth) {
            Some(place) => *place = outer,
            None => self.far.push(outer),
        }
        self.depth += 1;
    }

    #[inline]
    fn pop(&mut self) -> Container {
        self.depth -= 1;
        match self.near.get(self.depth) {
            Some(outer) => *outer,
            None => self.far.pop().unwrap_or_default(),
        }
    }
}

/// All frequent steps are inlined into the loop. Rare ones are functions without access to the scanner. Otherwise, the
/// compiler does not keep the position and the innermost container in registers.
impl<S: Sink> Scanner<'_, S> {
    #[inline(always)]
    fn run(&mut self) -> Result<(), ScanError> {
        self.whitespace();
        loop {
            // A value starts here. Opening a non-empty container leads to its first value.
            if self.value()? {
                continue;
            }
            // A value ended here. Closing brackets end more values.
            while self.next_value()? {
                if self.open.depth == 0 {
                    return self.end();
                }
                if self.here.object {
                    self.close_object()?;
                }
                self.here = self.open.pop();
            }
        }
    }

    #[inline(always)]
    fn end(&self) -> Result<(), ScanError> {
        if self.at == self.bytes.len() { Ok(()) } else { fail(ScanErrorKind::TrailingData, self.at) }
    }

    /// Scans one value. Returns `true` after opening a container, whose first value comes next.
    #[inline(always)]
    fn value(&mut self) -> Result<bool, ScanError> {
        match self.bytes.get(self.at) {
            Some(b'"') => self.string().map(|_| false),
            Some(b'{') => self.open(true),
            Some(b'[') => self.open(false),
            _ => {
                self.at = scalar(self.bytes, self.at)?;
                Ok(false)
            }
        }
    }

    /// Continues after a value. Returns `true` if the innermost container or the message ends, and `false` if another
    /// value follows.
    #[inline(always)]
    fn next_value(&mut self) -> Result<bool, ScanError> {
        let object = self.here.object;
        if object && self.open.depth <= S::DEPTH {
            self.sink.end(self.open.depth, self.at);
        }
        self.whitespace();
        if self.open.depth == 0 {
            return Ok(true);
        }
        match self.bytes.get(self.at) {
            Some(b'}') if object => {
                self.at += 1;
                Ok(true)
            }
            Some(b']') if !object => {
                self.at += 1;
                Ok(true)
            }
            Some(b',') => {
                self.here.width += 1;
                if self.here.width > self.limits.width {
                    return fail(ScanErrorKind::TooWide, self.at);
                }
                self.at += 1;
                self.whitespace();
                if object {
                    self.key()?;
                }
                Ok(false)
            }
            _ => unexpected(self.bytes, self.at),
        }
    }

    #[inline(always)]
    fn open(&mut self, object: bool) -> Result<bool, ScanError> {
        if self.open.depth >= self.limits.depth {
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
        self.open.push(self.here);
        self.here = Container { object, width: 1, keys: self.keys.open() };
        if object {
            self.key()?;
        }
        Ok(true)
    }

    #[inline(always)]
    fn close_object(&mut self) -> Result<(), ScanError> {
        match self.keys.close(self.bytes, self.here.keys) {
            None => Ok(()),
            Some(at) => fail(ScanErrorKind::DuplicateKey, at),
        }
    }

    /// Scans a key and its colon, up to its value.
    #[inline(always)]
    fn key(&mut self) -> Result<(), ScanError> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return unexpected(self.bytes, self.at);
        }
        let start = self.at;
        let escaped = self.string()?;
        let end = self.at;
        self.keys.push(self.bytes, start..end, escaped);
        self.whitespace();
        if self.bytes.get(self.at) != Some(&b':') {
            return unexpected(self.bytes, self.at);
        }
        self.at += 1;
        self.whitespace();
        if self.open.depth <= S::DEPTH {
            self.sink.member(self.open.depth, self.bytes, Span::new(start, end), escaped, self.at);
        }
        Ok(())
    }

    /// Scans a string. Returns `true` if it has escapes.
    #[inline(always)]
    fn string(&mut self) -> Result<bool, ScanError> {
        let mut escaped = false;
        self.at += 1;
        loop {
            let plain = strings::plain(self.bytes.get(self.at..).unwrap_or(&[]));
            self.at += plain.length;
            self.seen |= plain.seen;
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.at = escape(self.bytes, self.at)?;
                }
                Some(_) => return fail(ScanErrorKind::ControlCharacter, self.at),
                None => return fail(ScanErrorKind::UnexpectedEnd, self.at),
            }
        }
    }

    #[inline(always)]
    fn whitespace(&mut self) {
        if self.bytes.get(self.at).is_some_and(|byte| *byte <= b' ') {
            self.at = json::skip_whitespace(self.bytes, self.at);
        }
    }
}

/// Scans a number or a literal. Returns the position after it.
fn scalar(bytes: &[u8], at: usize) -> Result<usize, ScanError> {
    let word: &[u8] = match bytes.get(at) {
        Some(b'-' | b'0'..=b'9') => return number(bytes, at),
        Some(b't') => b"true",
        Some(b'f') => b"false",
        Some(b'n') => b"null",
        _ => return unexpected(bytes, at),
    };
    if bytes.get(at..).is_some_and(|rest| rest.starts_with(word)) {
        return Ok(at + word.len());
    }
    unexpected(bytes, at)
}

fn number(bytes: &[u8], at: usize) -> Result<usize, ScanError> {
    let rest = bytes.get(at..).unwrap_or(&[]);
    if let Some(length) = number::short_integer(rest) {
        return Ok(at + length);
    }
    let Some(length) = number::length(rest) else {
        return fail(ScanErrorKind::MalformedNumber, at);
    };
    if !number::is_finite(rest.get(..length).unwrap_or(&[])) {
        return fail(ScanErrorKind::NumberOutOfRange, at);
    }
    Ok(at + length)
}

/// Scans an escape sequence. Returns the position after it.
fn escape(bytes: &[u8], at: usize) -> Result<usize, ScanError> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            let rest = bytes.get(at..).unwrap_or(&[]);
            if let Some((_, used)) = json::unicode_escape(rest) {
                return Ok(at + used);
            }
            let digits = rest.get(2..6).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
            let kind = if digits { ScanErrorKind::LoneSurrogate } else { ScanErrorKind::MalformedEscape };
            fail(kind, at)
        }
        Some(_) => fail(ScanErrorKind::MalformedEscape, at),
        None => fail(ScanErrorKind::UnexpectedEnd, at + 1),
    }
}

#[cold]
fn unexpected<T>(bytes: &[u8], at: usize) -> Result<T, ScanError> {
    let end = at >= bytes.len();
    fail(if end { ScanErrorKind::UnexpectedEnd } else { ScanErrorKind::UnexpectedByte }, at)
}
