//! Secrets by their shape: patterns of the configuration, and the kinds of credentials that the scanner knows.

use super::action::{Action, Hashing};
use super::changes::Changes;
use super::settings::{BadRedaction, PatternRule, RedactionSettings};
use super::written::Written;
use memchr::{memchr, memmem};
use regex::bytes::{Regex, RegexBuilder};
use signalbox_scan::Scanner;
use signalbox_wire::{Span, json};

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
    /// Finds credentials, and what is done with them.
    scanner: Option<(&'static Scanner, Action)>,
}

/// What a string is in its message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Role<'a> {
    /// The name of a member.
    Name,
    /// The value of the member whose name is this token.
    Member(&'a [u8]),
    /// An element of an array.
    Element,
}

/// A part of a text, and what takes its place.
pub(crate) type Hit = (usize, usize, String);

impl Patterns {
    pub(crate) fn new(settings: &RedactionSettings) -> Result<Self, BadRedaction> {
        let rules = &settings.patterns;
        let mut each = Vec::with_capacity(rules.len());
        for rule in rules {
            each.push((compile(&rule.pattern, &rule.pattern, MAX_COMPILED)?, rule.action.clone()));
        }
        // Each name of a group may appear in one pattern only once, and here nobody asks for them.
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

    /// Whether a string without escapes may hold one, told from the whole message at once.
    pub(crate) fn possible(&self, message: &[u8]) -> bool {
        let own = self.any.as_ref().is_some_and(|any| self.anchored || any.is_match(message));
        own || self.scanner.as_ref().is_some_and(|(scanner, _)| scanner.may_hold(message))
    }

    /// Whether escapes of a message may hide one: any of them from a pattern of the configuration, and from the scanner those
    /// that stand for letters and digits.
    pub(crate) fn may_be_hidden(&self, message: &[u8]) -> bool {
        self.any.is_some() && memchr(b'\\', message).is_some()
            || self.scanner.is_some() && memmem::find(message, b"\\u00").is_some()
    }

    /// What is done with credentials, if they are looked for.
    pub(crate) fn credentials(&self) -> Option<&Action> {
        self.scanner.as_ref().map(|(_, action)| action)
    }

    /// Finds them in a string token that begins at `start` of the message.
    pub(crate) fn string(&self, token: &[u8], start: usize, role: Role<'_>, hashing: &Hashing, changes: &mut Changes) {
        let [b'"', inside @ .., b'"'] = token else { return };
        let Some(decoded) = json::string(token) else { return };
        let found = self.found(decoded.as_bytes(), role, hashing, changes);
        if found.is_empty() {
            return;
        }
        let written = Written::new(inside, start + 1);
        for (from, to, text) in found {
            changes.replace(written.span(from, to), inner(&text));
        }
    }

    /// Finds them in bytes that are not JSON.
    pub(crate) fn raw(&self, bytes: &[u8], hashing: &Hashing, changes: &mut Changes) {
        for (from, to, text) in self.found(bytes, Role::Element, hashing, changes) {
            changes.replace(Span::new(from, to), text);
        }
    }

    /// What to replace in `text` and with what, in order and without overlaps: where two overlap, what the first
    /// of them puts there stands for both. In a name they are always hashed, since two members must not come to have the
    /// same name.
    fn found(&self, text: &[u8], role: Role<'_>, hashing: &Hashing, changes: &mut Changes) -> Vec<Hit> {
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

    /// What the patterns of the configuration find.
    pub(crate) fn own(&self, text: &[u8], role: Role<'_>, hashing: &Hashing) -> Vec<Hit> {
        let mut found: Vec<Hit> = Vec::new();
        if !self.any.as_ref().is_some_and(|any| any.is_match(text)) {
            return found;
        }
        for (regex, action) in &self.each {
            for captures in regex.captures_iter(text) {
                // A group named `secret` is the part that must go; without one it is the whole.
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

/// Where the scanner finds credentials, and whether there may be more. The value of a member is read together with its name
/// where that tells of a kind of credential: `"datadog_api_key": "…"`.
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

/// A text as it is written between the quotes of a JSON string.
pub(crate) fn inner(text: &str) -> String {
    let quoted = json::quote(text);
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}
