//! Finds the parts of a text that stand in many others.

use aho_corasick::AhoCorasick;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Phrases, one per line. Lines that begin with two semicolons are comments.
const PHRASES: &str = include_str!("../../rules/common_phrases.txt");
/// Maximum length of a name of a member.
const MAX_NAME: usize = 40;
/// Maximum number of digits in a name of a member. One with more may be a value.
const MAX_DIGITS: usize = 3;

static SEARCH: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let phrases = PHRASES.lines().filter(|line| !line.is_empty() && !line.starts_with(";;"));
    AhoCorasick::builder().ascii_case_insensitive(true).build(phrases).ok()
});

/// Days, with or without a time.
static DATES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:19|20)[0-9]{2}-[01][0-9]-[0-3][0-9](?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)?").ok()
});

/// Returns the places of common phrases, of dates, and of names of JSON members, in order of their starts.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut places: Vec<Range<usize>> = member_names(text).collect();
    if let Some(search) = SEARCH.as_ref() {
        places.extend(search.find_overlapping_iter(text).map(|found| found.range()));
    }
    if let Some(dates) = DATES.as_ref() {
        places.extend(dates.find_iter(text).map(|found| found.range()));
    }
    places.sort_unstable_by_key(|place| place.start);
    places
}

/// Returns the places of names of members in JSON and similar notations, with their quotes and colons, and with values
/// that are no text.
fn member_names(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'"', b'\'', bytes).filter_map(move |start| {
        let quote = bytes.get(start)?;
        let rest = bytes.get(start + 1..)?;
        let length = rest.iter().take(MAX_NAME + 1).position(|byte| byte == quote)?;
        let name = rest.get(..length)?;
        // Within a string of JSON, quotes have a backslash before them.
        let name = name.strip_suffix(b"\\").unwrap_or(name);
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'$');
        let digits = name.iter().filter(|byte| byte.is_ascii_digit()).count();
        if name.is_empty() || digits > MAX_DIGITS || !name.iter().all(is_part) {
            return None;
        }
        let after = rest.get(length + 1..)?;
        let spaces = after.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let value = after.get(spaces..)?.strip_prefix(b":")?;
        Some(start..start + length + spaces + 3 + literal(value))
    })
}

/// Returns the length of the `null`, `true` or `false` at the start of a value, with the space before it.
fn literal(value: &[u8]) -> usize {
    let spaces = value.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let rest = value.get(spaces..).unwrap_or_default();
    let literals: [&[u8]; 3] = [b"null", b"true", b"false"];
    literals.iter().find(|literal| rest.starts_with(literal)).map_or(0, |literal| spaces + literal.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        find(text).into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn names_of_members_are_common_and_values_are_not() {
        let text = r#"{"created_at": "now","a":{'b' :1},"4111111111111111":"x","anna@example.org":2,"é":3}"#;
        assert_eq!(found(text), ["\"created_at\":", "\"a\":", "'b' :"]);
        assert_eq!(found(r#"{"a":null,"b": true}"#), ["\"a\":null", "\"b\": true"]);
        assert_eq!(found("at 2026-11-19T20:15:00.5Z"), ["2026-11-19T20:15:00.5"]);
        assert_eq!(found(r#"{\"name\":\"Anna\"}"#), [r#""name\":"#]);
    }

    #[test]
    fn every_phrase_is_found() {
        let phrases: Vec<&str> = PHRASES.lines().filter(|line| !line.is_empty() && !line.starts_with(";;")).collect();
        assert!(phrases.len() > 40);
        for phrase in phrases {
            assert!(found(&phrase.to_uppercase()).iter().any(|place| place.len() == phrase.len()), "{phrase}");
            assert_eq!(phrase, phrase.trim(), "white space around a phrase");
        }
    }
}
