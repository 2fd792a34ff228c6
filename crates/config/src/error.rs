//! What can be wrong with a configuration, and where.
//!
//! An error names the file, the position, the key, what was expected and what to do about it, on one line:
//! `signalbox.toml:12:3: backends.files.comand: unknown key; did you mean `command`?`
//! No message holds the value of a header or of an environment variable.

use std::fmt;
use std::path::PathBuf;

use super::path::KeyPath;

/// A configuration that cannot be used, and every reason for it, one a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}{problem}{}", more.iter().map(|one| format!("\n{one}")).collect::<String>())]
pub struct ConfigError {
    /// Where it is.
    pub place: ConfigPlace,
    /// What it is.
    pub problem: Box<Problem>,
    /// What else is wrong.
    pub more: Vec<ConfigError>,
}

impl ConfigError {
    /// An error at `place`.
    pub fn new(place: ConfigPlace, problem: Problem) -> Self {
        Self { place, problem: Box::new(problem), more: Vec::new() }
    }
}

/// Something that was tolerated, but that the user should know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where it is.
    pub place: ConfigPlace,
    /// What it is.
    pub note: Note,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place, self.note)
    }
}

/// Where a setting came from: printed as `FILE:LINE:COLUMN: KEY: `, without the parts that are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigPlace {
    /// The file, or the environment.
    pub origin: Origin,
    /// Line and column, where the problem is at one.
    pub position: Option<Position>,
    /// The key, if the file could be read that far.
    pub key: Option<KeyPath>,
}

impl ConfigPlace {
    /// A whole file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { origin: Origin::File(path.into()), position: None, key: None }
    }

    /// A setting that won over the file.
    pub fn overrides(name: &str) -> Self {
        Self { origin: Origin::Overrides, position: None, key: Some(KeyPath::root().child(name)) }
    }

    /// A place that the problem names itself.
    pub fn rules() -> Self {
        Self { origin: Origin::Rules, position: None, key: None }
    }

    /// A variable of the environment.
    pub fn variable(name: &str) -> Self {
        Self { origin: Origin::Environment, position: None, key: Some(KeyPath::root().child(name)) }
    }
}

impl fmt::Display for ConfigPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File(path) => write!(f, "{}", path.display())?,
            Origin::Environment => f.write_str("environment")?,
            Origin::Overrides => f.write_str("command line or environment")?,
            Origin::Defaults => f.write_str("defaults")?,
            Origin::Rules => return Ok(()),
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

/// The layer a setting was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A configuration file, by the path it was found under.
    File(PathBuf),
    /// The `SIGNALBOX_*` variables.
    Environment,
    /// What won over the file: the flags, and the environment under them.
    Overrides,
    /// Built in.
    Defaults,
    /// A file of rules, which what is wrong with it names.
    Rules,
}

/// A place in a text, counted from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Position {
    /// The position of the byte at `offset`.
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

