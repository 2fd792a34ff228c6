//! Patterns of names that select what is recorded and what is redacted.

use signalbox_wire::glob::{self, Wildcards};

/// A pattern in which `*` matches any run of characters. A `?` matches only itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Glob(Box<str>);

impl Glob {
    #[must_use]
    pub fn new(pattern: &str) -> Self {
        Self(pattern.into())
    }

    /// Returns the pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the pattern matches `text`.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        glob::fits(&self.0, text, Wildcards::Star)
    }
}
