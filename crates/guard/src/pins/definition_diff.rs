//! Differences between two definitions, for a reviewer.

use super::canonical_value::CanonicalValue;
use super::tool_definition::{DefinitionError, MAX_DEFINITION};
use crate::invisible::is_invisible;
use std::collections::BTreeSet;
use std::fmt;

/// Maximum number of lines of a diff. The last one says how many places are left out.
pub const MAX_DIFF_LINES: usize = 40;
/// Maximum number of characters of each value shown.
const MAX_SHOWN: usize = 200;
/// Number of equal characters shown before a difference within a long text.
const CONTEXT: usize = 24;

/// Difference between an old and a new value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiffKind {
    /// Value that only the new definition has.
    Added(String),
    /// Value that only the old definition had.
    Removed(String),
    /// Value that both definitions have, and that differs.
    Altered {
        /// Excerpt of the old value around the first difference.
        old: String,
        /// Excerpt of the new value around the first difference.
        new: String,
    },
    /// The old value is not kept, so that further differences cannot be shown.
    Unknown,
    /// Number of further differences, at the end of a long diff.
    Omitted(usize),
}

/// Difference at one place, ready to be shown: on one line, without characters that a reader would not see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiffLine {
    /// JSON pointer of the value, without the leading slash.
    pub place: String,
    pub kind: DiffKind,
}

impl fmt::Display for DiffLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            DiffKind::Added(new) => write!(f, "{}: added {new}", self.place),
            DiffKind::Removed(old) => write!(f, "{}: removed {old}", self.place),
            DiffKind::Altered { old, new } => write!(f, "{}: {old} → {new}", self.place),
            DiffKind::Unknown => write!(f, "{}: may differ; only an excerpt of the approved text is kept", self.place),
            DiffKind::Omitted(count) => write!(f, "and {count} more differences"),
        }
    }
}

/// Returns the differences between two definitions, in the order of their members.
///
/// # Errors
/// If one of them is not JSON that can be pinned.
pub fn diff(old: &[u8], new: &[u8]) -> Result<Vec<DiffLine>, DefinitionError> {
    let parse = |text: &[u8]| CanonicalValue::parse(text, MAX_DEFINITION);
    Ok(diff_values(&parse(old)?, &parse(new)?))
}

pub(super) fn diff_values(old: &CanonicalValue, new: &CanonicalValue) -> Vec<DiffLine> {
    let mut builder = DiffBuilder { lines: Vec::new(), omitted: 0 };
    builder.visit(&mut String::new(), old, new);
    if builder.omitted > 0 {
        builder.lines.push(DiffLine { place: String::new(), kind: DiffKind::Omitted(builder.omitted) });
    }
    builder.lines
}

struct DiffBuilder {
    lines: Vec<DiffLine>,
    omitted: usize,
}

impl DiffBuilder {
    /// Compares two values. Recursion is bounded by the depth of a definition.
    fn visit(&mut self, place: &mut String, old: &CanonicalValue, new: &CanonicalValue) {
        match (old, new) {
            _ if old == new => {}
            (CanonicalValue::Object(before), CanonicalValue::Object(after)) => {
                let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
                for key in keys {
                    self.enter(place, key, before.get(key), after.get(key));
                }
            }
            (CanonicalValue::Array(before), CanonicalValue::Array(after)) => self.visit_arrays(place, before, after),
            _ => self.push(place, || {
                let (before, after) = (old.compact(), new.compact());
                let start = first_difference(&before, &after);
                DiffKind::Altered { old: excerpt(&before, start), new: excerpt(&after, start) }
            }),
        }
    }

    /// Compares arrays between their common beginning and their common end, element by element.
    fn visit_arrays(&mut self, place: &mut String, old: &[CanonicalValue], new: &[CanonicalValue]) {
        let start = old.iter().zip(new).take_while(|(one, other)| one == other).count();
        let (old, new) = (old.get(start..).unwrap_or_default(), new.get(start..).unwrap_or_default());
        let end = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
        let (old_end, new_end) = (old.len() - end, new.len() - end);
        let (old, new) = (old.get(..old_end).unwrap_or_default(), new.get(..new_end).unwrap_or_default());
        for at in 0..old_end.max(new_end) {
            self.enter(place, &(start + at).to_string(), old.get(at), new.get(at));
        }
    }