/// Everything a configuration can get wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Rules that cannot be used.
    #[error(transparent)]
    Rules(super::rules::RulesError),
    /// Policies that cannot be used.
    #[error(transparent)]
    Policies(super::permissions::PolicyFolderError),
    /// The file named does not exist.
    #[error("no such file; check the path, or leave out `-c` to use the defaults")]
    FileMissing,
    /// The file exists but the system will not let us read it.
    #[error("the file cannot be read ({0}); it must be a regular file that this user may read")]
    Unreadable(std::io::ErrorKind),
    /// The file is larger than any honest configuration.
    #[error("the file is larger than {limit} bytes; name a configuration file, or shorten it")]
    TooLarge {
        /// The most that is read.
        limit: u64,
    },
    /// The file is not text.
    #[error("not valid UTF-8; save the file as UTF-8")]
    NotUtf8,
    /// The TOML parser's complaint.
    #[error("not valid TOML: {0}")]
    Toml(String),
    /// The JSON parser's complaint.
    #[error("not valid JSON: {0}")]
    Json(String),
    /// The same key twice in one table.
    #[error("duplicate key; keep one of them")]
    Duplicate,
    /// A key that means nothing here.
    #[error("unknown key; {}", .suggestion.as_ref().map_or_else(|| format!("expected one of {}", list(.known)), |key| format!("did you mean `{key}`?")))]
    UnknownKey {
        /// The known key that looks most like it.
        suggestion: Option<&'static str>,
        /// What is known at this place.
        known: Vec<&'static str>,
    },
    /// A value of another type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// What belongs here, with its article.
        expected: String,
        /// What is here, with its article.
        found: &'static str,
    },
    /// A value of the right type that is not allowed.
    #[error("expected {expected}, found {}", quoted(.found))]
    BadValue {
        /// What is allowed.
        expected: String,
        /// The value as the file has it, shortened and escaped.
        found: String,
    },
    /// The same for a value that may be secret, and is therefore not shown.
    #[error("expected {0}")]
    BadHiddenValue(&'static str),
    /// The address of a database that makes no sense; it may hold a password, and is not shown.
    #[error("cannot be used: {0}")]
    BadDatabase(signalbox_store::BadAddress),
    /// A feature that this version does not have.
    #[error("{feature} not in this version yet; {remedy}")]
    NotBuilt {
        /// The feature and its verb: `a collector behind `https://` is`.
        feature: &'static str,
        /// What to do instead.
        remedy: String,
    },
    /// A feature that this program was built without.
    #[error(
        "{what} not in this build; remove the key, or use a program built with `cargo build --release --features {feature}`"
    )]
    OtherBuild {
        /// What the feature gives, and its verb.
        what: &'static str,
        /// The cargo feature.
        feature: &'static str,
    },
    /// An address that others could reach.
    #[error(
        "listening beyond loopback needs authentication: `require_authentication`, or TLS with a `ca_file` and `client_auth = \"required\"`; otherwise use 127.0.0.1, ::1 or localhost"
    )]
    BeyondLoopback,
    /// `${NAME}` where the environment has no NAME.
    #[error("the environment variable `{name}` is not set; set it, or write `${{{name}:-default}}`")]
    Unset {
        /// The variable.
        name: String,
    },
    /// `${` that is not a reference.
    #[error("expected `${{NAME}}` with letters, digits and `_`; in signalbox.toml `$${{` is a literal `${{`")]
    BadReference,
    /// A reference that only the client the file was written for can resolve.
    #[error(
        "`{0}` can only be filled in by the client this file was written for; use an environment variable, `${{NAME}}`"
    )]
    ClientReference(String),
    /// A file that the configuration names and that cannot be used.
    #[error("cannot be used: {0}")]
    BadFile(String),
    /// Both kinds of target.
    #[error("has both `command` and `url`; keep `command` for a local server or `url` for a remote one")]
    BothTargets,
    /// No target.
    #[error("has neither `command` nor `url`; add `command` for a local server or `url` for a remote one")]
    NoTarget,
    /// A key for the other kind of target.
    #[error("applies only with `{0}`; remove it")]
    Misplaced(&'static str),
    /// A key that has no effect without others.
    #[error("needs {0}")]
    Needs(&'static str),
    /// Two keys of which one would have no effect.
    #[error("cannot be combined with `{0}`; remove one")]
    Beside(&'static str),
    /// Settings of a feature that nobody has switched on.
    #[error("has no effect without `enabled`; set `{switch}` to true, or to false to keep this for later")]
    NotEnabled {
        /// The key that switches it on.
        switch: KeyPath,
    },
    /// A backend name that cannot be used in tool names.
    #[error(
        "bad backend name; use 1 to 32 of `A-Z a-z 0-9 _ . -`, with a letter or digit, without `__`, and not ending in `_`"
    )]
    BadName,
    /// A header that the gateway sets itself.
    #[error("the gateway sets this header itself; remove it")]
    ReservedHeader,
    /// A foreign file without a list of servers.
    #[error("expected an object with `mcpServers` or `servers`; is this a client's MCP configuration?")]
    NoServers,
    /// An entry of a foreign file whose `type` contradicts its keys.
    #[error("`type` is `{kind}`, which needs `{needs}`; correct the type or the target")]
    TypeMismatch {
        /// The type.
        kind: String,
        /// The key that goes with it.
        needs: &'static str,
    },
    /// Import only: a server that is Signalbox itself.
    #[error("it leads back to Signalbox itself")]
    LeadsBack,
    /// There is nowhere to keep state.
    #[error("no home folder is known; set HOME, SIGNALBOX_DATA_DIR or `--data-dir`")]
    NoHome,
}

