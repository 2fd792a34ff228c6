//! Reads one backend: an MCP server to start or to connect to.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::HeaderMap;
use http::uri::Uri;
use signalbox_engine::standing::TrustLevel;
use signalbox_oauth_client::AuthSpec;
use signalbox_runtime::{FailureRules, Lifetime, QuestionTime, StartPolicy};
use signalbox_transport::tls::BackTlsSpec;

use super::addresses::Addresses;
use super::error::{ConfigError, Note, Problem, Warning};
use super::play::{self, TapeConfig};
use super::read::{Table, Text};
use super::secret::Secret;
use super::tls;
use super::tools::ToolFilter;
use super::values::{address, bad, folder, headers, label};

/// Maximum length of a backend name, which becomes part of tool names.
pub const MAX_NAME: usize = 32;

/// Settings of one backend.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendConfig {
    /// Name of 1 to 32 of `A-Z a-z 0-9 _ . -`, without `__`.
    pub name: String,
    /// Program to start, or address to connect to.
    pub target: BackendTarget,
    /// Tape that answers in place of the server, if configured.
    pub tape: Option<TapeConfig>,
    /// Filter for the tools that are offered.
    pub tools: ToolFilter,
    /// Patterns of the principals that see and reach the backend. Empty for all callers.
    pub callers: Vec<String>,
    /// Category of its tools.
    pub category: Option<String>,
    /// Trust level of its tools.
    pub trust_level: TrustLevel,
    /// `true` if the backend is neither started nor offered.
    pub disabled: bool,
    /// `true` if requests to it are signed, because it is another gateway.
    pub seal: bool,
    /// Time limit for one call.
    pub timeout: Duration,
    /// Time limit for the start and the handshake.
    pub start_timeout: Duration,
    /// Maximum number of copies that run for sessions that cannot share one.
    pub max_children: usize,
    /// Addresses of a server that has several.
    pub addresses: Addresses,
    /// Restarts, pings and circuit breaker.
    pub failing: FailureRules,
    /// When the process is started and stopped.
    pub lifetime: Lifetime,
    /// When it may ask clients for sampling and elicitation.
    pub questions: QuestionTime,
    /// Era of MCP that it speaks.
    pub era: EraSetting,
}

/// Location of a backend. `Debug` shows only the names of values that may be secret.
#[derive(Clone, PartialEq)]
pub enum BackendTarget {
    /// Program to start, which speaks MCP over its standard input and output.
    Command {
        /// Path of the program, or its name in PATH.
        program: String,
        args: Vec<String>,
        /// Variables to set, in file order.
        env: Vec<(String, Secret)>,
        /// Variables to pass on from our own environment, besides a few fixed ones.
        env_pass: Vec<String>,
        /// Working folder of the process.
        cwd: Option<PathBuf>,
    },
    /// Server to connect to, over HTTP or WebSocket depending on the scheme.
    Url {
        /// Address with a scheme and a host, without user name or fragment.
        url: Uri,
        /// Headers to send with every request, marked as sensitive.
        headers: HeaderMap,
        /// Transport to speak there.
        transport: UrlTransport,
        /// TLS settings, used if the scheme asks for TLS.
        tls: BackTlsSpec,
        /// Credentials that the gateway presents, besides headers.
        auth: Option<Box<AuthSpec>>,
    },
    /// No server: a tape answers.
    Tape,
    /// Server that is part of this program.
    Builtin(Builtin),
}

/// Servers that are part of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// Answers each caller about its own recorded calls.
    Tapes,
}

impl fmt::Debug for BackendTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { program, args, env, env_pass, cwd } => f
                .debug_struct("Command")
                .field("program", program)
                .field("args", &format_args!("{} hidden", args.len()))
                .field("env", env)
                .field("env_pass", env_pass)
                .field("cwd", cwd)
                .finish(),
            Self::Url { url, headers, transport, tls, auth } => f
                .debug_struct("Url")
                .field("host", &url.authority().map(http::uri::Authority::as_str))
                .field("headers", headers)
                .field("transport", transport)
                .field("tls", tls)
                .field("auth", &auth.is_some())
                .finish(),
            Self::Tape => f.write_str("Tape"),
            Self::Builtin(builtin) => f.debug_tuple("Builtin").field(builtin).finish(),
        }
    }
}

/// Transport to speak at a backend's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlTransport {
    /// The gateway tries the transports in turn.
    Auto,
    Http,
    /// HTTP+SSE of revision 2024-11-05.
    Sse,
}

/// Eras of MCP: the old one has sessions and a handshake, the new one from 2026-07-28 on has neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EraSetting {
    /// Detected by asking the server.
    Auto,
    /// Revisions older than 2026-07-28.
    Old,
    /// Revision 2026-07-28 and later ones.
    New,
}

