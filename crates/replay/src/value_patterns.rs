//! Patterns for values of which a part differs from run to run: `Created <word>.`
//!
//! A pattern applies at a path. Two values there count as equal if both match it, so they may differ only in its
//! placeholders. A line of an ignore file holds the path, ` ~ ` and the pattern:
//!
//! ```text
//! /result/content/*/text ~ "Created <word> at <time>."
//! /result/structuredContent/elapsed ~ <number>
//! ```
//!
//! `<word>` matches letters, digits, `-` and `_`; `<number>` a number; `<time>` a date with a time of day; and `<lt>` a
//! literal `<`. Without quotes, `<number>` matches a JSON number.

use crate::paths::{PathError, Paths};
use serde_json::Value;
use std::fmt;

/// Maximum number of patterns in a set.
const MAX_PATTERNS: usize = 10_000;
const BETWEEN: &str = " ~ ";
const WORD: &str = "<word>";
const NUMBER: &str = "<number>";
const TIME: &str = "<time>";
const LESS_THAN: &str = "<lt>";

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ValuePatterns(Vec<ValuePattern>);

/// Pattern for the values at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValuePattern {
    path: Paths,
    shape: Shape,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Shape {
    Number,
    Text(Vec<Part>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Literal(String),
    Word,
    Number,
    Time,
}

/// Error in the text of a pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ValuePatternError {
    /// The path is invalid.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The pattern is invalid.
    #[error("after `~` there must be `<number>`, or a text in quotes with `<word>`, `<number>` or `<time>` in it")]
    Shape,
    /// The set has too many patterns.
    #[error("{MAX_PATTERNS} patterns may be given at most")]
    TooMany,
}

impl ValuePatterns {
    /// Adds a pattern, unless the set already has it.
    ///
    /// # Errors
    /// If the set is full.
    pub fn add(&mut self, pattern: ValuePattern) -> Result<(), ValuePatternError> {
        if self.0.len() >= MAX_PATTERNS {
            return Err(ValuePatternError::TooMany);
        }
        if !self.0.contains(&pattern) {
            self.0.push(pattern);
        }
        Ok(())
    }

    /// Returns the index of the first pattern that matches a value at a place. Values with the same index are equal.
    #[must_use]
    pub fn fitting(&self, place: &[String], value: &Value) -> Option<usize> {
        self.0.iter().position(|pattern| pattern.path.names(place) && pattern.shape.fits(value))
    }
}

impl ValuePattern {
    /// Parses a line of an ignore file. Returns `None` if it has no ` ~ ` and is a plain path.
    ///
    /// # Errors
    /// If the path or the pattern is invalid.
    pub fn read(line: &str) -> Option<Result<Self, ValuePatternError>> {
        let (path, shape) = line.split_once(BETWEEN)?;
        let read = || Ok(Self { path: Paths::parse([path.trim()])?, shape: Shape::read(shape.trim())? });
        Some(read())
    }

    /// Derives the pattern that matches two values of a place. Only timestamps, numbers, and words with a digit, hyphen
    /// or underscore become placeholders. Returns `None` if anything else differs.
    #[must_use]
    pub fn of(path: &str, one: &Value, other: &Value) -> Option<Self> {
        let shape = match (one, other) {
            (Value::Number(_), Value::Number(_)) => Shape::Number,
            (Value::String(one), Value::String(other)) => Shape::Text(common(one, other)?),
            _ => return None,
        };
        Some(Self { path: Paths::parse([path]).ok()?, shape })
    }
}

impl fmt::Display for ValuePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.to_string();
        write!(f, "{}{BETWEEN}", path.trim_end())?;
        match &self.shape {
            Shape::Number => f.write_str(NUMBER),
            Shape::Text(parts) => {
                let text: String = parts.iter().map(Part::to_string).collect();
                write!(f, "{}", Value::String(text))
            }
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(text) => f.write_str(&text.replace('<', LESS_THAN)),
            Self::Word => f.write_str(WORD),
            Self::Number => f.write_str(NUMBER),
            Self::Time => f.write_str(TIME),
        }
    }
}

impl Shape {
    fn read(text: &str) -> Result<Self, ValuePatternError> {
        if text == NUMBER {
            return Ok(Self::Number);
        }
        let text: String = serde_json::from_str(text).map_err(|_| ValuePatternError::Shape)?;
        let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), &*text);
        while let Some(at) = rest.find('<') {
            let (before, hole) = rest.split_at(at);
            literal.push_str(before);
            let known =
                [(WORD, Some(Part::Word)), (NUMBER, Some(Part::Number)), (TIME, Some(Part::Time)), (LESS_THAN, None)];
            let found = known.into_iter().find_map(|(word, part)| Some((hole.strip_prefix(word)?, part)));
            let (after, part) = found.ok_or(ValuePatternError::Shape)?;
            match part {
                Some(part) => {
                    parts.extend((!literal.is_empty()).then(|| Part::Literal(std::mem::take(&mut literal))));
                    parts.push(part);
                }
                None => literal.push('<'),
            }
            rest = after;
        }
        literal.push_str(rest);
        parts.extend((!literal.is_empty()).then_some(Part::Literal(literal)));
        Ok(Self::Text(parts))
    }

    fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Number, Value::Number(_)) => true,
            (Self::Text(parts), Value::String(text)) => {
                let mut rest = &**text;
                let all = parts.iter().all(|part| match part.length(rest).and_then(|length| rest.get(length..)) {
                    Some(after) => {
                        rest = after;
                        true
                    }
                    None => false,
                });
                all && rest.is_empty()
            }
            _ => false,
        }
    }
}

