//! Abbreviates differences for display.

use super::Difference;
use serde_json::Value;

/// Maximum length of a displayed value, in characters.
const MAX_SHOWN: usize = 100;
/// Number of equal characters to show before the first difference between two texts.
const BEFORE: usize = 20;

/// Abbreviated sides of a difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DifferenceText {
    /// Recorded value, or `(none)`.
    pub recorded: String,
    /// New value, or `(none)`.
    pub new: String,
}

impl Difference {
    /// Abbreviates both sides: texts around their first difference, other values at their end.
    #[must_use]
    pub fn shown(&self) -> DifferenceText {
        let [recorded, new] = match (&self.recorded, &self.new) {
            (Some(Value::String(one)), Some(Value::String(other))) => {
                let equal = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
                [one, other].map(|text| around(text, equal))
            }
            (recorded, new) => [recorded, new].map(|value| value.as_ref().map_or_else(|| "(none)".to_owned(), short)),
        };
        DifferenceText { recorded, new }
    }
}

/// Formats a value as JSON on one line, truncated if it is long.
#[must_use]
pub fn short(value: &Value) -> String {
    match value {
        Value::String(text) => around(text, 0),
        Value::Object(members) if members.len() > MAX_SHOWN => format!("{{… {} members}}", members.len()),
        Value::Array(items) if items.len() > MAX_SHOWN => format!("[… {} items]", items.len()),
        other => {
            let text = other.to_string();
            match text.char_indices().nth(MAX_SHOWN) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}

/// Quotes a text. A long one is reduced to the part around the character `at`.
fn around(text: &str, at: usize) -> String {
    let start = if text.chars().count() > MAX_SHOWN { at.saturating_sub(BEFORE) } else { 0 };
    let cut: String = text.chars().skip(start).take(MAX_SHOWN).collect();
    let quoted = Value::String(cut).to_string();
    let (before, after) = (start > 0, text.chars().nth(start + MAX_SHOWN).is_some());
    format!("{}{quoted}{}", if before { "…" } else { "" }, if after { "…" } else { "" })
}
