//! What a store derives from the entries of a tape and readers see besides them: totals, sessions, exchanges and
//! notifications. [`TapeTables::add`] states the derivation, against which the verification of a sealed tape holds a
//! store.

use super::around::SessionInfo;
use super::entry::{Content, Entry, FinishedEntry};
use super::message::{MessageEntry, MessageKind};
use super::query::NotificationStats;
use super::tally::SUCCESS;
use crate::fact::Point;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tables of one tape, at one moment.
#[derive(Clone, Default, Debug)]
pub struct TapeTables {
    /// Totals of the tape.
    pub totals: TapeTotals,
    /// Sessions by their number on the tape.
    pub sessions: BTreeMap<u64, SessionRow>,
    /// Exchanges by their number on the tape.
    pub exchanges: BTreeMap<u64, ExchangeRow>,
    /// Counts of notifications by method.
    pub notifications: BTreeMap<Arc<str>, NotificationStats>,
    /// Names that rows share.
    names: BTreeSet<Arc<str>>,
}

/// Totals of a tape.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TapeTotals {
    /// Number of entries of the tape.
    pub entries: u64,
    /// Earliest time of an entry.
    pub first_at: Option<u64>,
    /// Latest time of an entry.
    pub last_at: Option<u64>,
    /// Sequence number of the last entry.
    pub last_seq: u64,
    /// True if the clock went backwards.
    pub disordered: bool,
    /// Number of messages of each kind, in the order of [`MessageKind::ALL`].
    pub messages: [u64; 5],
    /// Number of missing facts.
    pub gaps: u64,
    /// Size of the messages as they passed.
    pub passed: u64,
}

/// Session of a tape.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SessionRow {
    /// Time of its first description.
    pub began: u64,
    /// Time of its end.
    pub ended: Option<u64>,
    /// Last description of the session.
    pub info: SessionInfo,
}

/// Exchange of a tape. What its end states is absent until then.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ExchangeRow {
    /// Sequence number of its first entry.
    pub first: u64,
    /// Sequence number of its last entry.
    pub last: u64,
    /// Method of its request.
    pub method: Option<Arc<str>>,
    /// Tool, prompt or URI.
    pub subject: Option<Arc<str>>,
    /// Label of its outcome.
    pub outcome: Option<Arc<str>>,
    /// True if it succeeded.
    pub well: Option<bool>,
    /// Duration of the exchange in nanoseconds.
    pub took: Option<u64>,
    /// Size of the request in bytes.
    pub bytes_in: Option<u64>,
    /// Size of the answer in bytes.
    pub bytes_out: Option<u64>,
}

impl TapeTables {
    /// Creates tables with these totals and no rows.
    #[must_use]
    pub fn new(totals: TapeTotals) -> Self {
        Self { totals, ..Self::default() }
    }

    /// Adds what an entry contributes. Entries come in order.
    pub fn add(&mut self, entry: &Entry) {
        self.totals.add(entry);
        if let Some(number) = entry.exchange {
            self.add_exchange(number, entry);
        }
        match (&entry.content, entry.session) {
            (Content::Session(info), Some(number)) => {
                let row = SessionRow { began: entry.at, ..SessionRow::default() };
                self.sessions.entry(number).or_insert(row).info = info.clone();
            }
            (Content::SessionEnded, Some(number)) => {
                if let Some(session) = self.sessions.get_mut(&number) {
                    session.ended = Some(entry.at);
                }
            }
            (Content::Message(message), _) => self.add_notification(message),
            _ => {}
        }
    }

    /// Returns this name, in memory once however many rows have it.
    pub fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        self.names.insert(Arc::clone(&new));
        new
    }

    fn add_exchange(&mut self, number: u64, entry: &Entry) {
        let new = ExchangeRow { first: entry.seq, ..ExchangeRow::default() };
        self.exchanges.entry(number).or_insert(new).last = entry.seq;
        let Content::Finished(finished) = &entry.content else { return };
        let end = self.end(finished);
        if let Some(row) = self.exchanges.get_mut(&number) {
            let subject = end.subject.or(row.subject.take());
            *row = ExchangeRow { first: row.first, last: row.last, subject, ..end };
        }
    }

    fn end(&mut self, finished: &FinishedEntry) -> ExchangeRow {
        ExchangeRow {
            method: Some(self.name(&finished.method)),
            subject: finished.subject.as_deref().map(|subject| self.name(subject)),
            outcome: Some(self.name(&finished.outcome)),
            well: Some(finished.outcome == SUCCESS),
            took: Some(finished.took.min(i64::MAX as u64)),
            bytes_in: Some(finished.bytes_in),
            bytes_out: Some(finished.bytes_out),
            ..ExchangeRow::default()
        }
    }

    fn add_notification(&mut self, message: &MessageEntry) {
        let (MessageKind::Notification, Some(method)) = (message.kind, &message.method) else { return };
        let method = self.name(method);
        let counts = self.notifications.entry(method).or_default();
        match message.point {
            Point::ClientIn | Point::BackendIn => counts.came += 1,
            Point::BackendOut | Point::ClientOut => counts.went += 1,
        }
    }
}

impl TapeTotals {
    fn add(&mut self, entry: &Entry) {
        self.entries += 1;
        self.disordered |= self.last_at.is_some_and(|last| entry.at < last);
        self.first_at = Some(self.first_at.map_or(entry.at, |first| first.min(entry.at)));
        self.last_at = Some(self.last_at.map_or(entry.at, |last| last.max(entry.at)));
        self.last_seq = entry.seq;
        match &entry.content {
            Content::Message(message) => {
                let place = MessageKind::ALL.iter().position(|kind| *kind == message.kind).unwrap_or(0);
                self.messages[place] += 1;
                self.passed = self.passed.saturating_add(message.length);
            }
            Content::Gap(gap) => self.gaps = self.gaps.saturating_add(gap.facts),
            _ => {}
        }
    }
}
