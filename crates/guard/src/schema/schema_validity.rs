//! Verdicts and violations as they are reported.

use super::limits::{MAX_QUOTED_CHARS, MAX_VIOLATION_CHARS};
use serde_json::Value;
use signalbox_wire::printable;
use std::fmt;

/// Verdict on an instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SchemaValidity {
    /// The instance is valid.
    Valid,
    /// The instance is valid once these values are spelled as the schema asks.
    Coercible(Vec<Coercion>),
    /// The instance is invalid. At least one violation, at most [`super::limits::MAX_VIOLATIONS`].
    Invalid(Vec<SchemaViolation>),
    /// The check was not begun, because it could exceed [`super::limits::MAX_WORK`] or the limits of an instance.
    /// Nothing is known about the instance.
    TooCostly,
}

/// A value that is right but for its spelling, such as `"5"` for an integer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coercion {
    /// JSON pointer of the value, shortened and cleaned like that of a violation.
    pub place: String,
    /// Accepted values in words.
    pub expected: String,
    /// Value as given, in words; secrets are not quoted.
    pub given: String,
}

/// One way in which an instance breaks its schema. The texts are bounded and have no control characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaViolation {
    /// JSON pointer of the value, empty for the whole instance.
    pub place: String,
    /// Accepted values in words, such as "an integer from 1 to 100".
    pub expected: String,
    /// Value of the instance in words. Empty if a property is missing; secrets are not quoted.
    pub found: String,
}

const PLACE_CHARS: usize = 40;
const EXPECTED_CHARS: usize = 76;

impl SchemaViolation {
    pub(super) fn new(place: &str, expected: &str, found: &str) -> Self {
        Self {
            place: shorten(place, PLACE_CHARS),
            expected: shorten(expected, EXPECTED_CHARS),
            found: found.to_owned(),
        }
    }
}

/// One line that lets a model correct its call.
impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "/" } else { &self.place };
        let line = match self.found.is_empty() {
            true => format!("{place}: missing {}", self.expected),
            false => format!("{place}: expected {}, found {}", self.expected, self.found),
        };
        f.write_str(&shorten(&line, MAX_VIOLATION_CHARS))
    }
}

/// Escapes what could forge a line and shortens the text to this many characters.
pub(super) fn shorten(text: &str, most: usize) -> String {
    // An escape is longer than its character, so the text is cleaned before it is measured, and cut before that
    // because a hostile text may be long.
    let begun: String = text.chars().take(most + 1).collect();
    let clean = printable::one_line(&begun);
    if clean.chars().count() <= most {
        return clean;
    }
    let mut short: String = clean.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Quotes a scalar, and names the size of a container. A secret is not quoted.
pub(super) fn describe_value(value: &Value, is_secret: bool) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(items) => format!("an array of {}", count(items.len(), "item")),
        Value::Object(members) if members.is_empty() => "an empty object".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(_) if is_secret => "a string that is not shown".to_owned(),
        _ if is_secret => "a value that is not shown".to_owned(),
        Value::String(text) => format!("the string {}", quote(text)),
        Value::Bool(_) | Value::Number(_) => shorten(&value.to_string(), MAX_QUOTED_CHARS),
    }
}

/// Returns the text in quotation marks, shortened.
pub(super) fn quote(text: &str) -> String {
    format!("\"{}\"", shorten(text, MAX_QUOTED_CHARS - 2))
}

/// Returns "1 item" or "3 items".
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// One line for a record.
impl fmt::Display for Coercion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "/" } else { &self.place };
        write!(f, "{place}: expected {}, given in another spelling", self.expected)
    }
}
