//! Contents of a tape as plain data, and the port to the stores of tapes.
//!
//! A tape records one run of one process, or a part of it: every message in one order and on one clock, with every
//! decision. The recorder turns facts into entries, a store persists them, and a tape file transfers them.

mod around;
mod durations;
mod entry;
mod message;
mod query;
mod store;
mod tables;
pub mod tally;
mod tape_info;

pub use around::{BackendOffer, ClientEntry, Gap, LostEntry, RefusedEntry, RulesEntry, SessionInfo};
pub use entry::{Content, DecisionEntry, Entry, FinishedEntry};
pub use message::{Body, MessageEntry, MessageKind};
pub use query::{EntryPage, Hit, MethodStats, NotificationStats, Query, Stats};
pub use store::{PruneReport, Retention, StoreError, TapeStore, TapeWriter};
pub use tables::{ExchangeRow, SessionRow, TapeTables, TapeTotals};
pub use tape_info::{TapeInfo, TapeKind};
