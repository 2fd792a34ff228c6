//! Error for a lock file that cannot be used.

use signalbox_wire::printable;

/// Problem with a lock file and the line on which it is.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct LockError {
    /// Line of the file, counted from one.
    pub line: usize,
    /// Rule that the line violates.
    pub fault: LockFault,
}

/// Rule that a lock file violates.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockFault {
    /// The file exceeds the size limit.
    #[error("the file is larger than {0} bytes")]
    TooLarge(usize),
    /// The file is not TOML, or has a key that is unknown or missing.
    #[error("{0}")]
    Syntax(String),
    /// The file was written by another version.
    #[error("version {0} is unknown; this program reads version 1")]
    Version(u32),
    /// A hash is not `sha256:` and 64 digits.
    #[error("expected `sha256:` and 64 hexadecimal digits")]
    Hash,
    /// A time is not a timestamp such as `2026-09-21T14:26:40Z`.
    #[error("expected a timestamp such as `2026-09-21T14:26:40Z`")]
    Time,
    /// The text shown to reviewers is not the one that was approved.
    #[error("the text does not have this hash; remove the entry and approve it again")]
    Mismatch,
    /// An entry has both a whole text and an excerpt, or neither.
    #[error("expected either the whole text or an `excerpt`")]
    Text,
    /// The text is not a definition in JSON.
    #[error("the definition is not JSON that can be pinned")]
    Definition,
    /// The same hash was approved twice for one tool.
    #[error("this hash was approved already")]
    Duplicate,
}

impl LockError {
    /// Creates the error for the byte at `at` of the file.
    pub(super) fn at(text: &str, at: usize, fault: LockFault) -> Self {
        let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
        Self { line: 1 + before.iter().filter(|byte| **byte == b'\n').count(), fault }
    }

    /// Creates the error for a text that the TOML parser rejects.
    pub(super) fn syntax(text: &str, error: &toml::de::Error) -> Self {
        /// Longest message, because the parser repeats keys of the file.
        const LONGEST: usize = 300;
        let at = error.span().map_or(0, |span| span.start);
        Self::at(text, at, LockFault::Syntax(printable::beginning(error.message(), LONGEST)))
    }
}
