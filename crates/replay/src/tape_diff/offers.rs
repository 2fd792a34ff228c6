//! Compares what servers offered on two tapes.

use super::OfferChange;
use crate::contract::{self, Change, Tier};
use crate::diff::Masks;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use signalbox_engine::record::BackendOffer;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Maximum size of the offers stored for one tape, in bytes.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of entries collected from the pages of one list.
const MAX_LISTED: usize = 20_000;
/// List methods, with the member that holds the list in answers and on tapes.
const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

/// Offers found on one tape.
#[derive(Default, Debug)]
pub(super) struct Offers {
    /// Latest offer by backend and view.
    backends: BTreeMap<(String, String), BackendOffer>,
    bytes: usize,
    /// Number of offers dropped for lack of space.
    dropped: u64,
    /// Latest answers to `initialize` and the lists, as clients saw them.
    shown: Map<String, Value>,
}

impl Offers {
    /// Stores a backend's offer.
    pub fn seen(&mut self, seen: BackendOffer) {
        let weight = |seen: &BackendOffer| seen.parts.iter().map(|(_, part)| part.len()).sum::<usize>();
        let key = (seen.backend.to_string(), seen.view.clone());
        let before = self.backends.get(&key).map_or(0, weight);
        let bytes = self.bytes - before + weight(&seen);
        if bytes > MAX_BYTES {
            self.dropped += 1;
            return;
        }
        self.bytes = bytes;
        self.backends.insert(key, seen);
    }

    /// Stores an answer to a client if it is a handshake or a list.
    pub fn listed(&mut self, method: &str, request: Option<&Value>, answer: Option<&Value>) {
        let Some(result) = answer.and_then(|answer| answer.get("result")) else { return };
        if matches!(method, "initialize" | "server/discover") {
            for (name, part) in
                [("serverInfo", "server"), ("capabilities", "capabilities"), ("instructions", "instructions")]
            {
                if let Some(value) = result.get(name) {
                    self.shown.insert(part.to_owned(), value.clone());
                }
            }
        }
        let Some((_, part)) = LISTS.iter().find(|(asked, _)| *asked == method) else { return };
        let Some(items) = result.get(*part).and_then(Value::as_array) else { return };
        let is_next_page = request.and_then(|request| request.pointer("/params/cursor")).is_some();
        let known = self.shown.entry((*part).to_owned()).or_insert_with(|| json!([]));
        if let Value::Array(known) = known {
            if !is_next_page {
                known.clear();
            }
            let room = MAX_LISTED.saturating_sub(known.len());
            known.extend(items.iter().take(room).cloned());
        }
    }
}

/// Compares the offers of two tapes. Falls back to what clients saw if a tape has no backend offers, or if one tape was
/// made from the other (`related`) by playing it under a different backend name.
pub(super) fn compare(
    old: &Offers,
    new: &Offers,
    related: bool,
    masks: &Masks,
    notes: &mut Vec<String>,
) -> Vec<OfferChange> {
    let dropped = old.dropped + new.dropped;
    if dropped > 0 {
        notes.push(format!("{dropped} descriptions of backends are too many to be compared"));
    }
    let is_renamed =
        related && !old.backends.keys().any(|(name, _)| new.backends.keys().any(|(other, _)| other == name));
    if is_renamed || old.backends.is_empty() || new.backends.is_empty() {
        if old.shown.is_empty() || new.shown.is_empty() {
            notes.push("tools, prompts and resources are not compared: they are not on both tapes".to_owned());
            return Vec::new();
        }
        // Without a request for a list, nothing is known about it.
        let both = |offers: &Offers, other: &Offers| {
            let known =
                offers.shown.iter().filter(|(name, _)| other.shown.contains_key(*name) || *name == "instructions");
            known.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>()
        };
        let changes = parts(&both(old, new), &both(new, old), masks, false);
        return changes.into_iter().map(|change| OfferChange { backend: None, change }).collect();
    }
    let names: BTreeSet<&str> =
        old.backends.keys().chain(new.backends.keys()).map(|(backend, _)| backend.as_str()).collect();
    names.into_iter().flat_map(|name| backend(name, old, new, masks, notes)).collect()
}

