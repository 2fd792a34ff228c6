//! Values that a server makes up in one answer and wants back in a later request: ids, names, tokens.
//!
//! A value is minted if no request had it until then and a later one does: the recorded client can have it only from the
//! server. The runner walks each recorded answer beside the new one. Where a minted text or number differs, the recorded value is
//! bound to the new one, and takes its place in later requests. In texts that differ, the words are paired, so that an id in
//! a sentence is found. The same bindings are applied to recorded answers before they are compared, because an answer may
//! repeat what was minted before. Whatever else differs is a difference.

use super::transform::MessageTransformer;
use crate::recorded_call::RecordedCall;
use serde_json::Value;
use std::collections::HashMap;

/// Shortest text that is bound as a whole.
const SHORTEST: usize = 2;
/// Shortest word of a sentence that is bound, and that is replaced within other texts.
const SHORTEST_WORD: usize = 4;
/// Most values that are bound.
const MOST: usize = 100_000;

/// What was minted then, and what stands for it now.
#[derive(Debug, Default)]
pub struct Rebinding {
    texts: HashMap<String, String>,
    numbers: HashMap<i64, i64>,
    /// The places of the first and the last request that has a word.
    said: HashMap<String, (u64, u64)>,
}

/// Where a value stands.
#[derive(Copy, Clone)]
struct Place<'a> {
    /// The member that holds it.
    member: &'a str,
    /// The place of its call in the tape.
    seq: u64,
}

