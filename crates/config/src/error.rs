//! Errors and warnings of a configuration, each with its place.
//!
//! An error names the file, the position, the key, what was expected and the remedy, on one line:
//! `signalbox.toml:12:3: backends.files.comand: unknown key; did you mean `command`?`
//! No message holds the value of a header or of an environment variable.

use std::fmt;
use std::path::PathBuf;

use super::path::KeyPath;

/// Configuration that cannot be used, with every reason, one per line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}{problem}{}", more.iter().map(|one| format!("\n{one}")).collect::<String>())]
pub struct ConfigError {
    /// Place of the first problem.
    pub place: ConfigPlace,
    /// Problem at `place`. `more` holds the others.
    pub problem: Box<Problem>,
    /// Further errors, each with its place.
    pub more: Vec<ConfigError>,
}

impl ConfigError {
    /// Creates an error at `place`.
    pub fn new(place: ConfigPlace, problem: Problem) -> Self {
        Self { place, problem: Box::new(problem), more: Vec::new() }
    }
}

/// Setting that is tolerated but that the user should know about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub place: ConfigPlace,
    pub note: Note,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place, self.note)
    }
}

/// Source of a setting, printed as `FILE:LINE:COLUMN: KEY: ` without the parts that are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigPlace {
    /// File, or another layer.
    pub origin: SettingOrigin,
    /// Line and column, if the problem has a position.
    pub position: Option<Position>,
    /// Key, if the file could be read that far.
    pub key: Option<KeyPath>,
}

impl ConfigPlace {
    /// Creates the place of a whole file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { origin: SettingOrigin::File(path.into()), position: None, key: None }
    }

    /// Creates the place of a setting that overrides the file.
    pub fn overrides(name: &str) -> Self {
        Self { origin: SettingOrigin::Overrides, position: None, key: Some(KeyPath::root().child(name)) }
    }

    /// Creates the place of a problem that names its file itself.
    pub fn rules() -> Self {
        Self { origin: SettingOrigin::Rules, position: None, key: None }
    }

    /// Creates the place of an environment variable.
    pub fn variable(name: &str) -> Self {
        Self { origin: SettingOrigin::Environment, position: None, key: Some(KeyPath::root().child(name)) }
    }
}

impl fmt::Display for ConfigPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            SettingOrigin::File(path) => write!(f, "{}", path.display())?,
            SettingOrigin::Environment => f.write_str("environment")?,
            SettingOrigin::Overrides => f.write_str("command line or environment")?,
            SettingOrigin::Defaults => f.write_str("defaults")?,
            SettingOrigin::Rules => return Ok(()),
        }
        if let Some(position) = self.position {
            write!(f, ":{}:{}", position.line, position.column)?;
        }
        f.write_str(": ")?;
        match &self.key {
            Some(key) if !key.is_root() => write!(f, "{key}: "),
            _ => Ok(()),
        }
    }
}

/// Layer that a setting was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    /// Configuration file, by the path it was found under.
    File(PathBuf),
    /// Variables of the environment named `SIGNALBOX_*`.
    Environment,
    /// Settings that override the file: the flags, and the environment below them.
    Overrides,
    Defaults,
    /// File of rules. The problem names it.
    Rules,
}

/// Position in a text. Both numbers count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    /// Returns the position of the byte at `offset`.
    pub fn of(text: &str, offset: usize) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

