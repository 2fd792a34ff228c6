//! How an audit log is kept.

use crate::maker::Logged;
use signalbox_seal::SigningKey;
use signalbox_tape::redact::Redactor;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of an audit log.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    /// The folder of the journals.
    pub folder: PathBuf,
    /// Which events are written down.
    pub logged: Logged,
    /// Takes secrets out of everything that callers, backends and rules put into words.
    pub redactor: Redactor,
    /// Arguments are written.
    pub payloads: bool,
    /// A call that takes as long is an event.
    pub slow: Duration,
    /// Records are on the disk itself, and not only in the memory of the system, before they count as written.
    pub fsync: bool,
    /// The sinks without which no call leaves.
    pub required: Vec<String>,
    /// Most bytes that wait for sinks.
    pub spool_max: u64,
    /// Signs heads and gaps.
    pub key: SigningKey,
    /// The chain is signed after this many records.
    pub head_every: u64,
    /// And so long after the first unsigned one.
    pub head_interval: Duration,
}
