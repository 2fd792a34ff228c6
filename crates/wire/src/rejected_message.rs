//! Reasons for rejecting a message, and the id to answer to.

use crate::codes;
use crate::id::RawId;
use crate::json::SyntaxError;

/// Reason why bytes are not a JSON-RPC message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// The bytes are not JSON.
    #[error("not JSON: expected {expected} at byte {at}")]
    NotJson {
        /// Position of the first unexpected byte.
        at: usize,
        /// Description of the expected token.
        expected: &'static str,
    },
    /// The top level is an array where a single message is required.
    #[error("a batch is not accepted here")]
    Batch,
    /// The batch has no messages.
    #[error("the batch is empty")]
    EmptyBatch,
    /// The batch has too many messages.
    #[error("the batch holds more than {max} messages")]
    BatchTooLong {
        /// Maximum number of messages.
        max: usize,
    },
    /// The top level is neither an object nor an array.
    #[error("a message must be an object")]
    NotObject,
    /// The `jsonrpc` member is missing.
    #[error("member \"jsonrpc\" is missing")]
    MissingVersion,
    /// The `jsonrpc` member is not `"2.0"`.
    #[error("member \"jsonrpc\" must be \"2.0\"")]
    WrongVersion,
    /// The id is missing where it is required, null on a request, or neither string nor number.
    #[error("member \"id\" must be a string or a number")]
    InvalidId,
    /// The method is not a string.
    #[error("member \"method\" must be a string")]
    InvalidMethod,
    /// The params are neither object nor array.
    #[error("member \"params\" must be an object or an array")]
    InvalidParams,
    /// The error is not an object.
    #[error("member \"error\" must be an object")]
    InvalidError,
    /// The message has more than one of method, result and error.
    #[error("only one of \"method\", \"result\" and \"error\" may be present")]
    Ambiguous,
    /// The message has neither method nor result nor error.
    #[error("one of \"method\", \"result\" and \"error\" must be present")]
    Empty,
    /// A member of the envelope occurs twice.
    #[error("member \"{0}\" occurs twice")]
    DuplicateMember(&'static str),
    /// The message is too large for 32-bit positions.
    #[error("the message is larger than 4 GiB")]
    TooLarge,
}

impl EnvelopeError {
    /// Returns the JSON-RPC error code.
    #[must_use]
    pub fn code(&self) -> i64 {
        match self {
            Self::NotJson { .. } => codes::PARSE_ERROR,
            _ => codes::INVALID_REQUEST,
        }
    }
}

impl From<SyntaxError> for EnvelopeError {
    fn from(malformed: SyntaxError) -> Self {
        Self::NotJson { at: malformed.at, expected: malformed.expected }
    }
}

/// Rejected message, with its id if one could be read, so that the error can be addressed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{error}")]
pub struct RejectedMessage {
    /// Reason for the rejection.
    pub error: EnvelopeError,
    /// Id to answer to. `None` if the bytes are not JSON.
    pub id: Option<RawId>,
}

impl RejectedMessage {
    /// Returns the JSON-RPC error code.
    #[must_use]
    pub fn code(&self) -> i64 {
        self.error.code()
    }
}

impl From<EnvelopeError> for RejectedMessage {
    fn from(error: EnvelopeError) -> Self {
        Self { error, id: None }
    }
}
