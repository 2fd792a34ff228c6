//! One pass over a message that finds the values which the rules name.

use super::action::Action;
use super::changes::Changes;
use super::escape_map::EscapeMap;
use super::patterns::Role;
use super::pointers::Possible;
use super::{Place, Rules};
use signalbox_wire::{Span, json};
use std::borrow::Cow;

/// Maximum nesting depth. A deeper message is not recorded.
const MAX_DEPTH: usize = 512;
/// Maximum nesting of JSON within strings within JSON. A string further within that may hold JSON with a secret is
/// replaced as a whole.
const MAX_EMBEDDED: usize = 4;
/// Nesting depth that most messages do not exceed.
const USUAL_DEPTH: usize = 8;

/// Members of a JSON schema whose own members describe values instead of holding them.
const SCHEMA_LISTS: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];
/// Members that identify such a description.
const SCHEMA_SIGNS: &[&str] = &["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "description"];
/// Members of such a description that hold values after all.
const SCHEMA_VALUES: &[&str] = &["default", "const", "enum", "example", "examples"];

/// Member that identifies a JSON web key (RFC 7517).
const KEY_SIGN: &str = "kty";
/// Number of bytes of an object in which that member is searched.
const MAX_KEY: usize = 16 << 10;
/// Secret members of such a key (RFC 7518, section 6).
const KEY_SECRETS: &[&str] = &["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// Outcome of a walk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum WalkOutcome {
    Json,
    /// Text that is no JSON from this position on. There may be JSON in it.
    NotJson(usize),
    TooDeep,
}

/// Where the walk through an object or array ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Stop {
    /// Behind its closing bracket.
    End(usize),
    /// At what is no part of one.
    Broken(usize),
    TooDeep,
}

pub(crate) struct Walk<'a> {
    rules: &'a Rules,
    bytes: &'a [u8],
    /// True if some string without escapes may match a pattern.
    possible: bool,
    /// True if some string may hold escapes that hide a match.
    escapes: bool,
    /// True if some object may be a JSON web key.
    web_keys: bool,
    /// Number of strings around this JSON.
    embedded: usize,
    stack: Vec<Frame<'a>>,
}

/// An object or array that is not closed yet.
#[derive(Clone, Debug, Default)]
struct Frame<'a> {
    object: bool,
    /// Number of elements read so far.
    index: usize,
    possible: Possible,
    /// End of the last member or element that stays.
    before: Option<u32>,
    /// True if its members describe values.
    describes: bool,
    /// Action for its values, if it describes a secret.
    secret: Option<&'a Action>,
    /// Action for its secret members, if it is a JSON web key.
    web_key: Option<&'a Action>,
    /// True for a JSON-RPC message, whose own members must stay.
    message: bool,
}

