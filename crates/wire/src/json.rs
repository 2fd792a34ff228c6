//! Reads raw JSON in place: finds members and elements, skips values, decodes strings. Never builds a document.
//!
//! These helpers are lax. They follow the structure (strings, brackets, commas at the level they walk) and leave all
//! other checks to the strict scan.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use crate::id::Digits;
use crate::span::Span;

pub use crate::skip::{skip_string, skip_value, skip_whitespace};

/// Member of an object, as positions in the object's bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct JsonMember {
    /// Span of the key, including quotes.
    pub key: Span,
    /// Span of the value.
    pub value: Span,
    /// Span from the key's opening quote to the end of the value.
    pub whole: Span,
}

/// Iterator over the members of an object, in order. Ends at the closing bracket or at the first malformed position.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    bytes: &'a [u8],
    at: usize,
    state: State,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    First,
    Rest,
    Closed,
    Broken,
}

/// Iterates over the members of `object`. Bytes that are not an object have none.
#[must_use]
pub fn members(object: &[u8]) -> Members<'_> {
    let start = skip_whitespace(object, 0);
    let fits = u32::try_from(object.len()).is_ok();
    let state = if fits && object.get(start) == Some(&b'{') { State::First } else { State::Broken };
    Members { bytes: object, at: start + 1, state }
}

impl Members<'_> {
    /// Returns the next member, `None` after the closing bracket, or the position at which the object is malformed.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<Option<JsonMember>, SyntaxError> {
        let outcome = self.advance();
        if outcome.is_err() {
            self.state = State::Broken;
        }
        outcome
    }

    #[inline]
    fn advance(&mut self) -> Result<Option<JsonMember>, SyntaxError> {
        let bytes = self.bytes;
        let mut at = skip_whitespace(bytes, self.at);
        match (self.state, bytes.get(at)) {
            (State::Closed, _) => return Ok(None),
            (State::Broken, _) => {
                return Err(SyntaxError { at, expected: "an object" });
            }
            (_, Some(b'}')) => {
                self.at = at + 1;
                self.state = State::Closed;
                return Ok(None);
            }
            (State::First, _) => {}
            (State::Rest, Some(b',')) => at = skip_whitespace(bytes, at + 1),
            (State::Rest, _) => {
                return Err(SyntaxError { at, expected: "a comma or a closing bracket" });
            }
        }
        let key_end = skip_string(bytes, at).ok_or(SyntaxError { at, expected: "a member name" })?;
        let colon = skip_whitespace(bytes, key_end);
        if bytes.get(colon) != Some(&b':') {
            return Err(SyntaxError { at: colon, expected: "a colon" });
        }
        let value = skip_whitespace(bytes, colon + 1);
        let end = skip_value(bytes, value).ok_or(SyntaxError { at: value, expected: "a complete value" })?;
        self.at = end;
        self.state = State::Rest;
        Ok(Some(JsonMember { key: Span::new(at, key_end), value: Span::new(value, end), whole: Span::new(at, end) }))
    }

    /// Returns the position after the closing bracket, once the iterator has reached it.
    #[must_use]
    pub fn end(&self) -> Option<usize> {
        (self.state == State::Closed).then_some(self.at)
    }
}

impl Iterator for Members<'_> {
    type Item = JsonMember;

    #[inline]
    fn next(&mut self) -> Option<JsonMember> {
        self.step().ok().flatten()
    }
}

/// Position at which a walk failed, and the expected token.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SyntaxError {
    pub at: usize,
    pub expected: &'static str,
}

/// Iterator over the elements of an array, in order. Ends at the closing bracket or at the first malformed position.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    bytes: &'a [u8],
    at: usize,
    state: State,
}

/// Iterates over the elements of `array`. Bytes that are not an array have none.
#[must_use]
pub fn elements(array: &[u8]) -> Elements<'_> {
    let start = skip_whitespace(array, 0);
    let fits = u32::try_from(array.len()).is_ok();
    let state = if fits && array.get(start) == Some(&b'[') { State::First } else { State::Broken };
    Elements { bytes: array, at: start + 1, state }
}