/// Everything that can be wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Rules that cannot be used.
    #[error(transparent)]
    Rules(super::rule_files::RulesError),
    /// Policies that cannot be used.
    #[error(transparent)]
    Policies(super::policy_folder::PolicyFolderError),
    /// The named file does not exist.
    #[error("no such file; check the path, or leave out `-c` to use the defaults")]
    FileMissing,
    /// The file exists, but the system does not let us read it.
    #[error("the file cannot be read ({0}); it must be a regular file that this user may read")]
    Unreadable(std::io::ErrorKind),
    /// The file is larger than any honest configuration.
    #[error("the file is larger than {limit} bytes; name a configuration file, or shorten it")]
    TooLarge {
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The file is not UTF-8.
    #[error("not valid UTF-8; save the file as UTF-8")]
    NotUtf8,
    /// Syntax error in TOML, in the words of the parser.
    #[error("not valid TOML: {0}")]
    Toml(String),
    /// Syntax error in JSON, in the words of the parser.
    #[error("not valid JSON: {0}")]
    Json(String),
    /// The same key twice in one table.
    #[error("duplicate key; keep one of them")]
    Duplicate,
    /// Key that is unknown in its table.
    #[error("unknown key; {}", .suggestion.as_ref().map_or_else(|| format!("expected one of {}", list(.known)), |key| format!("did you mean `{key}`?")))]
    UnknownKey {
        /// Known key that resembles it most.
        suggestion: Option<&'static str>,
        /// Keys known in this table.
        known: Vec<&'static str>,
    },
    /// Value of another type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// Expected type, with its article.
        expected: String,
        /// Type of the value, with its article.
        found: &'static str,
    },
    /// Value of the right type that is not allowed.
    #[error("expected {expected}, found {}", quoted(.found))]
    BadValue {
        /// Description of the allowed values.
        expected: String,
        /// Value as the file has it, shortened and escaped.
        found: String,
    },
    /// Like `BadValue`, for a value that may be secret and is not shown.
    #[error("expected {0}")]
    BadHiddenValue(&'static str),
    /// Unusable address of a database. It may hold a password and is not shown.
    #[error("cannot be used: {0}")]
    BadDatabase(signalbox_store::PostgresAddressError),
    /// Feature that this version does not have.
    #[error("{feature} not in this version yet; {remedy}")]
    NotBuilt {
        /// Feature with its verb: `a collector behind `https://` is`.
        feature: &'static str,
        /// Alternative for the user.
        remedy: String,
    },
    /// Feature that this program was built without.
    #[error(
        "{what} not in this build; remove the key, or use a program built with `cargo build --release --features {feature}`"
    )]
    OtherBuild {
        /// Capability that the feature provides, with its verb.
        what: &'static str,
        /// Name of the cargo feature.
        feature: &'static str,
    },
    /// Listening address that other machines could reach.
    #[error(
        "listening beyond loopback needs authentication: `require_authentication`, or TLS with a `ca_file` and `client_auth = \"required\"`; otherwise use 127.0.0.1, ::1 or localhost"
    )]
    BeyondLoopback,
    /// `${NAME}` refers to a variable that the environment does not have.
    #[error("the environment variable `{name}` is not set; set it, or write `${{{name}:-default}}`")]
    Unset {
        /// Name of the variable.
        name: String,
    },
    /// `${` that does not begin a reference.
    #[error("expected `${{NAME}}` with letters, digits and `_`; in signalbox.toml `$${{` is a literal `${{`")]
    BadReference,
    /// Reference that only the client that the file was written for can resolve.
    #[error(
        "`{0}` can only be filled in by the client this file was written for; use an environment variable, `${{NAME}}`"
    )]
    ClientReference(String),
    /// File that the configuration names but that cannot be used.
    #[error("cannot be used: {0}")]
    BadFile(String),
    /// Backend with both kinds of target.
    #[error("has both `command` and `url`; keep `command` for a local server or `url` for a remote one")]
    BothTargets,
    /// Backend without a target.
    #[error("has neither `command` nor `url`; add `command` for a local server or `url` for a remote one")]
    NoTarget,
    /// Key that belongs to the other kind of target.
    #[error("applies only with `{0}`; remove it")]
    Misplaced(&'static str),
    /// Key that has no effect without others.
    #[error("needs {0}")]
    Needs(&'static str),
    /// Two keys, of which one would have no effect.
    #[error("cannot be combined with `{0}`; remove one")]
    Beside(&'static str),
    /// Settings of a feature that is not enabled.
    #[error("has no effect without `enabled`; set `{switch}` to true, or to false to keep this for later")]
    NotEnabled {
        /// Key that enables the feature.
        switch: KeyPath,
    },
    /// Backend name that cannot be used in tool names.
    #[error(
        "bad backend name; use 1 to 32 of `A-Z a-z 0-9 _ . -`, with a letter or digit, without `__`, and not ending in `_`"
    )]
    BadName,
    /// Header that the gateway sets itself.
    #[error("the gateway sets this header itself; remove it")]
    ReservedHeader,
    /// Foreign file without a list of servers.
    #[error("expected an object with `mcpServers` or `servers`; is this a client's MCP configuration?")]
    NoServers,
    /// Entry of a foreign file whose `type` contradicts its keys.
    #[error("`type` is `{kind}`, which needs `{needs}`; correct the type or the target")]
    TypeMismatch {
        kind: String,
        /// Key that the type needs.
        needs: &'static str,
    },
    /// Server that is Signalbox itself. Found only during import.
    #[error("it leads back to Signalbox itself")]
    LeadsBack,
    /// There is no folder in which to keep state.
    #[error("no home folder is known; set HOME, SIGNALBOX_DATA_DIR or `--data-dir`")]
    NoHome,
}

