//! The patterns of names that choose what is recorded and what is redacted.

use signalbox_wire::glob::{self, Wildcards};

/// A pattern in which `*` stands for any run of characters and `?` for itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Glob(Box<str>);

impl Glob {
    /// This pattern.
    #[must_use]
    pub fn new(pattern: &str) -> Self {
        Self(pattern.into())
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `text` is one of those meant.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        glob::fits(&self.0, text, Wildcards::Star)
    }
}
