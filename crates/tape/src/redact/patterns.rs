//! Secrets by their shape.

use super::action::{Action, Hashing};
use super::settings::{BadRedaction, PatternRule};
use regex::bytes::{Regex, RegexBuilder};
use signalbox_wire::{Edits, Span, json};

/// Largest compiled form of a pattern.
const MAX_COMPILED: usize = 1 << 20;
/// Largest compiled form of all patterns together.
const MAX_COMPILED_TOGETHER: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct Patterns {
    /// All of them together, to find out in one pass whether any is there.
    any: Option<Regex>,
    each: Vec<(Regex, Action)>,
    /// A pattern that asks where its text begins or ends: only each string by itself can tell.
    anchored: bool,
}

impl Patterns {
    pub(crate) fn new(rules: &[PatternRule]) -> Result<Self, BadRedaction> {
        let mut each = Vec::with_capacity(rules.len());
        for rule in rules {
            each.push((compile(&rule.pattern, &rule.pattern, MAX_COMPILED)?, rule.action.clone()));
        }
        // Each name of a group may stand in one pattern only once, and here nobody asks for them.
        let names = compile(r"\(\?P?<[A-Za-z_][^>]*>", "group names", MAX_COMPILED)?;
        let plain = |rule: &PatternRule| {
            let plain = names.replace_all(rule.pattern.as_bytes(), &b"("[..]);
            format!("(?:{})", String::from_utf8_lossy(&plain))
        };
        let all: Vec<String> = rules.iter().map(plain).collect();
        let any = match all.is_empty() {
            true => None,
            false => Some(compile(&all.join("|"), "all patterns together", MAX_COMPILED_TOGETHER)?),
        };
        let anchored = rules.iter().any(|rule| asks_for_ends(&rule.pattern));
        Ok(Self { any, each, anchored })
    }

    /// Whether a string without escapes may hold one, told from the whole message at once.
    pub(crate) fn possible(&self, message: &[u8]) -> bool {
        self.any.as_ref().is_some_and(|any| self.anchored || any.is_match(message))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.any.is_none()
    }

    /// Finds them in a string token that begins at `start` of the message. In a key they are always hashed, since two
    /// members must not come to have the same name.
    pub(crate) fn string(&self, token: &[u8], start: usize, is_key: bool, hashing: &Hashing, edits: &mut Edits) {
        let [b'"', inside @ .., b'"'] = token else { return };
        if !inside.contains(&b'\\') {
            for (from, to, text) in self.found(inside, is_key, hashing) {
                edits.replace(Span::new(start + 1 + from, start + 1 + to), inner(&text));
            }
            return;
        }
        let Some(decoded) = json::string(token) else { return };
        let found = self.found(decoded.as_bytes(), is_key, hashing);
        if found.is_empty() {
            return;
        }
        let places = places(inside);
        for (from, to, text) in found {
            let place = |at: usize| places.get(at).copied().unwrap_or(inside.len()) + start + 1;
            edits.replace(Span::new(place(from), place(to)), inner(&text));
        }
    }

    /// Finds them in bytes that are no JSON.
    pub(crate) fn raw(&self, bytes: &[u8], hashing: &Hashing, edits: &mut Edits) {
        for (from, to, text) in self.found(bytes, false, hashing) {
            edits.replace(Span::new(from, to), text);
        }
    }

    /// What to replace in `text` and with what, in order and without overlaps: where two overlap, what the first
    /// of them puts there stands for both.
    fn found(&self, text: &[u8], is_key: bool, hashing: &Hashing) -> Vec<(usize, usize, String)> {
        let mut found: Vec<(usize, usize, String)> = Vec::new();
        if !self.any.as_ref().is_some_and(|any| any.is_match(text)) {
            return found;
        }
        for (regex, action) in &self.each {
            for captures in regex.captures_iter(text) {
                // A group named `secret` is the part that must go; without one it is the whole.
                let Some(hit) = captures.name("secret").or_else(|| captures.get(0)) else { continue };
                let action = if is_key { &Action::Hash } else { action };
                if !hit.is_empty() {
                    found.push((hit.start(), hit.end(), action.text(hit.as_bytes(), hashing)));
                }
            }
        }
        found.sort_by_key(|(from, to, _)| (*from, std::cmp::Reverse(*to)));
        found.dedup_by(|next, kept| {
            let overlap = next.0 < kept.1;
            if overlap {
                kept.1 = kept.1.max(next.1);
            }
            overlap
        });
        found
    }
}

fn compile(pattern: &str, shown: &str, most: usize) -> Result<Regex, BadRedaction> {
    let built = RegexBuilder::new(pattern).size_limit(most).build();
    built.map_err(|error| BadRedaction::Pattern { pattern: shown.to_owned(), why: error.to_string() })
}

fn asks_for_ends(pattern: &str) -> bool {
    ["^", "$", "\\A", "\\z", "\\B"].iter().any(|sign| pattern.contains(sign))
}

/// A text as it stands between the quotes of a JSON string.
fn inner(text: &str) -> String {
    let quoted = json::quote(text);
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// For every byte of what the inside of a string means, where it is written; escapes count as a whole.
fn places(inside: &[u8]) -> Vec<usize> {
    let mut places = Vec::with_capacity(inside.len() + 1);
    let mut at = 0;
    while let Some(byte) = inside.get(at) {
        let written = match (byte, inside.get(at + 1)) {
            (b'\\', Some(b'u')) if is_high(inside.get(at + 2..at + 6)) => 12,
            (b'\\', Some(b'u')) => 6,
            (b'\\', _) => 2,
            _ => 1,
        };
        let mut token = vec![b'"'];
        token.extend_from_slice(inside.get(at..at + written).unwrap_or_default());
        token.push(b'"');
        let meant = if written == 1 { 1 } else { json::string(&token).map_or(1, |text| text.len()) };
        places.extend(std::iter::repeat_n(at, meant));
        at += written;
    }
    places.push(inside.len());
    places
}

fn is_high(digits: Option<&[u8]>) -> bool {
    matches!(digits, Some([b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..]))
}
