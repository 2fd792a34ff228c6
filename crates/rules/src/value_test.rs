//! Tests of a JSON value on its raw bytes.

use crate::facts::MessageView;
use regex::bytes::Regex;
use serde_json::Value as Json;
use signalbox_wire::json;
use std::fmt;

/// Test of a value, which may be absent.
#[derive(Clone, Debug)]
pub(crate) enum ValueTest {
    Exists(bool),
    Equals(Json),
    In(Box<[Json]>),
    Contains(Json),
    Matches(Regex),
    StartsWith(Box<str>),
    EndsWith(Box<str>),
    Greater(f64),
    Less(f64),
    IsNull(bool),
    IsArray(bool),
}

impl ValueTest {
    /// Returns `true` if the value passes. An absent value passes only `exists = false`.
    pub fn holds(&self, value: Option<&[u8]>, view: &MessageView<'_>) -> bool {
        let Some(token) = value else { return matches!(self, Self::Exists(false)) };
        match self {
            Self::Exists(wanted) => *wanted,
            Self::IsNull(wanted) => (token == b"null") == *wanted,
            Self::IsArray(wanted) => token.starts_with(b"[") == *wanted,
            Self::Greater(bound) => number(token).is_some_and(|number| number > *bound),
            Self::Less(bound) => number(token).is_some_and(|number| number < *bound),
            _ => {
                view.add_work(token.len());
                self.reads(token)
            }
        }
    }

    /// Evaluates the tests that read the whole value.
    fn reads(&self, token: &[u8]) -> bool {
        match self {
            Self::Equals(wanted) => same(wanted, token),
            Self::In(wanted) => wanted.iter().any(|wanted| same(wanted, token)),
            Self::Contains(part) => contains(part, token),
            Self::Matches(regex) => match json::string(token) {
                Some(text) => regex.is_match(text.as_bytes()),
                None => regex.is_match(token),
            },
            Self::StartsWith(start) => starts_with(token, start),
            Self::EndsWith(end) => json::string(token).is_some_and(|text| text.ends_with(&**end)),
            _ => false,
        }
    }
}

impl fmt::Display for ValueTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(true) => f.write_str("is there"),
            Self::Exists(false) => f.write_str("is not there"),
            Self::Equals(wanted) => write!(f, "is {wanted}"),
            Self::In(wanted) => {
                let wanted: Vec<_> = wanted.iter().map(Json::to_string).collect();
                write!(f, "is one of {}", wanted.join(", "))
            }
            Self::Contains(part) => write!(f, "contains {part}"),
            Self::Matches(regex) => write!(f, "matches /{regex}/"),
            Self::StartsWith(start) => write!(f, "starts with \"{start}\""),
            Self::EndsWith(end) => write!(f, "ends with \"{end}\""),
            Self::Greater(bound) => write!(f, "is greater than {bound}"),
            Self::Less(bound) => write!(f, "is less than {bound}"),
            Self::IsNull(yes) => f.write_str(if *yes { "is null" } else { "is not null" }),
            Self::IsArray(yes) => f.write_str(if *yes { "is an array" } else { "is not an array" }),
        }
    }
}

/// Returns `true` if a raw value equals this one.
fn same(wanted: &Json, token: &[u8]) -> bool {
    match wanted {
        Json::Null => token == b"null",
        Json::Bool(flag) => token == if *flag { &b"true"[..] } else { b"false" },
        Json::String(text) => json::key_eq(token, text),
        Json::Number(wanted) => {
            let Some(text) = number_text(token) else { return false };
            match (wanted.as_i64(), text.parse::<i64>()) {
                (Some(wanted), Ok(found)) => wanted == found,
                _ => wanted.as_f64() == text.parse().ok(),
            }
        }
        Json::Array(wanted) => {
            let mut found = json::elements(token);
            token.starts_with(b"[")
                && wanted.iter().all(|wanted| found.next().is_some_and(|span| same(wanted, span.of(token))))
                && found.next().is_none()
        }
        Json::Object(wanted) => {
            token.starts_with(b"{")
                && json::members(token).count() == wanted.len()
                && wanted
                    .iter()
                    .all(|(key, wanted)| json::member(token, key).is_some_and(|span| same(wanted, span.of(token))))
        }
    }
}

/// Returns `true` if a raw text has this prefix. Decodes the text only if there is an escape in that part.
fn starts_with(token: &[u8], start: &str) -> bool {
    let [b'"', content @ .., b'"'] = token else { return false };
    let same = content.iter().zip(start.as_bytes()).take_while(|(one, other)| one == other && **one != b'\\').count();
    match content.get(same) {
        _ if same == start.len() => true,
        Some(b'\\') => json::string(token).is_some_and(|text| text.starts_with(start)),
        _ => false,
    }
}

/// Returns `true` if a text contains a text, an array an element, or an object a member of this name.
fn contains(part: &Json, token: &[u8]) -> bool {
    match (token.first(), part) {
        (Some(b'"'), Json::String(part)) => json::string(token).is_some_and(|text| text.contains(part.as_str())),
        (Some(b'['), part) => json::elements(token).any(|span| same(part, span.of(token))),
        (Some(b'{'), Json::String(key)) => json::member(token, key).is_some(),
        _ => false,
    }
}

fn number(token: &[u8]) -> Option<f64> {
    number_text(token)?.parse().ok()
}

fn number_text(token: &[u8]) -> Option<&str> {
    let starts = token.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-');
    if starts { std::str::from_utf8(token).ok() } else { None }
}