impl Elements<'_> {
    /// Returns the next element, `None` after the closing bracket, or the position at which the array is malformed.
    pub(crate) fn step(&mut self) -> Result<Option<Span>, SyntaxError> {
        let bytes = self.bytes;
        let mut at = skip_whitespace(bytes, self.at);
        match (self.state, bytes.get(at)) {
            (State::Closed, _) => return Ok(None),
            (State::Broken, _) => {
                return Err(SyntaxError { at, expected: "an array" });
            }
            (_, Some(b']')) => {
                self.at = at + 1;
                self.state = State::Closed;
                return Ok(None);
            }
            (State::First, _) => {}
            (State::Rest, Some(b',')) => at = skip_whitespace(bytes, at + 1),
            (State::Rest, _) => {
                self.state = State::Broken;
                return Err(SyntaxError { at, expected: "a comma or a closing bracket" });
            }
        }
        let Some(end) = skip_value(bytes, at) else {
            self.state = State::Broken;
            return Err(SyntaxError { at, expected: "a complete value" });
        };
        self.at = end;
        self.state = State::Rest;
        Ok(Some(Span::new(at, end)))
    }

    /// Returns the position after the closing bracket, once the iterator has reached it.
    #[must_use]
    pub fn end(&self) -> Option<usize> {
        (self.state == State::Closed).then_some(self.at)
    }
}

impl Iterator for Elements<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        self.step().ok().flatten()
    }
}

/// Returns the value of the first member of `object` called `key`.
#[inline]
#[must_use]
pub fn member(object: &[u8], key: &str) -> Option<Span> {
    members(object).find(|member| key_eq(member.key.of(object), key)).map(|member| member.value)
}

/// Returns the value reached by following `keys` through nested objects.
#[must_use]
pub fn path(json: &[u8], keys: &[&str]) -> Option<Span> {
    let start = skip_whitespace(json, 0);
    // Walking an object finds its end. Only a whole value must be measured first.
    let end = if keys.is_empty() { skip_value(json, start)? } else { json.len() };
    let mut here = Span::new(start, end);
    for key in keys {
        here = member(here.of(json), key)?.shift(here.start);
    }
    Some(here)
}

/// Returns `true` if the string token, including its quotes, decodes to `key`.
#[inline]
#[must_use]
pub fn key_eq(token: &[u8], key: &str) -> bool {
    let [b'"', content @ .., b'"'] = token else {
        return false;
    };
    if content.len() == key.len() {
        // Equal bytes with a backslash would decode to something shorter than `key`.
        return content == key.as_bytes() && memchr(b'\\', content).is_none();
    }
    // An escape is always longer than the character it encodes.
    content.len() > key.len() && memchr(b'\\', content).is_some() && string(token).is_some_and(|decoded| decoded == key)
}

/// Length below which a plain loop is faster than a vectorized search.
const SHORT: usize = 32;

/// Decodes a string token, including its quotes. Returns `None` if it is not a string, not UTF-8, or has a broken
/// escape.
#[must_use]
pub fn string(token: &[u8]) -> Option<Cow<'_, str>> {
    let [b'"', content @ .., b'"'] = token else {
        return None;
    };
    let text = std::str::from_utf8(content).ok()?;
    let is_plain = if content.len() < SHORT {
        !content.iter().any(|byte| matches!(byte, b'"' | b'\\'))
    } else {
        memchr2(b'"', b'\\', content).is_none()
    };
    if is_plain { Some(Cow::Borrowed(text)) } else { unescape(text).map(Cow::Owned) }
}

/// Decodes the content of a string. Returns `None` for an unescaped quote.
pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = memchr2(b'"', b'\\', rest.as_bytes()) {
        out.push_str(rest.get(..found)?);
        let after = rest.get(found..)?;
        let mut bytes = after.bytes();
        if bytes.next() != Some(b'\\') {
            return None;
        }
        let (decoded, used) = match bytes.next()? {
            b'"' => ('"', 2),
            b'\\' => ('\\', 2),
            b'/' => ('/', 2),
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'n' => ('\n', 2),
            b'r' => ('\r', 2),
            b't' => ('\t', 2),
            b'u' => unicode_escape(after.as_bytes())?,
            _ => return None,
        };
        out.push(decoded);
        rest = after.get(used..)?;
    }
    out.push_str(rest);
    Some(out)
}

/// Decodes `\uXXXX`, or a surrogate pair, at the start of `bytes`. Returns the character and the number of bytes used.
pub(crate) fn unicode_escape(bytes: &[u8]) -> Option<(char, usize)> {
    let first = hex4(bytes.get(2..6)?)?;
    if !(0xD800..0xDC00).contains(&first) {
        return char::from_u32(first).map(|decoded| (decoded, 6));
    }
    let second = bytes.get(6..12)?;
    if !second.starts_with(b"\\u") {
        return None;
    }
    let low = hex4(second.get(2..)?)?;
    if !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    char::from_u32(0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00)).map(|decoded| (decoded, 12))
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
}

/// Formats `text` as a JSON string token, including quotes.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_quoted(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// Appends `text` to `out` as a JSON string token, including quotes.
pub fn push_quoted(out: &mut String, text: &str) {
    if text.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        return out.push_str(&quote(text));
    }
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// Appends a number in decimal digits.
pub fn push_number(out: &mut String, number: u64) {
    // Digits are valid UTF-8.
    out.push_str(str::from_utf8(Digits::of(number).as_ref()).unwrap_or_default());
}

