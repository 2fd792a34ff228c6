//! Decides if a JSON schema became narrower or wider.
//!
//! Keywords are judged one by one: a schema is narrower if one of its changed keywords is. That is right for the
//! schemas of tools, whose keywords rarely overlap, and errs on the side of `breaking`. Alternatives (`anyOf`) are
//! compared by what they cover, and references within a schema are followed.

use super::{CANNOT_BE_JUDGED, Changes, Tier, is_same};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};

/// Maximum depth of the comparison.
const MAX_DEPTH: usize = 64;
/// Maximum number of subschemas compared.
const MAX_PARTS: usize = 50_000;
/// Maximum number of alternatives compared with each other.
const MAX_BRANCHES: usize = 64;
/// Maximum length of a chain of references.
const MAX_REFERENCES: usize = 16;

/// Direction of the data that a schema describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// Sent by clients. The schema must not become narrower.
    Arguments,
    /// Received by clients. The schema must not become wider.
    Results,
}

/// Effect of a changed keyword.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shift {
    Narrower,
    Wider,
    Other,
    Unknown,
}

/// Keywords that are annotations only.
const NOTES: [&str; 11] = [
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$id",
    "$anchor",
];
/// Keywords that hold definitions. These are compared where they are referenced.
const PARTS: [&str; 2] = ["$defs", "definitions"];
/// Keywords whose schema narrows as the number grows.
const LOWER: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
/// Keywords whose schema narrows as the number shrinks.
const UPPER: [&str; 5] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];

pub(super) fn compare(changes: &mut Changes<'_>, of: Use, recorded: Option<&Value>, new: Option<&Value>) {
    let everything = Value::Bool(true);
    let roots = [recorded, new].map(|schema| schema.unwrap_or(&everything));
    let mut judge =
        SchemaComparer { changes, of, roots, seen: HashSet::new(), references: HashSet::new(), depth: 0, parts: 0 };
    judge.schema(roots[0], roots[1]);
    judge.unreached_parts();
}

struct SchemaComparer<'c, 's, 'v> {
    changes: &'c mut Changes<'s>,
    of: Use,
    /// Old and new root schema, for looking up references.
    roots: [&'v Value; 2],
    /// Addresses of the subschema pairs compared so far. Ends the recursion of recursive schemas.
    seen: HashSet<(usize, usize)>,
    /// References followed so far.
    references: HashSet<String>,
    depth: usize,
    parts: usize,
}

impl<'v> SchemaComparer<'_, '_, 'v> {
    fn schema(&mut self, old: &'v Value, new: &'v Value) {
        let (Some(old), Some(new)) = (self.resolve(0, old), self.resolve(1, new)) else {
            return self.tell(Shift::Unknown, "a reference", Some(old), Some(new));
        };
        self.parts += 1;
        if !self.seen.insert((std::ptr::from_ref(old).addr(), std::ptr::from_ref(new).addr())) {
            return;
        }
        if self.depth >= MAX_DEPTH || self.parts > MAX_PARTS {
            if !is_same(Some(old), Some(new)) {
                self.tell(Shift::Unknown, "", Some(old), Some(new));
            }
            return;
        }
        self.depth += 1;
        let empty = Map::new();
        match (old, new) {
            (Value::Bool(false), Value::Bool(false)) => {}
            (Value::Bool(false), _) => self.tell(Shift::Wider, "what is allowed", Some(old), Some(new)),
            (_, Value::Bool(false)) => self.tell(Shift::Narrower, "what is allowed", Some(old), Some(new)),
            (Value::Object(_) | Value::Bool(true), Value::Object(_) | Value::Bool(true)) => {
                let [old_words, new_words] = [old, new].map(|schema| schema.as_object());
                if is_alternative(old_words) != is_alternative(new_words) {
                    self.alternatives(old, new);
                } else if let (Some(old), Some(new)) = (old_words, new_words) {
                    self.keywords(old, new);
                } else {
                    self.any(old_words, new_words, &empty);
                }
            }
            _ if is_same(Some(old), Some(new)) => {}
            _ => self.tell(Shift::Unknown, "", Some(old), Some(new)),
        }
        self.depth -= 1;
    }

    /// Compares schemas of which at least one is `true`.
    fn any(
        &mut self,
        old: Option<&'v Map<String, Value>>,
        new: Option<&'v Map<String, Value>>,
        empty: &Map<String, Value>,
    ) {
        let constrains = |words: Option<&Map<String, Value>>| words.unwrap_or(empty).keys().any(|name| !is_note(name));
        let value = |words: Option<&Map<String, Value>>| words.cloned().map_or(Value::Bool(true), Value::Object);
        let (was, is) = (value(old), value(new));
        match (constrains(old), constrains(new)) {
            (false, true) => self.tell(Shift::Narrower, "what is allowed", Some(&was), Some(&is)),
            (true, false) => self.tell(Shift::Wider, "what is allowed", Some(&was), Some(&is)),
            _ => {}
        }
    }