    fn enter(&mut self, place: &mut String, key: &str, old: Option<&CanonicalValue>, new: Option<&CanonicalValue>) {
        let length = place.len();
        if length > 0 {
            place.push('/');
        }
        place.push_str(&key.replace('~', "~0").replace('/', "~1"));
        match (old, new) {
            (Some(old), Some(new)) => self.visit(place, old, new),
            (Some(old), None) => self.push(place, || DiffKind::Removed(excerpt(&old.compact(), 0))),
            (None, Some(new)) => self.push(place, || DiffKind::Added(excerpt(&new.compact(), 0))),
            (None, None) => {}
        }
        place.truncate(length);
    }

    fn push(&mut self, place: &str, kind: impl FnOnce() -> DiffKind) {
        if self.lines.len() < MAX_DIFF_LINES {
            self.lines.push(DiffLine { place: excerpt(place, 0), kind: kind() });
        } else {
            self.omitted += 1;
        }
    }
}

/// Returns the number of characters that two texts begin with alike.
fn first_difference(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
}

/// Returns the part of a text around the character at `start`, on one line and with visible characters only.
fn excerpt(text: &str, start: usize) -> String {
    let skipped = if start + CONTEXT < MAX_SHOWN { 0 } else { start - CONTEXT };
    let mut shown = String::new();
    if skipped > 0 {
        shown.push('…');
    }
    let mut rest = text.chars().skip(skipped);
    for char in rest.by_ref().take(MAX_SHOWN) {
        if is_invisible(char) { shown.extend(char.escape_unicode()) } else { shown.push(char) }
    }
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(old: &str, new: &str) -> Vec<String> {
        diff(old.as_bytes(), new.as_bytes()).unwrap().iter().map(DiffLine::to_string).collect()
    }

    #[test]
    fn each_place_is_named_with_both_values() {
        let old = r#"{"description":"Adds.","inputSchema":{"properties":{"a":{"type":"number"},"b/c":{}},"required":["a","x"]}}"#;
        let new = r#"{"description":"Adds.\u202e\n<!-- -->","inputSchema":{"properties":{"a":{"type":"string"}},"required":["a","b","x"]},"title":"T"}"#;
        assert_eq!(
            lines(old, new),
            [
                r#"description: "Adds." → "Adds.\u202e\n<!-- -->""#,
                r#"inputSchema/properties/a/type: "number" → "string""#,
                r#"inputSchema/properties/b~1c: removed {}"#,
                r#"inputSchema/required/1: added "b""#,
                r#"title: added "T""#,
            ]
        );
    }

    #[test]
    fn numbers_and_order_make_no_difference() {
        assert_eq!(lines(r#"{"a":1,"b":2}"#, r#"{"b":2.0,"a":10e-1}"#), Vec::<String>::new());
    }

    #[test]
    fn a_long_text_is_shown_around_its_difference() {
        let long = |end: &str| format!(r#"{{"d":"{}{end}{}"}}"#, "x".repeat(5000), "y".repeat(5000));
        let shown = lines(&long("one"), &long("two"));
        assert!(shown.iter().all(|line| line.contains("xxone") && line.contains("xxtwo")), "{shown:?}");
        assert!(shown.iter().map(|line| line.chars().count()).sum::<usize>() < 3 * MAX_SHOWN, "{shown:?}");
    }

    #[test]
    fn a_diff_is_bounded() {
        let many = |value: u32| {
            let members: Vec<String> = (0..1000).map(|key| format!("\"k{key}\":{value}")).collect();
            format!("{{{}}}", members.join(","))
        };
        let shown = lines(&many(1), &many(2));
        assert_eq!(shown.len(), MAX_DIFF_LINES + 1);
        assert_eq!(shown.last().map(String::as_str), Some("and 960 more differences"));
    }

    #[test]
    fn keys_of_the_server_cannot_forge_lines() {
        let shown = lines("{}", r#"{"a\n\u001b[31mtitle: ok\u200b":1}"#);
        assert_eq!(shown, [r"a\u{a}\u{1b}[31mtitle: ok\u{200b}: added 1"]);
    }
}
