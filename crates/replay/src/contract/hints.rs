//! Compares the hints that a tool gives about its effects.

use super::{CANNOT_BE_JUDGED, Changes, Tier, is_same};
use serde_json::Value;

/// Hint name, its default, and the value that is the weaker promise.
const HINTS: [(&str, bool, bool); 4] = [
    ("readOnlyHint", false, false),
    ("destructiveHint", true, true),
    ("idempotentHint", false, false),
    ("openWorldHint", true, true),
];

pub(super) fn annotations(changes: &mut Changes<'_>, recorded: Option<&Value>, new: Option<&Value>) {
    let member = |value: Option<&Value>, name: &str| value.and_then(|value| value.get(name)).cloned();
    for (name, default, weak) in HINTS {
        let [old, now] = [recorded, new].map(|value| member(value, name));
        let [was, is] = [&old, &now].map(|value| value.as_ref().and_then(Value::as_bool).unwrap_or(default));
        if was != is {
            let tier = if is == weak { Tier::Breaking } else { Tier::Compatible };
            let reason = format!("{name} was {was} and is {is} now");
            changes.at(name, |changes| changes.add(tier, reason, old.as_ref(), now.as_ref()));
        }
    }
    let others = |value: Option<&Value>| {
        let members = value.and_then(Value::as_object).into_iter().flatten();
        members
            .map(|(name, _)| name.clone())
            .filter(|name| !HINTS.iter().any(|hint| hint.0 == name))
            .collect::<Vec<_>>()
    };
    let mut names = others(recorded);
    names.extend(others(new));
    names.sort_unstable();
    names.dedup();
    for name in names {
        let [old, now] = [recorded, new].map(|value| member(value, &name));
        if !is_same(old.as_ref(), now.as_ref()) {
            let (tier, reason) = match name.as_str() {
                "title" => (Tier::Compatible, "the title changed"),
                _ => (Tier::Breaking, CANNOT_BE_JUDGED),
            };
            changes.at(&name, |changes| changes.add(tier, reason, old.as_ref(), now.as_ref()));
        }
    }
}

/// Compares a tool's support for tasks. The default is none.
pub(super) fn execution(changes: &mut Changes<'_>, recorded: Option<&Value>, new: Option<&Value>) {
    let support = |value: Option<&Value>| {
        let word = value.and_then(|value| value.get("taskSupport")).and_then(Value::as_str);
        word.unwrap_or("forbidden").to_owned()
    };
    let (was, is) = (support(recorded), support(new));
    let (tier, reason) = match (was.as_str(), is.as_str()) {
        (was, is) if was == is => (Tier::Breaking, CANNOT_BE_JUDGED.to_owned()),
        (_, "optional") => (Tier::Compatible, format!("taskSupport was {was} and is optional now")),
        _ => (Tier::Breaking, format!("taskSupport was {was} and is {is} now")),
    };
    changes.add(tier, reason, recorded, new);
}