impl Part {
    /// Returns the length of the prefix that matches, or `None`.
    fn length(&self, text: &str) -> Option<usize> {
        let length = match self {
            Self::Literal(literal) => return text.starts_with(&**literal).then_some(literal.len()),
            Self::Time => return moment_length(text),
            Self::Word => text.find(|c| !is_of_word(c)).unwrap_or(text.len()),
            Self::Number => number_length(text),
        };
        (length > 0).then_some(length)
    }
}

/// Returns the shared parts of two texts, with placeholders where variable words differ.
fn common(one: &str, other: &str) -> Option<Vec<Part>> {
    let (one, other): (Vec<&str>, Vec<&str>) = (tokens(one).collect(), tokens(other).collect());
    if one.len() != other.len() {
        return None;
    }
    let mut parts: Vec<Part> = Vec::new();
    for (one, other) in one.into_iter().zip(other) {
        if one != other {
            parts.push(hole(one, other)?);
            continue;
        }
        match parts.last_mut() {
            Some(Part::Literal(literal)) => literal.push_str(one),
            _ => parts.push(Part::Literal(one.to_owned())),
        }
    }
    Some(parts)
}

fn hole(one: &str, other: &str) -> Option<Part> {
    let both = |test: &dyn Fn(&str) -> bool| test(one) && test(other);
    if both(&|word| moment_length(word) == Some(word.len())) {
        return Some(Part::Time);
    }
    if both(&|word| number_length(word) == word.len()) {
        return Some(Part::Number);
    }
    let is_made_up = |word: &str| {
        word.starts_with(is_of_word) && (word.bytes().any(|byte| byte.is_ascii_digit()) || word.contains(['-', '_']))
    };
    both(&is_made_up).then_some(Part::Word)
}

/// Splits a text into timestamps, words, and the separators between them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let length = match (moment_length(rest), is_of_word(first)) {
            (Some(length), _) => length,
            (None, true) => match number_length(rest) {
                // `12.5` is one number, `v1.2` two words.
                length if rest.get(length..).is_some_and(|after| !after.starts_with(is_of_word)) && length > 0 => {
                    length
                }
                _ => rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()),
            },
            (None, false) => rest.find(is_of_word).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(token)
    })
}

/// Returns `true` for the characters of names and ids.
pub(crate) fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

fn number_length(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let fraction = text.get(whole..).and_then(|rest| rest.strip_prefix('.')).map_or(0, digits);
    if whole > 0 && fraction > 0 { whole + 1 + fraction } else { whole }
}

/// Returns the length of the timestamp at the start of a text, in RFC 3339 or a similar format.
pub(crate) fn moment_length(text: &str) -> Option<usize> {
    let head = text.as_bytes().get(..16)?;
    let fits = |(byte, wanted): (&u8, &u8)| match wanted {
        b'd' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b't' | b' '),
        _ => byte == wanted,
    };
    if !head.iter().zip(b"dddd-dd-ddTdd:dd").all(fits) {
        return None;
    }
    let is_more = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'+' | b'-' | b'Z' | b'z');
    let all = 16 + text.bytes().skip(16).take_while(is_more).count();
    // Trailing punctuation belongs to the sentence.
    Some(text.get(..all)?.trim_end_matches(['.', '-', ':', '+']).len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(one: &str, other: &str) -> Option<String> {
        let pattern = ValuePattern::of("/a/*", &json!(one), &json!(other))?;
        assert!(pattern.shape.fits(&json!(one)) && pattern.shape.fits(&json!(other)), "{pattern}");
        let line = pattern.to_string();
        assert_eq!(ValuePattern::read(&line), Some(Ok(pattern)), "{line}");
        line.strip_prefix("/a/* ~ ").map(ToOwned::to_owned)
    }

    #[test]
    fn only_what_changes_by_itself_is_left_open() {
        assert_eq!(of("Created note-1a.", "Created note-2b.").unwrap(), r#""Created <word>.""#);
        assert_eq!(of("took 12.5 ms", "took 7 ms").unwrap(), r#""took <number> ms""#);
        let moments = ("at 2026-11-15T12:00:00Z.", "at 2026-11-15T12:00:01.5+01:00.");
        assert_eq!(of(moments.0, moments.1).unwrap(), r#""at <time>.""#);
        assert_eq!(of("a < b-1", "a < b-2").unwrap(), r#""a <lt> <word>""#);
        assert_eq!(of("milk", "bread"), None, "another word is another answer");
        assert_eq!(of("Created note-1.", "Created note-1, twice."), None);
        assert_eq!(of("There is no such note-1.", "There is a note-2."), None);
    }

    #[test]
    fn what_else_changes_does_not_fit() {
        let pattern = ValuePattern::read(r#"/text ~ "Created <word>.""#).unwrap().unwrap();
        let mut patterns = ValuePatterns::default();
        patterns.add(pattern).unwrap();
        let place = ["text".to_owned()];
        assert_eq!(patterns.fitting(&place, &json!("Created x-9.")), Some(0));
        assert_eq!(patterns.fitting(&place, &json!("Deleted x-9.")), None);
        assert_eq!(patterns.fitting(&place, &json!("Created x-9. Or not.")), None);
        assert_eq!(patterns.fitting(&["text".to_owned(), "@json".to_owned()], &json!("Created x-9.")), None);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert_eq!(ValuePattern::read("/a/b"), None);
        assert_eq!(ValuePattern::read("/a ~ milk"), Some(Err(ValuePatternError::Shape)));
        assert_eq!(ValuePattern::read(r#"/a ~ "<wrd>""#), Some(Err(ValuePatternError::Shape)));
        assert!(matches!(ValuePattern::read("a ~ <number>"), Some(Err(ValuePatternError::Path(_)))));
    }
}
