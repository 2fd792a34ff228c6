//! Computes digests that find equal parts of messages without pairwise comparison.

use super::{Comparison, IN_TEXT, json_in};
use crate::match_key::write_canonical;
use crate::paths::Paths;
use serde_json::{Map, Number, Value, json};
use sha2::{Digest as _, Sha256};

/// Maximum nesting of JSON within texts.
pub(super) const MAX_TEXTS: usize = 4;

/// Placeholder in digests for values that match a pattern.
const FITS: &str = "@pattern";

/// Digest that is equal for equal values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Digest([u8; 16]);

/// Returns the digest of a message without its id.
pub(super) fn of_message(by: &Comparison, message: &Value) -> Digest {
    let mut settling = Normalizer { by, place: Vec::new(), texts: 0 };
    let mut settled = settling.value(message);
    if let Value::Object(members) = &mut settled {
        members.shift_remove("id");
        members.shift_remove("jsonrpc");
    }
    of_normalized(&settled)
}

/// Returns the digest of the part of a message at `place`.
pub(super) fn of_part(by: &Comparison, place: &[String], texts: usize, value: &Value) -> Digest {
    of_normalized(&Normalizer { by, place: place.to_vec(), texts }.value(value))
}

/// Returns the canonical form of a number.
pub(super) fn canonical_number(number: &Number) -> Vec<u8> {
    canonical(&Value::Number(number.clone()))
}

fn canonical(value: &Value) -> Vec<u8> {
    let mut written = Vec::with_capacity(64);
    write_canonical(value, &mut written);
    written
}

fn of_normalized(value: &Value) -> Digest {
    let mut short = [0; 16];
    short.iter_mut().zip(Sha256::digest(canonical(value))).for_each(|(to, from)| *to = from);
    Digest(short)
}

/// Normalizes values so that those which count as equal become identical.
struct Normalizer<'a> {
    by: &'a Comparison,
    place: Vec<String>,
    texts: usize,
}

impl Normalizer<'_> {
    fn value(&mut self, value: &Value) -> Value {
        if let Some(pattern) = self.by.patterns.fitting(&self.place, value) {
            // Wrapped in an object, so that it cannot equal a real value.
            return json!({ FITS: pattern });
        }
        match value {
            Value::Object(members) => Value::Object(self.members(members)),
            Value::Array(items) => {
                let mut settled: Vec<Value> =
                    items.iter().enumerate().map(|(index, item)| self.below(index.to_string(), item)).collect();
                if covers(&self.by.unordered, &self.place) {
                    settled.sort_by_cached_key(canonical);
                }
                Value::Array(settled)
            }
            Value::String(text) if self.by.json_in_text && self.texts < MAX_TEXTS => match json_in(text) {
                Some(inner) => {
                    self.texts += 1;
                    let settled = self.below(IN_TEXT.to_owned(), &inner);
                    self.texts -= 1;
                    // Wrapped in an object, so that JSON in a text differs from plain JSON.
                    json!({ IN_TEXT: settled })
                }
                None => value.clone(),
            },
            _ => value.clone(),
        }
    }

    fn members(&mut self, members: &Map<String, Value>) -> Map<String, Value> {
        let mut settled = Map::new();
        for (name, value) in members.iter().filter(|(name, _)| !self.by.skips(name)) {
            self.place.push(name.clone());
            if !covers(&self.by.ignored, &self.place) {
                settled.insert(name.clone(), self.value(value));
            }
            self.place.pop();
        }
        settled
    }

    fn below(&mut self, segment: String, value: &Value) -> Value {
        self.place.push(segment);
        let settled = self.value(value);
        self.place.pop();
        settled
    }
}

/// Like [`Paths::covers`], but free of cost if there are no patterns.
pub(super) fn covers(paths: &Paths, place: &[String]) -> bool {
    !paths.is_empty() && paths.covers(place)
}
