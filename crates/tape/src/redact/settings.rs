//! Which secrets are taken out, in the words of the configuration.

use super::action::Action;

/// What is taken out before anything is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedactionSettings {
    /// By the names of members, anywhere in a message.
    pub keys: Vec<KeyRule>,
    /// By the place in a message.
    pub paths: Vec<PathRule>,
    /// By shape, in every string, and in whole messages that are no JSON.
    pub patterns: Vec<PatternRule>,
}

/// Members of this name, whole, without regard to case, hyphens and underscores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRule {
    /// The name.
    pub name: String,
    /// What is done.
    pub action: Action,
}

/// What stands at this place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathRule {
    /// Only in messages of these methods, and in answers to them; `*` stands for any run of characters.
    pub method: Option<String>,
    /// A JSON pointer from the whole message on, in which the segment `*` stands for any member or element.
    pub path: String,
    /// What is done.
    pub action: Action,
}

/// What looks like this.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatternRule {
    /// A regular expression. Where it has a group named `secret`, only that part is taken out.
    pub pattern: String,
    /// What is done.
    pub action: Action,
}

/// A rule that makes no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadRedaction {
    /// Not a name.
    #[error("`{name}` cannot be the name of a member to take out; it needs 1 to {most} letters")]
    Name {
        /// The name.
        name: String,
        /// How long it may be.
        most: usize,
    },
    /// Not a JSON pointer.
    #[error("`{0}` is no JSON pointer; it must begin with `/`, as in `/params/arguments/card`")]
    Path(String),
    /// Not a regular expression, or too large a one.
    #[error("`{pattern}` is no regular expression that can be used: {why}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why not.
        why: String,
    },
    /// More rules by place than are possible.
    #[error("{known} rules by path; at most {most} are possible")]
    TooMany {
        /// How many there are.
        known: usize,
        /// How many there may be.
        most: usize,
    },
}

/// Names whose values are secrets wherever they stand.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "api_key",
    "x_api_key",
    "token",
    "secret",
    "authorization",
    "proxy_authorization",
    "access_token",
    "refresh_token",
    "id_token",
    "auth_token",
    "session_token",
    "bearer_token",
    "client_secret",
    "secret_key",
    "secret_access_key",
    "aws_secret_access_key",
    "private_key",
    "signing_key",
    "encryption_key",
    "credential",
    "credentials",
    "cookie",
    "set_cookie",
    "connection_string",
];

/// Shapes that are secrets wherever they stand. Each begins with letters of its own, so that they are found fast.
const SHAPES: &[&str] = &[
    r"(?:Bearer|bearer|BEARER) +(?P<secret>[A-Za-z0-9._~+/=-]{8,})",
    r"(?:Basic|basic) +(?P<secret>[A-Za-z0-9+/]{12,}={0,2})",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"sk-[A-Za-z0-9_-]{20,}",
    r"sk_live_[A-Za-z0-9]{16,}",
    r"AIza[A-Za-z0-9_-]{35}",
    r"npm_[A-Za-z0-9]{36}",
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
];

impl RedactionSettings {
    /// Nothing is taken out.
    #[must_use]
    pub fn none() -> Self {
        Self { keys: vec![], paths: vec![], patterns: vec![] }
    }

    /// Whether nothing is taken out.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.keys.is_empty() && self.paths.is_empty() && self.patterns.is_empty()
    }

    /// The rules in words, one a line.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let keys = self.keys.iter().map(|rule| format!("key {}: {}", rule.name, rule.action.words()));
        let paths = self.paths.iter().map(|rule| {
            let method = rule.method.as_ref().map(|method| format!(" of {method}")).unwrap_or_default();
            format!("path {}{method}: {}", rule.path, rule.action.words())
        });
        let patterns = self.patterns.iter().map(|rule| format!("pattern {}: {}", rule.pattern, rule.action.words()));
        keys.chain(paths).chain(patterns).collect()
    }
}

impl Default for RedactionSettings {
    /// The usual names and shapes of credentials, replaced.
    fn default() -> Self {
        let keys = NAMES.iter().map(|name| KeyRule { name: (*name).to_owned(), action: Action::default() });
        let patterns =
            SHAPES.iter().map(|shape| PatternRule { pattern: (*shape).to_owned(), action: Action::default() });
        Self { keys: keys.collect(), paths: vec![], patterns: patterns.collect() }
    }
}
