//! What a change means to clients that relied on what was before.

/// How bad a change is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Tier {
    /// Whoever relied on the old version can rely on the new one.
    Compatible,
    /// A result has another value: whether that matters depends on the tool.
    Changed,
    /// Somebody who relied on the old version may fail now.
    Breaking,
}

impl Tier {
    /// The word for it in reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Changed => "changed",
            Self::Breaking => "breaking",
        }
    }
}
