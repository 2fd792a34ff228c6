//! Why a message was refused, and to which id to say so.

use crate::codes;
use crate::id::RawId;
use crate::json::Malformed;

/// Why bytes are not a JSON-RPC message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// The bytes are not JSON.
    #[error("not JSON: expected {expected} at byte {at}")]
    NotJson {
        /// Position of the first byte that does not fit.
        at: usize,
        /// What should have been there.
        expected: &'static str,
    },
    /// The top level is an array where one message was expected.
    #[error("a batch is not accepted here")]
    Batch,
    /// The batch holds no message.
    #[error("the batch is empty")]
    EmptyBatch,
    /// The batch holds too many messages.
    #[error("the batch holds more than {max} messages")]
    BatchTooLong {
        /// The bound.
        max: usize,
    },
    /// The top level is neither an object nor an array.
    #[error("a message must be an object")]
    NotObject,
    /// There is no `jsonrpc` member.
    #[error("member \"jsonrpc\" is missing")]
    MissingVersion,
    /// The `jsonrpc` member is not `"2.0"`.
    #[error("member \"jsonrpc\" must be \"2.0\"")]
    WrongVersion,
    /// The id is missing where it is needed, null on a request, or neither string nor number.
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
    /// More than one of method, result and error.
    #[error("only one of \"method\", \"result\" and \"error\" may be present")]
    Ambiguous,
    /// Neither method nor result nor error.
    #[error("one of \"method\", \"result\" and \"error\" must be present")]
    Empty,
    /// A member of the envelope occurs twice.
    #[error("member \"{0}\" occurs twice")]
    DuplicateMember(&'static str),
    /// The message is larger than positions can say.
    #[error("the message is larger than 4 GiB")]
    TooLarge,
}

impl EnvelopeError {
    /// The JSON-RPC error code for this.
    #[must_use]
    pub fn code(&self) -> i64 {
        match self {
            Self::NotJson { .. } => codes::PARSE_ERROR,
            _ => codes::INVALID_REQUEST,
        }
    }
}

impl From<Malformed> for EnvelopeError {
    fn from(malformed: Malformed) -> Self {
        Self::NotJson { at: malformed.at, expected: malformed.expected }
    }
}

/// A refused message, with its id when one could be read, so that the refusal can be addressed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{error}")]
pub struct Rejected {
    /// What was wrong.
    pub error: EnvelopeError,
    /// The id to answer to. Never set when the bytes are not JSON.
    pub id: Option<RawId>,
}

impl Rejected {
    /// The JSON-RPC error code for this.
    #[must_use]
    pub fn code(&self) -> i64 {
        self.error.code()
    }
}

impl From<EnvelopeError> for Rejected {
    fn from(error: EnvelopeError) -> Self {
        Self { error, id: None }
    }
}
