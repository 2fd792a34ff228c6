//! The arguments of a call, in its record and in the row of a database. They are kept as they were received: parsing
//! them would round numbers, and change the order and spelling of members.

use bytes::Bytes;
use serde_json::Value;
use signalbox_engine::dialect;
use signalbox_tape::redact::{Redaction, Redactor};
use signalbox_wire::framing::single_line;
use signalbox_wire::limits::DEPTH;
use signalbox_wire::scan::scan;
use signalbox_wire::{Limits, json, method};
use std::borrow::Cow;

/// Message around arguments, as far as it matters to redaction.
const BEFORE: &[u8] = br#"{"params":{"arguments":"#;
const AFTER: &[u8] = b"}}";
/// Replacement of arguments of which nothing can be kept.
const WITHHELD: &[u8] = b"\"[redacted]\"";
/// Replacement of a subject of which nothing can be kept.
const REDACTED: &str = "[redacted]";
/// Nesting of a record outside the arguments.
const AROUND: usize = 2;
/// Numbers of significant digits at which the previous program could change the last one of a fraction.
const INEXACT_DIGITS: std::ops::RangeInclusive<usize> = 16..=17;
/// Maximum nesting that is compared value by value.
const MAX_DEPTH: usize = 256;

/// Returns the arguments as redaction leaves them, or `None` if it removes them. They are redacted in their place in a
/// message, where rules of `record.redact.paths` name them.
pub(crate) fn redacted(arguments: &Bytes, redactor: &Redactor, method: &str) -> Option<Bytes> {
    let message = Bytes::from([BEFORE, &arguments[..], AFTER].concat());
    match redactor.message(&message, Some(method)) {
        Redaction::Same => Some(arguments.clone()),
        Redaction::Changed(kept) => {
            let found = json::path(&kept, &["params", "arguments"])?;
            Some(kept.slice(found.range()))
        }
        Redaction::Withheld => Some(Bytes::from_static(WITHHELD)),
    }
}

