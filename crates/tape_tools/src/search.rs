//! `tapes_search`: finds calls by their text and properties, the newest first, page by page.

use crate::ask_error::AskError;
use crate::call_line;
use crate::own_tapes::{OwnTapes, Place, finished};
use crate::question::{text, when};
use serde_json::{Map, Value, json};
use signalbox_embedded::Arguments;
use signalbox_embedded::arguments::MAX_SAFE;
use signalbox_engine::record::{FinishedEntry, Query, TapeInfo};
use signalbox_tape::{Story, excerpt, story};
use signalbox_wire::printable;
use std::ops::RangeInclusive;

/// How many calls a page may have.
pub(crate) const LIMIT: RangeInclusive<u64> = 1..=100;
/// How many it has when nothing is said.
pub(crate) const DEFAULT_LIMIT: u64 = 20;
/// What can be said.
pub(crate) const KEYS: [&str; 11] =
    ["text", "tape", "method", "tool", "backend", "outcome", "since", "until", "slower_than_ms", "limit", "cursor"];
/// How many entries are asked of the store at a time.
const PAGE: usize = 100;
/// Most entries that one question looks at; the cursor goes on behind them.
const MAX_LOOKED: usize = 5_000;
/// Most characters of a message that are shown with a call.
const EXCERPT: usize = 160;

/// What is searched for.
#[derive(Debug)]
pub(crate) struct Search {
    query: Query,
    tape: Option<String>,
    backend: Option<String>,
    limit: usize,
    cursor: Option<Cursor>,
}

/// Where a page goes on: in this tape, before this entry.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cursor {
    tape: String,
    before: Option<u64>,
}

impl Cursor {
    fn read(text: &str) -> Option<Self> {
        let (tape, before) = match text.split_once(':') {
            Some((tape, before)) => (tape, Some(before.parse().ok()?)),
            None => (text, None),
        };
        (!tape.is_empty()).then(|| Self { tape: tape.to_owned(), before })
    }

    fn text(&self) -> String {
        match self.before {
            Some(before) => format!("{}:{before}", self.tape),
            None => self.tape.clone(),
        }
    }
}

/// A page that is being filled.
#[derive(Default)]
struct Page {
    calls: Vec<Map<String, Value>>,
    looked: usize,
}

impl Search {
    /// Reads the arguments.
    pub(crate) fn read(reader: &mut Arguments<'_>) -> Option<Self> {
        reader.only(&KEYS);
        let words = text(reader, "text");
        let cursor = text(reader, "cursor").and_then(|text| {
            let cursor = Cursor::read(&text);
            if cursor.is_none() {
                reader.problem("`cursor` must be the `next_cursor` of an earlier page".to_owned());
            }
            cursor
        });
        let slower = reader.whole("slower_than_ms", 0..=MAX_SAFE);
        let backend = text(reader, "backend");
        let query = Query {
            methods: text(reader, "method").into_iter().collect(),
            subject: text(reader, "tool"),
            // A request has no backend yet when it comes, so calls that are found by text are looked at one by one.
            backend: backend.clone().filter(|_| words.is_none()),
            outcome: text(reader, "outcome"),
            slower_than: slower.map(|millis| millis.saturating_mul(1_000_000)),
            since: when(reader, "since"),
            until: when(reader, "until"),
            only_ends: words.is_none(),
            newest_first: true,
            limit: Some(PAGE),
            text: words,
            ..Query::default()
        };
        let limit = reader.whole("limit", LIMIT).unwrap_or(DEFAULT_LIMIT) as usize;
        Some(Self { query, tape: text(reader, "tape"), backend, limit, cursor })
    }

