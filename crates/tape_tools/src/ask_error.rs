//! Why a question has no answer.

use signalbox_embedded::BadArguments;
use signalbox_engine::record::StoreError;

/// Why a question has no answer. The text is for whoever asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AskError {
    /// The arguments do not fit.
    #[error("{0}")]
    Arguments(#[from] BadArguments),
    /// The store says no.
    #[error("the tapes cannot be read: {0}")]
    Store(#[from] StoreError),
    /// There is no such tape.
    #[error("there is no tape `{0}`; tapes_stats lists the tapes with your calls")]
    NoTape(String),
    /// There is no such call, or it is somebody else's.
    #[error("you have no call {exchange} on tape {tape}; tapes_search finds your calls")]
    NoCall {
        /// The tape.
        tape: String,
        /// The call.
        exchange: u64,
    },
    /// There is no call of a tool on a tape.
    #[error("you have no call of `{tool}` on tape {tape} whose answer was recorded")]
    NoCallOf {
        /// The tape.
        tape: String,
        /// The tool.
        tool: String,
    },
    /// A message cannot be compared.
    #[error("the {what} of call {exchange} on tape {tape} was not recorded, so it cannot be compared")]
    NotRecorded {
        /// `request` or `answer`.
        what: &'static str,
        /// The tape.
        tape: String,
        /// The call.
        exchange: u64,
    },
    /// The thread that read the store ended without a result.
    #[error("the question was given up before it had an answer; ask again")]
    Interrupted,
}
