//! Recognizes secrets by their shape: patterns of the configuration, and the kinds of credentials that the scanner
//! knows.

use super::action::{Action, Hashing};
use super::changes::Changes;
use super::escape_map::EscapeMap;
use super::settings::{BadRedaction, PatternRule, RedactionSettings};
use memchr::{memchr, memmem};
use regex::bytes::{Regex, RegexBuilder};
use signalbox_secret_scan::Scanner;
use signalbox_wire::json;

/// Maximum compiled size of a pattern.
const MAX_COMPILED: usize = 1 << 20;
/// Maximum compiled size of all patterns together.
const MAX_COMPILED_TOGETHER: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct Patterns {
    /// All patterns combined, to find in one pass whether any matches.
    any: Option<Regex>,
    each: Vec<(Regex, Action)>,
    /// True if a pattern has an anchor. Such patterns can only be matched against each string separately.
    anchored: bool,
    /// Scanner for credentials, with the action for its findings.
    scanner: Option<(&'static Scanner, Action)>,
}

/// Role of a string in its message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Role<'a> {
    /// Name of a member.
    Name,
    /// Value of the member with this name token.
    Member(&'a [u8]),
    /// Element of an array.
    Element,
}

/// Span of a text, with its replacement.
pub(crate) type Hit = (usize, usize, String);

impl Patterns {
    pub(crate) fn new(settings: &RedactionSettings) -> Result<Self, BadRedaction> {
        let rules = &settings.patterns;
        let mut each = Vec::with_capacity(rules.len());
        for rule in rules {
            each.push((compile(&rule.pattern, &rule.pattern, MAX_COMPILED)?, rule.action.clone()));
        }
        // A name may appear only once in the combined pattern, which does not use groups anyway.
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
        let scanner = settings.credentials.clone().map(|action| (Scanner::built_in(), action));
        Ok(Self { any, each, anchored, scanner })
    }

    /// Returns true if a string without escapes may match, judged by the whole message at once.
    pub(crate) fn possible(&self, message: &[u8]) -> bool {
        let own = self.any.as_ref().is_some_and(|any| self.anchored || any.is_match(message));
        own || self.scanner.as_ref().is_some_and(|(scanner, _)| scanner.may_hold(message))
    }

    /// Returns true if escapes of a message may hide a match: any escape may hide one from the configured patterns, and
    /// an escaped letter or digit may hide one from the scanner.
    pub(crate) fn may_be_hidden(&self, message: &[u8]) -> bool {
        self.any.is_some() && memchr(b'\\', message).is_some()
            || self.scanner.is_some() && memmem::find(message, b"\\u00").is_some()
    }

    /// Returns the action for credentials, if they are redacted.
    pub(crate) fn credentials(&self) -> Option<&Action> {
        self.scanner.as_ref().map(|(_, action)| action)
    }

    /// Redacts matches in a string token that begins at `start` of the message.
    pub(crate) fn string(&self, token: &[u8], start: usize, role: Role<'_>, hashing: &Hashing, changes: &mut Changes) {
        let [b'"', inside @ .., b'"'] = token else { return };
        let Some(decoded) = json::string(token) else { return };
        let found = self.found(decoded.as_bytes(), role, hashing, changes);
        if found.is_empty() {
            return;
        }
        let written = EscapeMap::new(inside, start + 1);
        for (from, to, text) in found {
            changes.replace(written.span(from, to), inner(&text));
        }
    }

    /// Redacts matches in bytes that are not JSON.
    pub(crate) fn raw(&self, bytes: &[u8], hashing: &Hashing, changes: &mut Changes) {
        let found = self.found(bytes, Role::Element, hashing, changes);
        changes.beside(found);
    }

    /// Returns the matches in `text` with their replacements, in order and without overlaps: the replacement of the
    /// first of two overlapping matches stands for both. Matches in names are always hashed, since two members must not
    /// end up with the same name.
    pub(crate) fn found(&self, text: &[u8], role: Role<'_>, hashing: &Hashing, changes: &mut Changes) -> Vec<Hit> {
        let mut found = self.own(text, role, hashing);
        if let Some((scanner, action)) = &self.scanner {
            let action = if role == Role::Name { &Action::Hash } else { action };
            let findings = credentials(scanner, text, role);
            changes.incomplete |= findings.1;
            for (from, to) in findings.0 {
                found.push((from, to, action.text(text.get(from..to).unwrap_or_default(), hashing)));
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

    /// Returns the matches of the configured patterns.
    pub(crate) fn own(&self, text: &[u8], role: Role<'_>, hashing: &Hashing) -> Vec<Hit> {
        let mut found: Vec<Hit> = Vec::new();
        if !self.any.as_ref().is_some_and(|any| any.is_match(text)) {
            return found;
        }
        for (regex, action) in &self.each {
            for captures in regex.captures_iter(text) {
                // A group named `secret` marks the part to replace; otherwise the whole match is replaced.
                let Some(hit) = captures.name("secret").or_else(|| captures.get(0)) else { continue };
                let action = if role == Role::Name { &Action::Hash } else { action };
                if !hit.is_empty() {
                    found.push((hit.start(), hit.end(), action.text(hit.as_bytes(), hashing)));
                }
            }
        }
        found
    }
}

/// Returns the spans of credentials that the scanner finds, and whether there may be more. The value of a member is
/// scanned together with its name if the name may indicate a kind of credential: `"datadog_api_key": "…"`.
fn credentials(scanner: &Scanner, text: &[u8], role: Role<'_>) -> (Vec<(usize, usize)>, bool) {
    let name = match role {
        Role::Member(token) => json::string(token).map(|name| format!("\"{name}\":\"").into_bytes()),
        Role::Name | Role::Element => None,
    };
    let Some(name) = name.filter(|name| scanner.may_hold(name)) else {
        let findings = scanner.find(text);
        return (findings.found.iter().map(|found| (found.start, found.end)).collect(), findings.more);
    };
    let (before, end) = (name.len(), name.len() + text.len());
    let findings = scanner.find(&[&name, text, b"\""].concat());
    let in_value = findings.found.iter().filter(|found| found.end > before);
    let shifted = in_value.map(|found| (found.start.max(before) - before, found.end.min(end) - before));
    (shifted.collect(), findings.more)
}

fn compile(pattern: &str, shown: &str, most: usize) -> Result<Regex, BadRedaction> {
    let built = RegexBuilder::new(pattern).size_limit(most).build();
    built.map_err(|error| BadRedaction::Pattern { pattern: shown.to_owned(), why: error.to_string() })
}

fn asks_for_ends(pattern: &str) -> bool {
    ["^", "$", "\\A", "\\z", "\\B"].iter().any(|sign| pattern.contains(sign))
}

/// Escapes a text for a JSON string, without the quotes.
pub(crate) fn inner(text: &str) -> String {
    let quoted = json::quote(text);
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}
