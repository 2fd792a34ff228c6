//! Access to a caller's own calls, as it sent them and as it was answered.

use crate::ask_error::AskError;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    Content, Entry, FinishedEntry, Hit, MessageEntry, Query, StoreError, TapeInfo, TapeStore,
};
use signalbox_tape::explain::has_reached;
use signalbox_tape::{Story, sent};
use std::time::Instant;

/// Maximum number of entries read of one call.
const MAX_ENTRIES: usize = 1_000;

/// Entries of one principal on all tapes of a store.
pub(crate) struct OwnTapes<'a> {
    pub(crate) store: &'a dyn TapeStore,
    pub(crate) principal: &'a str,
    /// Backend that runs the query. Its own calls are left out.
    pub(crate) asking: &'a str,
    /// Deadline of the query.
    pub(crate) until: Instant,
}

/// Position of a hit.
pub(crate) struct Place {
    /// Position of the entry on its tape.
    pub(crate) seq: u64,
    pub(crate) exchange: Option<u64>,
    /// Entry, if it is the end of its exchange.
    pub(crate) end: Option<Entry>,
}

/// Call of the principal.
pub(crate) struct OwnCall {
    /// Entries that the caller may read.
    pub(crate) entries: Vec<Entry>,
    /// Set if the call reached a backend.
    pub(crate) reached_backend: bool,
    backend: Option<String>,
}

impl OwnCall {
    /// Summarizes the entries, or returns `None` if there are none.
    pub(crate) fn story(&self) -> Option<Story<'_>> {
        let story = Story::new(&self.entries)?;
        Some(Story { backend: self.backend.as_deref(), ..story })
    }
}

impl OwnTapes<'_> {
    /// Returns `true` if the deadline has passed.
    pub(crate) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Looks up a tape by name.
    pub(crate) fn tape(&self, name: &str) -> Result<TapeInfo, AskError> {
        self.store.tape(name).map_err(|error| match error {
            StoreError::NoTape(name) => AskError::NoTape(name),
            other => AskError::Store(other),
        })
    }

    /// Returns the tape of this name, or all tapes, newest first.
    pub(crate) fn tapes(&self, named: Option<&str>) -> Result<Vec<TapeInfo>, AskError> {
        match named {
            Some(name) => Ok(vec![self.tape(name)?]),
            None => Ok(self.store.tapes()?.into_iter().map(|(tape, _)| tape).collect()),
        }
    }

    /// Restricts a query to one tape and the caller's own entries.
    pub(crate) fn query(&self, tape: &TapeInfo, query: Query) -> Query {
        Query { tape: Some(tape.id.clone()), principal: Some(self.principal.to_owned()), ..query }
    }

    /// Returns the caller's own entries that match, in the form that the caller may read, and `true` if there are more.
    pub(crate) fn find(&self, tape: &TapeInfo, query: Query) -> Result<(Vec<Entry>, bool), AskError> {
        let (entries, more) = self.find_recorded(tape, query)?;
        Ok((entries.into_iter().filter_map(|entry| sent::as_sent(tape.kind, entry)).collect(), more))
    }

    /// Returns the positions of the caller's own entries that match in any image of a message, and `true` if there are
    /// more. Use [`find`](Self::find) to read an entry: the matching image may have been withheld from the caller.
    pub(crate) fn places(&self, tape: &TapeInfo, query: Query) -> Result<(Vec<Place>, bool), AskError> {
        let (entries, more) = self.find_recorded(tape, query)?;
        let place = |entry: Entry| Place {
            seq: entry.seq,
            exchange: entry.exchange,
            end: matches!(entry.content, Content::Finished(_)).then_some(entry),
        };
        Ok((entries.into_iter().map(place).collect(), more))
    }

    fn find_recorded(&self, tape: &TapeInfo, query: Query) -> Result<(Vec<Entry>, bool), AskError> {
        let page = self.store.find(&self.query(tape, query))?;
        let own = |hit: &Hit| &*hit.entry.principal == self.principal;
        Ok((page.hits.into_iter().filter(own).map(|hit| hit.entry).collect(), page.more))
    }

    /// Returns the newest matching message of an exchange among those that the caller sent or received.
    pub(crate) fn message(
        &self,
        tape: &TapeInfo,
        exchange: u64,
        query: Query,
    ) -> Result<Option<MessageEntry>, AskError> {
        let client_side = !sent::is_client_side(tape.kind, Point::BackendIn);
        let query = Query { exchange: Some(exchange), limit: Some(1), client_side, after: None, ..query };
        let found = self.find(tape, query)?.0.into_iter().next();
        Ok(found.and_then(|entry| match entry.content {
            Content::Message(message) => Some(message),
            _ => None,
        }))
    }

    /// Loads a call with all entries that the caller may read.
    pub(crate) fn call(&self, tape: &TapeInfo, exchange: u64) -> Result<OwnCall, AskError> {
        let query = Query { exchange: Some(exchange), limit: Some(MAX_ENTRIES), ..Query::default() };
        let (entries, _) = self.find_recorded(tape, query)?;
        let reached_backend = has_reached(&entries);
        let backend = Story::new(&entries).and_then(|story| story.backend.map(str::to_owned));
        let entries: Vec<Entry> = entries.into_iter().filter_map(|entry| sent::as_sent(tape.kind, entry)).collect();
        match entries.is_empty() {
            true => Err(AskError::NoCall { tape: tape.id.clone(), exchange }),
            false => Ok(OwnCall { entries, reached_backend, backend }),
        }
    }

    /// Returns the end of a call, if it is on the tape.
    pub(crate) fn end(&self, tape: &TapeInfo, exchange: u64) -> Result<Option<Entry>, AskError> {
        let query = Query { exchange: Some(exchange), only_ends: true, limit: Some(1), ..Query::default() };
        Ok(self.find(tape, query)?.0.into_iter().next())
    }

    /// Returns `true` for a call of these tools.
    pub(crate) fn is_about_tapes(&self, backend: Option<&str>) -> bool {
        backend == Some(self.asking)
    }
}

/// Returns the entry's content if it is the end of a call.
pub(crate) fn finished(entry: &Entry) -> Option<&FinishedEntry> {
    match &entry.content {
        Content::Finished(finished) => Some(finished),
        _ => None,
    }
}