/// The current member or element.
#[derive(Copy, Clone, Debug)]
struct Item<'a> {
    start: usize,
    value: usize,
    key: Option<&'a [u8]>,
    possible: Possible,
    action: Option<&'a Action>,
    /// True if the action comes from a path rule, false if from a name.
    by_place: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(rules: &'a Rules, bytes: &'a [u8], method: Option<&str>) -> Self {
        let root = Frame { possible: rules.pointers.start(method), message: true, ..Frame::default() };
        Self::from(rules, bytes, root, 0)
    }

    fn from(rules: &'a Rules, bytes: &'a [u8], root: Frame<'a>, embedded: usize) -> Self {
        let possible = rules.patterns.possible(bytes);
        let escapes = rules.patterns.may_be_hidden(bytes);
        let web_keys = possible && memchr::memmem::find(bytes, KEY_SIGN.as_bytes()).is_some();
        let mut stack = Vec::with_capacity(USUAL_DEPTH);
        stack.push(root);
        Self { rules, bytes, possible, escapes, web_keys, embedded, stack }
    }

    /// Walks to the end and gathers the changes.
    pub(crate) fn run(&mut self, changes: &mut Changes) -> WalkOutcome {
        match self.document(json::skip_whitespace(self.bytes, 0), changes) {
            Stop::End(end) if json::skip_whitespace(self.bytes, end) == self.bytes.len() => WalkOutcome::Json,
            Stop::End(at) | Stop::Broken(at) => WalkOutcome::NotJson(at),
            Stop::TooDeep => WalkOutcome::TooDeep,
        }
    }

    /// Walks through every object and array that stands in a text from this position on: behind blanks of any kind, one
    /// a line, in a code block or between words. One that is cut short is read as far as it goes.
    pub(crate) fn documents(&mut self, from: usize, changes: &mut Changes) {
        let mut at = from;
        while let Some(found) = memchr::memchr2(b'{', b'[', self.bytes.get(at..).unwrap_or_default()) {
            let start = at + found;
            self.stack.clear();
            self.stack.push(Frame::default());
            at = match self.document(start, changes) {
                Stop::End(end) => end,
                Stop::Broken(at) => at.max(start + 1),
                Stop::TooDeep => return changes.incomplete = true,
            };
        }
    }

    /// Walks through the object or array that begins here.
    fn document(&mut self, start: usize, changes: &mut Changes) -> Stop {
        let object = match self.bytes.get(start) {
            Some(b'{') => true,
            Some(b'[') => false,
            _ => return Stop::Broken(start),
        };
        let web_key = self.web_key(start);
        if let Some(root) = self.stack.last_mut() {
            (root.object, root.web_key) = (object, web_key);
        }
        let mut at = start + 1;
        loop {
            at = json::skip_whitespace(self.bytes, at);
            let next = match self.bytes.get(at) {
                Some(b',') => Some(at + 1),
                Some(b'}' | b']') => match self.close(at) {
                    Some(ContainerEnd::Inner) => Some(at + 1),
                    Some(ContainerEnd::Last) => return Stop::End(at + 1),
                    None => None,
                },
                _ => self.item(at).and_then(|item| self.value(item, changes)),
            };
            match next {
                Some(_) if self.stack.len() > MAX_DEPTH => return Stop::TooDeep,
                Some(next) => at = next,
                None => return Stop::Broken(at),
            }
        }
    }

    fn close(&mut self, at: usize) -> Option<ContainerEnd> {
        let frame = self.stack.pop()?;
        if frame.object != (self.bytes.get(at) == Some(&b'}')) {
            return None;
        }
        match self.stack.last_mut() {
            None => Some(ContainerEnd::Last),
            Some(parent) => {
                parent.before = Some(Span::new(at + 1, at + 1).start);
                Some(ContainerEnd::Inner)
            }
        }
    }

    /// Reads the key, or counts the element, and looks up its action.
    fn item(&mut self, at: usize) -> Option<Item<'a>> {
        let (bytes, rules) = (self.bytes, self.rules);
        let depth = self.stack.len() - 1;
        let frame = self.stack.last_mut()?;
        let mut item =
            Item { start: at, value: at, key: None, possible: Possible::default(), action: None, by_place: true };
        if frame.object {
            let end = json::skip_string(bytes, at)?;
            let colon = json::skip_whitespace(bytes, end);
            if bytes.get(colon) != Some(&b':') {
                return None;
            }
            item.value = json::skip_whitespace(bytes, colon + 1);
            item.key = bytes.get(at..end);
        } else {
            frame.index += 1;
        }
        if !frame.possible.is_none() {
            let name = match item.key {
                Some(key) => json::string(key).unwrap_or_default(),
                None => Cow::Owned((frame.index - 1).to_string()),
            };
            (item.possible, item.action) = rules.pointers.step(frame.possible, depth, &name);
        }
        if let (None, Some(key)) = (item.action, item.key) {
            item.by_place = false;
            item.action = rules.keys.action(key);
            if let Some(action) = frame.web_key.filter(|_| KEY_SECRETS.iter().any(|name| json::key_eq(key, name))) {
                (item.action, item.by_place) = (Some(action), true);
            }
            if frame.secret.is_some() && SCHEMA_VALUES.iter().any(|name| json::key_eq(key, name)) {
                (item.action, item.by_place) = (frame.secret, true);
            }
        }
        Some(item)
    }

    /// Applies the action to a value, or continues inside it. Returns the position at which the walk continues.
    fn value(&mut self, item: Item<'a>, changes: &mut Changes) -> Option<usize> {
        let bytes = self.bytes;
        if let Some(key) = item.key {
            self.string(key, item.start, Role::Name, changes);
        }
        let mut secret = None;
        if let Some(action) = item.action {
            let end = json::skip_value(bytes, item.value)?;
            let describes = self.stack.last().is_some_and(|frame| frame.describes);
            if !item.by_place && describes && is_schema(bytes.get(item.value..end)?) {
                secret = Some(action);
            } else if self.replace(item, end, action, changes) {
                return Some(end);
            }
        }
        let message = self.stack.len() == 1 && self.stack.last().is_some_and(|root| !root.object);
        match bytes.get(item.value)? {
            open @ (b'{' | b'[') => {
                let describes = item.key.is_some_and(|key| SCHEMA_LISTS.iter().any(|name| json::key_eq(key, name)));
                let possible = item.possible;
                let object = *open == b'{';
                let web_key = self.web_key(item.value);
                self.stack.push(Frame { object, possible, describes, secret, web_key, message, ..Frame::default() });
                Some(item.value + 1)
            }
            b'"' => {
                let end = json::skip_string(bytes, item.value)?;
                let role = item.key.map_or(Role::Element, Role::Member);
                self.string(bytes.get(item.value..end)?, item.value, role, changes);
                self.stays(end)
            }
            _ => self.stays(json::skip_value(bytes, item.value)?),
        }
    }

    /// Returns the action for secret members of the object that begins here, if it is a JSON web key.
    fn web_key(&self, start: usize) -> Option<&'a Action> {
        let end = self.bytes.len().min(start + MAX_KEY);
        let object = self.bytes.get(start..end).filter(|_| self.web_keys)?;
        json::member(object, KEY_SIGN).and(self.rules.patterns.credentials())
    }

    fn stays(&mut self, end: usize) -> Option<usize> {
        self.stack.last_mut()?.before = Some(Span::new(end, end).start);
        Some(end)
    }

    fn string(&self, token: &[u8], start: usize, role: Role<'_>, changes: &mut Changes) {
        let escaped = memchr::memchr(b'\\', token).is_some();
        if escaped && self.is_beyond(token, role) {
            return self.withhold(token, start, role, changes);
        }
        if escaped && role != Role::Name && self.json_within(token, start, role, changes) {
            return;
        }
        if self.possible || self.escapes && escaped {
            self.rules.patterns.string(token, start, role, &self.rules.hashing, changes);
        }
    }

    /// Returns true if a string may hold JSON that is not walked through, and that JSON a secret.
    fn is_beyond(&self, token: &[u8], role: Role<'_>) -> bool {
        let [b'"', inside @ .., b'"'] = token else { return false };
        match role {
            Role::Name => self.rules.keys.may_be_within(inside),
            Role::Member(_) | Role::Element => self.embedded == MAX_EMBEDDED && self.may_hold_secrets(inside),
        }
    }

    /// Returns true if JSON in a string may hold a secret, judged by the undecoded text.
    fn may_hold_secrets(&self, inside: &[u8]) -> bool {
        (self.possible || self.escapes) && begins_like_json(inside) || self.rules.keys.may_be_within(inside)
    }

    /// Replaces a whole string. Names become hashes, so that two members do not end up with the same name.
    fn withhold(&self, token: &[u8], start: usize, role: Role<'_>, changes: &mut Changes) {
        let action = if role == Role::Name { Action::Hash } else { Action::default() };
        changes.replace(Span::new(start, start + token.len()), action.value(token, &self.rules.hashing));
    }

    /// Walks through the JSON in a string. Returns false if it holds none, or if nothing of it was replaced.
    fn json_within(&self, token: &[u8], start: usize, role: Role<'_>, changes: &mut Changes) -> bool {
        let [b'"', inside @ .., b'"'] = token else { return false };
        if self.embedded == MAX_EMBEDDED || !self.may_hold_secrets(inside) {
            return false;
        }
        let is_named = self.rules.keys.may_be_within(inside);
        let Some(text) = json::string(token) else { return false };
        let (rules, text) = (self.rules, text.as_bytes());
        let mut within = Changes::default();
        let mut walk = Walk::from(rules, text, Frame::default(), self.embedded + 1);
        let others = match walk.run(&mut within) {
            WalkOutcome::Json => rules.patterns.own(text, role, &rules.hashing),
            WalkOutcome::NotJson(_) if !is_named => return false,
            WalkOutcome::NotJson(at) => {
                walk.documents(at, &mut within);
                if within.is_empty() && !within.incomplete {
                    return false;
                }
                rules.patterns.found(text, role, &rules.hashing, &mut within)
            }
            WalkOutcome::TooDeep if !is_named => return false,
            WalkOutcome::TooDeep => {
                within.incomplete = true;
                Vec::new()
            }
        };
        if within.incomplete || !within.is_empty() || !others.is_empty() {
            changes.within(within, others, &EscapeMap::new(inside, start + 1));
        }
        true
    }

    /// Replaces a value. Returns false if it stays, because it holds nothing or the message needs it.
    fn replace(&mut self, item: Item<'a>, end: usize, action: &Action, changes: &mut Changes) -> bool {
        let Some(raw) = self.bytes.get(item.value..end) else { return false };
        if matches!(raw, b"null" | b"true" | b"false" | b"\"\"") {
            return false;
        }
        let Some(frame) = self.stack.last_mut() else { return false };
        let is = |name: &str| frame.message && frame.object && item.key.is_some_and(|key| json::key_eq(key, name));
        let value = Span::new(item.value, end);
        if is("jsonrpc") || is("id") || is("method") {
            return false;
        }
        let needed = is("error") || is("params") && *action != Action::Remove;
        if needed || is("result") && *action == Action::Remove {
            changes.replace(value, if needed { "{}" } else { "null" });
        } else if *action == Action::Remove {
            let place = Place { whole: Span::new(item.start, end), value, before: frame.before };
            remove(self.bytes, place, changes);
            // A later removal must not include the span that is removed here.
            frame.before = frame.before.map(|_| value.end);
            return true;
        } else {
            changes.replace(value, action.value(raw, &self.rules.hashing));
        }
        self.stays(end).is_some()
    }
}

/// Returns true if the inside of a string begins with a bracket, after white space in either notation.
fn begins_like_json(mut inside: &[u8]) -> bool {
    loop {
        inside = match inside {
            [b' ', rest @ ..] | [b'\\', b'n' | b'r' | b't', rest @ ..] => rest,
            _ => return matches!(inside, [b'{' | b'[', ..]),
        };
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum ContainerEnd {
    Inner,
    Last,
}

/// Removes a member or element with its preceding comma, or with the following one if nothing stays before it.
fn remove(bytes: &[u8], place: Place, changes: &mut Changes) {
    let end = place.value.end;
    let span = match place.before {
        Some(before) => Span { start: before, end },
        None => {
            let comma = json::skip_whitespace(bytes, end as usize);
            let next = (bytes.get(comma) == Some(&b',')).then(|| json::skip_whitespace(bytes, comma + 1));
            Span::new(place.whole.start as usize, next.unwrap_or(end as usize))
        }
    };
    changes.remove(span);
}

/// Returns true if an object describes a value instead of being one.
fn is_schema(value: &[u8]) -> bool {
    json::members(value).any(|member| SCHEMA_SIGNS.iter().any(|sign| json::key_eq(member.key.of(value), sign)))
}
