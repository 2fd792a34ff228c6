//! Values that a server makes up in one answer and wants back in a later request: ids, names, tokens.
//!
//! A value is minted if no request had it until then and a later one does: the recorded client can have it only from
//! the server. When the new answer comes, each minted value of the recorded one is looked for in it by what stands
//! around it ([`super::pairing`]): it is kept, another value takes its place, or there is doubt. Requests with a value
//! in doubt are not sent. The same replacements are made in recorded answers before they are compared, because an
//! answer may repeat what was minted before. Whatever else differs is a difference.

use super::answer_values::{AnswerValue, AnswerValues};
use super::lineage::{Lineage, Standing, Unsettled};
use super::pairing::{AnswerPair, Pairing};
use super::references::{is_id_like, is_numbered, is_of_word, named_in, names_by_number};
use super::transform::MessageTransformer;
use crate::paths::Paths;
use crate::recorded_call::RecordedCall;
use serde_json::Value;
use signalbox_wire::method;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Most values that are followed.
const MOST: usize = 100_000;
/// Most calls that are named for each value.
const MOST_USES: usize = 20;

/// Minted values of a recording, and their present counterparts.
#[derive(Debug, Default)]
pub struct Rebinding {
    /// The requests that have each value.
    uses: HashMap<String, Uses>,
    /// The first recorded answer that has each minted value.
    sources: HashMap<String, Source>,
    /// Counterparts of minted values whose answers have come.
    standings: HashMap<String, Standing>,
    /// Places of lists whose ids were as recorded, by the tool that lists them.
    kept_places: HashSet<(Arc<str>, String)>,
}

#[derive(Debug)]
struct Uses {
    first: u64,
    last: u64,
    calls: Vec<u64>,
}

/// The answer that a value comes from.
#[derive(Clone, Debug)]
struct Source {
    call: u64,
    seq: u64,
    place: String,
}

impl Rebinding {
    /// Number of values that were replaced.
    #[must_use]
    pub fn len(&self) -> usize {
        self.standings.values().filter(|standing| matches!(standing, Standing::Replaced(_))).count()
    }

