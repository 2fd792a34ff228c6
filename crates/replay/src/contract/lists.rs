//! Compares a server's lists, capabilities and description.

use super::schema::{self, Use};
use super::{CANNOT_BE_JUDGED, Change, Changes, MAX_CHANGES, Tier, hints, is_same};
use serde_json::{Map, Value};
use std::collections::HashMap;

type Member<'a> = Option<&'a Value>;

#[must_use]
pub fn tools(recorded: &[Value], new: &[Value]) -> Vec<Change> {
    list("tool", "name", recorded, new, |changes, name, old, now| match name {
        "inputSchema" => schema::compare(changes, Use::Arguments, old, now),
        "outputSchema" => output_schema(changes, old, now),
        "annotations" => hints::annotations(changes, old, now),
        "execution" => hints::execution(changes, old, now),
        _ => descriptive_member(changes, name, old, now),
    })
}

#[must_use]
pub fn prompts(recorded: &[Value], new: &[Value]) -> Vec<Change> {
    list("prompt", "name", recorded, new, |changes, name, old, now| match name {
        "arguments" => prompt_arguments(changes, old, now),
        _ => descriptive_member(changes, name, old, now),
    })
}

#[must_use]
pub fn resources(recorded: &[Value], new: &[Value]) -> Vec<Change> {
    list("resource", "uri", recorded, new, resource)
}

#[must_use]
pub fn templates(recorded: &[Value], new: &[Value]) -> Vec<Change> {
    list("resource template", "uriTemplate", recorded, new, resource)
}

/// Compares the server's name and version.
#[must_use]
pub fn server(recorded: Member<'_>, new: Member<'_>) -> Vec<Change> {
    compare_whole("server", "the server names itself otherwise", recorded, new)
}

/// Compares the server's instructions.
#[must_use]
pub fn instructions(recorded: Member<'_>, new: Member<'_>) -> Vec<Change> {
    compare_whole("instructions", "the instructions changed", recorded, new)
}

/// Compares capabilities. A removed one is breaking, an added one is not.
#[must_use]
pub fn capabilities(recorded: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Changes::of("capabilities");
    abilities(&mut changes, Some(recorded), Some(new), 0);
    changes.list
}

fn compare_whole(subject: &str, reason: &str, recorded: Member<'_>, new: Member<'_>) -> Vec<Change> {
    let mut changes = Changes::of(subject);
    if !is_same(recorded, new) {
        changes.add(Tier::Compatible, reason, recorded, new);
    }
    changes.list
}

