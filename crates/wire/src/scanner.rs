//! The one pass over a message: holds it to the strict rules and tells where its members stand.

use crate::json;
use crate::keys::Keys;
use crate::limits::Limits;
use crate::number;
use crate::scan::{ScanError, ScanErrorKind};
use crate::span::Span;
use crate::strings;

/// Is told where the members of objects stand, as the pass comes by.
pub(crate) trait Sink {
    /// The deepest objects whose members are told; the outermost one has depth 1.
    const DEPTH: usize;
    /// A member of an object at this depth: its key, whether that holds escapes, and where its value begins.
    fn member(&mut self, depth: usize, bytes: &[u8], key: Span, escaped: bool, value: usize);
    /// The value of the last member at this depth ends here.
    fn end(&mut self, depth: usize, at: usize);
}

/// Wants to know nothing.
pub(crate) struct Deaf;

impl Sink for Deaf {
    const DEPTH: usize = 0;
    fn member(&mut self, _: usize, _: &[u8], _: Span, _: bool, _: usize) {}
    fn end(&mut self, _: usize, _: usize) {}
}

/// Scans one value after the rules of [`crate::scan::scan`].
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
    // Only strings may hold more than ASCII, and whether one does is seen on the way.
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
    /// The innermost open container, if `open` says that there is one.
    here: Container,
    open: Stack,
    keys: Keys,
    /// All words of all strings together.
    seen: u64,
    sink: &'a mut S,
}

/// An object or array that is not closed yet.
#[derive(Copy, Clone, Default)]
struct Container {
    object: bool,
    /// Members or elements so far.
    width: usize,
    /// Where the keys of an object begin.
    keys: usize,
}

/// The containers around the innermost one. Only unusual depths need memory.
#[derive(Default)]
struct Stack {
    /// How many containers are open, the innermost one included.
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

/// Every step is inlined into the loop, and what is rare stands outside and is handed no scanner: only so does the compiler
/// keep the position and the innermost container in registers.
impl<S: Sink> Scanner<'_, S> {
    #[inline(always)]
    fn run(&mut self) -> Result<(), ScanError> {
        self.whitespace();
        loop {
            // A value begins here. Opening a container that is not empty leads to its first value.
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

    /// Reads one value. `true` when it is a container of which the first value comes next.
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

    /// After a value: `true` when the innermost container closes (or the message ends), `false` when another value
    /// of it comes next.
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

    /// Reads a key, its colon, and goes to its value.
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

    /// Reads a string. `true` when it holds escapes.
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

/// A number or a literal. Gives the position after it.
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

/// What begins with the backslash here. Gives the position after it.
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