    /// Reads the store.
    pub(crate) fn answer(&self, own: &OwnTapes<'_>) -> Result<Value, AskError> {
        let mut page = Page::default();
        let mut begun = self.cursor.is_none();
        for tape in own.tapes(self.tape.as_deref())? {
            let here = self.cursor.as_ref().filter(|cursor| cursor.tape == tape.id);
            begun |= here.is_some();
            if !begun {
                continue;
            }
            if own.is_late() {
                return Ok(told(page, Some(Cursor { tape: tape.id, before: None })));
            }
            let before = here.and_then(|cursor| cursor.before);
            if let Some(rest) = self.tape(own, &tape, before, &mut page)? {
                return Ok(told(page, Some(rest)));
            }
        }
        match (&self.cursor, begun) {
            (Some(cursor), false) => Err(AskError::NoTape(cursor.tape.clone())),
            _ => Ok(told(page, None)),
        }
    }

    /// Looks through one tape. Gives the place where the next page goes on, unless the end of the tape was reached.
    fn tape(
        &self,
        own: &OwnTapes<'_>,
        tape: &TapeInfo,
        mut before: Option<u64>,
        page: &mut Page,
    ) -> Result<Option<Cursor>, AskError> {
        loop {
            let (places, more) = own.places(tape, Query { after: before, ..self.query.clone() })?;
            if places.is_empty() {
                return Ok(None);
            }
            for place in &places {
                before = Some(place.seq);
                page.looked += 1;
                page.calls.extend(self.call(own, tape, place)?);
                if page.calls.len() >= self.limit || page.looked >= MAX_LOOKED || own.is_late() {
                    return Ok(Some(Cursor { tape: tape.id.clone(), before }));
                }
            }
            if !more {
                return Ok(None);
            }
        }
    }

    /// The call at a place where something was found, if it is to be shown for this place.
    fn call(&self, own: &OwnTapes<'_>, tape: &TapeInfo, place: &Place) -> Result<Option<Map<String, Value>>, AskError> {
        if let Some(entry) = &place.end {
            let end = finished(entry).filter(|end| !own.is_about_tapes(end.backend.as_deref()));
            return Ok(end.map(|end| call_line::ended(&tape.id, entry, end)));
        }
        let Some(exchange) = place.exchange else { return Ok(None) };
        // A call is shown for the newest of its messages that has the text, or the next page would show it again.
        let newest = Query { exchange: Some(exchange), limit: Some(1), ..self.query.clone() };
        if own.places(tape, newest)?.0.first().is_some_and(|newest| newest.seq != place.seq) {
            return Ok(None);
        }
        // The store finds any image of a message, also one that was kept from the caller.
        let Some(message) = own.message(tape, exchange, self.query.clone())? else { return Ok(None) };
        let Some((mut line, backend)) = outline(own, tape, exchange)? else { return Ok(None) };
        let wanted = self.backend.is_none() || self.backend == backend;
        if !wanted || own.is_about_tapes(backend.as_deref()) {
            return Ok(None);
        }
        if let Some(body) = story::text(&message) {
            let shown = printable::one_line(&excerpt(&body, self.query.text.as_deref(), EXCERPT));
            line.insert("excerpt".into(), shown.into());
        }
        Ok(Some(line))
    }
}

/// The line of a call, and its backend.
type Outline = (Map<String, Value>, Option<String>);

fn outline(own: &OwnTapes<'_>, tape: &TapeInfo, exchange: u64) -> Result<Option<Outline>, AskError> {
    if let Some(end) = own.end(tape, exchange)? {
        let line = |finished: &FinishedEntry| {
            (call_line::ended(&tape.id, &end, finished), finished.backend.as_deref().map(str::to_owned))
        };
        return Ok(finished(&end).map(line));
    }
    let call = own.call(tape, exchange)?;
    let line = |story: Story<'_>| (call_line::of_story(&tape.id, &story), story.backend.map(str::to_owned));
    Ok(call.story().map(line))
}

fn told(page: Page, rest: Option<Cursor>) -> Value {
    let mut told = json!({"calls": page.calls});
    if let Some(rest) = rest {
        told["next_cursor"] = rest.text().into();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was_given() {
        for text in ["6a5b-01", "6a5b-01:17"] {
            assert_eq!(Cursor::read(text).map(|cursor| cursor.text()).as_deref(), Some(text));
        }
        for bad in ["", ":1", "a:", "a:x", "a:1:2"] {
            assert_eq!(Cursor::read(bad), None, "{bad}");
        }
    }
}
