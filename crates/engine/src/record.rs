//! What a tape keeps, as plain data, and the port behind which it is stored.
//!
//! A tape is one run of one process: what passed, in one order and on one clock, with every decision taken on the way. The
//! recorder makes entries of facts, a store keeps them, a tape file carries them elsewhere.

mod around;
mod entry;
mod message;
mod query;
mod store;
mod tape_info;

pub use around::{BackendSeen, ClientEntry, Gap, LostEntry, RefusedEntry, RulesEntry, SessionInfo};
pub use entry::{Content, DecisionEntry, Entry, FinishedEntry};
pub use message::{Body, MessageEntry, MessageKind};
pub use query::{EntryPage, Hit, MethodStats, NotificationStats, Query, Stats};
pub use store::{Pruned, Retention, StoreError, TapeStore, TapeWriter};
pub use tape_info::{TapeInfo, TapeKind};
