//! What one caller may see of the tapes: its own calls.

use crate::ask_error::AskError;
use signalbox_engine::record::{Content, Entry, FinishedEntry, Hit, Query, StoreError, TapeInfo, TapeStore};
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
    pub(crate) fn query(&self, tape: &str, query: Query) -> Query {
        Query { tape: Some(tape.to_owned()), principal: Some(self.principal.to_owned()), ..query }
    }

    /// The entries that a query finds among the caller's own, and whether there are more.
    pub(crate) fn find(&self, tape: &str, query: Query) -> Result<(Vec<Entry>, bool), AskError> {
        let page = self.store.find(&self.query(tape, query))?;
        let own = |hit: &Hit| &*hit.entry.principal == self.principal;
        Ok((page.hits.into_iter().filter(own).map(|hit| hit.entry).collect(), page.more))
    }

    /// All entries of a call.
    pub(crate) fn call(&self, tape: &str, exchange: u64) -> Result<Vec<Entry>, AskError> {
        let query = Query { exchange: Some(exchange), limit: Some(MAX_ENTRIES), ..Query::default() };
        let (entries, _) = self.find(tape, query)?;
        match entries.is_empty() {
            true => Err(AskError::NoCall { tape: tape.to_owned(), exchange }),
            false => Ok(entries),
        }
    }

    /// The end of a call, if it is on the tape.
    pub(crate) fn end(&self, tape: &str, exchange: u64) -> Result<Option<Entry>, AskError> {
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
