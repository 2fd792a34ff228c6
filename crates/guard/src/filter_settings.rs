//! Actions on arguments that look like an attack.

use crate::argument_filters::{FilterKind, SsrfTarget};

/// Action on an argument that did not pass a filter, in rising order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum FilterAction {
    /// The filter is not used.
    #[default]
    Off,
    /// The finding is recorded.
    Report,
    /// The harmful part is removed; where that cannot be done, the call is refused.
    Sanitise,
    /// A person decides about the call.
    Ask,
    /// The call is refused.
    Block,
}

/// Filter that has an action of its own.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum ArgumentFilter {
    /// Paths that leave their folder or name files with secrets.
    Traversal,
    /// Syntax of shells in words, and destructive commands.
    Shell,
    /// SQL in values, and destructive statements.
    Sql,
    /// Expressions of template engines.
    Template,
    /// Addresses at which clouds hand out credentials.
    Metadata,
    /// Addresses of private networks and of this machine, other schemes, and addresses that parsers read differently.
    Private,
    /// Characters that control or hide.
    Control,
    /// Keys, tokens and passwords, which an argument would give away.
    Credential,
}

impl FilterAction {
    /// Words of the actions in the configuration.
    pub const WORDS: [&str; 5] = ["off", "report", "sanitise", "ask", "block"];

    /// Returns the action that a word of the configuration names.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let at = Self::WORDS.iter().position(|one| *one == word)?;
        [Self::Off, Self::Report, Self::Sanitise, Self::Ask, Self::Block].get(at).copied()
    }
}

impl ArgumentFilter {
    /// All filters, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Traversal,
        Self::Shell,
        Self::Sql,
        Self::Template,
        Self::Metadata,
        Self::Private,
        Self::Control,
        Self::Credential,
    ];

    /// Returns the word for the filter in the configuration and in records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Traversal => "traversal",
            Self::Shell => "shell",
            Self::Sql => "sql",
            Self::Template => "template",
            Self::Metadata => "metadata_address",
            Self::Private => "private_address",
            Self::Control => "control",
            Self::Credential => "credential",
        }
    }

    /// Returns the filter that made a finding.
    pub(crate) fn of(kind: FilterKind) -> Self {
        match kind {
            FilterKind::PathTraversal => Self::Traversal,
            FilterKind::Shell => Self::Shell,
            FilterKind::Sql => Self::Sql,
            FilterKind::Template => Self::Template,
            FilterKind::Ssrf(SsrfTarget::Metadata) => Self::Metadata,
            FilterKind::Ssrf(_) => Self::Private,
            FilterKind::Control => Self::Control,
            FilterKind::Credential => Self::Credential,
        }
    }
}

/// An action for each filter.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct FilterActions([FilterAction; 8]);

impl FilterActions {
    /// Returns what `action` gives for each filter.
    #[must_use]
    pub fn new(action: impl FnMut(ArgumentFilter) -> FilterAction) -> Self {
        Self(ArgumentFilter::ALL.map(action))
    }

    /// Returns the action of a filter.
    #[must_use]
    pub fn of(&self, filter: ArgumentFilter) -> FilterAction {
        let at = ArgumentFilter::ALL.iter().position(|one| *one == filter).unwrap_or_default();
        self.0[at]
    }
}