/// Appends `text` to `out` as a JSON string token, including quotes.
pub fn write_quoted(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut copied = 0;
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..=0x1F => 0,
            _ => continue,
        };
        out.extend_from_slice(&bytes[copied..at]);
        copied = at + 1;
        if short == 0 {
            out.extend_from_slice(b"\\u00");
            out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        } else {
            out.extend([b'\\', short]);
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_decimal_digits() {
        for number in [0, 7, 10, 99, 100, 1_234_567_890, u64::MAX] {
            let mut out = "n".to_owned();
            push_number(&mut out, number);
            assert_eq!(out, format!("n{number}"));
        }
    }

    fn values(json: &str) -> Vec<(&str, &str)> {
        let text = |span: Span| &json[span.range()];
        members(json.as_bytes()).map(|member| (text(member.key), text(member.value))).collect()
    }

    #[test]
    fn walks_members_and_stops_at_malformed_ones() {
        assert_eq!(values(r#" { "a" : 1 , "b":[{"c":"}"}] } "#), [("\"a\"", "1"), ("\"b\"", r#"[{"c":"}"}]"#)]);
        assert_eq!(values("{}"), []);
        assert_eq!(values("{ }"), []);
        assert_eq!(values("[]"), []);
        assert_eq!(values(""), []);
        assert_eq!(values(r#"{"a":1 "b":2}"#), [("\"a\"", "1")]);
        assert_eq!(values(r#"{"a":1,}"#), [("\"a\"", "1")]);
        assert_eq!(values(r#"{"a":[1}"#), []);
        assert_eq!(values(r#"{"a"}"#), []);
    }

    #[test]
    fn whole_spans_key_and_value() {
        let json = br#"{ "a" : 1 }"#;
        let member = members(json).next().unwrap();
        assert_eq!(member.whole.of(json), br#""a" : 1"#);
        let mut walk = members(json);
        assert_eq!(walk.end(), None);
        assert_eq!(walk.by_ref().count(), 1);
        assert_eq!(walk.end(), Some(json.len()));
    }

    #[test]
    fn walks_elements() {
        let json = br#" [1, "a,]", {"b":[2]} ] "#;
        let found: Vec<_> = elements(json).map(|span| span.of(json)).collect();
        assert_eq!(found, [&b"1"[..], br#""a,]""#, br#"{"b":[2]}"#]);
        assert_eq!(elements(b"[1 2]").count(), 1);
        assert_eq!(elements(b"[,]").count(), 0);
        assert_eq!(elements(b"{}").count(), 0);
    }

    #[test]
    fn finds_by_path_and_by_escaped_key() {
        let json = br#"{"x":1,"_meta":{"progress\u0054oken":"t"}}"#;
        let span = path(json, &["_meta", "progressToken"]).unwrap();
        assert_eq!(span.of(json), b"\"t\"");
        assert_eq!(path(json, &["_meta", "nope"]), None);
        assert_eq!(path(json, &["x", "y"]), None);
        assert_eq!(path(json, &[]).unwrap().of(json), json);
        assert_eq!(path(b"", &[]), None);
    }

    #[test]
    fn keys_are_compared_as_decoded() {
        assert!(key_eq(br#""name""#, "name"));
        assert!(key_eq(br#""na\u006de""#, "name"));
        assert!(key_eq(br#""a\\b""#, "a\\b"));
        assert!(!key_eq(br#""a\b""#, "a\\b"));
        assert!(!key_eq(br#""names""#, "name"));
        assert!(!key_eq(br#""nam""#, "name"));
        assert!(!key_eq(b"name", "name"));
        assert!(!key_eq(b"\"", ""));
    }

    #[test]
    fn strings_are_decoded() {
        assert!(matches!(string(b"\"plain\""), Some(Cow::Borrowed("plain"))));
        let escapes = br#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00x""#;
        assert_eq!(string(escapes).unwrap(), "\"\\/\u{8}\u{c}\n\r\té😀x");
        for bad in [
            &br#""\x""#[..],
            br#""\u12""#,
            br#""\ud800""#,
            br#""\ud800\u0041""#,
            br#""\udc00""#,
            br#""a"b""#,
            br#""\""#,
            b"\"\xff\"",
            b"12",
            b"\"",
        ] {
            assert_eq!(string(bad), None, "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn quoting_round_trips() {
        for text in ["", "plain", "a\"b\\c\n\r\t\u{8}\u{1f}\u{7f}é😀"] {
            assert_eq!(string(quote(text).as_bytes()).unwrap(), text);
        }
        assert_eq!(quote("\u{1}\n"), r#""\u0001\n""#);
    }
}