    /// Follows a schema that is only a reference. Returns `None` if it does not resolve.
    fn resolve(&mut self, side: usize, mut schema: &'v Value) -> Option<&'v Value> {
        for _ in 0..MAX_REFERENCES {
            let Some(words) = schema.as_object() else { return Some(schema) };
            let Some(reference) = words.get("$ref").and_then(Value::as_str) else { return Some(schema) };
            if words.keys().any(|name| name != "$ref" && !is_note(name)) {
                return Some(schema);
            }
            schema = self.roots.get(side)?.pointer(reference.strip_prefix('#')?)?;
            self.references.insert(reference.to_owned());
        }
        None
    }

    fn keywords(&mut self, old: &'v Map<String, Value>, new: &'v Map<String, Value>) {
        let mut values = false;
        for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
            let (was, is) = (old.get(name), new.get(name));
            self.changes.place.push(name.clone());
            match name.as_str() {
                "properties" => self.properties((old, was), (new, is)),
                "additionalProperties" => self.additional(was, is),
                "items" => self.sub_schema(was, is),
                "anyOf" => self.branches(branches(was), branches(is)),
                // Reference next to other keywords.
                "$ref" => self.beside_reference(was, is),
                "allOf" | "oneOf" | "prefixItems" => self.in_parallel(was, is),
                _ if PARTS.contains(&name.as_str()) || is_same(was, is) => {}
                "type" => self.sets("the type", types(was), types(is), (was, is)),
                "enum" | "const" if !values => {
                    values = true;
                    self.sets("the set of values", allowed(old), allowed(new), (was, is));
                }
                "enum" | "const" => {}
                "required" => self.required((old, was), (new, is)),
                _ if is_note(name) => {
                    self.changes.add(Tier::Compatible, format!("the {name} changed"), was, is);
                }
                _ => {
                    let shift = plain_keyword(name, was, is);
                    self.tell(shift, name, was, is);
                }
            }
            self.changes.place.pop();
        }
    }

    fn properties(&mut self, old: Part<'v>, new: Part<'v>) {
        let (Some(before), Some(now)) = (members(old.1), members(new.1)) else {
            return self.tell(Shift::Unknown, "", old.1, new.1);
        };
        let refuses = new.0.get("additionalProperties") == Some(&Value::Bool(false));
        for (name, was) in before {
            self.changes.place.push(name.clone());
            match (now.get(name), self.of) {
                (Some(is), _) => self.schema(was, is),
                (None, Use::Results) => self.changes.add(Tier::Breaking, "the property was removed", Some(was), None),
                (None, Use::Arguments) if refuses => {
                    self.changes.add(Tier::Breaking, "the argument was removed and is refused now", Some(was), None);
                }
                (None, Use::Arguments) => {
                    let reason = "the argument was removed; it is not refused, but nothing is said of it any more";
                    self.changes.add(Tier::Compatible, reason, Some(was), None);
                }
            }
            self.changes.place.pop();
        }
        for (name, is) in now.iter().filter(|(name, _)| !before.contains_key(*name)) {
            let required = self.of == Use::Arguments && names(new.0.get("required")).contains(name.as_str());
            let reason = if self.of == Use::Results { "a new property" } else { "a new optional argument" };
            // A required argument is reported under `required`.
            if !required {
                self.changes.at(name, |changes| changes.add(Tier::Compatible, reason, None, Some(is)));
            }
        }
    }

    fn required(&mut self, old: Part<'v>, new: Part<'v>) {
        let (before, now) = (names(old.1), names(new.1));
        let known = |name: &str| old.0.get("properties").is_some_and(|properties| properties.get(name).is_some());
        for name in now.difference(&before) {
            let (tier, reason) = match self.of {
                Use::Results => (Tier::Compatible, format!("`{name}` is always there now")),
                Use::Arguments if known(name) => (Tier::Breaking, format!("the argument `{name}` is required now")),
                Use::Arguments => (Tier::Breaking, format!("a new argument `{name}` is required")),
            };
            self.changes.add(tier, reason, old.1, new.1);
        }
        for name in before.difference(&now) {
            let (tier, reason) = match self.of {
                Use::Results => (Tier::Breaking, format!("`{name}` may be missing now")),
                Use::Arguments => (Tier::Compatible, format!("the argument `{name}` is optional now")),
            };
            self.changes.add(tier, reason, old.1, new.1);
        }
    }

    fn additional(&mut self, old: Option<&'v Value>, new: Option<&'v Value>) {
        let both_described = old.is_some_and(Value::is_object) && new.is_some_and(Value::is_object);
        if self.of == Use::Arguments || both_described {
            self.sub_schema(old, new);
        } else if !is_same(old, new) {
            // Additional members in results break no client.
            self.changes.add(Tier::Compatible, "other properties of results", old, new);
        }
    }

