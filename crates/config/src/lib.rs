//! The configuration: one TOML file, or a client's `mcpServers` JSON file as it is.
//!
//! It is read in two stages. The first ([`raw`], [`json`]) says what the file holds and where; the second ([`check`],
//! [`foreign`]) makes a [`Config`] of it that cannot be wrong, or says all that is wrong, each with its place and the
//! remedy. Every key is defined once, in [`keys`]. Over the file come the environment and the flags ([`layers`]).

mod addresses;
pub mod audit;
mod audit_keys;
pub mod auth;
mod auth_keys;
pub mod auth_server;
pub mod backend;
mod backend_auth;
mod backend_auth_keys;
mod check;
mod client_keys;
pub mod constraints;
pub mod duration;
pub mod error;
mod expand;
mod failing;
mod foreign;
pub mod import;
mod json;
mod key_parts;
mod key_table;
pub mod keys;
pub mod layers;
pub mod listen;
pub mod loader;
pub mod locate;
pub mod loops;
pub mod otel;
mod outbound;
pub mod path;
pub mod performance;
mod permission_keys;
pub mod permissions;
pub mod play;
mod priority;
pub mod rate_limits;
mod raw;
mod read;
pub mod record;
mod record_keys;
pub mod redact_key;
pub mod reference;
pub mod relay;
mod relay_keys;
pub mod rules;
pub mod seal;
mod seal_keys;
pub mod secret;
pub mod sentinel;
#[cfg(test)]
mod tests;
pub mod tls;
pub mod tool_labels;
pub mod tools;
pub mod unchecked;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

pub use addresses::Addresses;
pub use audit::Audit;
pub use auth::{Auth, CertificateName, Issuer, IssuerKeys, Member};
pub use auth_server::AuthServer;
pub use backend::{BackendConfig, BackendTarget, Builtin, Era, TrustLevel, UrlTransport};
pub use constraints::ConstraintRule;
pub use error::{ConfigError, ConfigPlace, Note, Problem, Warning, closest};
pub use expand::Env;
pub use layers::{Environment, Overrides};
pub use listen::{Listen, ListenAddr, ListenError, Transport};
pub use locate::Located;
pub use otel::{Otel, OtelMetrics};
pub use performance::Performance;
pub use permissions::{
    AskRule, BreakGlassRule, DecisionPointRule, KillSwitch, PermissionRules, PolicyFolder, PolicyFolderError, RoleRule,
};
pub use play::{LiveCalls, TapeConfig, TapeName};
pub use rate_limits::{RateLimits, RequestRates, ToolLimits};
pub use record::{BaselineConfig, Record};
pub use relay::RelayConfig;
pub use rules::Rules;
pub use seal::{AnchorPlace, Seal};
pub use secret::Secret;
pub use tls::{Certificates, ListenTls};
pub use tool_labels::ToolLabelRule;
pub use tools::ToolFilter;

use check::Faults;
use expand::Dialect;
use read::{Document, Table};
use signalbox_oauth::Outbound;

/// Everything that can be set, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where clients connect.
    pub listen: Listen,
    /// The gateway's own knobs.
    pub gateway: Gateway,
    /// What is recorded.
    pub record: Record,
    /// What is sealed.
    pub seal: Seal,
    /// How callers prove who they are.
    pub auth: Auth,
    /// How often callers may call.
    pub rate_limits: RateLimits,
    /// What tools are labelled with, in the order of the file.
    pub tool_labels: Vec<ToolLabelRule>,
    /// Who may see and use what.
    pub permissions: PermissionRules,
    /// What is warned about in metrics, and under which further names they are shown.
    pub performance: Performance,
    /// The audit log, if one is kept.
    pub audit: Option<Audit>,
    /// How web pages offer tools, if they may.
    pub relay: Option<RelayConfig>,
    /// The rules.
    pub rules: Rules,
    /// The backends, in the order of the file, disabled ones too.
    pub backends: Vec<BackendConfig>,
    /// Where OAuth requests on behalf of backends may go, and what they need.
    pub outbound: Outbound,
    /// Where state is kept.
    pub data_dir: PathBuf,
    /// How much is logged.
    pub log_level: LogLevel,
    /// The file it was read from, if any.
    pub source: Option<PathBuf>,
}

