//! Result of one check of `signalbox doctor`: its severity, its place, and advice.

use serde::Serialize;

/// Severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Ok,
    Note,
    /// Works, but not as well or as safely as it could.
    Warning,
    Problem,
}

impl Severity {
    /// Returns the word for the severity.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// Result of a check, with its place and advice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    pub severity: Severity,
    /// Name of the check: `config`, `port`, `backend files`, …
    pub check: String,
    /// Description of the result.
    pub found: String,
    /// File, key or address concerned.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Action recommended to the operator.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    fn new(severity: Severity, check: &str, found: impl Into<String>) -> Self {
        Self { severity, check: check.to_owned(), found: found.into(), place: None, advice: None }
    }

    /// Creates a finding without a fault.
    #[must_use]
    pub fn ok(check: &str, found: impl Into<String>) -> Self {
        Self::new(Severity::Ok, check, found)
    }

    /// Creates a finding for information.
    #[must_use]
    pub fn note(check: &str, found: impl Into<String>) -> Self {
        Self::new(Severity::Note, check, found)
    }

    /// Creates a finding about something that could be better, with advice.
    #[must_use]
    pub fn warning(check: &str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..Self::new(Severity::Warning, check, found) }
    }

    /// Creates a finding about something that does not work, with advice.
    #[must_use]
    pub fn problem(check: &str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..Self::new(Severity::Problem, check, found) }
    }

    /// Sets the file, key or address that the finding concerns.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }
}
