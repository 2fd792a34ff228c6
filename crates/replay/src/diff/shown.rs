//! Differences as people read them: short.

use super::Difference;
use serde_json::Value;

/// Longest value that is shown, in characters.
const MAX_SHOWN: usize = 100;
/// How many equal characters are shown before the first difference of two texts.
const BEFORE: usize = 20;

/// Both sides of a difference in a few words each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// What was recorded; `(none)` if nothing was.
    pub recorded: String,
    /// What there is now.
    pub new: String,
}

impl Difference {
    /// Both sides, cut where they are long: two texts around their first difference, other values at their end.
    #[must_use]
    pub fn shown(&self) -> Shown {
        let [recorded, new] = match (&self.recorded, &self.new) {
            (Some(Value::String(one)), Some(Value::String(other))) => {
                let equal = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
                [one, other].map(|text| around(text, equal))
            }
            (recorded, new) => [recorded, new].map(|value| value.as_ref().map_or_else(|| "(none)".to_owned(), short)),
        };
        Shown { recorded, new }
    }
}

/// A value as JSON on one line, cut at its end where it is long.
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

/// A text in quotes; of a long one, the part at this character.
fn around(text: &str, at: usize) -> String {
    let start = if text.chars().count() > MAX_SHOWN { at.saturating_sub(BEFORE) } else { 0 };
    let cut: String = text.chars().skip(start).take(MAX_SHOWN).collect();
    let quoted = Value::String(cut).to_string();
    let (before, after) = (start > 0, text.chars().nth(start + MAX_SHOWN).is_some());
    format!("{}{quoted}{}", if before { "…" } else { "" }, if after { "…" } else { "" })
}
