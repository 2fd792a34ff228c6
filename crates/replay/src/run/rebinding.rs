//! Tracks values that a server makes up in one answer and expects back in a later request: ids, names, tokens.
//!
//! A value is minted if no request used it before and a later one does: the recorded client can only have it from the
//! server. When the new answer arrives, [`super::pairing`] looks for each minted value of the recorded answer by its
//! context. The value is unchanged, replaced by another one, or in doubt. Requests that use a value in doubt are not
//! sent. The same replacements apply to recorded answers before they are compared, because an answer may repeat values
//! minted earlier. Anything else that differs is reported as a difference.
//!
//! A short number may identify different objects in different answers, such as an order in a list and a line in the
//! details of another order. Every answer that has it as the id of an item is therefore evidence: a write with it is
//! sent only if all those answers have arrived and none contradicts another.

use super::answer_values::{AnswerValue, AnswerValues};
use super::lineage::{Lineage, UnresolvedValue, ValueStanding};
use super::paged_lists::{Evidence, PagedLists, is_page_argument, tells_of_further_page};
use super::pairing::{AnswerPair, Doubt, Pairing, merge};
use super::references::{is_id_like, is_numbered, is_of_word, is_serial, named_in, names_by_number};
use super::transform::MessageTransformer;
use crate::paths::Paths;
use crate::recorded_call::RecordedCall;
use serde_json::Value;
use signalbox_wire::method;
use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Maximum number of tracked values.
const MAX_VALUES: usize = 100_000;
/// Maximum number of calls listed for each value.
const MAX_USES: usize = 20;

/// Minted values of a recording, and their present counterparts.
#[derive(Debug, Default)]
pub struct Rebinding {
    /// Requests that use each value.
    uses: HashMap<String, Uses>,
    /// First recorded answer that contains each minted value.
    sources: HashMap<String, Source>,
    /// Further calls whose answers have a short number as the id of an item: call numbers by position, for each value.
    further: HashMap<String, BTreeMap<u64, u64>>,
    /// Positions of the calls answered in this run.
    answered: HashSet<u64>,
    lists: PagedLists,
    /// Present counterparts of the minted values seen in this run.
    standings: HashMap<String, ValueStanding>,
    /// Places of lists whose ids were unchanged, by the tool that returned them.
    kept_places: HashSet<(Arc<str>, String)>,
}

#[derive(Debug)]
struct Uses {
    first: u64,
    last: u64,
    calls: Vec<u64>,
}

/// Answer that introduced a value.
#[derive(Clone, Debug)]
struct Source {
    call: u64,
    seq: u64,
    place: String,
}