/// Returns `true` if a name can be used in tool names, before a `__`, and in file names.
pub fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(allowed)
        && name.bytes().any(|byte| byte.is_ascii_alphanumeric())
        && !name.contains("__")
        && !name.ends_with('_')
}

/// Checks one backend's table. Its keys have been checked before.
pub(super) fn check(
    name: &str,
    table: &Table<'_>,
    call_timeout: Duration,
    warnings: &mut Vec<Warning>,
) -> Result<BackendConfig, ConfigError> {
    if !is_name(name) {
        return Err(table.error(Problem::BadName));
    }
    let disabled = table.flag("disabled")?;
    let tape = play::tape(table)?;
    let target = match (table.has("command"), table.has("url") || table.has("urls")) {
        _ if table.has("builtin") => builtin(table)?,
        (true, true) => return Err(table.error(Problem::BothTargets)),
        (false, false) if tape.is_some() => {
            refuse(table, COMMAND_KEYS, "command")?;
            refuse(table, URL_KEYS, "url")?;
            BackendTarget::Tape
        }
        (false, false) => return Err(table.error(Problem::NoTarget)),
        (true, false) => command(table, warnings)?,
        (false, true) => remote(table)?,
    };
    Ok(BackendConfig {
        name: name.to_owned(),
        target,
        tape,
        tools: tool_filter(&table.table("tools")?)?,
        callers: callers(table)?,
        category: category(table)?,
        trust_level: TrustLevel::of(&table.choice("trust_level")?).unwrap_or_default(),
        disabled,
        seal: table.flag("seal")?,
        timeout: table.seconds("timeout")?.unwrap_or(call_timeout),
        start_timeout: table.duration("start_timeout")?,
        max_children: table.count("max_children")?,
        failing: super::failing::rules(table)?,
        lifetime: Lifetime {
            start: match table.choice("start")?.as_str() {
                "first_use" => StartPolicy::FirstUse,
                _ => StartPolicy::Eager,
            },
            idle_stop: table.seconds("idle_stop")?,
        },
        questions: match table.choice("questions")?.as_str() {
            "anytime" => QuestionTime::Anytime,
            _ => QuestionTime::DuringCalls,
        },
        addresses: super::addresses::addresses(table)?,
        era: match table.choice("era")?.as_str() {
            "old" => EraSetting::Old,
            "new" => EraSetting::New,
            _ => EraSetting::Auto,
        },
    })
}

/// Keys that only make sense with `command`.
pub(super) const COMMAND_KEYS: &[&str] =
    &["args", "env", "env_pass", "cwd", "max_children", "max_restarts", "restart", "start", "idle_stop"];
/// Keys that only make sense with `url`.
pub(super) const URL_KEYS: &[&str] = &["headers", "transport", "balance", "tls", "auth"];

fn refuse(table: &Table<'_>, keys: &[&str], belongs_to: &'static str) -> Result<(), ConfigError> {
    match keys.iter().find(|key| table.has(key)) {
        Some(key) => Err(table.key_error(key, Problem::Misplaced(belongs_to))),
        None => Ok(()),
    }
}

/// Reads a server that is part of this program. It has nothing to start, to connect to or to play.
fn builtin(table: &Table<'_>) -> Result<BackendTarget, ConfigError> {
    if let Some(other) = ["command", "url", "urls", "tape"].into_iter().find(|key| table.has(key)) {
        return Err(table.key_error("builtin", Problem::Beside(other)));
    }
    refuse(table, COMMAND_KEYS, "command")?;
    refuse(table, URL_KEYS, "url")?;
    match table.text("builtin")? {
        Some(name) if name.value == "tapes" => Ok(BackendTarget::Builtin(Builtin::Tapes)),
        Some(name) => Err(bad(table, &name, "`tapes`, the only server that can be built in")),
        None => Err(table.error(Problem::NoTarget)),
    }
}

fn command(table: &Table<'_>, warnings: &mut Vec<Warning>) -> Result<BackendTarget, ConfigError> {
    refuse(table, URL_KEYS, "url")?;
    let Some(program) = table.text("command")? else {
        return Err(table.error(Problem::NoTarget));
    };
    if program.value.trim().is_empty() {
        return Err(bad(table, &program, "a program to start"));
    }
    no_nul(table, &program)?;
    let args = table.texts("args")?;
    args.iter().try_for_each(|argument| no_nul(table, argument))?;
    if program.value.contains(' ') && args.is_empty() && !Path::new(&program.value).exists() {
        warnings.push(Warning { place: table.document.place(&program.path, program.at), note: Note::CommandLine });
    }
    let mut env = Vec::new();
    for (entry, text) in table.text_table("env")? {
        if !is_variable(&entry.key) {
            return Err(table.document.error(&text.path, entry.key_at, bad_variable(&entry.key)));
        }
        no_nul(table, &text)?;
        env.push((entry.key.clone(), Secret::new(text.value)));
    }
    let mut env_pass = Vec::new();
    for text in table.texts("env_pass")? {
        if !is_variable(&text.value) {
            return Err(table.document.error(&text.path, text.at, bad_variable(text.raw)));
        }
        env_pass.push(text.value);
    }
    Ok(BackendTarget::Command {
        program: program.value,
        args: args.into_iter().map(|text| text.value).collect(),
        env,
        env_pass,
        cwd: folder(table, "cwd")?,
    })
}

