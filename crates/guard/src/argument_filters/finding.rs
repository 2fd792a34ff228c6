//! Results of the filters.

use signalbox_wire::printable;
use std::fmt;

/// Maximum number of characters of a value in [`ArgumentFinding::what`].
const MAX_SHOWN: usize = 80;

/// Kind of target that a URL or host must not name.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SsrfTarget {
    /// Service of a cloud provider that hands out credentials.
    Metadata,
    /// Private, link-local or reserved network, or a name that resolves to one.
    Private,
    /// Address or name of this machine.
    Loopback,
    /// Scheme with which a client reads files or speaks other protocols than HTTP.
    Scheme,
    /// URL whose host depends on the parser.
    Ambiguous,
}

/// Filter that a value did not pass.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FilterKind {
    /// Path that leaves its folder or names a file with secrets.
    PathTraversal,
    /// Shell syntax in a word, or a destructive command.
    Shell,
    /// SQL syntax in a value, or a destructive statement.
    Sql,
    /// Expression of a template engine.
    Template,
    /// URL or host that must not be contacted.
    Ssrf(SsrfTarget),
    /// Control character or invisible character.
    Control,
    /// Key, token or password where none is meant to be.
    Credential,
}

impl fmt::Display for FilterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PathTraversal => "path-traversal",
            Self::Shell => "shell",
            Self::Sql => "sql",
            Self::Template => "template",
            Self::Ssrf(SsrfTarget::Metadata) => "ssrf-metadata",
            Self::Ssrf(SsrfTarget::Private) => "ssrf-private",
            Self::Ssrf(SsrfTarget::Loopback) => "ssrf-loopback",
            Self::Ssrf(SsrfTarget::Scheme) => "ssrf-scheme",
            Self::Ssrf(SsrfTarget::Ambiguous) => "ssrf-ambiguous",
            Self::Control => "control",
            Self::Credential => "credential",
        })
    }
}

/// Confidence that a value is an attack, and its damage if it is one.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FindingRisk {
    /// Occurs in ordinary use: a development server on this machine.
    Low,
    /// Rare in ordinary use.
    Medium,
    /// Has no ordinary use.
    High,
}

/// Value that did not pass a filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArgumentFinding {
    /// Filter that the value did not pass.
    pub kind: FilterKind,
    /// Confidence in the finding, and the damage if it is right.
    pub risk: FindingRisk,
    /// JSON pointer of the value within the arguments.
    pub place: String,
    /// Reason, without the value.
    pub reason: &'static str,
    /// Reason and beginning of the value, on one line.
    pub what: String,
}

/// Rule that a text violates, before it is known where the text comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Violation {
    pub kind: FilterKind,
    pub risk: FindingRisk,
    pub reason: &'static str,
}

impl Violation {
    pub(super) fn new(kind: FilterKind, risk: FindingRisk, reason: &'static str) -> Self {
        Self { kind, risk, reason }
    }

    /// Returns the violation with a higher risk, for values that hide what they mean.
    pub(super) fn disguised(self) -> Self {
        Self { risk: FindingRisk::High, ..self }
    }

    pub(super) fn at(&self, place: &str, value: &str) -> ArgumentFinding {
        let what = format!("{}: {}", self.reason, printable::beginning(value, MAX_SHOWN));
        ArgumentFinding { kind: self.kind, risk: self.risk, place: place.to_owned(), reason: self.reason, what }
    }
}
