use super::FORMAT;

/// Mistake in a line of an import.
#[derive(Debug, thiserror::Error)]
pub enum JsonlError {
    /// The line is no JSON, has a member twice, or lacks one that its kind needs.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The line is longer than a reader accepts.
    #[error("too long")]
    TooLong,
    /// The file is empty.
    #[error("the header is missing")]
    NoHeader,
    /// The first line is the head of another format.
    #[error("`format` must be `{FORMAT}`")]
    Format,
    /// The head names a kind of tape that this version does not know.
    #[error("unknown kind `{0}`")]
    TapeKind(String),
    /// The entry has the members of two kinds.
    #[error("not valid: an entry of two kinds, `{first}` and `{second}`")]
    TwoKinds {
        /// Member of the one kind.
        first: &'static str,
        /// Member of the other kind.
        second: &'static str,
    },
    /// A word is none of those that the member may have.
    #[error("unknown `{0}`")]
    Word(&'static str),
    /// A member does not decode.
    #[error("`{0}` is not valid base64")]
    Base64(&'static str),
    /// A part of a backend's offer has no content.
    #[error("a part of a backend has neither `text` nor `base64`")]
    EmptyPart,
}
