//! Settings of an audit log.

use crate::event_builder::EventSelection;
use signalbox_seal::SigningKey;
use signalbox_tape::redact::Redactor;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct AuditSettings {
    /// Folder of the journals.
    pub folder: PathBuf,
    /// Kinds of events to record.
    pub logged: EventSelection,
    /// Redactor for all text from callers, backends and rules.
    pub redactor: Redactor,
    /// True if records contain arguments.
    pub payloads: bool,
    /// Duration from which a call counts as slow.
    pub slow: Duration,
    /// True if records are synced to disk before they count as written.
    pub fsync: bool,
    /// Names of the sinks that must have an intent before its call is forwarded.
    pub required: Vec<String>,
    /// Maximum number of bytes that wait for sinks.
    pub spool_max: u64,
    /// Key that signs heads and gaps.
    pub key: SigningKey,
    /// Number of records after which the chain is signed.
    pub head_every: u64,
    /// Time after the first unsigned record at which the chain is signed.
    pub head_interval: Duration,
}
