//! JSON data in canonical form: sorted members, numbers by value, strings with the same escapes.

use super::canonical_number::canonical_number;
use super::tool_definition::DefinitionError;
use crate::invisible::is_invisible;
use signalbox_wire::json::{self, skip_string, skip_value, skip_whitespace};
use signalbox_wire::{Limits, ScanError, ScanErrorKind, scan};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum nesting of a definition. Recursion over a value is bounded by it.
pub(super) const MAX_DEPTH: usize = 64;
/// Longest array of simple values, in bytes, that [`CanonicalValue::pretty`] writes on one line.
const MAX_INLINE: usize = 100;

/// JSON value without insignificant differences.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum CanonicalValue {
    /// `null`, a boolean or a number, in canonical text.
    Literal(String),
    Text(String),
    Array(Vec<Self>),
    Object(BTreeMap<String, Self>),
}

impl CanonicalValue {
    /// Parses a JSON text of at most `most` bytes.
    ///
    /// # Errors
    /// If the text is not JSON that every reader understands alike, or exceeds a limit.
    pub(super) fn parse(text: &[u8], most: usize) -> Result<Self, DefinitionError> {
        scan(text, &Limits { message: most, depth: MAX_DEPTH, ..Limits::default() })?;
        Ok(value_at(text, skip_whitespace(text, 0))?.value)
    }

    pub(super) fn object(&self) -> Option<&BTreeMap<String, Self>> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    fn is_container(&self) -> bool {
        matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// Returns the text on one line, without spaces.
    pub(super) fn compact(&self) -> String {
        let mut out = String::new();
        self.push_compact(&mut out);
        out
    }

    fn push_compact(&self, out: &mut String) {
        match self {
            Self::Literal(text) => out.push_str(text),
            Self::Text(text) => push_string(out, text),
            Self::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    out.push(if at == 0 { '[' } else { ',' });
                    item.push_compact(out);
                }
                out.push_str(if items.is_empty() { "[]" } else { "]" });
            }
            Self::Object(members) => {
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push(if at == 0 { '{' } else { ',' });
                    push_string(out, key);
                    out.push(':');
                    value.push_compact(out);
                }
                out.push_str(if members.is_empty() { "{}" } else { "}" });
            }
        }
    }

    /// Returns the text with a line per member, so that a version control system shows which members changed.
    pub(super) fn pretty(&self) -> String {
        let mut out = String::new();
        self.push_pretty(&mut out, 0);
        out
    }

    fn push_pretty(&self, out: &mut String, depth: usize) {
        let line = |out: &mut String, depth: usize| {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        };
        match self {
            Self::Array(items) if !items.is_empty() && !self.is_short() => {
                for (at, item) in items.iter().enumerate() {
                    out.push(if at == 0 { '[' } else { ',' });
                    line(out, depth + 1);
                    item.push_pretty(out, depth + 1);
                }
                line(out, depth);
                out.push(']');
            }
            Self::Object(members) if !members.is_empty() => {
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push(if at == 0 { '{' } else { ',' });
                    line(out, depth + 1);
                    push_string(out, key);
                    out.push_str(": ");
                    value.push_pretty(out, depth + 1);
                }
                line(out, depth);
                out.push('}');
            }
            _ => self.push_compact(out),
        }
    }

    /// Returns `true` for an array of simple values that fits a line.
    fn is_short(&self) -> bool {
        let Self::Array(items) = self else { return false };
        let mut length = 0;
        items.iter().all(|item| {
            length += match item {
                Self::Literal(text) | Self::Text(text) => text.len() + 3,
                Self::Array(_) | Self::Object(_) => 0,
            };
            !item.is_container() && length <= MAX_INLINE
        })
    }
}

/// Appends a quoted string. Characters that a reviewer would not see become escapes.
fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if is_invisible(char) => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            _ => out.push(char),
        }
    }
    out.push('"');
}

/// Value and the position after it.
struct ParsedValue {
    value: CanonicalValue,
    end: usize,
}

