//! Port to the redaction of tapes, for texts that quote values of a message and are logged or recorded.

use bytes::Bytes;
use std::fmt::Debug;

/// Removes from messages what records must not show.
pub trait MessageRedactor: Debug + Send + Sync {
    /// Redacts a message. `method` is its own, or that of the request that it answers.
    fn redact(&self, message: &Bytes, method: Option<&str>) -> RedactedMessage;
}

/// Result of the redaction of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RedactedMessage {
    /// The message needs no redaction.
    Same,
    /// The message after redaction.
    Changed(Bytes),
    /// Records must show nothing of the message.
    Withheld,
}
