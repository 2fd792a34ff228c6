//! `tapes_search`: finds calls by text and properties, newest first, in pages.

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

/// Allowed number of calls per page.
pub(crate) const LIMIT: RangeInclusive<u64> = 1..=100;
/// Default number of calls per page.
pub(crate) const DEFAULT_LIMIT: u64 = 20;
/// Names of the arguments.
pub(crate) const KEYS: [&str; 11] =
    ["text", "tape", "method", "tool", "backend", "outcome", "since", "until", "slower_than_ms", "limit", "cursor"];
/// Number of entries requested from the store at a time.
const PAGE: usize = 100;
/// Maximum number of entries examined by one query. The cursor continues after them.
const MAX_EXAMINED: usize = 5_000;
/// Maximum length of the message excerpt shown with a call, in characters.
const EXCERPT: usize = 160;

/// Parsed arguments of `tapes_search`.
#[derive(Debug)]
pub(crate) struct Search {
    query: Query,
    tape: Option<String>,
    backend: Option<String>,
    limit: usize,
    cursor: Option<Cursor>,
}

/// Start of a page: a tape, and the entry to continue before.
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

/// Page of results under construction.
#[derive(Default)]
struct Page {
    calls: Vec<Map<String, Value>>,
    looked: usize,
}

impl Search {
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
            // A request has no backend on arrival, so filter calls found by text one by one.
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

    /// Searches the tapes up to the end of a page.
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
                return Ok(page_json(page, Some(Cursor { tape: tape.id, before: None })));
            }
            let before = here.and_then(|cursor| cursor.before);
            if let Some(rest) = self.tape(own, &tape, before, &mut page)? {
                return Ok(page_json(page, Some(rest)));
            }
        }
        match (&self.cursor, begun) {
            (Some(cursor), false) => Err(AskError::NoTape(cursor.tape.clone())),
            _ => Ok(page_json(page, None)),
        }
    }

    /// Searches one tape. Returns the start of the next page, unless the end of the tape was reached.
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
                if page.calls.len() >= self.limit || page.looked >= MAX_EXAMINED || own.is_late() {
                    return Ok(Some(Cursor { tape: tape.id.clone(), before }));
                }
            }
            if !more {
                return Ok(None);
            }
        }
    }

    /// Returns the call at a hit, if this hit is the one to show it for.
    fn call(&self, own: &OwnTapes<'_>, tape: &TapeInfo, place: &Place) -> Result<Option<Map<String, Value>>, AskError> {
        if let Some(entry) = &place.end {
            let end = finished(entry).filter(|end| !own.is_about_tapes(end.backend.as_deref()));
            return Ok(end.map(|end| call_line::finished_call(&tape.id, entry, end)));
        }
        let Some(exchange) = place.exchange else { return Ok(None) };
        // Show a call only at its newest matching message. Otherwise, the next page would repeat it.
        let newest = Query { exchange: Some(exchange), limit: Some(1), ..self.query.clone() };
        if own.places(tape, newest)?.0.first().is_some_and(|newest| newest.seq != place.seq) {
            return Ok(None);
        }
        // The store matches any image of a message, even one that was withheld from the caller.
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

/// Formatted call with its backend.
type Outline = (Map<String, Value>, Option<String>);

fn outline(own: &OwnTapes<'_>, tape: &TapeInfo, exchange: u64) -> Result<Option<Outline>, AskError> {
    if let Some(end) = own.end(tape, exchange)? {
        let line = |finished: &FinishedEntry| {
            (call_line::finished_call(&tape.id, &end, finished), finished.backend.as_deref().map(str::to_owned))
        };
        return Ok(finished(&end).map(line));
    }
    let call = own.call(tape, exchange)?;
    let line = |story: Story<'_>| (call_line::of_story(&tape.id, &story), story.backend.map(str::to_owned));
    Ok(call.story().map(line))
}

fn page_json(page: Page, rest: Option<Cursor>) -> Value {
    let mut page_json = json!({"calls": page.calls});
    if let Some(rest) = rest {
        page_json["next_cursor"] = rest.text().into();
    }
    page_json
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
