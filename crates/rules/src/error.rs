//! What can be wrong with rules, and where: `rules.toml:12:3: rules[2].when.metod: unknown key; did you mean `method`?`

use std::fmt;

/// A rule file that cannot be used, and every reason for it, one a line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}{problem}{}", more.iter().map(|one| format!("\n{one}")).collect::<String>())]
pub struct RuleError {
    /// Where it is.
    pub place: RulePlace,
    /// What it is.
    pub problem: Box<Problem>,
    /// What else is wrong.
    pub more: Vec<RuleError>,
}

impl RuleError {
    /// One thing that is wrong.
    pub(crate) fn new(place: RulePlace, problem: Problem) -> Self {
        Self { place, problem: Box::new(problem), more: Vec::new() }
    }

    /// All of these as one error; nothing if there is none.
    pub(crate) fn of(all: Vec<Self>) -> Option<Self> {
        let mut all = all.into_iter();
        let mut first = all.next()?;
        first.more.extend(all);
        Some(first)
    }
}

/// Where something is: printed as `FILE:LINE:COLUMN: KEY: `, without the parts that are not known.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RulePlace {
    /// The file, as the caller named it.
    pub file: String,
    /// Line and column, counted from 1, columns in characters.
    pub position: Option<(usize, usize)>,
    /// The key, such as `rules[2].when.method`.
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

/// Everything that rules can get wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// The parser's complaint.
    #[error("not valid TOML: {0}")]
    Toml(String),
    /// The file is larger than any honest one.
    #[error("the file is larger than {limit} bytes; split it, or shorten it")]
    FileTooLarge {
        /// The most that is read.
        limit: usize,
    },
    /// A key that means nothing here.
    #[error("unknown key; {}", match suggestion { Some(key) => format!("did you mean `{key}`?"), None => format!("expected one of {}", list(known)) })]
    UnknownKey {
        /// The known key that looks most like it.
        suggestion: Option<&'static str>,
        /// What is known at this place.
        known: Vec<&'static str>,
    },
    /// A key that must be there.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// Something else than what belongs here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What belongs here.
        expected: String,
        /// What is here.
        found: String,
    },
    /// A regular expression that cannot be used.
    #[error("not a regular expression this program can use: {0}")]
    Regex(String),
    /// Text that is not JSON.
    #[error("not valid JSON: {0}")]
    Json(String),
    /// A file that a rule names and that cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(crate::outside::FileError),
    /// Something in a file that a rule names.
    #[error("`{file}`: {problem}")]
    InFile {
        /// The file, as the rule names it.
        file: String,
        /// What is wrong with it.
        problem: Box<Problem>,
    },
    /// Something in one of several results.
    #[error("result {number}: {problem}")]
    OfResult {
        /// Which, counted from 1.
        number: usize,
        /// What is wrong with it.
        problem: Box<Problem>,
    },
    /// A `${NAME}` that nobody knows.
    #[error("unknown name `${{{name}}}`; {} Write `$${{` for a literal `${{`", match suggestion { Some(known) => format!("did you mean `${{{known}}}`?"), None => format!("expected one of {}.", list(known)) })]
    UnknownName {
        /// The name.
        name: String,
        /// The known name that looks most like it.
        suggestion: Option<&'static str>,
        /// What is known.
        known: Vec<&'static str>,
    },
    /// More of something than a set may hold.
    #[error("more than {limit} {what}; {remedy}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        limit: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// Two rules with one id.
    #[error("the rule id `{id}` is already used in {first}; give one of them another id")]
    DuplicateId {
        /// The id.
        id: String,
        /// Where the other one is.
        first: String,
    },
    /// An action that has no meaning for the messages that the rule looks at.
    #[error("`{action}` applies to {fits} only, but this rule matches {looks}; {remedy}")]
    Misplaced {
        /// The action.
        action: &'static str,
        /// What it is for.
        fits: String,
        /// What the rule is about.
        looks: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A question of a backend in a rule that looks at no questions.
    #[error(
        "`{method}` is a question of a backend, and a rule sees questions only with `phase = \"question\"` beside it; \
         this rule would never match one"
    )]
    UnseenQuestion {
        /// The method.
        method: &'static str,
    },
    /// Two keys that cannot be combined.
    #[error("{0}")]
    Beside(&'static str),
}

/// Something that was tolerated, but that the user should know of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// Where the rule is.
    pub place: RulePlace,
    /// The rule.
    pub rule: String,
    /// What is odd about it.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}rule `{}` {}", self.place, self.rule, self.text)
    }
}

fn list(known: &[&'static str]) -> String {
    known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

/// The known name that a mistyped one most resembles, if any is close.
pub(crate) fn closest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    if name.len() > 64 {
        return None;
    }
    let lower = name.to_ascii_lowercase().replace('-', "_");
    known
        .iter()
        .map(|candidate| (distance(&lower, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters to insert, delete or replace to get from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// A value of a file for a message: short, on one line.
pub(crate) fn shown(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("\"{}{dots}\"", short.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'"))
}
