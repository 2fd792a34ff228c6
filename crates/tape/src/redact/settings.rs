//! Which secrets are taken out, in the words of the configuration.

use super::action::Action;
use signalbox_scan::Scanner;

/// What is taken out before anything is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedactionSettings {
    /// By the names of members, anywhere in a message.
    pub keys: Vec<KeyRule>,
    /// By the place in a message.
    pub paths: Vec<PathRule>,
    /// By shape, in every string, and in whole messages that are not JSON.
    pub patterns: Vec<PatternRule>,
    /// Every kind of credential that the scanner knows, in the same places: what is done with them; none leaves them.
    pub credentials: Option<Action>,
}

/// Members of this name, whole, without regard to case, hyphens and underscores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRule {
    /// The name.
    pub name: String,
    /// What is done.
    pub action: Action,
}

/// What is at this place.
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
    #[error("`{name}` is not a usable member name; use 1 to {most} letters")]
    Name {
        /// The name.
        name: String,
        /// How long it may be.
        most: usize,
    },
    /// Not a JSON pointer.
    #[error("`{0}` is not a JSON pointer; it must begin with `/`, as in `/params/arguments/card`")]
    Path(String),
    /// Not a regular expression, or too large a one.
    #[error("`{pattern}` is not a usable regular expression: {why}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why not.
        why: String,
    },
    /// More rules by place than are possible.
    #[error("{known} path rules; at most {most} are allowed")]
    TooMany {
        /// How many there are.
        known: usize,
        /// How many there may be.
        most: usize,
    },
}

/// Names whose values are secrets wherever they appear.
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

impl RedactionSettings {
    /// Nothing is taken out.
    #[must_use]
    pub fn none() -> Self {
        Self { keys: vec![], paths: vec![], patterns: vec![], credentials: None }
    }

    /// Whether nothing is taken out.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.keys.is_empty() && self.paths.is_empty() && self.patterns.is_empty() && self.credentials.is_none()
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
        let credentials = self
            .credentials
            .iter()
            .map(|action| format!("credentials of {} kinds: {}", Scanner::built_in().rules().len(), action.words()));
        keys.chain(paths).chain(patterns).chain(credentials).collect()
    }
}

impl Default for RedactionSettings {
    /// The usual names of secrets and every known kind of credential, replaced.
    fn default() -> Self {
        let keys = NAMES.iter().map(|name| KeyRule { name: (*name).to_owned(), action: Action::default() });
        Self { keys: keys.collect(), credentials: Some(Action::default()), ..Self::none() }
    }
}
