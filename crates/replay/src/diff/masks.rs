//! Recognizes the masks that redaction leaves on a tape, so that a mask does not count as a different value.

use crate::paths::Paths;
use serde_json::Value;
use signalbox_tape::redact::MAX_KEY_ID;
use std::collections::HashSet;

/// Default replacement text of a recorder.
const REPLACED: &str = "[redacted]";
/// Placeholder for the hidden part of a masked value.
const STARS: &str = "****";
/// Prefix of a keyed hash, followed by [`HASH_DIGITS`] digits.
const HASH: &str = "hash:";
const HASH_DIGITS: usize = 16;
/// Prefix of an encrypted value: `enc:KEY-ID:BASE64`.
const ENCRYPTED: &str = "enc:";
/// Minimum length of the encrypted part, which always has a nonce and a tag.
const MIN_SEALED: usize = 28;
/// Maximum number of redaction rules read from one tape.
const MAX_RULES: usize = 1000;

/// Redaction of a tape. Masks in values are recognized by their form. Members that are removed, or replaced by custom
/// text, are recognized by the rules in the tape's head.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Masks {
    names: HashSet<String>,
    paths: Paths,
}

impl Masks {
    /// Parses the redaction rules of a tape's head, such as `key password: replace`.
    #[must_use]
    pub fn of_rules<T: AsRef<str>>(rules: &[T]) -> Self {
        let mut masks = Self::default();
        for rule in rules.iter().map(AsRef::as_ref).take(MAX_RULES) {
            let Some((what, action)) = rule.rsplit_once(": ") else { continue };
            // Other actions leave masks that are recognizable by their form.
            if !matches!(action, "remove" | "replace") {
                continue;
            }
            if let Some(name) = what.strip_prefix("key ") {
                masks.names.insert(normalize_name(name));
            } else if let Some(path) = what.strip_prefix("path ") {
                let path = path.split_once(" of ").map_or(path, |(path, _)| path);
                // A path in a syntax unknown to this version hides nothing.
                let _ = masks.paths.add(path);
            }
        }
        masks
    }

    /// Combines two sets of rules.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.names.extend(other.names.iter().cloned());
        for path in other.paths.to_string().lines() {
            let _ = all.paths.add(path);
        }
        all
    }

    /// Returns `true` if a redacted message has no original value at this place: the member was removed or its value
    /// replaced.
    #[must_use]
    pub fn hides(&self, place: &[String], value: Option<&Value>) -> bool {
        let by_name = place.last().is_some_and(|name| self.names.contains(&normalize_name(name)));
        by_name || super::digest::covers(&self.paths, place) || value.is_some_and(is_mask)
    }

    /// Removes members hidden by name or path, and replaces all masks by the same text. Makes the requests of one call
    /// comparable.
    pub fn settle(&self, message: &mut Value) {
        self.paths.remove_from(message);
        self.settle_below(message);
    }

    fn settle_below(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                if !self.names.is_empty() {
                    members.retain(|name, _| !self.names.contains(&normalize_name(name)));
                }
                members.values_mut().for_each(|value| self.settle_below(value));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.settle_below(item)),
            Value::String(text) => {
                if let Some(pieces) = pieces(text) {
                    *text = pieces.join(REPLACED);
                }
            }
            _ => {}
        }
    }
}

