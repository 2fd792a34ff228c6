//! Errors of the tape tools.

use signalbox_embedded::BadArguments;
use signalbox_engine::record::StoreError;

/// Error of a query. The text is shown to the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AskError {
    #[error("{0}")]
    Arguments(#[from] BadArguments),
    #[error("the tapes cannot be read: {0}")]
    Store(#[from] StoreError),
    #[error("there is no tape `{0}`; tapes_stats lists the tapes with your calls")]
    NoTape(String),
    /// The call does not exist or belongs to another principal.
    #[error("you have no call {exchange} on tape {tape}; tapes_search finds your calls")]
    NoCall {
        tape: String,
        /// Exchange number of the call.
        exchange: u64,
    },
    /// The tape has no answered call of the tool.
    #[error("you have no call of `{tool}` on tape {tape} whose answer was recorded")]
    NoCallOf { tape: String, tool: String },
    /// A message was not recorded.
    #[error("the {what} of call {exchange} on tape {tape} was not recorded, so it cannot be compared")]
    NotRecorded {
        /// Name of the message: `request` or `answer`.
        what: &'static str,
        tape: String,
        /// Exchange number of the call.
        exchange: u64,
    },
    /// The reading thread ended without a result.
    #[error("the question was given up before it had an answer; ask again")]
    Interrupted,
}
