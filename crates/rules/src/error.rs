//! Errors in rules, with their position: `rules.toml:12:3: rules[2].when.metod: unknown key; did you mean `method`?`

use std::fmt;

/// Error in a rule file. Displays all problems, one per line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}{problem}{}", more.iter().map(|one| format!("\n{one}")).collect::<String>())]
pub struct RuleError {
    pub place: RulePlace,
    pub problem: Box<RuleProblem>,
    /// Further problems in the same set of files.
    pub more: Vec<RuleError>,
}

impl RuleError {
    /// Creates an error with a single problem.
    pub(crate) fn new(place: RulePlace, problem: RuleProblem) -> Self {
        Self { place, problem: Box::new(problem), more: Vec::new() }
    }

    /// Combines several errors, or returns `None` if there are none.
    pub(crate) fn of(all: Vec<Self>) -> Option<Self> {
        let mut all = all.into_iter();
        let mut first = all.next()?;
        first.more.extend(all);
        Some(first)
    }
}

/// Position in a rule file. Displayed as `FILE:LINE:COLUMN: KEY: `, without the unknown parts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RulePlace {
    /// File name as given by the caller.
    pub file: String,
    /// Line and column, counted from 1. Columns count characters.
    pub position: Option<(usize, usize)>,
    /// Key, such as `rules[2].when.method`.
    pub key: String,
}

impl fmt::Display for RulePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        f.write_str(": ")
    }
}

/// Problem in a rule file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RuleProblem {
    /// Error of the TOML parser.
    #[error("not valid TOML: {0}")]
    Toml(String),
    /// The file exceeds the size limit.
    #[error("the file is larger than {limit} bytes; split it, or shorten it")]
    FileTooLarge {
        /// Maximum size in bytes.
        limit: usize,
    },
    #[error("unknown key; {}", match suggestion { Some(key) => format!("did you mean `{key}`?"), None => format!("expected one of {}", list(known)) })]
    UnknownKey {
        /// Most similar known key.
        suggestion: Option<&'static str>,
        /// Keys known at this place.
        known: Vec<&'static str>,
    },
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A value of a different kind was expected.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// Description of the expected value.
        expected: String,
        /// Description of the actual value.
        found: String,
    },
    #[error("not a regular expression this program can use: {0}")]
    Regex(String),
    #[error("not valid JSON: {0}")]
    Json(String),
    /// A referenced file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(crate::outside::OutsideFileError),
    /// Problem in a referenced file.
    #[error("`{file}`: {problem}")]
    InFile {
        /// File name as given in the rule.
        file: String,
        problem: Box<RuleProblem>,
    },
    /// Problem in one of several results.
    #[error("result {number}: {problem}")]
    OfResult {
        /// Number of the result, counted from 1.
        number: usize,
        problem: Box<RuleProblem>,
    },
    /// A template contains an unknown `${NAME}`.
    #[error("unknown name `${{{name}}}`; {} Write `$${{` for a literal `${{`", match suggestion { Some(known) => format!("did you mean `${{{known}}}`?"), None => format!("expected one of {}.", list(known)) })]
    UnknownName {
        name: String,
        /// Most similar known name.
        suggestion: Option<&'static str>,
        known: Vec<&'static str>,
    },
    /// The set exceeds a limit.
    #[error("more than {limit} {what}; {remedy}")]
    TooMany {
        /// Name of the things that are too many.
        what: &'static str,
        limit: usize,
        remedy: &'static str,
    },
    /// Two rules share an id.
    #[error("the rule id `{id}` is already used in {first}; give one of them another id")]
    DuplicateId {
        id: String,
        /// Position of the other rule.
        first: String,
    },
    /// An action does not apply to the messages that the rule matches.
    #[error("`{action}` applies to {fits} only, but this rule matches {looks}; {remedy}")]
    Misplaced {
        action: &'static str,
        /// Messages that the action applies to.
        fits: String,
        /// Messages that the rule matches.
        looks: String,
        remedy: &'static str,
    },
    /// The rule names a server request but does not evaluate them.
    #[error(
        "`{method}` is a question of a backend, and a rule sees questions only with `phase = \"question\"` beside it; \
         this rule would never match one"
    )]
    UnseenQuestion { method: &'static str },
    /// Two keys cannot be combined.
    #[error("{0}")]
    Beside(&'static str),
}

/// Harmless problem that the user should know of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleWarning {
    /// Position of the rule.
    pub place: RulePlace,
    pub rule: String,
    /// Description of the problem.
    pub text: String,
}

impl fmt::Display for RuleWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}rule `{}` {}", self.place, self.rule, self.text)
    }
}

fn list(known: &[&'static str]) -> String {
    known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

/// Shortens a value to one quoted line for messages.
pub(crate) fn shown(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("\"{}{dots}\"", short.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'"))
}