/// Normalizes a name as redaction does: ignores case, hyphens and underscores.
fn normalize_name(name: &str) -> String {
    name.chars().filter(|one| !matches!(one, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// Returns `true` if a value consists of masks only.
fn is_mask(value: &Value) -> bool {
    value.as_str().and_then(pieces).is_some_and(|pieces| pieces.iter().all(|piece| piece.is_empty()))
}

/// Returns `true` if a text contains a mask.
pub(super) fn has_mask(text: &str) -> bool {
    next_mask(text).is_some()
}

/// Returns `true` if a masked text matches another: the text around its masks occurs there in the same order.
pub(super) fn fits(masked: &str, other: &str) -> bool {
    let Some(wanted) = pieces(masked) else { return false };
    if pieces(other).is_some_and(|others| others == wanted) {
        return true;
    }
    let [first, middle @ .., last] = wanted.as_slice() else { return false };
    let Some(rest) = other.strip_prefix(first) else { return false };
    let Some(mut rest) = rest.strip_suffix(last) else { return false };
    for piece in middle {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

/// Splits a text at its masks. Returns `None` if it has none.
fn pieces(text: &str) -> Option<Vec<&str>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((start, end)) = next_mask(rest) {
        let (before, after) = (rest.get(..start)?, rest.get(end..)?);
        pieces.push(before);
        rest = after;
    }
    pieces.push(rest);
    (pieces.len() > 1).then_some(pieces)
}

/// Returns the start and end of the first mask in a text.
fn next_mask(text: &str) -> Option<(usize, usize)> {
    let begins = |byte: u8| matches!(byte, b'[' | b'*' | b'h' | b'e');
    let places = text.bytes().enumerate().filter(|(_, byte)| begins(*byte));
    places.map(|(at, _)| at).find_map(|at| Some((at, at + mask_at(text.get(at..)?)?)))
}

/// Returns the length of the mask at the start of a text.
fn mask_at(text: &str) -> Option<usize> {
    if let Some(mask) = [REPLACED, STARS].into_iter().find(|mask| text.starts_with(mask)) {
        return Some(mask.len());
    }
    if let Some(digits) = text.strip_prefix(HASH) {
        let digits = digits.get(..HASH_DIGITS)?;
        return digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(HASH.len() + HASH_DIGITS);
    }
    let rest = text.strip_prefix(ENCRYPTED)?;
    let is_of_id = |one: &u8| one.is_ascii_alphanumeric() || b"-_.".contains(one);
    let id = rest.bytes().take(MAX_KEY_ID + 1).take_while(is_of_id).count();
    let sealed = rest.get(id..)?.strip_prefix(':')?;
    let length = sealed.bytes().take_while(|one| one.is_ascii_alphanumeric() || b"+/=".contains(one)).count();
    (id > 0 && length >= MIN_SEALED).then_some(ENCRYPTED.len() + id + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn masks_are_known_by_their_form() {
        let sealed = format!("enc:main:{}", "A".repeat(40));
        for mask in ["[redacted]", "****", "hash:0123456789abcdef", &sealed] {
            assert!(is_mask(&json!(mask)), "{mask}");
            assert!(fits(&format!("Bearer {mask}, thanks"), "Bearer s3cret, thanks"));
            assert!(!fits(&format!("Bearer {mask}, thanks"), "Bearer s3cret"));
        }
        for text in ["hash:xyz", "enc:nothing", "redacted", "***", "a hash: b"] {
            assert!(!has_mask(text), "{text}");
        }
        assert!(fits("****1234", "41111234") && !fits("****1234", "41115678"));
        assert!(fits("a hash:0000000000000000 b", "a hash:ffffffffffffffff b"));
    }

    #[test]
    fn texts_full_of_masks_take_linear_time() {
        let many = format!("{}{}", "[redacted] ".repeat(200_000), "enc:".repeat(200_000));
        assert_eq!(pieces(&many).unwrap().len(), 200_001);
        assert!(fits(&many, &many.replace("[redacted]", "x")));
    }

    #[test]
    fn rules_of_a_head_tell_what_was_removed() {
        let masks =
            Masks::of_rules(&["key api_key: remove", "path /params/x/*/y of tools/call: replace", "key a: hash"]);
        let place = |text: &str| text.split('/').skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert!(masks.hides(&place("/a/Api-Key"), None));
        assert!(masks.hides(&place("/params/x/0/y"), Some(&json!(7))));
        assert!(!masks.hides(&place("/a"), None), "a hash is seen");
    }

    #[test]
    fn settled_requests_are_equal_where_only_masks_differ() {
        let masks = Masks::of_rules(&["key token: remove"]);
        let mut one = json!({"token": "x", "text": "by hash:0000000000000000"});
        let mut other = json!({"text": "by [redacted]"});
        masks.settle(&mut one);
        masks.settle(&mut other);
        assert_eq!(one, other);
    }
}