impl Rebinding {
    /// Returns the number of replaced values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.standings.values().filter(|standing| matches!(standing, ValueStanding::Replaced(_))).count()
    }

    /// Returns `true` if no value was replaced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Registers recorded calls: the values their requests use, and the answers that introduced them.
    pub fn expect<'a>(&mut self, calls: impl IntoIterator<Item = &'a RecordedCall> + Clone) {
        for call in calls.clone() {
            let request = call.request.as_ref().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
            let mut found = Vec::new();
            if let Some(params) = request.as_ref().and_then(|request| request.get("params")) {
                references(params, &mut |value| found.push(value.to_owned()));
            }
            found.into_iter().for_each(|value| self.note(value, call));
        }
        self.lists.expect(calls.clone().into_iter().filter(|call| is_source(call)));
        for call in calls.into_iter().filter(|call| is_source(call)) {
            let Some(result) = call.result() else { continue };
            let own = LazyCell::new(|| own_values(call, |_| true));
            for value in AnswerValues::of(&result, &Paths::default()).values {
                self.note_source(value, call, &own);
            }
        }
    }

    fn note_source(
        &mut self,
        value: AnswerValue,
        call: &RecordedCall,
        own: &LazyCell<HashSet<String>, impl FnOnce() -> HashSet<String>>,
    ) {
        let is_item = is_item_number(&value) && self.is_wanted_after(&value, call.seq);
        if let Some(source) = self.sources.get(&value.value) {
            if is_item && source.seq != call.seq && self.further.len() < MAX_VALUES {
                self.further.entry(value.value).or_default().insert(call.seq, call.number);
            }
        } else if self.sources.len() < MAX_VALUES
            && (self.is_minted(&value, call.seq) || is_item && own.contains(&value.value))
        {
            let source = Source { call: call.number, seq: call.seq, place: value.place };
            self.sources.insert(value.value, source);
        }
    }

    fn note(&mut self, value: String, call: &RecordedCall) {
        if self.uses.len() >= MAX_VALUES && !self.uses.contains_key(&value) {
            return;
        }
        let uses =
            self.uses.entry(value).or_insert_with(|| Uses { first: call.seq, last: call.seq, calls: Vec::new() });
        (uses.first, uses.last) = (uses.first.min(call.seq), uses.last.max(call.seq));
        if uses.calls.len() < MAX_USES && !uses.calls.contains(&call.number) {
            uses.calls.push(call.number);
        }
    }

    /// Returns `true` for a value that a request after this position uses, and none before.
    fn is_minted(&self, value: &AnswerValue, seq: u64) -> bool {
        may_name(value) && self.uses.get(&value.value).is_some_and(|uses| uses.first > seq)
    }

    fn is_wanted_after(&self, value: &AnswerValue, seq: u64) -> bool {
        self.uses.get(&value.value).is_some_and(|uses| uses.last > seq)
    }

    /// Returns `true` for a value to look up in the new answer: it is minted here, or is tracked and occurs again. A
    /// value that the request itself contains is an echo, unless it is the number of an item.
    fn is_looked_for(&self, value: &AnswerValue, seq: u64, own: &HashSet<String>) -> bool {
        self.is_minted(value, seq)
            || self.sources.contains_key(&value.value)
                && self.is_wanted_after(value, seq)
                && (self.standings.contains_key(&value.value) || is_item_number(value))
                && (!own.contains(&value.value) || is_item_number(value))
    }

    /// Determines the counterparts of a recorded answer's minted values in the new answer.
    pub fn learn(&mut self, recorded: &Value, new: &Value, call: &RecordedCall, ignored: &Paths) {
        let (Some(recorded), Some(new)) = (recorded.get("result"), new.get("result")) else { return };
        if !is_source(call) {
            return;
        }
        self.answered.insert(call.seq);
        self.lists.read(call, new);
        self.pairings(recorded, new, call, ignored).into_iter().for_each(|pairing| self.settle(pairing, call));
    }

    fn pairings(&self, recorded: &Value, new: &Value, call: &RecordedCall, ignored: &Paths) -> Vec<Pairing> {
        let subject = subject(call);
        let is_kept = |place: &str| self.kept_places.contains(&(Arc::clone(&subject), place.to_owned()));
        let current = |value: &str| match self.before(value, call) {
            Some(ValueStanding::Replaced(new)) => new.clone(),
            _ => value.to_owned(),
        };
        let own = own_values(call, |_| true);
        let Some(list) = self.lists.of(call) else {
            let wanted = |value: &AnswerValue| self.is_looked_for(value, call.seq, &own);
            return AnswerPair::new(recorded, new, ignored, wanted, current).pairings(wanted, current, is_kept);
        };
        // Evaluate items across all pages, but the pointer to the next page by its own page.
        let pages: Vec<_> = list.pages.iter().map(|(seq, page)| (*seq, page.new.is_some())).collect();
        let own_items = own_values(call, |argument| !is_page_argument(argument));
        let wanted = |value: &AnswerValue| {
            let page = pages.get(value.page).filter(|(_, is_read)| *is_read && !tells_of_further_page(&value.member));
            page.is_some_and(|(seq, _)| self.is_looked_for(value, *seq, &own_items))
        };
        let mut pairings = AnswerPair::of_pages(list, ignored, wanted, current).pairings(wanted, current, is_kept);
        let wanted =
            |value: &AnswerValue| tells_of_further_page(&value.member) && self.is_looked_for(value, call.seq, &own);
        merge(
            &mut pairings,
            AnswerPair::new(recorded, new, ignored, wanted, current).pairings(wanted, current, is_kept),
        );
        pairings
    }

    /// Returns the standing of a value before this call. Leaves out the evidence that is evaluated anew: that of the
    /// call's paged list, or all of it if the call introduced the value and is being sent again.
    fn before(&self, value: &str, call: &RecordedCall) -> Option<&ValueStanding> {
        let standing = self.standings.get(value);
        if self.sources.get(value).is_some_and(|source| source.seq == call.seq) {
            return None;
        }
        match self.lists.of(call).and_then(|list| list.evidence.get(value)) {
            Some(evidence) if Some(&evidence.after) == standing => evidence.before.as_ref(),
            _ => standing,
        }
    }

    /// Returns the values that identify a call: those of its request and those minted by its recorded answer.
    pub(super) fn values_of(&self, call: &RecordedCall) -> HashSet<String> {
        let minted = self.sources.iter().filter(|(_, source)| source.call == call.number);
        own_values(call, |_| true).into_iter().chain(minted.map(|(value, _)| value.clone())).collect()
    }

    fn settle(&mut self, pairing: Pairing, call: &RecordedCall) {
        let before = self.before(&pairing.value, call).cloned();
        let standing = standing(&pairing, before.as_ref());
        if standing == ValueStanding::Kept && is_in_list(&pairing.place) {
            self.kept_places.insert((subject(call), pairing.place));
        }
        if self.standings.len() >= MAX_VALUES && !self.standings.contains_key(&pairing.value) {
            return;
        }
        self.lists.note(call, &pairing.value, Evidence { before, after: standing.clone() });
        self.standings.insert(pairing.value, standing);
    }

    /// Returns the most doubtful value of a call's request that has no certain counterpart.
    #[must_use]
    pub fn unsettled(&self, call: &RecordedCall) -> Option<UnresolvedValue> {
        let own = own_values(call, |_| true);
        let found = own.into_iter().filter_map(|value| self.unsettled_value(value, call));
        found.min_by_key(|found| (!found.is_id, found.doubt.is_none(), found.call))
    }

    fn unsettled_value(&self, value: String, call: &RecordedCall) -> Option<UnresolvedValue> {
        let source = self.sources.get(&value).filter(|source| source.seq < call.seq)?;
        let (source, doubt, is_id) = match self.standings.get(&value) {
            Some(ValueStanding::Doubtful { doubt, is_id }) => (source.call, Some(*doubt), *is_id),
            Some(standing) => (self.missing_evidence(&value, standing, call)?, None, false),
            None => (source.call, None, true),
        };
        Some(UnresolvedValue { value, call: source, doubt, is_id })
    }

    /// Returns the number of an earlier call whose answer would also be evidence but is missing. That answer may give a
    /// short number to another object, or have the object on another page.
    fn missing_evidence(&self, value: &str, standing: &ValueStanding, call: &RecordedCall) -> Option<u64> {
        let replaced = matches!(standing, ValueStanding::Replaced(_));
        let page = self.lists.missing(value, call).filter(|_| replaced);
        let further = || {
            let mut further = self.further.get(value)?.range(..call.seq);
            further.find(|(seq, _)| !self.answered.contains(seq)).map(|(_, number)| *number)
        };
        page.or_else(further)
    }

    /// Returns the lineage of each tracked value, in the order of the answers.
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

    /// Replaces recorded values by their present counterparts.
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
                if let Some(new) = self.substitute(text) {
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
            ValueStanding::Replaced(new) => Some(new),
            _ => None,
        }
    }

    fn substitute(&self, text: &str) -> Option<String> {
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

/// Returns `true` for params that may hold minted values. The tool's name never does.
pub(super) fn is_argument(name: &str) -> bool {
    !matches!(name, "name" | "_meta")
}

/// Visits every value of a request's params that may name an object.
fn references(params: &Value, found: &mut impl FnMut(&str)) {
    let Some(params) = params.as_object() else { return };
    params.iter().filter(|(name, _)| is_argument(name)).for_each(|(name, value)| named_values(value, name, found));
}

/// Returns the values in those arguments of a call whose name is accepted by `is_counted`.
fn own_values(call: &RecordedCall, is_counted: impl Fn(&str) -> bool) -> HashSet<String> {
    let request = call.request.as_ref().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let mut own = HashSet::new();
    if let Some(mut params) = request.and_then(|mut request| request.get_mut("params").map(Value::take)) {
        let arguments = if params.get("arguments").is_some() { params.get_mut("arguments") } else { Some(&mut params) };
        if let Some(arguments) = arguments.and_then(Value::as_object_mut) {
            arguments.retain(|name, _| is_counted(name));
        }
        references(&params, &mut |value| _ = own.insert(value.to_owned()));
    }
    own
}

/// Returns `true` for a value that names an object by its form and place.
fn may_name(value: &AnswerValue) -> bool {
    match value.is_number {
        true => is_numbered(&value.member, &value.value),
        false => (value.is_whole && value.value.len() > 1) || is_id_like(&value.value, ""),
    }
}

/// Returns `true` if a list item has this value, and it is a short number or a name that ends in one.
fn is_item_number(value: &AnswerValue) -> bool {
    value.is_in_list && is_serial(&value.value) && may_name(value)
}

/// Combines the evidence of an answer with the previous standing of a value.
fn standing(pairing: &Pairing, before: Option<&ValueStanding>) -> ValueStanding {
    let doubtful = |doubt| ValueStanding::Doubtful { doubt, is_id: pairing.is_id_like };
    match (before, &pairing.outcome) {
        // Another answer with the same number may refer to another object.
        (Some(ValueStanding::Doubtful { doubt, is_id }), _) if doubt.is_contrary() || is_serial(&pairing.value) => {
            ValueStanding::Doubtful { doubt: *doubt, is_id: *is_id }
        }
        (Some(ValueStanding::Kept), Ok(new)) if *new != pairing.value => doubtful(Doubt::Moved),
        (Some(ValueStanding::Replaced(before)), Ok(new)) if new != before => doubtful(Doubt::Moved),
        (_, Ok(new)) if *new == pairing.value => ValueStanding::Kept,
        (_, Ok(new)) => ValueStanding::Replaced(new.clone()),
        (_, Err(doubt)) => doubtful(*doubt),
    }
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

/// Returns `true` for a call whose answer describes objects rather than the server and its tools.
fn is_source(call: &RecordedCall) -> bool {
    let tells_of_server =
        [method::INITIALIZE, method::SERVER_DISCOVER, method::PING, method::TOOLS_LIST, method::PROMPTS_LIST];
    !tells_of_server.contains(&&*call.method)
}

fn subject(call: &RecordedCall) -> Arc<str> {
    call.subject.clone().unwrap_or_else(|| Arc::clone(&call.method))
}

/// Returns `true` for a place within a list, other than the content list that every result has.
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

    fn doubt(recorded_result: &Value, new: &Value, later: &Value) -> Option<Doubt> {
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
    fn a_call_that_is_sent_again_binds_anew() {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let (recorded_result, later) = (text("Created note-4d2-1."), json!({"note": "note-4d2-1"}));
        let mut rebinding = learned(&recorded_result, &text("Created note-5f0-1."), &later);
        let first = recorded(1, "first", &json!({"text": "milk"}), &recorded_result, 1);
        let (then, now) = (json!({"result": recorded_result}), json!({"result": text("Created note-5f0-2.")}));
        rebinding.learn(&then, &now, &first, &Paths::default());
        let mut arguments = later.clone();
        rebinding.apply(&mut arguments);
        assert_eq!(arguments, json!({"note": "note-5f0-2"}));
    }

    /// A short number of the request is an echo in the answer, unless an item has it.
    #[test]
    fn numbers_of_items_are_no_echo() {
        let details = |lines: &[(u64, &str)]| -> Value {
            let lines: Vec<Value> = lines.iter().map(|(id, product)| json!({"id": id, "product": product})).collect();
            json!({"structuredContent": {"order": 1, "lines": lines}})
        };
        let doubt = |now: &[(u64, &str)]| {
            let get = recorded(1, "get", &json!({"order": 1}), &details(&[(1, "ink"), (2, "glue")]), 1);
            let write = recorded(2, "cancel", &json!({"order": 1, "line": 1}), &json!({}), 2);
            let mut rebinding = Rebinding::default();
            rebinding.expect([&*get, &*write]);
            let (then, now) = (json!({"result": get.result()}), json!({"result": details(now)}));
            rebinding.learn(&then, &now, &get, &Paths::default());
            rebinding.unsettled(&write).and_then(|unsettled| unsettled.doubt)
        };
        assert_eq!(doubt(&[(2, "glue"), (1, "ink")]), None);
        assert_eq!(doubt(&[(1, "glue"), (2, "ink")]), Some(Doubt::Moved));
        assert_eq!(doubt(&[(2, "glue")]), Some(Doubt::Gone));
    }

    #[test]
    fn doubts_are_told_apart() {
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