/// Everything worth a warning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// A key of a client's own, inside a server entry.
    #[error("ignored: Signalbox has no such setting")]
    IgnoredKey,
    /// A time-out in a client's file.
    #[error("not taken over: clients count it in seconds or in milliseconds; set `timeout` of the backend, in seconds")]
    ClientTimeout,
    /// A value that a client asks its user for.
    #[error("the client asks for `${{input:{input}}}`; here it is the environment variable `{variable}`")]
    AskedByClient {
        /// Name in the client's file.
        input: String,
        /// Name of the variable.
        variable: String,
    },
    /// Import only: a server that cannot be used here.
    #[error("left out: {0}")]
    LeftOut(String),
    /// A backend that is this gateway.
    #[error("left out: it leads back to this gateway, so that each of its calls would come back here; remove it")]
    LeadsBack,
    /// Other content of a client's file.
    #[error("ignored {count} other top-level keys: {names}")]
    IgnoredTopLevel {
        /// How many.
        count: usize,
        /// The first few.
        names: String,
    },
    /// A key for the other kind of target.
    #[error("ignored: applies only with `{0}`")]
    IgnoredMisplaced(&'static str),
    /// A header that the gateway sets itself, in a client's file.
    #[error("ignored: the gateway sets this header itself")]
    IgnoredHeader,
    /// A name that had to change.
    #[error("the name cannot be used in tool names; it is called `{0}` here")]
    Renamed(String),
    /// A name that a server of another project has.
    #[error("another server has this name; it is called `{0}` here")]
    NameTaken(String),
    /// A command that looks like a whole command line.
    #[error("holds spaces and there are no `args`; if it is a command line, move the arguments to `args`")]
    CommandLine,
    /// Issuers of tokens, and no authorization server to name.
    #[error(
        "refused clients are not told where to get a token, since no issuer here can be named: set `auth.authorization_servers`"
    )]
    NoAuthorizationServer,
    /// Audiences that name no address of the MCP endpoint.
    #[error(
        "clients are told the address that is listened on, which is in no `audience`, so that their tokens may be refused: set `auth.resource`"
    )]
    UnknownResource,
    /// Error detail depends on trust, but all callers are trusted alike.
    #[error("has no effect while nobody has to prove who calls: set `require_authentication`")]
    ErrorsByTrust,
    /// A secret written out.
    #[error("looks like a secret in plain text; put it into the environment and write `${{{0}}}`")]
    PlainSecret(String),
    /// Import only: a variable that has to be set before the result can be used.
    #[error("the environment variable `{0}` is not set now; set it before starting Signalbox")]
    UnsetNow(String),
    /// A `SIGNALBOX_*` variable that neither the program nor its configuration reads.
    #[error("ignored: unknown variable; {}", .suggestion.as_ref().map_or_else(|| format!("there are {}", list(.known)), |key| format!("did you mean `{key}`?")))]
    UnknownVariable {
        /// The known variable that looks most like it.
        suggestion: Option<&'static str>,
        /// All known variables.
        known: Vec<&'static str>,
    },
}

/// `a`, `b` or `c`, each in backticks.
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

/// A value as it may be shown: escaped, and not longer than a line.
pub(super) fn shown(value: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = value.chars().take(LONGEST).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    short.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'")
}

/// The known name that a mistyped one most resembles, if any is close.
#[must_use]
pub fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    let alike = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    let lower = alike(name);
    known
        .iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (distance(&lower, &alike(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters to insert, delete, replace or swap with their neighbour to get from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
    fn distances() {
        assert_eq!(distance("comand", "command"), 1);
        assert_eq!(distance("agrs", "args"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn only_close_names_are_suggested() {
        let known = ["command", "args", "url"];
        assert_eq!(closest("comand", &known), Some("command"));
        assert_eq!(closest("URL", &known), Some("url"));
        assert_eq!(closest("colour", &known), None);
    }

    #[test]
    fn shown_values_stay_on_one_line() {
        assert_eq!(shown("a\nb\u{1b}"), "a\\nb\\u{1b}");
        assert_eq!(shown(&"x".repeat(70)).chars().count(), 61);
    }
}