    /// True if nothing was replaced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes what the recorded client said, and which answers it had it from.
    pub fn expect<'a>(&mut self, calls: impl IntoIterator<Item = &'a RecordedCall> + Clone) {
        for call in calls.clone() {
            let request = call.request.as_ref().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
            let mut found = Vec::new();
            if let Some(params) = request.as_ref().and_then(|request| request.get("params")) {
                references(params, &mut |value| found.push(value.to_owned()));
            }
            found.into_iter().for_each(|value| self.note(value, call));
        }
        for call in calls.into_iter().filter(|call| is_source(call)) {
            let answer =
                call.answer.as_ref().and_then(|said| serde_json::from_slice::<Value>(said.bytes.as_ref()?).ok());
            let Some(result) = answer.as_ref().and_then(|answer| answer.get("result")) else { continue };
            for value in AnswerValues::of(result, &Paths::default()).values {
                if self.is_minted(&value, call) && self.sources.len() < MOST {
                    let source = Source { call: call.number, seq: call.seq, place: value.place };
                    self.sources.entry(value.value).or_insert(source);
                }
            }
        }
    }

    fn note(&mut self, value: String, call: &RecordedCall) {
        if self.uses.len() >= MOST && !self.uses.contains_key(&value) {
            return;
        }
        let uses =
            self.uses.entry(value).or_insert_with(|| Uses { first: call.seq, last: call.seq, calls: Vec::new() });
        (uses.first, uses.last) = (uses.first.min(call.seq), uses.last.max(call.seq));
        if uses.calls.len() < MOST_USES && !uses.calls.contains(&call.number) {
            uses.calls.push(call.number);
        }
    }

    /// True for a value of a call's answer that a later request has, and none until then.
    fn is_minted(&self, value: &AnswerValue, call: &RecordedCall) -> bool {
        let names = match value.is_number {
            true => is_numbered(&value.member, &value.value),
            false => (value.is_whole && value.value.len() > 1) || is_id_like(&value.value, ""),
        };
        names && self.uses.get(&value.value).is_some_and(|uses| uses.first > call.seq)
    }

    /// Finds out what stands for the minted values of a recorded answer in the new one.
    pub fn learn(&mut self, recorded: &Value, new: &Value, call: &RecordedCall, ignored: &Paths) {
        let (Some(recorded), Some(new)) = (recorded.get("result"), new.get("result")) else { return };
        if !is_source(call) {
            return;
        }
        let own = self.own(call);
        let pairings = {
            // A value that comes again in a later list is looked at again; one that the request itself has is an echo.
            let comes_again = |value: &AnswerValue| {
                self.standings.contains_key(&value.value)
                    && !own.contains(&value.value)
                    && self.uses.get(&value.value).is_some_and(|uses| uses.last > call.seq)
            };
            let wanted = |value: &AnswerValue| self.is_minted(value, call) || comes_again(value);
            let current = |value: &str| match self.standings.get(value) {
                Some(Standing::Replaced(new)) => new.clone(),
                _ => value.to_owned(),
            };
            let subject = subject(call);
            let is_kept = |place: &str| self.kept_places.contains(&(Arc::clone(&subject), place.to_owned()));
            AnswerPair::new(recorded, new, ignored, wanted).pairings(wanted, current, is_kept)
        };
        pairings.into_iter().for_each(|pairing| self.settle(pairing, call));
    }

    /// The values by which a call may be known: those of its request, and those that its recorded answer minted.
    pub(super) fn values_of(&self, call: &RecordedCall) -> HashSet<String> {
        let minted = self.sources.iter().filter(|(_, source)| source.call == call.number);
        self.own(call).into_iter().chain(minted.map(|(value, _)| value.clone())).collect()
    }

    /// The values that the request of a call has.
    fn own(&self, call: &RecordedCall) -> HashSet<String> {
        let request = call.request.as_ref().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        let mut own = HashSet::new();
        if let Some(params) = request.as_ref().and_then(|request| request.get("params")) {
            references(params, &mut |value| _ = own.insert(value.to_owned()));
        }
        own
    }

    fn settle(&mut self, pairing: Pairing, call: &RecordedCall) {
        let standing = match pairing.outcome {
            Ok(new) if new == pairing.value => Standing::Kept,
            Ok(new) => Standing::Replaced(new),
            Err(doubt) => Standing::Doubtful { doubt, is_id: pairing.is_id_like },
        };
        if standing == Standing::Kept && is_in_list(&pairing.place) {
            self.kept_places.insert((subject(call), pairing.place));
        }
        let is_settled =
            matches!(self.standings.get(&pairing.value), Some(Standing::Doubtful { doubt, .. }) if doubt.is_contrary());
        if !is_settled && (self.standings.len() < MOST || self.standings.contains_key(&pairing.value)) {
            self.standings.insert(pairing.value, standing);
        }
    }

    /// The first value of a call's request that nothing certain stands for.
    #[must_use]
    pub fn unsettled(&self, call: &RecordedCall) -> Option<Unsettled> {
        self.own(call).into_iter().filter_map(|value| self.unsettled_value(value, call)).min_by_key(|found| found.call)
    }

    fn unsettled_value(&self, value: String, call: &RecordedCall) -> Option<Unsettled> {
        let source = self.sources.get(&value).filter(|source| source.seq < call.seq)?;
        let (doubt, is_id) = match self.standings.get(&value) {
            Some(Standing::Doubtful { doubt, is_id }) => (Some(*doubt), *is_id),
            Some(_) => return None,
            None => (None, true),
        };
        Some(Unsettled { value, call: source.call, doubt, is_id })
    }

    /// Lineage of each value that a later request has, in the order of their answers.
    #[must_use]
    pub fn lineage(&self) -> Vec<Lineage> {
        let mut all: Vec<_> = self
            .sources
            .iter()
            .map(|(value, source)| Lineage {
                value: value.clone(),
                call: source.call,
                place: source.place.clone(),
                standing: self.standings.get(value).cloned(),
                uses: self.uses.get(value).map(|uses| uses.calls.clone()).unwrap_or_default(),
            })
            .collect();
        all.sort_by(|one, other| (one.call, &one.place, &one.value).cmp(&(other.call, &other.place, &other.value)));
        all
    }

    /// Puts what is minted now in the place of what was minted then.
    pub fn apply(&self, value: &mut Value) {
        if !self.is_empty() {
            self.replace(value, "");
        }
    }

    fn replace(&self, value: &mut Value, member: &str) {
        match value {
            Value::Object(members) => members.iter_mut().for_each(|(name, value)| self.replace(value, name)),
            Value::Array(items) => items.iter_mut().for_each(|value| self.replace(value, member)),
            Value::String(text) => {
                if let Some(new) = self.replaced(text) {
                    *text = new;
                }
            }
            Value::Number(number) if names_by_number(member, &number.to_string()) => {
                let new = self.new_value(&number.to_string()).and_then(|new| new.parse::<i64>().ok());
                if let Some(new) = new {
                    *value = new.into();
                }
            }
            _ => {}
        }
    }

    fn new_value(&self, value: &str) -> Option<&str> {
        match self.standings.get(value)? {
            Standing::Replaced(new) => Some(new),
            _ => None,
        }
    }

    fn replaced(&self, text: &str) -> Option<String> {
        if let Some(new) = self.new_value(text) {
            return Some(new.to_owned());
        }
        let named: HashSet<&str> = named_in(text).filter(|word| self.new_value(word).is_some()).collect();
        if named.is_empty() {
            return None;
        }
        let mut new = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_of_word) {
            let (between, from) = rest.split_at(start);
            let end = from.find(|c| !is_of_word(c)).unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            new.push_str(between);
            new.push_str(named.get(word).and_then(|word| self.new_value(word)).unwrap_or(word));
            rest = after;
        }
        new.push_str(rest);
        Some(new)
    }
}

