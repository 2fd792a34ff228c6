//! The audit log: who called what, the decision and the outcome, in tamper-evident records.
//!
//! ```text
//!   intend() ──────► intake ──► maker ──► chain ──► journal ──┬──► file sink ─────► a file a day
//!   fact(), facts()  (bounded)  (events)  (hashes,  (on disk) ├──► database sink ─► SQLite or PostgreSQL
//!                                          heads)      │      ├──► remote sink ───► POST, in batches
//!                                                      │      ├──► syslog sink ───► RFC 5424
//!                       the call may leave ◄───────────┘      └──► alerts ────────► POST, one each
//! ```
//!
//! One thread, `audit`, turns inputs into records, chains their hashes, and appends them to the journal in the data
//! folder. Each sink has a thread of its own that reads the journal at its own pace and stores its position. So the
//! journal is the spool of all sinks, and outlives the process.
//!
//! Invariants:
//!
//! - **An intent is on disk before its call leaves**: `intend` resolves once the journal and every required sink have
//!   it.
//! - **A sink that fails or hangs delays only** the calls for which it is required. Its records are retried until it
//!   takes them.
//! - **No record is dropped silently.** A sink that falls behind by more than `spool_max` gets a signed gap in place of
//!   what it missed. Records that cannot be written to the journal are counted, and a later record states the count.
//! - **A record is written once and never changed.** Every sink receives the same bytes, so that sinks can be compared
//!   and each of them verified.
//! - **Records contain arguments only if configured**, and secrets are redacted first.

mod admin_action;
mod arguments;
mod broken_glass;
mod call_status;
mod chain;
mod columns;
mod definition_change;
pub mod ends;
mod event;
mod event_builder;
pub mod export;
pub mod files;
mod intake;
mod journal;
mod log;
mod place;
mod progress;
mod pruning;
mod record;
mod risk;
pub mod search;
mod settings;
mod signed;
pub mod sinks;
mod verify;
mod violation;

pub use admin_action::{AdminAction, AdminOrigin, AdminOutcome};
pub use broken_glass::BrokenGlass;
pub use call_status::CallStatus;
pub use chain::ChainPlace;
pub use definition_change::DefinitionChange;
pub use event::{AuditEvent, AuditNote, EventType, RiskLevel};
pub use event_builder::{EventBuilder, EventSelection, MAX_ARGUMENTS, MAX_OPEN, TextPolicy};
pub use intake::MAX_WAITING;
pub use journal::{HEAD_FILE, MAX_CHAINS, undelivered};
pub use log::{AuditLog, StartError};
pub use place::SinkPlace;
pub use progress::{AuditStats, SinkStats};
pub use pruning::Pruner;
pub use record::{AuditRecord, BadRecord};
pub use settings::AuditSettings;
pub use signed::SignedPlace;
pub use verify::{AuditFault, AuditFaultKind, AuditReport, AuditVerdict, AuditVerifier, CallVerifier};
