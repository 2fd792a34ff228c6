//! The audit log: who called what, what was decided about it and what came of it, in records that cannot be changed unseen.
//!
//! ```text
//!   intend() ──────► intake ──► maker ──► chain ──► journal ──┬──► file sink ─────► a file a day
//!   fact(), facts()  (bounded)  (events)  (hashes,  (on disk) ├──► database sink ─► SQLite or PostgreSQL
//!                                          heads)      │      ├──► remote sink ───► POST, in batches
//!                                                      │      ├──► syslog sink ───► RFC 5424
//!                       the call may leave ◄───────────┘      └──► alerts ────────► POST, one each
//! ```
//!
//! One thread, `audit`, makes records of what it is told, gives each its place in a chain of hashes, and appends them to the
//! journal in the data folder. Each sink has a thread of its own that reads the journal at its own pace and remembers how far it
//! came. So the journal is the spool of all of them, and outlives the process.
//!
//! What holds at any time:
//!
//! - **An intent is on disk before its call leaves**: `intend` resolves once the journal has it, and every sink that is required.
//! - **A sink that fails or hangs holds up nobody** but the calls for which it is required. It is tried again until it takes its
//!   records.
//! - **Nothing is dropped in silence.** A sink that falls behind by more than `spool_max` gets a signed gap in place of what it
//!   missed. What could not be written to the journal at all is counted, and told by a record as soon as one can be written.
//! - **A record is written once and never changed.** Every sink gets the same bytes, so that sinks can be compared, and any of
//!   them verified.
//! - **Arguments are in records only where that is wanted**, and secrets are taken out of them before.

mod admin_action;
mod broken_glass;
mod chain;
mod columns;
pub mod ends;
mod event;
pub mod export;
pub mod files;
mod intake;
mod journal;
mod log;
mod maker;
mod place;
mod progress;
mod pruning;
mod record;
mod risk;
pub mod search;
mod settings;
mod signed;
pub mod sinks;
mod status;
mod verify;
mod violation;

pub use admin_action::{AdminAction, AdminOrigin, AdminOutcome};
pub use broken_glass::BrokenGlass;
pub use chain::ChainPlace;
pub use event::{AuditEvent, EventType, Note, RiskLevel};
pub use intake::MAX_WAITING;
pub use journal::{HEAD_FILE, MAX_CHAINS, undelivered};
pub use log::{AuditLog, StartError};
pub use maker::{Logged, MAX_ARGUMENTS, MAX_OPEN, Maker, Words};
pub use place::SinkPlace;
pub use progress::{AuditStats, SinkStats};
pub use pruning::Pruner;
pub use record::{BadRecord, Record};
pub use settings::AuditSettings;
pub use signed::SignedPlace;
pub use status::Status;
pub use verify::{AuditFault, AuditReport, AuditVerifier, CallVerifier, FaultKind, Verdict};