fn bad_variable(found: &str) -> Problem {
    Problem::BadValue { expected: "the name of an environment variable".to_owned(), found: super::error::shown(found) }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|c| c == '=' || c.is_control() || c.is_whitespace())
}

fn no_nul(table: &Table<'_>, text: &Text<'_>) -> Result<(), ConfigError> {
    if text.value.contains('\0') {
        let problem = Problem::BadHiddenValue("a string without NUL characters");
        return Err(table.document.error(&text.path, text.at, problem));
    }
    Ok(())
}

fn remote(table: &Table<'_>) -> Result<BackendTarget, ConfigError> {
    refuse(table, COMMAND_KEYS, "command")?;
    let url = match table.text("url")? {
        Some(text) => address(table, &text)?,
        None => match super::addresses::addresses(table)?.all.into_iter().next() {
            Some((url, _)) => url,
            None => return Err(table.error(Problem::NoTarget)),
        },
    };
    let (headers, transport) = (headers(table)?, transport(table, &url)?);
    let auth = super::backend_auth::check(table, &headers)?.map(Box::new);
    if is_socket(&url) && table.has("auth") {
        let auth = table.table("auth")?;
        if auth.choice("exchange_subject")? == "caller" {
            // One connection, and so one credential, serves all callers of a principal.
            let needs = Problem::Needs("an `http://` or `https://` address in `url`");
            return Err(auth.key_error("exchange_subject", needs));
        }
    }
    Ok(BackendTarget::Url { url, headers, transport, tls: tls::backend(&table.table("tls")?)?, auth })
}

fn is_socket(url: &Uri) -> bool {
    url.scheme_str().is_some_and(|scheme| scheme.to_ascii_lowercase().starts_with("ws"))
}

fn transport(table: &Table<'_>, url: &http::Uri) -> Result<UrlTransport, ConfigError> {
    let transport = match table.choice("transport")?.as_str() {
        "http" => UrlTransport::Http,
        "sse" => UrlTransport::Sse,
        _ => UrlTransport::Auto,
    };
    let socket = is_socket(url);
    if let Some(word) = table.text("transport")?.filter(|_| socket && transport != UrlTransport::Auto) {
        return Err(bad(table, &word, "`auto`, as a `ws://` address says itself what is spoken there"));
    }
    let era = table.text("era")?.filter(|era| transport == UrlTransport::Sse && era.value == "new");
    match era {
        Some(era) => Err(bad(table, &era, "`auto` or `old`, as HTTP+SSE belongs to the old era")),
        None => Ok(transport),
    }
}

/// Reads the patterns of a key, none of which may be empty.
fn patterns(table: &Table<'_>, key: &str, like: &'static str) -> Result<Vec<String>, ConfigError> {
    let texts = table.texts(key)?;
    if let Some(empty) = texts.iter().find(|text| text.value.is_empty()) {
        return Err(bad(table, empty, like));
    }
    Ok(texts.into_iter().map(|text| text.value).collect())
}

fn callers(table: &Table<'_>) -> Result<Vec<String>, ConfigError> {
    let callers = patterns(table, "callers", "a pattern like `cert:*`")?;
    if callers.is_empty() && table.has("callers") {
        let problem = Problem::BadHiddenValue("at least one pattern; to keep all callers out, use `disabled`");
        return Err(table.key_error("callers", problem));
    }
    Ok(callers)
}

fn tool_filter(table: &Table<'_>) -> Result<ToolFilter, ConfigError> {
    let like = "a pattern like `read_*`";
    let (include, exclude) = (patterns(table, "include", like)?, patterns(table, "exclude", like)?);
    if include.is_empty() && table.has("include") {
        let problem = Problem::BadHiddenValue("at least one pattern; to offer no tools, exclude `*`");
        return Err(table.key_error("include", problem));
    }
    Ok(ToolFilter { include, exclude })
}

fn category(table: &Table<'_>) -> Result<Option<String>, ConfigError> {
    table.text("category")?.map(|text| label(table, text)).transpose()
}
