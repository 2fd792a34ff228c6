//! Error for data without a canonical form.

use signalbox_wire::ScanError;

/// Reason why data has no canonical form.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The text is not JSON, or is JSON that two readers could interpret differently.
    #[error("not JSON that can be signed: {0}")]
    Json(#[from] ScanError),
    /// An integer needs more than 64 bits.
    #[error("the integer {0} does not fit 64 bits")]
    IntegerTooLarge(String),
    /// A number is infinite as a double, or becomes zero although it is not.
    #[error("the number {0} does not survive as a double")]
    NumberLost(String),
    /// The number is NaN or infinite.
    #[error("{0} has no canonical form")]
    NotFinite(String),
    /// A map contains the same key twice.
    #[error("the key {0:?} comes twice")]
    DuplicateKey(String),
    /// Arrays and maps exceed the maximum nesting depth.
    #[error("nested more than {0} levels deep")]
    TooDeep(usize),
    /// The canonical form is too large for the size of its message.
    #[error("the canonical form of a message of this size has at most {0} bytes")]
    TooLarge(usize),
    /// A value is missing: a key has none, or nothing was written at all.
    #[error("a value is missing")]
    NoValue,
    /// More than one value was written in the place of one.
    #[error("more than one value was written")]
    ManyValues,
}