impl MessageTransformer for Rebinding {
    fn transform_request(&self, request: &mut Value, _call: &RecordedCall) {
        let Some(params) = request.get_mut("params").and_then(Value::as_object_mut) else { return };
        for (name, value) in params.iter_mut().filter(|(name, _)| is_argument(name)) {
            if !self.is_empty() {
                self.replace(value, name);
            }
        }
    }
}

/// The tool itself is not minted, whatever it is called.
fn is_argument(name: &str) -> bool {
    !matches!(name, "name" | "_meta")
}

/// Every value of a request's params that may name something.
fn references(params: &Value, found: &mut impl FnMut(&str)) {
    let Some(params) = params.as_object() else { return };
    params.iter().filter(|(name, _)| is_argument(name)).for_each(|(name, value)| named_values(value, name, found));
}

fn named_values(value: &Value, member: &str, found: &mut impl FnMut(&str)) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| named_values(value, name, found)),
        Value::Array(items) => items.iter().for_each(|value| named_values(value, member, found)),
        Value::String(text) => named_in(text).for_each(found),
        Value::Number(number) if names_by_number(member, &number.to_string()) => found(&number.to_string()),
        _ => {}
    }
}

/// True for a call whose answer tells of objects, rather than of the server and its tools.
fn is_source(call: &RecordedCall) -> bool {
    let tells_of_server =
        [method::INITIALIZE, method::SERVER_DISCOVER, method::PING, method::TOOLS_LIST, method::PROMPTS_LIST];
    !tells_of_server.contains(&&*call.method)
}

fn subject(call: &RecordedCall) -> Arc<str> {
    call.subject.clone().unwrap_or_else(|| Arc::clone(&call.method))
}

/// True for a place within a list, other than the list of contents that every result has.
fn is_in_list(place: &str) -> bool {
    place.strip_prefix("/content/*").unwrap_or(place).contains('*')
}

#[cfg(test)]
mod tests {
    use super::super::tests::recorded;
    use super::*;
    use serde_json::json;

    /// The rebinding after a first call with `milk` and these answers, if a second one has these arguments.
    fn learned(recorded_result: &Value, new: &Value, later: &Value) -> Rebinding {
        let first = recorded(1, "first", &json!({"text": "milk"}), recorded_result, 1);
        let second = recorded(2, "second", later, &json!({}), 2);
        let mut rebinding = Rebinding::default();
        rebinding.expect([&*first, &*second]);
        let (then, now) = (json!({"result": recorded_result}), json!({"result": new}));
        rebinding.learn(&then, &now, &first, &Paths::default());
        rebinding
    }