/// Reads the value that starts at `at`. The text has passed the scan, which bounds the depth of the recursion.
fn value_at(text: &[u8], at: usize) -> Result<ParsedValue, DefinitionError> {
    match text.get(at) {
        Some(b'{') => object_at(text, at + 1),
        Some(b'[') => array_at(text, at + 1),
        Some(b'"') => {
            let string = string_at(text, at)?;
            Ok(ParsedValue { value: CanonicalValue::Text(string.text), end: string.end })
        }
        Some(first) => {
            let end = skip_value(text, at).ok_or_else(|| unexpected(at))?;
            let token = text.get(at..end).and_then(|token| str::from_utf8(token).ok()).ok_or_else(|| unexpected(at))?;
            let literal = match first {
                b't' | b'f' | b'n' => token.to_owned(),
                _ => canonical_number(token).ok_or(DefinitionError::Number(at))?,
            };
            Ok(ParsedValue { value: CanonicalValue::Literal(literal), end })
        }
        None => Err(unexpected(at)),
    }
}

fn object_at(text: &[u8], mut at: usize) -> Result<ParsedValue, DefinitionError> {
    let mut members = BTreeMap::new();
    at = skip_whitespace(text, at);
    while text.get(at) == Some(&b'"') {
        let key = string_at(text, at)?;
        let colon = skip_whitespace(text, key.end);
        let member = value_at(text, skip_whitespace(text, colon + 1))?;
        members.insert(key.text, member.value);
        at = after_comma(text, member.end);
    }
    Ok(ParsedValue { value: CanonicalValue::Object(members), end: at + 1 })
}

fn array_at(text: &[u8], mut at: usize) -> Result<ParsedValue, DefinitionError> {
    let mut items = Vec::new();
    at = skip_whitespace(text, at);
    while text.get(at).is_some_and(|byte| *byte != b']') {
        let item = value_at(text, at)?;
        items.push(item.value);
        at = after_comma(text, item.end);
    }
    Ok(ParsedValue { value: CanonicalValue::Array(items), end: at + 1 })
}

/// Returns the position of the next member or element, or of the closing bracket.
fn after_comma(text: &[u8], at: usize) -> usize {
    let at = skip_whitespace(text, at);
    if text.get(at) == Some(&b',') { skip_whitespace(text, at + 1) } else { at }
}

/// Decoded string and the position after its closing quote.
struct ParsedString {
    text: String,
    end: usize,
}

fn string_at(text: &[u8], at: usize) -> Result<ParsedString, DefinitionError> {
    let end = skip_string(text, at).ok_or_else(|| unexpected(at))?;
    let decoded = text.get(at..end).and_then(json::string).ok_or_else(|| unexpected(at))?;
    Ok(ParsedString { text: decoded.into_owned(), end })
}

fn unexpected(at: usize) -> DefinitionError {
    ScanError { kind: ScanErrorKind::UnexpectedByte, at }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> CanonicalValue {
        CanonicalValue::parse(text.as_bytes(), 1 << 20).unwrap()
    }

    #[test]
    fn the_compact_text_is_canonical() {
        let value =
            parse(" { \"b\" : [1.0, 2e1,\t\"\\u0061\\/\\u200b\\ud83d\\ude00\"], \"a\": {\"\": null, \"x\":[]} } ");
        assert_eq!(value.compact(), r#"{"a":{"":null,"x":[]},"b":[1,20,"a/\u200b😀"]}"#);
    }

    #[test]
    fn both_texts_have_the_value_that_they_were_made_of() {
        let value =
            parse(r#"{"a":{"x":[true,false,null],"y":[{"k":"v\n\t\r\"\\\u0000"}],"z":{}},"b":[[]],"c":"\u0007"}"#);
        assert_eq!(parse(&value.pretty()), value);
        assert_eq!(parse(&value.compact()), value);
        assert!(value.pretty().contains("\n    \"x\": [true,false,null],\n"), "{}", value.pretty());
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(CanonicalValue::parse(nested(MAX_DEPTH).as_bytes(), 1 << 20).is_ok());
        let error = CanonicalValue::parse(nested(MAX_DEPTH + 1).as_bytes(), 1 << 20).unwrap_err();
        assert!(matches!(error, DefinitionError::Json(error) if error.kind == ScanErrorKind::TooDeep));
    }
}