impl Rebinding {
    /// How many values are bound.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len() + self.numbers.len()
    }

    /// True if nothing is bound.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes what the recorded client said, and where.
    pub fn expect<'a>(&mut self, calls: impl IntoIterator<Item = &'a RecordedCall>) {
        for call in calls {
            let request = call.request.as_ref().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
            if let Some(params) = request.as_ref().and_then(|request| request.get("params")) {
                self.note(params, call.seq);
            }
        }
    }

    fn note(&mut self, value: &Value, seq: u64) {
        let mut said = |word: &str| {
            if self.said.len() < MOST || self.said.contains_key(word) {
                let (first, last) = self.said.entry(word.to_owned()).or_insert((seq, seq));
                (*first, *last) = ((*first).min(seq), (*last).max(seq));
            }
        };
        match value {
            Value::Object(members) => members.values().for_each(|value| self.note(value, seq)),
            Value::Array(items) => items.iter().for_each(|value| self.note(value, seq)),
            Value::String(text) => {
                words(text).for_each(&mut said);
                said(text);
            }
            Value::Number(number) => said(&number.to_string()),
            _ => {}
        }
    }

    /// Binds what the server minted in a recorded answer to what it minted in the new one.
    pub fn learn(&mut self, recorded: &Value, new: &Value, call: &RecordedCall) {
        if let (Some(recorded), Some(new)) = (recorded.get("result"), new.get("result")) {
            self.walk(recorded, new, &Place { member: "", seq: call.seq });
        }
    }

    /// True if no request until this place has the word, and a later one has.
    fn is_minted(&self, word: &str, seq: u64) -> bool {
        self.said.get(word).is_some_and(|(first, _)| *first > seq)
    }

    fn walk(&mut self, recorded: &Value, new: &Value, place: &Place<'_>) {
        match (recorded, new) {
            (Value::Object(recorded), Value::Object(new)) => {
                for (name, recorded) in recorded.iter().filter(|(name, _)| *name != "_meta") {
                    let place = Place { member: name, ..*place };
                    new.get(name).into_iter().for_each(|new| self.walk(recorded, new, &place));
                }
            }
            (Value::Array(recorded), Value::Array(new)) if recorded.len() == new.len() => {
                recorded.iter().zip(new).for_each(|(recorded, new)| self.walk(recorded, new, place));
            }
            (Value::String(recorded), Value::String(new)) if recorded != new => self.text(recorded, new, place),
            (Value::Number(recorded), Value::Number(new)) => {
                if let (Some(recorded), Some(new)) = (recorded.as_i64(), new.as_i64())
                    && recorded != new
                    && may_be_minted(place.member, recorded)
                    && self.is_minted(&recorded.to_string(), place.seq)
                    && self.len() < MOST
                {
                    self.numbers.insert(recorded, new);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, recorded: &str, new: &str, place: &Place<'_>) {
        let json =
            |text: &str| serde_json::from_str::<Value>(text).ok().filter(|value| value.is_object() || value.is_array());
        if let (Some(recorded), Some(new)) = (json(recorded), json(new)) {
            return self.walk(&recorded, &new, place);
        }
        let (before, now): (Vec<&str>, Vec<&str>) = (words(recorded).collect(), words(new).collect());
        if before.len() == now.len() {
            let pairs = before.iter().zip(&now).filter(|(before, now)| before != now);
            for (before, now) in pairs.filter(|(before, _)| before.len() >= SHORTEST_WORD) {
                self.bind(before, now, place);
            }
        }
        if recorded.len() >= SHORTEST && words(recorded).count() <= 1 {
            self.bind(recorded, new, place);
        }
    }

    fn bind(&mut self, recorded: &str, new: &str, place: &Place<'_>) {
        if self.len() < MOST && self.is_minted(recorded, place.seq) {
            self.texts.insert(recorded.to_owned(), new.to_owned());
        }
    }

    /// Puts what is minted now in the place of what was minted then.
    pub fn apply(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::Object(members) => members.values_mut().for_each(|value| self.apply(value)),
            Value::Array(items) => items.iter_mut().for_each(|value| self.apply(value)),
            Value::String(text) => {
                if let Some(new) = self.replaced(text) {
                    *text = new;
                }
            }
            Value::Number(number) => {
                if let Some(new) = number.as_i64().and_then(|number| self.numbers.get(&number)) {
                    *value = (*new).into();
                }
            }
            _ => {}
        }
    }

    fn replaced(&self, text: &str) -> Option<String> {
        if let Some(new) = self.texts.get(text) {
            return Some(new.clone());
        }
        let mut new = String::with_capacity(text.len());
        let mut changed = false;
        let mut rest = text;
        while let Some(start) = rest.find(is_of_word) {
            let (between, from) = rest.split_at(start);
            let end = from.find(|c| !is_of_word(c)).unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            new.push_str(between);
            match self.texts.get(word).filter(|_| word.len() >= SHORTEST_WORD) {
                Some(bound) => {
                    changed = true;
                    new.push_str(bound);
                }
                None => new.push_str(word),
            }
            rest = after;
        }
        new.push_str(rest);
        changed.then_some(new)
    }
}

impl MessageTransformer for Rebinding {
    fn transform_request(&self, request: &mut Value, _call: &RecordedCall) {
        let Some(params) = request.get_mut("params").and_then(Value::as_object_mut) else { return };
        for (name, value) in params.iter_mut() {
            // The tool itself is not minted, whatever it is called.
            if !matches!(name.as_str(), "name" | "_meta") {
                self.apply(value);
            }
        }
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_of_word(c)).filter(|word| !word.is_empty())
}

/// A small number is minted only where its member says so: a count that grew must not change other arguments.
fn may_be_minted(member: &str, number: i64) -> bool {
    let member = member.to_ascii_lowercase();
    number.unsigned_abs() >= 1000 || ["id", "key", "number"].iter().any(|end| member.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(seq: u64, arguments: Value) -> RecordedCall {
        let request = json!({"method": "tools/call", "params": {"name": "t", "arguments": arguments}});
        RecordedCall {
            number: seq,
            session: None,
            seq,
            last: seq,
            began: 0,
            era: signalbox_wire::Era::Legacy,
            method: "tools/call".into(),
            subject: None,
            request: Some(request.to_string().into()),
            key: None,
            steps: vec![],
            answer: None,
            afterwards: vec![],
            redacted: false,
        }
    }

    /// What is bound after a first call with `milk` and these answers, if a second one has these arguments.
    fn learned(recorded: Value, new: Value, later: Value) -> Rebinding {
        let (first, second) = (call(1, json!({"text": "milk"})), call(2, later));
        let mut rebinding = Rebinding::default();
        rebinding.expect([&first, &second]);
        rebinding.learn(&json!({"result": recorded}), &json!({"result": new}), &first);
        rebinding
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
            let rebinding = learned(recorded.clone(), new, json!({"note": "n-1a2b"}));
            let mut request =
                json!({"params": {"name": "n-1a2b", "arguments": {"note": "n-1a2b", "path": "/notes/n-1a2b, x"}}});
            let params = request.get_mut("params").unwrap();
            rebinding.apply(params.get_mut("arguments").unwrap());
            assert_eq!(params["arguments"], json!({"note": "n-9f8e", "path": "/notes/n-9f8e, x"}), "{recorded}");
            assert_eq!(params["name"], "n-1a2b");
        }
    }

    #[test]
    fn what_the_client_said_itself_or_never_says_is_not_minted() {
        let (recorded, new) = (json!({"text": "milk"}), json!({"text": "bread"}));
        assert!(learned(recorded.clone(), new.clone(), json!({"text": "milk"})).is_empty(), "the client said it first");
        let (recorded, new) = (json!({"text": "fresh"}), json!({"text": "stale"}));
        assert!(learned(recorded.clone(), new.clone(), json!({})).is_empty(), "no request wants it back");
        assert_eq!(learned(recorded, new, json!({"text": "fresh"})).len(), 1);
    }

    #[test]
    fn a_count_that_grew_is_not_an_id() {
        assert!(learned(json!({"count": 3}), json!({"count": 4}), json!({"n": 3})).is_empty());
    }

    #[test]
    fn numbers_are_bound_and_what_is_equal_is_not() {
        let rebinding = learned(
            json!({"id": 17, "kind": "note", "n": 3}),
            json!({"id": 42, "kind": "note", "n": 3}),
            json!({"note": 17}),
        );
        assert_eq!(rebinding.len(), 1);
        let mut value = json!({"id": 17, "n": 3});
        rebinding.apply(&mut value);
        assert_eq!(value, json!({"id": 42, "n": 3}));
    }
}