    fn sub_schema(&mut self, old: Option<&'v Value>, new: Option<&'v Value>) {
        const ANYTHING: &Value = &Value::Bool(true);
        self.schema(old.unwrap_or(ANYTHING), new.unwrap_or(ANYTHING));
    }

    fn beside_reference(&mut self, old: Option<&'v Value>, new: Option<&'v Value>) {
        let target = |judge: &mut Self, side: usize, reference: Option<&Value>| {
            let reference = reference?.as_str()?;
            let found = judge.roots.get(side)?.pointer(reference.strip_prefix('#')?)?;
            judge.references.insert(reference.to_owned());
            Some(found)
        };
        match (target(self, 0, old), target(self, 1, new)) {
            (Some(old), Some(new)) => self.schema(old, new),
            _ => self.tell(Shift::Unknown, "", old, new),
        }
    }

    /// Compares lists of schemas index by index.
    fn in_parallel(&mut self, old: Option<&'v Value>, new: Option<&'v Value>) {
        let (before, now) = (branches(old), branches(new));
        if before.len() != now.len() {
            return self.tell(Shift::Unknown, "", old, new);
        }
        for (index, (was, is)) in before.into_iter().zip(now).enumerate() {
            self.changes.place.push(index.to_string());
            self.schema(was, is);
            self.changes.place.pop();
        }
    }

    /// Compares a list of alternatives with a single schema, which counts as one alternative.
    fn alternatives(&mut self, old: &'v Value, new: &'v Value) {
        let list = |schema: &'v Value| match schema.get("anyOf") {
            Some(list) if is_alternative(schema.as_object()) => branches(Some(list)),
            _ => vec![schema],
        };
        self.branches(list(old), list(new));
    }

    fn branches(&mut self, old: Vec<&'v Value>, new: Vec<&'v Value>) {
        let value = |list: &[&Value]| Value::from(list.iter().map(|&one| one.clone()).collect::<Vec<_>>());
        let shown = |list: &[&Value]| if let [one] = list { (*one).clone() } else { value(list) };
        if old.len().max(new.len()) > MAX_BRANCHES || old.is_empty() || new.is_empty() {
            return self.tell(Shift::Unknown, "", Some(&value(&old)), Some(&value(&new)));
        }
        let [lost, gained] = [(0, &old, &new), (1, &new, &old)].map(|(side, these, those)| {
            these
                .iter()
                .filter(|one| !those.iter().any(|other| self.covers(side, one, other)))
                .copied()
                .collect::<Vec<_>>()
        });
        let shift = match (lost.as_slice(), gained.as_slice()) {
            ([], []) => return,
            ([was], [is]) if old.len() == new.len() && old.len() > 1 => return self.schema(was, is),
            ([], _) => Shift::Wider,
            (_, []) => Shift::Narrower,
            _ => Shift::Other,
        };
        self.tell(shift, "the set of alternatives", Some(&shown(&old)), Some(&shown(&new)));
    }

    /// Returns `true` if everything that matches `one`, from this side, also matches `other`.
    fn covers(&mut self, side: usize, one: &'v Value, other: &'v Value) -> bool {
        let mut scratch = Changes::of("");
        let roots = if side == 0 { self.roots } else { [self.roots[1], self.roots[0]] };
        let mut judge = SchemaComparer {
            changes: &mut scratch,
            of: Use::Arguments,
            roots,
            seen: HashSet::new(),
            references: HashSet::new(),
            depth: self.depth,
            parts: self.parts,
        };
        judge.schema(one, other);
        let (parts, references) = (judge.parts, judge.references);
        self.parts = parts;
        self.references.extend(references);
        scratch.list.iter().all(|change| change.tier != Tier::Breaking)
    }

    /// Reports changed definitions that only unexamined keywords refer to.
    fn unreached_parts(&mut self) {
        for name in PARTS {
            let [old, new] = self.roots.map(|root| root.get(name).and_then(Value::as_object));
            let (Some(old), Some(new)) = (old, new) else { continue };
            for (part, was) in old {
                let is = new.get(part);
                let reference = format!("#/{name}/{}", crate::paths::escaped(part));
                if is.is_some() && !is_same(Some(was), is) && !self.references.contains(&reference) {
                    self.changes.place.extend([name.to_owned(), part.clone()]);
                    self.tell(Shift::Unknown, "", Some(was), is);
                    self.changes.place.truncate(self.changes.place.len() - 2);
                }
            }
        }
    }

    fn sets(
        &mut self,
        what: &str,
        old: Option<BTreeSet<String>>,
        new: Option<BTreeSet<String>>,
        values: (Option<&Value>, Option<&Value>),
    ) {
        let shift = match (&old, &new) {
            (None, None) => return,
            (None, Some(_)) => Shift::Narrower,
            (Some(_), None) => Shift::Wider,
            (Some(old), Some(new)) if old == new => return,
            (Some(old), Some(new)) if new.is_subset(old) => Shift::Narrower,
            (Some(old), Some(new)) if old.is_subset(new) => Shift::Wider,
            _ => Shift::Other,
        };
        self.tell(shift, what, values.0, values.1);
    }

    fn tell(&mut self, shift: Shift, what: &str, old: Option<&Value>, new: Option<&Value>) {
        let (tier, reason) = match (shift, self.of) {
            (Shift::Unknown, _) => (Tier::Breaking, CANNOT_BE_JUDGED.to_owned()),
            (Shift::Other, _) => (Tier::Breaking, format!("{what} changed")),
            (Shift::Narrower, Use::Arguments) => (Tier::Breaking, format!("{what} is narrower: calls may be refused")),
            (Shift::Narrower, Use::Results) => (Tier::Compatible, format!("{what} is narrower")),
            (Shift::Wider, Use::Arguments) => (Tier::Compatible, format!("{what} is wider")),
            (Shift::Wider, Use::Results) => {
                (Tier::Breaking, format!("{what} is wider: results may be of another kind"))
            }
        };
        self.changes.add(tier, reason, old, new);
    }
}

