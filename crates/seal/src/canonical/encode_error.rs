//! Why data has no canonical form.

use signalbox_wire::ScanError;

/// Why data has no canonical form.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The text is no JSON, or JSON that two readers could understand differently.
    #[error("not JSON that can be signed: {0}")]
    Json(#[from] ScanError),
    /// An integer needs more than 64 bits.
    #[error("the integer {0} does not fit 64 bits")]
    IntegerTooLarge(String),
    /// A number is infinite as a double, or zero though it is not.
    #[error("the number {0} does not survive as a double")]
    NumberLost(String),
    /// NaN or an infinity.
    #[error("{0} has no canonical form")]
    NotFinite(String),
    /// A map has the same key twice.
    #[error("the key {0:?} comes twice")]
    DuplicateKey(String),
    /// Arrays and maps are nested too deeply.
    #[error("nested more than {0} levels deep")]
    TooDeep(usize),
    /// The numbers of a short message make its canonical form long.
    #[error("the canonical form of a message of this size has at most {0} bytes")]
    TooLarge(usize),
    /// A key without a value, or nothing at all, was written.
    #[error("a value is missing")]
    NoValue,
    /// More than one value was written where one belongs.
    #[error("more than one value was written")]
    ManyValues,
}
