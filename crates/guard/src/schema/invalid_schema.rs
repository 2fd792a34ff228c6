//! Reasons why a schema does not compile.

use super::limits;
use signalbox_wire::printable;

/// Reason why a schema was refused. The texts quote the schema with control characters escaped.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidSchema {
    /// The text is not JSON, or nested too deeply to parse.
    #[error("the schema is not JSON: {reason}")]
    NotJson {
        /// Message of the parser.
        reason: String,
    },
    /// The text is longer than [`limits::MAX_SCHEMA_BYTES`].
    #[error("the schema has {bytes} bytes, more than {}", limits::MAX_SCHEMA_BYTES)]
    TooLarge {
        /// Length of the text.
        bytes: usize,
    },
    /// The schema has more values than [`limits::MAX_SCHEMA_NODES`].
    #[error("the schema has more than {} values", limits::MAX_SCHEMA_NODES)]
    TooManyNodes,
    /// Containers, or subschemas that apply to the same value, are nested too deeply.
    #[error("the schema is nested too deeply")]
    TooDeep,
    /// There are more patterns, or more bytes in them, than the limits allow.
    #[error(
        "the schema has more than {} patterns or {} bytes in patterns",
        limits::MAX_PATTERNS,
        limits::MAX_PATTERN_BYTES
    )]
    TooManyPatterns,
    /// A pattern is too large once it is compiled, for example `(a{1000}){1000}`.
    #[error("the pattern `{pattern}` is too large")]
    PatternTooLarge {
        /// Beginning of the pattern.
        pattern: String,
    },
    /// A pattern is no regular expression, or needs backtracking (look-around, back-references).
    #[error("the pattern `{pattern}` is not supported: {reason}")]
    UnsupportedPattern {
        /// Beginning of the pattern.
        pattern: String,
        /// Reason that the regex engine gave.
        reason: String,
    },
    /// A reference leads out of the schema. It is never fetched.
    #[error("the schema refers to {uri}, which is not fetched")]
    RemoteReference {
        /// The reference as resolved against the base URI.
        uri: String,
    },
    /// Expanding all references would take more work per value than [`limits::MAX_EXPANDED_REFERENCES`], or embedded
    /// `$id`s multiply the subschemas.
    #[error("the references of the schema expand to too many subschemas")]
    TooManyExpandedReferences,
    /// A subschema applies itself to the same value without end, such as `{"$ref": "#"}`.
    #[error("a reference of the schema leads back to itself for the same value")]
    CircularReference,
    /// `$schema` names neither 2020-12 nor Draft-07.
    #[error("the dialect {uri} is not supported, only 2020-12 and Draft-07")]
    UnknownDialect {
        /// Value that `$schema` has.
        uri: String,
    },
    /// The schema breaks a rule of its dialect.
    #[error("{reason}")]
    Other {
        /// Message of the validator.
        reason: String,
    },
}

impl InvalidSchema {
    /// Shortens and cleans the message of a library, which may quote the schema.
    pub(super) fn other(reason: impl std::fmt::Display) -> Self {
        Self::Other { reason: printable::beginning(&reason.to_string(), limits::MAX_VIOLATION_CHARS) }
    }
}
