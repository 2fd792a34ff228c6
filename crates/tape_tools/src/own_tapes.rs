//! What one caller may see of the tapes: its own calls, as it sent them and as it was answered.

use crate::ask_error::AskError;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    Content, Entry, FinishedEntry, Hit, MessageEntry, Query, StoreError, TapeInfo, TapeStore,
};
use signalbox_tape::explain::has_reached;
use signalbox_tape::{Story, sent};
use std::time::Instant;

/// Most entries of one call that are read.
const MAX_ENTRIES: usize = 1_000;

/// The entries of one principal, in all tapes of a store.
pub(crate) struct OwnTapes<'a> {
    /// Where they are.
    pub(crate) store: &'a dyn TapeStore,
    /// Whose.
    pub(crate) principal: &'a str,
    /// The backend that asks. Its own calls are left out.
    pub(crate) asking: &'a str,
    /// When the reading has to end.
    pub(crate) until: Instant,
}

/// Where a query found something.
pub(crate) struct Place {
    /// The entry.
    pub(crate) seq: u64,
    /// Its exchange.
    pub(crate) exchange: Option<u64>,
    /// The entry itself, if it is the end of its exchange.
    pub(crate) end: Option<Entry>,
}

/// A call of the caller.
pub(crate) struct OwnCall {
    /// What the caller may read of it.
    pub(crate) entries: Vec<Entry>,
    /// True if it reached a backend.
    pub(crate) reached_backend: bool,
    /// Its backend, if it has one.
    backend: Option<String>,
}

impl OwnCall {
    /// What its entries say together; none if there are none.
    pub(crate) fn story(&self) -> Option<Story<'_>> {
        let story = Story::new(&self.entries)?;
        Some(Story { backend: self.backend.as_deref(), ..story })
    }
}

impl OwnTapes<'_> {
    /// True if there is no time left.
    pub(crate) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// The tape of this name.
    pub(crate) fn tape(&self, name: &str) -> Result<TapeInfo, AskError> {
        self.store.tape(name).map_err(|error| match error {
            StoreError::NoTape(name) => AskError::NoTape(name),
            other => AskError::Store(other),
        })
    }

    /// The tape of this name, or all of them, the newest first.
    pub(crate) fn tapes(&self, named: Option<&str>) -> Result<Vec<TapeInfo>, AskError> {
        match named {
            Some(name) => Ok(vec![self.tape(name)?]),
            None => Ok(self.store.tapes()?.into_iter().map(|(tape, _)| tape).collect()),
        }
    }

    /// Narrows a query to one tape and the caller's own entries.
    pub(crate) fn query(&self, tape: &TapeInfo, query: Query) -> Query {
        Query { tape: Some(tape.id.clone()), principal: Some(self.principal.to_owned()), ..query }
    }

    /// The entries that a query finds among the caller's own, as the caller may read them, and whether there are more.
    pub(crate) fn find(&self, tape: &TapeInfo, query: Query) -> Result<(Vec<Entry>, bool), AskError> {
        let (entries, more) = self.recorded(tape, query)?;
        Ok((entries.into_iter().filter_map(|entry| sent::as_sent(tape.kind, entry)).collect(), more))
    }

    /// The places of the caller's own entries that a query finds, in whichever image of a message, and whether there are more.
    /// What is at a place must be asked for with [`find`](Self::find): the image may have been kept from the caller.
    pub(crate) fn places(&self, tape: &TapeInfo, query: Query) -> Result<(Vec<Place>, bool), AskError> {
        let (entries, more) = self.recorded(tape, query)?;
        let place = |entry: Entry| Place {
            seq: entry.seq,
            exchange: entry.exchange,
            end: matches!(entry.content, Content::Finished(_)).then_some(entry),
        };
        Ok((entries.into_iter().map(place).collect(), more))
    }

    fn recorded(&self, tape: &TapeInfo, query: Query) -> Result<(Vec<Entry>, bool), AskError> {
        let page = self.store.find(&self.query(tape, query))?;
        let own = |hit: &Hit| &*hit.entry.principal == self.principal;
        Ok((page.hits.into_iter().filter(own).map(|hit| hit.entry).collect(), page.more))
    }

    /// The newest message that the caller sent or was sent in an exchange and that a query finds.
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

    /// A call, with all its entries that the caller may read.
    pub(crate) fn call(&self, tape: &TapeInfo, exchange: u64) -> Result<OwnCall, AskError> {
        let query = Query { exchange: Some(exchange), limit: Some(MAX_ENTRIES), ..Query::default() };
        let (entries, _) = self.recorded(tape, query)?;
        let reached_backend = has_reached(&entries);
        let backend = Story::new(&entries).and_then(|story| story.backend.map(str::to_owned));
        let entries: Vec<Entry> = entries.into_iter().filter_map(|entry| sent::as_sent(tape.kind, entry)).collect();
        match entries.is_empty() {
            true => Err(AskError::NoCall { tape: tape.id.clone(), exchange }),
            false => Ok(OwnCall { entries, reached_backend, backend }),
        }
    }

    /// The end of a call, if it is on the tape.
    pub(crate) fn end(&self, tape: &TapeInfo, exchange: u64) -> Result<Option<Entry>, AskError> {
        let query = Query { exchange: Some(exchange), only_ends: true, limit: Some(1), ..Query::default() };
        Ok(self.find(tape, query)?.0.into_iter().next())
    }

    /// True for a call of these tools.
    pub(crate) fn is_about_tapes(&self, backend: Option<&str>) -> bool {
        backend == Some(self.asking)
    }
}

/// What an entry says of the end of a call.
pub(crate) fn finished(entry: &Entry) -> Option<&FinishedEntry> {
    match &entry.content {
        Content::Finished(finished) => Some(finished),
        _ => None,
    }
}
