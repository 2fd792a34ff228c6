//! Walks through two documents side by side.

use super::digest::{self, MAX_TEXTS, covers};
use super::items::{self, Step};
use super::masks::{Masks, fits, has_mask};
use super::{Comparison, Difference, DifferenceKind, Differences, Digest, IN_TEXT, json_in};
use crate::paths::pointer;
use serde_json::{Map, Value};

/// Maximum depth of a member-by-member comparison.
const MAX_DEPTH: usize = 256;

/// State of a comparison.
pub(super) struct Walk<'a> {
    pub by: &'a Comparison,
    /// Masks of the recorded and the new side.
    masks: [Option<&'a Masks>; 2],
    place: Vec<String>,
    /// Number of texts that enclose the current place.
    texts: usize,
    /// Set if the last segment of the place is an array index.
    in_array: bool,
    pub found: Differences,
}

impl<'a> Walk<'a> {
    pub fn new(by: &'a Comparison, masks: [Option<&'a Masks>; 2]) -> Self {
        Self { by, masks, place: Vec::new(), texts: 0, in_array: false, found: Differences::default() }
    }

    /// Compares two messages. Ignores their ids, which belong to the connections.
    pub fn message(&mut self, old: &Value, new: &Value) {
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => self.members(old, new, &["id", "jsonrpc"]),
            _ => self.value(old, new),
        }
    }

    /// Compares the values at the current place.
    pub fn value(&mut self, old: &Value, new: &Value) {
        if self.is_hidden(Some(old), Some(new)) {
            self.found.masked += 1;
            return;
        }
        if self.place.len() >= MAX_DEPTH {
            if old != new {
                self.tell(DifferenceKind::Changed, Some(old), Some(new));
            }
            return;
        }
        let fitting = |value| self.by.patterns.fitting(&self.place, value);
        if fitting(old).is_some_and(|pattern| fitting(new) == Some(pattern)) {
            return;
        }
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => self.members(old, new, &[]),
            (Value::Array(old), Value::Array(new)) => self.items(old, new),
            (Value::String(one), Value::String(other)) => self.text(one, other),
            (Value::Number(one), Value::Number(other)) if self.by.same_number(one, other) => {}
            _ if old == new => {}
            _ if std::mem::discriminant(old) != std::mem::discriminant(new) => {
                self.tell(DifferenceKind::Type, Some(old), Some(new));
            }
            _ => self.tell(DifferenceKind::Changed, Some(old), Some(new)),
        }
    }

    fn members(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, skipped: &[&str]) {
        let by = self.by;
        let counts = |name: &str| !by.skips(name) && !skipped.contains(&name);
        for (name, recorded) in old.iter().filter(|(name, _)| counts(name)) {
            self.at(name.clone(), false, |walk| match new.get(name) {
                Some(new) => walk.value(recorded, new),
                None => walk.one_sided(Some(recorded), None),
            });
        }
        for (name, added) in new.iter().filter(|(name, _)| counts(name) && !old.contains_key(*name)) {
            self.at(name.clone(), false, |walk| walk.one_sided(None, Some(added)));
        }
    }

    fn items(&mut self, old: &[Value], new: &[Value]) {
        let [old_digests, new_digests] = [old, new].map(|items| {
            let each = items.iter().enumerate();
            each.map(|(index, item)| self.digest_at(index, item)).collect::<Vec<Digest>>()
        });
        let unordered = covers(&self.by.unordered, &self.place);
        let mut steps = items::pair(self.by, (old, &old_digests), (new, &new_digests), unordered);
        if self.masks.iter().all(Option::is_none) {
            steps.retain(|step| !matches!(*step, Step::Both(i, j) if old_digests[i] == new_digests[j]));
        }
        for step in steps {
            match step {
                Step::Both(i, j) => self.at(i.to_string(), true, |walk| walk.value(&old[i], &new[j])),
                Step::Old(i) => self.at(i.to_string(), true, |walk| walk.one_sided(Some(&old[i]), None)),
                Step::New(j) => self.at(j.to_string(), true, |walk| walk.one_sided(None, Some(&new[j]))),
            }
        }
    }

    fn digest_at(&mut self, index: usize, item: &Value) -> Digest {
        self.place.push(index.to_string());
        let digest = digest::of_part(self.by, &self.place, self.texts, item);
        self.place.pop();
        digest
    }

    fn text(&mut self, one: &str, other: &str) {
        let masked = self.masks.iter().any(Option::is_some);
        if one == other {
            self.found.masked += u64::from(masked && has_mask(one));
            return;
        }
        if self.by.json_in_text
            && self.texts < MAX_TEXTS
            && let (Some(old), Some(new)) = (json_in(one), json_in(other))
        {
            self.texts += 1;
            self.at(IN_TEXT.to_owned(), false, |walk| walk.value(&old, &new));
            self.texts -= 1;
            return;
        }
        let [old_masked, new_masked] = self.masks.map(|masks| masks.is_some());
        if (old_masked && fits(one, other)) || (new_masked && fits(other, one)) {
            self.found.masked += 1;
            return;
        }
        self.tell(DifferenceKind::Changed, Some(&one.into()), Some(&other.into()));
    }

    /// Reports a value that only one side has.
    fn one_sided(&mut self, old: Option<&Value>, new: Option<&Value>) {
        if self.is_hidden(old, new) {
            self.found.masked += 1;
        } else {
            let kind = if new.is_none() { DifferenceKind::Missing } else { DifferenceKind::Added };
            self.tell(kind, old, new);
        }
    }

    fn is_hidden(&self, old: Option<&Value>, new: Option<&Value>) -> bool {
        let [old_masks, new_masks] = self.masks;
        old_masks.is_some_and(|masks| masks.hides(&self.place, old))
            || new_masks.is_some_and(|masks| masks.hides(&self.place, new))
    }

    /// Runs `then` one level deeper, unless that place is ignored.
    fn at(&mut self, segment: String, item: bool, then: impl FnOnce(&mut Self)) {
        self.place.push(segment);
        let above = std::mem::replace(&mut self.in_array, item);
        if !covers(&self.by.ignored, &self.place) {
            then(self);
        }
        self.in_array = above;
        self.place.pop();
    }

    fn tell(&mut self, kind: DifferenceKind, old: Option<&Value>, new: Option<&Value>) {
        self.found.add(Difference {
            pointer: pointer(&self.place),
            kind,
            item: self.in_array,
            recorded: old.cloned(),
            new: new.cloned(),
        });
    }
}
