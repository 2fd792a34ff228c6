//! Counts the calls that a query matches by method, subject, backend, principal, outcome and error code.

use super::pages::Pages;
use super::value_counts::{ValueCounts, name};
use signalbox_engine::record::{Content, Entry, FinishedEntry, Query, StoreError, TapeStore};
use std::collections::{BTreeSet, HashMap};

/// Maximum number of unfinished calls that are tracked per tape; further ones are only counted.
const MAX_OPEN: usize = 500_000;
/// Maximum number of recently ended calls that are remembered, because late entries of theirs may still follow.
const MAX_ENDED: usize = 100_000;
/// Maximum number of calls that are looked up one by one; for more, the whole tape is read.
const MAX_LOOKUPS: usize = 2_000;
/// Maximum number of entries of one call that are read.
const MAX_ENTRIES: usize = 1_000;
/// Outcome shown for a call whose end is not on the tape.
const OPEN: &str = "(not over)";

/// Calls by their properties. A call counts if at least one of its entries matches the query.
#[derive(Debug, Default)]
pub struct Facets {
    pub calls: u64,
    /// Number of matching entries, including those that belong to no call.
    pub entries: u64,
    /// Number of calls beyond the maximum that is tracked.
    pub uncounted: u64,
    pub methods: ValueCounts<String>,
    /// Calls by tool, prompt or URI.
    pub subjects: ValueCounts<String>,
    pub backends: ValueCounts<String>,
    pub principals: ValueCounts<String>,
    pub outcomes: ValueCounts<String>,
    /// Calls by error code.
    pub codes: ValueCounts<i64>,
}

/// Matching calls of a tape whose end has not been read yet, with the code of their error.
type Open = HashMap<u64, Option<i64>>;

/// Counts what a query matches, in its tape or in all tapes.
///
/// # Errors
/// Returns the error of the store.
pub fn facets_of(store: &dyn TapeStore, query: &Query) -> Result<Facets, StoreError> {
    let tapes = match &query.tape {
        Some(tape) => vec![store.tape(tape)?.id],
        None => store.tapes()?.into_iter().map(|(tape, _)| tape.id).collect(),
    };
    let mut facets = Facets::default();
    for tape in tapes {
        facets.tape(store, Query { tape: Some(tape), after: None, ..query.clone() })?;
    }
    Ok(facets)
}

impl Facets {
    fn tape(&mut self, store: &dyn TapeStore, query: Query) -> Result<(), StoreError> {
        let whole = Query { tape: query.tape.clone(), ..Query::default() };
        let (mut open, mut ended) = (Open::new(), BTreeSet::new());
        for entry in Pages::new(store, query) {
            let entry = entry?;
            self.entries += 1;
            let Some(number) = entry.exchange else { continue };
            if let Content::Finished(finished) = &entry.content {
                let code = open.remove(&number).flatten();
                self.ended(&entry, finished, code);
                ended.insert(number);
                if ended.len() > MAX_ENDED {
                    ended.pop_first();
                }
            } else if ended.contains(&number) {
                // The last image of a call may come after its end.
            } else if open.len() < MAX_OPEN || open.contains_key(&number) {
                let code = open.entry(number).or_default();
                *code = code_of(&entry).or(*code);
            } else {
                self.uncounted += 1;
            }
        }
        if open.len() > MAX_LOOKUPS {
            self.seek(Pages::new(store, whole.clone()), &mut open)?;
        }
        self.uncounted += open.len().saturating_sub(MAX_LOOKUPS) as u64;
        let mut rest: Vec<u64> = open.into_keys().collect();
        rest.sort_unstable();
        for number in rest.into_iter().take(MAX_LOOKUPS) {
            let one = Query { exchange: Some(number), limit: Some(MAX_ENTRIES), ..whole.clone() };
            let entries: Vec<Entry> = store.find(&one)?.hits.into_iter().map(|hit| hit.entry).collect();
            self.call(&entries);
        }
        Ok(())
    }

    /// Searches a whole tape for the ends of the given calls.
    fn seek(&mut self, entries: Pages<'_>, open: &mut Open) -> Result<(), StoreError> {
        for entry in entries {
            let entry = entry?;
            let Some(number) = entry.exchange else { continue };
            match &entry.content {
                Content::Finished(finished) => {
                    if let Some(code) = open.remove(&number) {
                        self.ended(&entry, finished, code);
                    }
                }
                _ => {
                    if let (Some(code), Some(known)) = (code_of(&entry), open.get_mut(&number)) {
                        *known = Some(code);
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts one call, given all its entries.
    fn call(&mut self, entries: &[Entry]) {
        let code = entries.iter().rev().find_map(code_of);
        for entry in entries {
            if let Content::Finished(finished) = &entry.content {
                return self.ended(entry, finished, code);
            }
        }
        let messages = || {
            entries.iter().filter_map(|entry| match &entry.content {
                Content::Message(message) => Some(message),
                _ => None,
            })
        };
        let method = messages().find_map(|message| message.method.clone());
        let finished = FinishedEntry {
            method: method.unwrap_or_default(),
            subject: messages().find_map(|message| message.subject.clone()),
            backend: messages().find_map(|message| message.backend.clone()),
            outcome: OPEN.into(),
            ..FinishedEntry::default()
        };
        if let Some(entry) = entries.first() {
            self.ended(entry, &finished, code);
        }
    }

    fn ended(&mut self, entry: &Entry, finished: &FinishedEntry, code: Option<i64>) {
        self.calls += 1;
        self.methods.add(name(&finished.method));
        self.outcomes.add(name(&finished.outcome));
        self.principals.add(name(&entry.principal));
        for (counts, value) in [(&mut self.subjects, &finished.subject), (&mut self.backends, &finished.backend)] {
            if let Some(value) = value {
                counts.add(name(value));
            }
        }
        if let Some(code) = code {
            self.codes.add(code);
        }
    }
}

fn code_of(entry: &Entry) -> Option<i64> {
    match &entry.content {
        Content::Message(message) => message.error_code,
        _ => None,
    }
}