/// Everything that is worth a warning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// Client-specific key inside a server entry.
    #[error("ignored: Signalbox has no such setting")]
    IgnoredKey,
    /// Time limit in a client's file.
    #[error("not taken over: clients count it in seconds or in milliseconds; set `timeout` of the backend, in seconds")]
    ClientTimeout,
    /// Value that the client asks its user for.
    #[error("the client asks for `${{input:{input}}}`; here it is the environment variable `{variable}`")]
    AskedByClient {
        /// Name in the client's file.
        input: String,
        /// Name of the environment variable.
        variable: String,
    },
    /// Server that cannot be used here. Found only during import.
    #[error("left out: {0}")]
    LeftOut(String),
    /// Backend that is this gateway.
    #[error("left out: it leads back to this gateway, so that each of its calls would come back here; remove it")]
    LeadsBack,
    /// Other content of a client's file.
    #[error("ignored {count} other top-level keys: {names}")]
    IgnoredTopLevel {
        /// Number of ignored keys.
        count: usize,
        /// Names of the first few.
        names: String,
    },
    /// Key that belongs to the other kind of target.
    #[error("ignored: applies only with `{0}`")]
    IgnoredMisplaced(&'static str),
    /// Header in a client's file that the gateway sets itself.
    #[error("ignored: the gateway sets this header itself")]
    IgnoredHeader,
    /// Name that had to be changed.
    #[error("the name cannot be used in tool names; it is called `{0}` here")]
    Renamed(String),
    /// Name that a server of another project already has.
    #[error("another server has this name; it is called `{0}` here")]
    NameTaken(String),
    /// Command that looks like a whole command line.
    #[error("holds spaces and there are no `args`; if it is a command line, move the arguments to `args`")]
    CommandLine,
    /// Issuers of tokens are configured, but no authorization server that clients could be told.
    #[error(
        "refused clients are not told where to get a token, since no issuer here can be named: set `auth.authorization_servers`"
    )]
    NoAuthorizationServer,
    /// No audience is an address of the MCP endpoint.
    #[error(
        "clients are told the address that is listened on, which is in no `audience`, so that their tokens may be refused: set `auth.resource`"
    )]
    UnknownResource,
    /// Error detail depends on trust, but all callers are trusted alike.
    #[error("has no effect while callers need not authenticate: set `require_authentication`")]
    ErrorsByTrust,
    /// Secret in plain text.
    #[error("looks like a secret in plain text; put it into the environment and write `${{{0}}}`")]
    PlainSecret(String),
    /// Variable that must be set before the result can be used. Found only during import.
    #[error("the environment variable `{0}` is not set now; set it before starting Signalbox")]
    UnsetNow(String),
    /// `SIGNALBOX_*` variable that neither the program nor its configuration reads.
    #[error("ignored: unknown variable; {}", .suggestion.as_ref().map_or_else(|| format!("there are {}", list(.known)), |key| format!("did you mean `{key}`?")))]
    UnknownVariable {
        /// Known variable that resembles it most.
        suggestion: Option<&'static str>,
        known: Vec<&'static str>,
    },
}

/// Formats `a`, `b` or `c`, each in backticks.
pub(super) fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "nothing".to_owned(),
    }
}

fn quoted(value: &str) -> String {
    if value.is_empty() {
        return "an empty string".to_owned();
    }
    format!("`{value}`")
}

/// Escapes a value and shortens it to fit on a line.
pub(super) fn shown(value: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = value.chars().take(LONGEST).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    short.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        assert_eq!(Position::of("é\nüb", 0), Position { line: 1, column: 1 });
        assert_eq!(Position::of("é\nüb", 5), Position { line: 2, column: 2 });
        assert_eq!(Position::of("a", 99), Position { line: 1, column: 2 });
    }

    #[test]
    fn shown_values_stay_on_one_line() {
        assert_eq!(shown("a\nb\u{1b}"), "a\\nb\\u{1b}");
        assert_eq!(shown(&"x".repeat(70)).chars().count(), 61);
    }
}
