//! Filters of `tape search` that parse messages: values of params and results, and types of entries (SO-11).

use crate::cli::{EntryType, SearchArgs};
use crate::failure::Failure;
use serde_json::Value;
use signalbox_engine::record::{Body, Content, Entry, EntryPage, Hit, MessageKind, Query, StoreError, TapeStore};
use signalbox_replay::Paths;
use signalbox_wire::glob::{Wildcards, fits};
use std::collections::HashSet;

/// Maximum number of entries that one search parses.
const MOST: usize = 100_000;
/// Minimum batch size while messages are parsed.
const AT_LEAST: usize = 1_000;

/// Conditions of a search that the store cannot evaluate.
#[derive(Debug, Default)]
pub(super) struct SearchFilter {
    params: Vec<ValueFilter>,
    results: Vec<ValueFilter>,
    types: Vec<EntryType>,
}

/// Expected value at some paths of a message.
#[derive(Debug)]
struct ValueFilter {
    places: Paths,
    /// Expected value; `*` and `?` are wildcards.
    value: String,
}

impl SearchFilter {
    /// Parses the filters of a command line.
    pub(super) fn read(args: &SearchArgs) -> Result<Self, Failure> {
        let params = |name: &str| vec![format!("/params/arguments/{name}"), format!("/params/{name}")];
        let results = |name: &str| vec![format!("/result/**/{name}")];
        let all = |texts: &[String], root: &str, named: &dyn Fn(&str) -> Vec<String>| {
            texts.iter().map(|text| ValueFilter::read(text, root, named)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            params: all(&args.param, "/params", &params)?,
            results: all(&args.result, "/result", &results)?,
            types: args.types.clone(),
        })
    }

    fn is_empty(&self) -> bool {
        self.params.is_empty() && self.results.is_empty() && self.types.is_empty()
    }

    /// Finds the entries of one page. Pages count from 1.
    pub(super) fn find(
        &self,
        store: &dyn TapeStore,
        query: &Query,
        page: usize,
        limit: usize,
    ) -> Result<EntryPage, StoreError> {
        let skipped = page.saturating_sub(1).saturating_mul(limit);
        let wanted = skipped.saturating_add(limit).min(MOST);
        let mut asked = if self.is_empty() { wanted } else { wanted.max(AT_LEAST) };
        loop {
            let found = store.find(&Query { limit: Some(asked), ..query.clone() })?;
            let hits = self.keep(found.hits);
            if self.is_empty() || hits.len() > wanted || !found.more || asked >= MOST {
                let more = hits.len() > wanted || found.more;
                return Ok(EntryPage { hits: hits.into_iter().skip(skipped).take(limit).collect(), more });
            }
            asked = asked.saturating_mul(4).min(MOST);
        }
    }

    /// Returns the hits that pass. With filters for both sides of a call, both must pass in the same call.
    fn keep(&self, hits: Vec<Hit>) -> Vec<Hit> {
        if self.is_empty() {
            return hits;
        }
        let sides: Vec<(bool, bool)> = hits.iter().map(|hit| self.sides(&hit.entry)).collect();
        let call = |hit: &Hit| (hit.tape.clone(), hit.entry.exchange);
        let calls = |side: fn(&(bool, bool)) -> bool| -> HashSet<_> {
            hits.iter().zip(&sides).filter(|(_, sides)| side(sides)).map(|(hit, _)| call(hit)).collect()
        };
        let (asked, answered) = (calls(|sides| sides.0), calls(|sides| sides.1));
        let looks_inside = !self.params.is_empty() || !self.results.is_empty();
        let passes = |hit: &Hit, sides: (bool, bool)| {
            let of_type = self.types.is_empty() || self.types.contains(&type_of(&hit.entry));
            let params = self.params.is_empty() || asked.contains(&call(hit));
            let results = self.results.is_empty() || answered.contains(&call(hit));
            of_type && params && results && (!looks_inside || sides.0 || sides.1)
        };
        let mut sides = sides.iter().copied();
        hits.iter().filter(|hit| passes(hit, sides.next().unwrap_or_default())).cloned().collect()
    }

    /// Returns whether the entry is a request whose params pass, and whether it is a result that passes.
    fn sides(&self, entry: &Entry) -> (bool, bool) {
        let Content::Message(message) = &entry.content else { return (false, false) };
        let Body::Whole(bytes) = &message.body else { return (false, false) };
        let wanted = match message.kind {
            MessageKind::Request => &self.params,
            MessageKind::Result => &self.results,
            _ => return (false, false),
        };
        if wanted.is_empty() {
            return (false, false);
        }
        let Ok(body) = serde_json::from_slice::<Value>(bytes) else { return (false, false) };
        let passes = wanted.iter().all(|filter| filter.is_in(&body, &mut Vec::new()));
        (passes && message.kind == MessageKind::Request, passes && message.kind == MessageKind::Result)
    }
}

impl ValueFilter {
    /// Parses `NAME=VALUE`, or `/PATH=VALUE` below the root.
    fn read(text: &str, root: &str, named: &dyn Fn(&str) -> Vec<String>) -> Result<Self, Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
        let Some((place, value)) = text.split_once('=').filter(|(place, _)| !place.is_empty()) else {
            return Err(usage(&format!("`{text}` is not NAME=VALUE")));
        };
        let places = if place.starts_with('/') { vec![format!("{root}{place}")] } else { named(place) };
        let places = Paths::parse(places).map_err(|error| usage(&error))?;
        Ok(Self { places, value: value.to_owned() })
    }

    /// Returns `true` if one of the paths has the expected value. Texts that hold JSON are parsed, under the name
    /// `@json`.
    fn is_in(&self, value: &Value, place: &mut Vec<String>) -> bool {
        let mut below = |name: String, value: &Value| {
            place.push(name);
            let found = self.is_in(value, place);
            place.pop();
            found
        };
        let text = match value {
            Value::Object(members) => return members.iter().any(|(name, value)| below(name.clone(), value)),
            Value::Array(items) => return items.iter().enumerate().any(|(index, item)| below(index.to_string(), item)),
            Value::String(text) => {
                let inner = text.trim_start().starts_with(['{', '[']).then(|| serde_json::from_str::<Value>(text).ok());
                if inner.flatten().is_some_and(|inner| below("@json".to_owned(), &inner)) {
                    return true;
                }
                text.clone()
            }
            other => other.to_string(),
        };
        self.places.names(place) && fits(&self.value, &text, Wildcards::StarAndQuestion)
    }
}

fn type_of(entry: &Entry) -> EntryType {
    match &entry.content {
        Content::Message(message) => match message.kind {
            MessageKind::Request => EntryType::Request,
            MessageKind::Result => EntryType::Result,
            MessageKind::Error => EntryType::Error,
            MessageKind::Notification => EntryType::Notification,
            _ => EntryType::Other,
        },
        Content::Decisions(_) => EntryType::Decision,
        Content::Finished(_) => EntryType::End,
        Content::Session(_) | Content::SessionEnded => EntryType::Session,
        _ => EntryType::Other,
    }
}