    fn doubt(recorded_result: &Value, new: &Value, later: &Value) -> Option<super::super::Doubt> {
        let call = recorded(2, "second", later, &json!({}), 2);
        learned(recorded_result, new, later).unsettled(&call)?.doubt
    }

    #[test]
    fn ids_in_structures_sentences_and_json_texts_are_bound() {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let cases = [
            (json!({"structuredContent": {"id": "n-1a2b"}}), json!({"structuredContent": {"id": "n-9f8e"}})),
            (text("Created note n-1a2b."), text("Created note n-9f8e.")),
            (text(r#"{"id":"n-1a2b","ok":true}"#), text(r#"{"id":"n-9f8e","ok":true}"#)),
        ];
        for (recorded, new) in cases {
            let rebinding = learned(&recorded, &new, &json!({"note": "n-1a2b"}));
            let mut arguments = json!({"note": "n-1a2b", "path": "/notes/n-1a2b, x"});
            rebinding.apply(&mut arguments);
            assert_eq!(arguments, json!({"note": "n-9f8e", "path": "/notes/n-9f8e, x"}), "{recorded}");
        }
    }

    #[test]
    fn what_the_client_said_itself_or_never_says_is_not_followed() {
        let (recorded, new) = (json!({"id": "milk"}), json!({"id": "bread"}));
        assert!(learned(&recorded, &new, &json!({"text": "milk"})).is_empty(), "the client said it first");
        let (recorded, new) = (json!({"id": "fresh"}), json!({"id": "stale"}));
        assert!(learned(&recorded, &new, &json!({})).is_empty(), "no request wants it back");
        assert_eq!(learned(&recorded, &new, &json!({"text": "fresh"})).len(), 1);
    }

    #[test]
    fn a_word_or_a_count_that_changed_is_not_an_id() {
        assert!(learned(&json!({"count": 3}), &json!({"count": 4}), &json!({"n": 3})).is_empty());
        assert!(learned(&json!({"state": "open"}), &json!({"state": "closed"}), &json!({"to": "open"})).is_empty());
    }

    #[test]
    fn numbers_are_bound_and_quantities_keep_theirs() {
        let rebinding = learned(
            &json!({"id": 17, "kind": "note", "n": 3}),
            &json!({"id": 42, "kind": "note", "n": 3}),
            &json!({"note": 17}),
        );
        assert_eq!(rebinding.len(), 1);
        let mut value = json!({"id": 17, "n": 3, "limit": 17});
        rebinding.apply(&mut value);
        assert_eq!(value, json!({"id": 42, "n": 3, "limit": 17}));
    }

    #[test]
    fn doubts_are_told_apart() {
        use super::super::Doubt;
        let list = |items: &[(u64, &str)]| -> Value {
            let items: Vec<Value> = items.iter().map(|(id, title)| json!({"id": id, "title": title})).collect();
            json!({"structuredContent": {"items": items}})
        };
        let then = list(&[(1001, "book"), (1002, "pen")]);
        let doubt_of = |now: &[(u64, &str)]| doubt(&then, &list(now), &json!({"item": 1001}));
        assert_eq!(doubt_of(&[(1002, "pen"), (1001, "book")]), None, "reordered");
        assert_eq!(doubt_of(&[(7, "pen"), (8, "book"), (9, "lamp")]), None, "all ids are new");
        assert_eq!(doubt_of(&[(1001, "pen"), (1002, "book")]), Some(Doubt::Moved));
        assert_eq!(doubt_of(&[(1001, "lamp"), (1002, "pen")]), Some(Doubt::Changed));
        assert_eq!(doubt_of(&[(1002, "pen"), (1003, "book")]), Some(Doubt::Gone));
        assert_eq!(doubt_of(&[(7, "book"), (8, "book")]), Some(Doubt::Several));
        assert_eq!(doubt_of(&[(7, "pen")]), Some(Doubt::Unknown));
        let twins = list(&[(1001, "book"), (1002, "book")]);
        assert_eq!(doubt(&twins, &list(&[(7, "book")]), &json!({"item": 1001})), Some(Doubt::Twins));
    }
}