/// Schema with one of its keywords.
type Part<'v> = (&'v Map<String, Value>, Option<&'v Value>);

fn is_note(name: &str) -> bool {
    NOTES.contains(&name) || PARTS.contains(&name)
}

/// Returns `true` for a schema that consists of `anyOf` only.
fn is_alternative(words: Option<&Map<String, Value>>) -> bool {
    words.is_some_and(|words| words.contains_key("anyOf") && words.keys().all(|name| name == "anyOf" || is_note(name)))
}

fn branches(list: Option<&Value>) -> Vec<&Value> {
    list.and_then(Value::as_array).into_iter().flatten().collect()
}

/// Returns the members of `properties`, which default to none.
fn members(value: Option<&Value>) -> Option<&Map<String, Value>> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    match value {
        Some(value) => value.as_object(),
        None => Some(&NONE),
    }
}

fn names(list: Option<&Value>) -> BTreeSet<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the types of a schema, or `None` if it allows any. An integer is also a number.
fn types(value: Option<&Value>) -> Option<BTreeSet<String>> {
    let names: Vec<&str> = match value? {
        Value::String(one) => vec![one],
        list => names(Some(list)).into_iter().collect(),
    };
    let parts = names.into_iter().flat_map(|name| match name {
        "number" => vec!["integer", "fraction"],
        other => vec![other],
    });
    Some(parts.map(str::to_owned).collect())
}

/// Returns the values allowed by `enum` and `const`, or `None` if they allow any.
fn allowed(words: &Map<String, Value>) -> Option<BTreeSet<String>> {
    let text = |value: &Value| {
        let mut written = Vec::new();
        crate::match_key::write_canonical(value, &mut written);
        String::from_utf8_lossy(&written).into_owned()
    };
    match (words.get("const"), words.get("enum").and_then(Value::as_array)) {
        (Some(one), _) => Some([text(one)].into()),
        (None, Some(list)) => Some(list.iter().map(text).collect()),
        (None, None) => None,
    }
}

/// Classifies a change to a keyword that can be judged on its own.
fn plain_keyword(name: &str, old: Option<&Value>, new: Option<&Value>) -> Shift {
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    let by_order = |narrower: Ordering| match (number(old), number(new)) {
        (None, Some(_)) if old.is_none() => Shift::Narrower,
        (Some(_), None) if new.is_none() => Shift::Wider,
        (Some(was), Some(is)) if is.total_cmp(&was) == narrower => Shift::Narrower,
        (Some(_), Some(_)) => Shift::Wider,
        _ => Shift::Unknown,
    };
    match name {
        _ if LOWER.contains(&name) => by_order(Ordering::Greater),
        _ if UPPER.contains(&name) => by_order(Ordering::Less),
        "pattern" | "format" | "multipleOf" if old.is_none() => Shift::Narrower,
        "pattern" | "format" | "multipleOf" if new.is_none() => Shift::Wider,
        "multipleOf" => match (number(old), number(new)) {
            (Some(was), Some(is)) if is % was == 0.0 => Shift::Narrower,
            (Some(was), Some(is)) if was % is == 0.0 => Shift::Wider,
            _ => Shift::Other,
        },
        "format" => Shift::Other,
        "uniqueItems" => match new.and_then(Value::as_bool) {
            Some(true) => Shift::Narrower,
            _ => Shift::Wider,
        },
        _ => Shift::Unknown,
    }
}
