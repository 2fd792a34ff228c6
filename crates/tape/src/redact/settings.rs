//! Redaction settings as they appear in the configuration.

use super::action::Action;
use signalbox_secret_scan::Scanner;

/// Rules for the redaction before storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedactionSettings {
    /// Rules by member name, anywhere in a message.
    pub keys: Vec<KeyRule>,
    /// Rules by position in a message.
    pub paths: Vec<PathRule>,
    /// Rules by shape, for every string, and for messages that are not JSON.
    pub patterns: Vec<PatternRule>,
    /// Action for every kind of credential that the scanner knows, in the same places; `None` keeps them.
    pub credentials: Option<Action>,
}

/// Rule for members of one name, compared as a whole without regard to case, hyphens and underscores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRule {
    /// Name of the member.
    pub name: String,
    /// Action for its value.
    pub action: Action,
}

/// Rule for one position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathRule {
    /// Pattern of the methods whose messages and answers the rule applies to; `*` matches any run of characters.
    pub method: Option<String>,
    /// JSON pointer from the root of the message, in which the segment `*` matches any member or element.
    pub path: String,
    /// Action for the value.
    pub action: Action,
}

/// Rule for one shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatternRule {
    /// Regular expression. If it has a group named `secret`, only that part is redacted.
    pub pattern: String,
    /// Action for the matches.
    pub action: Action,
}

/// Error of an invalid rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadRedaction {
    /// The member name is empty or too long.
    #[error("`{name}` is not a usable member name; use 1 to {most} letters")]
    Name {
        name: String,
        /// Maximum length of a name.
        most: usize,
    },
    /// The path is not a JSON pointer.
    #[error("`{0}` is not a JSON pointer; it must begin with `/`, as in `/params/arguments/card`")]
    Path(String),
    /// The pattern is not a regular expression, or too large a one.
    #[error("`{pattern}` is not a usable regular expression: {why}")]
    Pattern {
        pattern: String,
        /// Description of the mistake.
        why: String,
    },
    /// There are too many path rules.
    #[error("{known} path rules; at most {most} are allowed")]
    TooMany {
        /// Number of configured rules.
        known: usize,
        /// Maximum number of rules.
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
    /// Returns settings that redact nothing.
    #[must_use]
    pub fn none() -> Self {
        Self { keys: vec![], paths: vec![], patterns: vec![], credentials: None }
    }

    /// Returns true if the settings redact nothing.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.keys.is_empty() && self.paths.is_empty() && self.patterns.is_empty() && self.credentials.is_none()
    }

    /// Describes the rules, one per line.
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
    /// Returns rules that replace the values of usual secret names and every known kind of credential.
    fn default() -> Self {
        let keys = NAMES.iter().map(|name| KeyRule { name: (*name).to_owned(), action: Action::default() });
        Self { keys: keys.collect(), credentials: Some(Action::default()), ..Self::none() }
    }
}