/// The gateway's own knobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// How long the first list waits for backends whose list is not known from before.
    pub first_list_wait: Duration,
    /// What the gateway itself has to tell a model.
    pub instructions: String,
    /// How long calls in flight may finish when stopping.
    pub drain: Duration,
    /// How long a call may take where its backend does not say.
    pub call_timeout: Duration,
    /// How long a session may be idle.
    pub session_timeout: Duration,
    /// How many sessions may be open.
    pub max_sessions: usize,
    /// How many connections may be open.
    pub max_connections: usize,
    /// How many event streams one session may hold open.
    pub max_streams: usize,
    /// How long a parked call waits for its client.
    pub park_timeout: Duration,
    /// How many requests of one session may be unanswered.
    pub max_in_flight: usize,
    /// The largest message, in bytes.
    pub max_message: usize,
    /// Most bytes of messages that the process holds at a time.
    pub memory: usize,
    /// Web origins let in besides those of loopback, in lower case.
    pub allowed_origins: Vec<String>,
    /// `Host` headers accepted besides those of loopback, in lower case.
    pub allowed_hosts: Vec<String>,
    /// The folder the demo tools may read.
    pub demo_root: PathBuf,
    /// A changed file is taken over without being asked.
    pub watch_config: bool,
    /// What the random numbers of rules begin with; without one, every start has its own.
    pub rule_seed: Option<u64>,
    /// Where traces go, while any are exported.
    pub otel: Option<Otel>,
    /// Where metrics go, while they are exported.
    pub otel_metrics: Option<OtelMetrics>,
}

/// A configuration, and what its user should know about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What was tolerated, in the order of the file.
    pub warnings: Vec<Warning>,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Only what failed.
    Error,
    /// Also what is odd.
    Warn,
    /// Also what happens.
    Info,
    /// Also how.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        keys::LOG_LEVELS.get(self as usize).copied().unwrap_or("info")
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is not a log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", error::list(keys::LOG_LEVELS))]
pub struct LogLevelError;

impl FromStr for LogLevel {
    type Err = LogLevelError;

    fn from_str(word: &str) -> Result<Self, LogLevelError> {
        Self::ALL.into_iter().find(|level| level.as_str() == word).ok_or(LogLevelError)
    }
}

/// What a file says, before the other layers.
struct Settings {
    listen: Listen,
    gateway: Gateway,
    record: Record,
    seal: Seal,
    auth: Auth,
    rate_limits: RateLimits,
    tool_labels: Vec<ToolLabelRule>,
    permissions: PermissionRules,
    performance: Performance,
    audit: Option<Audit>,
    relay: Option<RelayConfig>,
    rules: Rules,
    backends: Vec<BackendConfig>,
    outbound: Outbound,
    data_dir: Option<PathBuf>,
    log_level: LogLevel,
}

impl Config {
    /// Read what was found, and lay `overrides` over it.
    pub fn load(found: &Located, env: &Env<'_>, overrides: &Overrides) -> Result<Loaded, ConfigError> {
        match found {
            Located::Defaults => Self::assemble(None, "", env, overrides),
            Located::File(path) => Self::parse(path, &locate::read(path)?, env, overrides),
        }
    }

    /// The same for a text that was read already; `file` is what messages call it, and what
    /// relative folders start from.
    pub fn parse(file: &Path, text: &str, env: &Env<'_>, overrides: &Overrides) -> Result<Loaded, ConfigError> {
        Self::assemble(Some(file), text, env, overrides)
    }