fn backend(name: &str, old: &Offers, new: &Offers, masks: &Masks, notes: &mut Vec<String>) -> Vec<OfferChange> {
    let views = |offers: &Offers| -> BTreeMap<String, BackendOffer> {
        let of = offers.backends.iter().filter(|((backend, _), _)| backend == name);
        of.map(|((_, view), seen)| (view.clone(), seen.clone())).collect()
    };
    let (before, now) = (views(old), views(new));
    let whole = |tier, reason: &str| {
        let change = Change {
            tier,
            subject: "backend".to_owned(),
            pointer: String::new(),
            reason: reason.to_owned(),
            recorded: None,
            new: None,
        };
        vec![OfferChange { backend: Some(name.to_owned()), change }]
    };
    let mut pairs: Vec<(&BackendOffer, &BackendOffer)> =
        before.iter().filter_map(|(view, was)| Some((was, now.get(view)?))).collect();
    if pairs.is_empty() {
        match (before.values().next(), now.values().next()) {
            (Some(_), None) => return whole(Tier::Breaking, "the backend is not on the new tape"),
            (None, Some(_)) => return whole(Tier::Compatible, "the backend is not on the old tape"),
            (was, is) => pairs.extend(was.zip(is)),
        }
    }
    let (mut changes, mut told) = (Vec::new(), HashSet::new());
    for (was, is) in pairs {
        let left: BTreeSet<&String> = was.left.iter().chain(&is.left).collect();
        for part in &left {
            notes.push(format!("backend {name}: {part} are not compared, they are too large to be on a tape"));
        }
        for change in offer(was, is, masks) {
            // Different views often show the same change.
            if told.insert(format!("{change:?}")) {
                changes.push(OfferChange { backend: Some(name.to_owned()), change });
            }
        }
    }
    changes
}

fn offer(was: &BackendOffer, is: &BackendOffer, masks: &Masks) -> Vec<Change> {
    if was.hash == is.hash {
        return Vec::new();
    }
    let left = |name: &str| was.left.iter().chain(&is.left).any(|left| left == name);
    let [before, now] = [was, is].map(|seen| {
        let parts = seen.parts.iter().filter(|(name, _)| !left(name));
        parts.map(|(name, bytes)| (name.to_string(), part(name, bytes))).collect::<Map<_, _>>()
    });
    let mut changes = parts(&before, &now, masks, was.redacted || is.redacted);
    if was.revision != is.revision {
        let revision = |seen: &BackendOffer| seen.revision.clone().map(Value::from);
        changes.push(Change {
            tier: Tier::Compatible,
            subject: "server".to_owned(),
            pointer: String::new(),
            reason: "another revision of the protocol is spoken".to_owned(),
            recorded: revision(was),
            new: revision(is),
        });
    }
    changes
}

fn part(name: &str, bytes: &Bytes) -> Value {
    let text = || Value::from(String::from_utf8_lossy(bytes).into_owned());
    if name == "instructions" { text() } else { serde_json::from_slice(bytes).unwrap_or_else(|_| text()) }
}

/// Compares the parts of two offers, which are keyed by their names on tapes.
fn parts(before: &Map<String, Value>, now: &Map<String, Value>, masks: &Masks, redacted: bool) -> Vec<Change> {
    let settled = |parts: &Map<String, Value>| {
        let mut parts = Value::Object(parts.clone());
        if redacted {
            masks.settle(&mut parts);
        }
        parts
    };
    let (before, now) = (settled(before), settled(now));
    let list = |parts: &Value, name: &str| parts.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let both = |name: &str| (list(&before, name), list(&now, name));
    let mut changes = contract::server(before.get("server"), now.get("server"));
    let nothing = json!({});
    let capabilities = |parts: &'_ Value| parts.get("capabilities").unwrap_or(&nothing).clone();
    changes.extend(contract::capabilities(&capabilities(&before), &capabilities(&now)));
    changes.extend(contract::instructions(before.get("instructions"), now.get("instructions")));
    type Judge = fn(&[Value], &[Value]) -> Vec<Change>;
    let judges: [Judge; 4] = [contract::tools, contract::prompts, contract::resources, contract::templates];
    for ((_, name), judge) in LISTS.into_iter().zip(judges) {
        let (was, is) = both(name);
        changes.extend(judge(&was, &is));
    }
    changes
}