/// Matches the entries of two lists by name, and compares the members of those in both.
fn list(
    kind: &str,
    key: &str,
    recorded: &[Value],
    new: &[Value],
    judge: impl Fn(&mut Changes<'_>, &str, Member<'_>, Member<'_>),
) -> Vec<Change> {
    let name = |entry: &Value| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let now: HashMap<String, &Value> = new.iter().map(|entry| (name(entry), entry)).collect();
    let before: HashMap<String, &Value> = recorded.iter().map(|entry| (name(entry), entry)).collect();
    let mut all = Vec::new();
    for entry in recorded {
        let subject = format!("{kind} {}", name(entry));
        let mut changes = Changes::of(&subject);
        match now.get(&name(entry)) {
            Some(found) => members(&mut changes, entry, found, key, &judge),
            None => changes.add(Tier::Breaking, format!("the {kind} was removed"), Some(entry), None),
        }
        all.append(&mut changes.list);
    }
    for entry in new.iter().filter(|entry| !before.contains_key(&name(entry))) {
        let subject = format!("{kind} {}", name(entry));
        let mut changes = Changes::of(&subject);
        changes.add(Tier::Compatible, format!("the {kind} is new"), None, Some(entry));
        all.append(&mut changes.list);
    }
    all.truncate(MAX_CHANGES);
    all
}

fn members(
    changes: &mut Changes<'_>,
    recorded: &Value,
    new: &Value,
    key: &str,
    judge: impl Fn(&mut Changes<'_>, &str, Member<'_>, Member<'_>),
) {
    let empty = Map::new();
    let [old, now] = [recorded, new].map(|entry| entry.as_object().unwrap_or(&empty));
    let added = now.keys().filter(|name| !old.contains_key(*name));
    for name in old.keys().chain(added).filter(|name| *name != key && *name != "_meta") {
        let (was, is) = (old.get(name), now.get(name));
        if !is_same(was, is) {
            changes.at(name, |changes| judge(changes, name, was, is));
        }
    }
}

/// Compares a descriptive member. Changes to unknown members count as breaking.
fn descriptive_member(changes: &mut Changes<'_>, name: &str, old: Member<'_>, new: Member<'_>) {
    let (tier, reason) = match name {
        "description" | "title" | "name" | "icons" | "size" | "annotations" => {
            (Tier::Compatible, format!("the {name} changed"))
        }
        _ => (Tier::Breaking, CANNOT_BE_JUDGED.to_owned()),
    };
    changes.add(tier, reason, old, new);
}

fn resource(changes: &mut Changes<'_>, name: &str, old: Member<'_>, new: Member<'_>) {
    match (name, old, new) {
        ("mimeType", None, Some(_)) => changes.add(Tier::Compatible, "the type is told now", old, new),
        ("mimeType", ..) => changes.add(Tier::Breaking, "the type of the content changed", old, new),
        _ => descriptive_member(changes, name, old, new),
    }
}

fn output_schema(changes: &mut Changes<'_>, old: Member<'_>, new: Member<'_>) {
    match (old, new) {
        (None, Some(_)) => changes.add(Tier::Compatible, "results are described now", old, new),
        (Some(_), None) => changes.add(Tier::Breaking, "structured results are no longer promised", old, new),
        _ => schema::compare(changes, Use::Results, old, new),
    }
}

fn prompt_arguments(changes: &mut Changes<'_>, old: Member<'_>, new: Member<'_>) {
    let list = |value: Member<'_>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let name = |argument: &Value| argument.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_required = |argument: &Value| argument.get("required").and_then(Value::as_bool).unwrap_or_default();
    let (old, new) = (list(old), list(new));
    for argument in &old {
        let now = new.iter().find(|other| name(other) == name(argument));
        changes.at(&name(argument), |changes| match now {
            None => changes.add(Tier::Breaking, "the argument was removed", Some(argument), None),
            Some(now) => {
                let (was, is) = (is_required(argument), is_required(now));
                if !was && is {
                    changes.add(Tier::Breaking, "the argument is required now", Some(argument), Some(now));
                } else if was && !is {
                    changes.add(Tier::Compatible, "the argument is optional now", Some(argument), Some(now));
                } else if !is_same(Some(argument), Some(now)) {
                    changes.add(Tier::Compatible, "the argument is described otherwise", Some(argument), Some(now));
                }
            }
        });
    }
    for argument in new.iter().filter(|argument| old.iter().all(|other| name(other) != name(argument))) {
        changes.at(&name(argument), |changes| match is_required(argument) {
            true => changes.add(Tier::Breaking, "a new argument is required", None, Some(argument)),
            false => changes.add(Tier::Compatible, "a new argument is optional", None, Some(argument)),
        });
    }
}

/// Maximum depth of the comparison of capabilities.
const MAX_DEPTH: usize = 16;

fn abilities(changes: &mut Changes<'_>, old: Member<'_>, new: Member<'_>, depth: usize) {
    match (old, new) {
        (old, new) if is_same(old, new) => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) if depth < MAX_DEPTH => {
            for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
                changes.at(name, |changes| abilities(changes, old.get(name), new.get(name), depth + 1));
            }
        }
        // An explicit `false` means the same as an absent capability.
        (None | Some(Value::Bool(false)), None | Some(Value::Bool(false))) => {}
        (None | Some(Value::Bool(false)), Some(_)) => changes.add(Tier::Compatible, "a new capability", old, new),
        (Some(_), None | Some(Value::Bool(false))) => changes.add(Tier::Breaking, "the capability is gone", old, new),
        _ => changes.add(Tier::Breaking, CANNOT_BE_JUDGED, old, new),
    }
}