    fn assemble(file: Option<&Path>, text: &str, env: &Env<'_>, overrides: &Overrides) -> Result<Loaded, ConfigError> {
        let mut warnings = Vec::new();
        let settings = settings(file, text, env, &mut warnings)?;
        let in_state = || locate::user_folder(env, "XDG_STATE_HOME", ".local/state");
        let data_dir = overrides
            .data_dir
            .clone()
            .or(settings.data_dir)
            .or_else(|| in_state().map(|folder| folder.join("signalbox")))
            .ok_or_else(|| ConfigError::new(ConfigPlace::variable("HOME"), Problem::NoHome))?;
        let mut config = Self {
            listen: settings.listen,
            gateway: settings.gateway,
            record: settings.record,
            seal: settings.seal,
            auth: settings.auth,
            rate_limits: settings.rate_limits,
            tool_labels: settings.tool_labels,
            permissions: settings.permissions,
            performance: settings.performance,
            audit: settings.audit,
            relay: settings.relay,
            rules: settings.rules,
            backends: settings.backends,
            outbound: settings.outbound,
            data_dir,
            log_level: settings.log_level,
            source: file.map(Path::to_owned),
        };
        overrides.apply(&mut config);
        let found = match Located::find(None, None, Path::new("."), env) {
            Located::File(found) => Some(found),
            Located::Defaults => None,
        };
        let own = loops::OwnFile::Known(file, found.as_deref());
        for backend in config.backends.iter_mut().filter(|backend| !backend.disabled) {
            if loops::leads_back(&backend.target, &config.listen, own) {
                backend.disabled = true;
                let mut place = file.map_or_else(|| ConfigPlace::overrides("backends"), ConfigPlace::file);
                place.key = Some(path::KeyPath::root().child("backends").child(&backend.name));
                warnings.push(Warning { place, note: Note::LeadsBack });
            }
        }
        if !config.listen.may_be_reached(config.auth.required) {
            return Err(ConfigError::new(ConfigPlace::overrides("listen"), Problem::BeyondLoopback));
        }
        Ok(Loaded { config, warnings })
    }
}

fn settings(
    file: Option<&Path>,
    text: &str,
    env: &Env<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Settings, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if is_json(file, text) {
        return foreign_settings(file, text, env, warnings);
    }
    let dialect = Dialect::Own;
    let document = Document { file, text, dialect, env };
    let node = parse_toml(&document)?;
    check::check(&Table::root(&document, &node)?, warnings)
}

fn parse_toml(document: &Document<'_>) -> Result<raw::Node, ConfigError> {
    raw::parse_toml(document.text).map_err(|fault| match fault {
        raw::TomlFault::Duplicate { path, at } => document.error(&path, at, Problem::Duplicate),
        raw::TomlFault::Syntax { message, at } => document.error(&path::KeyPath::root(), at, Problem::Toml(message)),
    })
}

/// A client's file says nothing but which backends there are; the rest is the defaults.
fn foreign_settings(
    file: Option<&Path>,
    text: &str,
    env: &Env<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Settings, ConfigError> {
    let mut settings = settings(None, "", env, warnings)?;
    with_foreign(file, text, env, warnings, |document, server, warnings| {
        let backend = foreign::check(document, server, settings.gateway.call_timeout, warnings)?;
        settings.backends.push(backend);
        Ok(())
    })?;
    Ok(settings)
}

/// Call `each` with every server of a client's file.
pub(crate) fn with_foreign(
    file: Option<&Path>,
    text: &str,
    env: &Env<'_>,
    warnings: &mut Vec<Warning>,
    mut each: impl FnMut(&Document<'_>, &foreign::ForeignServer, &mut Vec<Warning>) -> Result<(), ConfigError>,
) -> Result<(), ConfigError> {
    let dialect = Dialect::Foreign;
    let document = Document { file, text, dialect, env };
    let node = match is_json(file, text) {
        true => json::parse(text, &foreign::LISTS).map_err(|fault| match fault {
            json::JsonFault::Duplicate { path, at } => document.error(&path, at, Problem::Duplicate),
            json::JsonFault::Syntax { message, at } => {
                document.error(&path::KeyPath::root(), at, Problem::Json(message))
            }
        })?,
        // Codex has its servers in TOML.
        false => parse_toml(&document)?,
    };
    let servers = foreign::servers(&document, &node, warnings)?;
    let mut faults = Faults::default();
    for server in &servers {
        faults.take(each(&document, server, warnings));
    }
    faults.none()
}

/// A client's file as a tree; nothing where it is not JSON.
fn parse_json(text: &str) -> Option<raw::Node> {
    json::parse(text, &foreign::LISTS).ok()
}

/// By the content, or else by the name.
fn is_json(file: Option<&Path>, text: &str) -> bool {
    let extension = file.and_then(Path::extension).and_then(|extension| extension.to_str());
    text.trim_start().starts_with('{')
        || extension.is_some_and(|extension| ["json", "jsonc"].iter().any(|json| extension.eq_ignore_ascii_case(json)))
}