/// Returns the subject of a request as redaction leaves it in its place in the request, or `None` if it stays as it is.
pub(crate) fn redacted_subject(subject: &str, redactor: &Redactor, method: &str) -> Option<String> {
    let member = match method {
        dialect::INVOKE => "tool_id",
        _ if method.starts_with("resources/") || method == method::SUBSCRIPTIONS_LISTEN => "uri",
        _ => "name",
    };
    let quoted = json::quote(subject);
    let params = match method {
        method::COMPLETION_COMPLETE => format!(r#"{{"ref":{{"uri":{quoted},"name":{quoted}}}}}"#),
        _ => format!(r#"{{"{member}":{quoted}}}"#),
    };
    let message = Bytes::from(format!(r#"{{"params":{params}}}"#));
    let kept = match redactor.message(&message, Some(method)) {
        Redaction::Same => return None,
        Redaction::Changed(kept) => kept,
        Redaction::Withheld => return Some(REDACTED.to_owned()),
    };
    let paths: &[&[&str]] = match method {
        method::COMPLETION_COMPLETE => &[&["params", "ref", "uri"], &["params", "ref", "name"]],
        _ => &[&["params", member]],
    };
    // A rule for either place counts, because a completion names its reference in one of them.
    let mut left = paths.iter().map(|path| json::path(&kept, path).and_then(|span| json::string(span.of(&kept))));
    let changed = left.find(|text| text.as_deref() != Some(subject))?;
    Some(changed.map_or_else(|| REDACTED.to_owned(), |text| text.into_owned()))
}

/// Returns the JSON that a record has for these arguments: the text as received on one line, or a JSON string of it if
/// it is not a JSON value that every parser reads alike.
pub(crate) fn recorded(arguments: &Bytes) -> String {
    let limits = Limits { depth: DEPTH - AROUND, ..Limits::default() };
    let line = scan(arguments, &limits).ok().and_then(|()| single_line(arguments).ok());
    match line.as_deref().and_then(|line| str::from_utf8(line).ok()) {
        Some(line) => line.to_owned(),
        None => json::quote(&String::from_utf8_lossy(arguments)),
    }
}

/// Returns the text that the previous program wrote to a column for arguments that it had recorded as `recorded`, if
/// that was another. It parsed the record again, and so could change the last digit of a long fraction.
pub(crate) fn earlier_column(recorded: &str) -> Option<String> {
    let (frame, numbers) = split_numbers(recorded);
    if !numbers.iter().any(|number| is_inexact(number)) {
        return None;
    }
    let column = serde_json::from_str::<Value>(recorded).ok()?.to_string();
    let (column_frame, column_numbers) = split_numbers(&column);
    let is_same = frame == column_frame
        && numbers.len() == column_numbers.len()
        && numbers.iter().zip(column_numbers).all(|(own, found)| *own == found || is_inexact(own));
    (is_same && column != recorded).then_some(column)
}

fn is_inexact(number: &str) -> bool {
    let digits = number.split(['e', 'E']).next().unwrap_or_default().trim_start_matches(['-', '0', '.']);
    let significant = digits.bytes().filter(u8::is_ascii_digit).count();
    number.contains(['.', 'e', 'E']) && INEXACT_DIGITS.contains(&significant)
}

/// Splits a JSON text into what is around its numbers, and the numbers.
fn split_numbers(text: &str) -> (String, Vec<&str>) {
    let (mut frame, mut numbers, mut at) = (String::with_capacity(text.len()), Vec::new(), 0);
    while let Some(byte) = text.as_bytes().get(at) {
        let (length, is_number) = match byte {
            b'"' => (json::skip_string(text.as_bytes(), at).unwrap_or(text.len()) - at, false),
            b'-' | b'0'..=b'9' => {
                let rest = text.get(at..).unwrap_or_default();
                let more = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                (rest.bytes().take_while(more).count(), true)
            }
            _ => (text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8), false),
        };
        let part = text.get(at..at + length).unwrap_or_default();
        match is_number {
            true => {
                numbers.push(part);
                frame.push('#');
            }
            false => frame.push_str(part),
        }
        at += length.max(1);
    }
    (frame, numbers)
}

/// Value of a JSON text, in a form that is equal for equal values: without the order of members and the spelling of
/// numbers and strings, which PostgreSQL does not keep. No digit of a number is lost.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum ExactValue<'a> {
    /// Sign, digits without zeros at either end, and the power of ten of the last digit.
    Number(bool, String, i64),
    Text(Cow<'a, str>),
    List(Vec<ExactValue<'a>>),
    Object(Vec<(Cow<'a, str>, ExactValue<'a>)>),
    /// A literal, or what is no JSON.
    Other(&'a [u8]),
}

impl<'a> ExactValue<'a> {
    pub fn of(text: &'a str) -> Self {
        Self::at(text.as_bytes(), 0)
    }

    fn at(bytes: &'a [u8], depth: usize) -> Self {
        let bytes = bytes.trim_ascii();
        match bytes.first() {
            Some(b'{') if depth < MAX_DEPTH => {
                let one = |member: json::JsonMember| {
                    let name = json::string(member.key.of(bytes)).unwrap_or_default();
                    (name, Self::at(member.value.of(bytes), depth + 1))
                };
                let mut members: Vec<_> = json::members(bytes).map(one).collect();
                members.sort_unstable();
                Self::Object(members)
            }
            Some(b'[') if depth < MAX_DEPTH => {
                Self::List(json::elements(bytes).map(|element| Self::at(element.of(bytes), depth + 1)).collect())
            }
            Some(b'"') => json::string(bytes).map_or(Self::Other(bytes), Self::Text),
            Some(b'-' | b'0'..=b'9') => number(bytes).unwrap_or(Self::Other(bytes)),
            _ => Self::Other(bytes),
        }
    }
}

fn number(bytes: &[u8]) -> Option<ExactValue<'_>> {
    let text = str::from_utf8(bytes).ok()?;
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let last = exponent.parse::<i64>().ok()?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let kept = digits.trim_end_matches('0');
    let power = last.checked_add(i64::try_from(digits.len() - kept.len()).ok()?)?;
    match kept.trim_start_matches('0') {
        "" => Some(ExactValue::Number(false, String::new(), 0)),
        kept => Some(ExactValue::Number(is_negative, kept.to_owned(), power)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack F5: no digit is rounded, and nothing is spelled anew.
    #[test]
    fn arguments_are_recorded_as_they_were_received() {
        for (received, expected) in [
            (r#"{ "b":123456789012345678901234567890, "a":[1E+2,0.10] }"#, None),
            (r#"{"n":0.1000000000000000000001,"\u0061":"\/"}"#, None),
            (r#"{"n":1e-999999}"#, None),
            ("{\r\n\"n\":\n1}", Some("{  \"n\": 1}")),
            (r#"{"n":1e400}"#, Some(r#""{\"n\":1e400}""#)),
            (r#"{"n":1,"n":2}"#, Some(r#""{\"n\":1,\"n\":2}""#)),
            ("{\"n", Some(r#""{\"n""#)),
        ] {
            assert_eq!(recorded(&Bytes::from_static(received.as_bytes())), expected.unwrap_or(received));
        }
        let deep = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
        assert_eq!(recorded(&deep.clone().into()), json::quote(&deep));
    }

    #[test]
    fn only_long_fractions_have_another_form_of_the_previous_program() {
        for text in [
            r#"{"n":123456789012345678901234567890}"#,
            r#"{"n":0.1000000000000000055511151231257827}"#,
            r#"{"n":1.0}"#,
            r#"{"n": 1e2,"t":"0.30000000000000004"}"#,
            r#"{ "n":0.30000000000000004}"#,
        ] {
            assert_eq!(earlier_column(text), None, "{text}");
        }
        assert!(is_inexact("0.30000000000000004") && is_inexact("-1.2345678901234567e-8") && !is_inexact("0.1"));
        let drifting = (0..10_000).map(|n| format!("[{}]", f64::from(n) / 7.0 + 0.1)).find_map(|text| {
            let column = earlier_column(&text)?;
            Some((text, column))
        });
        if let Some((text, column)) = drifting {
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap().to_string(), column);
        }
    }

    #[test]
    fn exact_values_are_equal_for_equal_values_only() {
        for (one, other) in [
            (r#"{"a":1,"b":[1.0,"A"]}"#, r#"{"b": [10e-1, "\u0041"], "a": 1}"#),
            ("123456789012345678901234567890", "1.2345678901234567890123456789e29"),
            ("-0.0", "0"),
            ("1e400", &format!("1{}", "0".repeat(400))),
        ] {
            assert_eq!(ExactValue::of(one), ExactValue::of(other), "{one} {other}");
        }
        for (one, other) in [
            ("123456789012345678901234567890", "123456789012345678901234567891"),
            ("1", "-1"),
            ("10", "1"),
            ("[1,2]", "[2,1]"),
            (r#""1""#, "1"),
            (r#"{"a":null}"#, "{}"),
            ("true", "false"),
        ] {
            assert_ne!(ExactValue::of(one), ExactValue::of(other), "{one} {other}");
        }
    }
}
