//! What `signalbox doctor` found in one check: how bad it is, where it is, and what to do about it.

use serde::Serialize;

/// How much it matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Good to know.
    Note,
    /// Works, but not as well or as safely as it could.
    Warning,
    /// Does not work.
    Problem,
}

impl Severity {
    /// The word for it.
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

/// What was found, where, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What was looked at: `config`, `port`, `backend files`, …
    pub check: String,
    /// What was found.
    pub found: String,
    /// Where: a file, a key, an address.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What to do about it.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    fn new(severity: Severity, check: &str, found: impl Into<String>) -> Self {
        Self { severity, check: check.to_owned(), found: found.into(), place: None, advice: None }
    }

    /// Something as it should be.
    #[must_use]
    pub fn ok(check: &str, found: impl Into<String>) -> Self {
        Self::new(Severity::Ok, check, found)
    }

    /// Something good to know.
    #[must_use]
    pub fn note(check: &str, found: impl Into<String>) -> Self {
        Self::new(Severity::Note, check, found)
    }

    /// Something that could be better, and how.
    #[must_use]
    pub fn warning(check: &str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..Self::new(Severity::Warning, check, found) }
    }

    /// Something that does not work, and what to do about it.
    #[must_use]
    pub fn problem(check: &str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..Self::new(Severity::Problem, check, found) }
    }

    /// Says where.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }
}
