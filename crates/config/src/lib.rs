//! Reads the configuration: one TOML file, or a client's `mcpServers` JSON file as it is.
//!
//! There are two stages. The first ([`raw`], [`json`]) parses the file into a tree in which every value has its
//! position. The second ([`check`], [`foreign`]) turns it into a checked [`Config`], or reports all errors, each with
//! its place and the remedy. Every key is defined once, in [`keys`]. The environment and the flags override the file
//! ([`layers`]).

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
mod faults;
mod foreign;
mod guard;
mod guard_keys;
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
mod policy_folder;
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
mod rule_files;
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
mod values;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

pub use addresses::Addresses;
pub use audit::Audit;
pub use auth::{Auth, CertificateName, Issuer, IssuerKeys, MemberConfig};
pub use auth_server::AuthServer;
pub use backend::{BackendConfig, BackendTarget, Builtin, EraSetting, UrlTransport};
pub use constraints::ConstraintRule;
pub use error::{ConfigError, ConfigPlace, Note, Problem, Warning};
pub use expand::Env;
pub use layers::{Environment, Overrides};
pub use listen::{ListenAddr, ListenConfig, ListenError, Transport};
pub use locate::ConfigLocation;
pub use otel::{Otel, OtelMetrics};
pub use performance::Performance;
pub use permissions::{AskRule, BreakGlassRule, DecisionPointRule, KillSwitch, PermissionRules, RoleRule};
pub use play::{LiveCalls, TapeConfig, TapeName};
pub use policy_folder::{MAX_POLICY_BYTES, MAX_POLICY_FILES, PolicyFolder, PolicyFolderError};
pub use rate_limits::{RateLimits, RequestRates, ToolLimits};
pub use record::{BaselineConfig, RecordConfig};
pub use relay::RelayConfig;
pub use rule_files::RulesError;
pub use rules::Rules;
pub use seal::{AnchorPlace, Seal};
pub use secret::Secret;
pub use tls::{Certificates, ListenTls};
pub use tool_labels::ToolLabelRule;
pub use tools::ToolFilter;

use expand::Dialect;
use faults::Faults;
use read::{Document, Table};
use signalbox_guard::GuardSettings;
use signalbox_oauth_client::OutboundSettings;

/// Checked configuration of a gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Address and transport that clients connect to.
    pub listen: ListenConfig,
    /// Settings of the gateway itself.
    pub gateway: GatewayConfig,
    /// Recording of tapes and their retention.
    pub record: RecordConfig,
    /// Sealing of tapes, and signed requests.
    pub seal: Seal,
    /// Ways in which callers authenticate, and the accounts known by name.
    pub auth: Auth,
    /// Rates and budgets of calls.
    pub rate_limits: RateLimits,
    /// Labels of tools, in the order of the file.
    pub tool_labels: Vec<ToolLabelRule>,
    /// Roles, policies, switches and constraints.
    pub permissions: PermissionRules,
    /// Thresholds for warnings in metrics, and further names of metrics.
    pub performance: Performance,
    /// Audit log, if one is kept.
    pub audit: Option<Audit>,
    /// Relay for tools in web pages, if enabled.
    pub relay: Option<RelayConfig>,
    /// Settings of the guard on what tools are told and say.
    pub guard: GuardSettings,
    /// File of approved definitions of tools, if the configuration names one. See [`Config::lock_file`].
    pub guard_lock: Option<PathBuf>,
    /// Rules that act on messages as they pass.
    pub rules: Rules,
    /// Backends in the order of the file, including disabled ones.
    pub backends: Vec<BackendConfig>,
    /// Addresses that OAuth requests on behalf of backends may go to, and how they are sent.
    pub outbound: OutboundSettings,
    /// Folder for the gateway's state.
    pub data_dir: PathBuf,
    /// Verbosity of the log.
    pub log_level: LogVerbosity,
    /// File that the configuration was read from, if any.
    pub source: Option<PathBuf>,
}

/// Settings of the gateway itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayConfig {
    /// Time that the first list waits for backends whose list is not known from an earlier run.
    pub first_list_wait: Duration,
    /// Instructions of the gateway itself to the model.
    pub instructions: String,
    /// Time that calls in flight have to finish when the gateway stops.
    pub drain: Duration,
    /// Time limit for calls at backends that set none.
    pub call_timeout: Duration,
    /// Time after which an idle session ends.
    pub session_timeout: Duration,
    /// Maximum number of open sessions.
    pub max_sessions: usize,
    /// Maximum number of open connections.
    pub max_connections: usize,
    /// Maximum number of event streams that one session may hold open.
    pub max_streams: usize,
    /// Time that a parked call waits for its client.
    pub park_timeout: Duration,
    /// Maximum number of unanswered requests per session.
    pub max_in_flight: usize,
    /// Maximum size of a message, in bytes.
    pub max_message: usize,
    /// Maximum number of bytes of messages that the process holds at a time.
    pub memory: usize,
    /// Web origins let in besides those of loopback, in lower case.
    pub allowed_origins: Vec<String>,
    /// `Host` headers accepted besides those of loopback, in lower case.
    pub allowed_hosts: Vec<String>,
    /// Folder that the demo tools may read.
    pub demo_root: PathBuf,
    /// `true` if the gateway reloads a changed file by itself.
    pub watch_config: bool,
    /// Seed of the rules' random numbers. Without one, every start uses its own.
    pub rule_seed: Option<u64>,
    /// Export of traces, if enabled.
    pub otel: Option<Otel>,
    /// Export of metrics, if enabled.
    pub otel_metrics: Option<OtelMetrics>,
}

/// Configuration together with the warnings about it.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedConfig {
    pub config: Config,
    /// Tolerated problems, in the order of the file.
    pub warnings: Vec<Warning>,
}

/// Verbosity of the log. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogVerbosity {
    /// Only operations that failed.
    Error,
    /// Also unusual conditions that need attention.
    Warn,
    /// Also the normal course of operation.
    Info,
    /// Also the details of each operation.
    Debug,
    /// Also every step of the machinery.
    Trace,
}

impl LogVerbosity {
    const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// Returns the level's word in the configuration.
    pub fn as_str(self) -> &'static str {
        keys::LOG_LEVELS.get(self as usize).copied().unwrap_or("info")
    }
}

impl fmt::Display for LogVerbosity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Error for a word that is not a log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", error::list(keys::LOG_LEVELS))]
pub struct LogLevelError;

impl FromStr for LogVerbosity {
    type Err = LogLevelError;

    fn from_str(word: &str) -> Result<Self, LogLevelError> {
        Self::ALL.into_iter().find(|level| level.as_str() == word).ok_or(LogLevelError)
    }
}

/// Settings of a file, before the other layers.
struct Settings {
    listen: ListenConfig,
    gateway: GatewayConfig,
    record: RecordConfig,
    seal: Seal,
    auth: Auth,
    rate_limits: RateLimits,
    tool_labels: Vec<ToolLabelRule>,
    permissions: PermissionRules,
    performance: Performance,
    audit: Option<Audit>,
    relay: Option<RelayConfig>,
    guard: guard::GuardSection,
    rules: Rules,
    backends: Vec<BackendConfig>,
    outbound: OutboundSettings,
    data_dir: Option<PathBuf>,
    log_level: LogVerbosity,
}

impl Config {
    /// Reads the located file and lays `overrides` over it.
    pub fn load(found: &ConfigLocation, env: &Env<'_>, overrides: &Overrides) -> Result<CheckedConfig, ConfigError> {
        match found {
            ConfigLocation::Defaults => Self::assemble(None, "", env, overrides),
            ConfigLocation::File(path) => Self::parse(path, &locate::read(path)?, env, overrides),
        }
    }

    /// Returns the path of the file of approved definitions: by default `signalbox.lock` beside the configuration file.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        let beside = || self.source.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).join("signalbox.lock");
        self.guard_lock.clone().unwrap_or_else(beside)
    }

    /// Parses a text that was read already. `file` is its name in messages and the base of relative folders.
    pub fn parse(file: &Path, text: &str, env: &Env<'_>, overrides: &Overrides) -> Result<CheckedConfig, ConfigError> {
        Self::assemble(Some(file), text, env, overrides)
    }

    fn assemble(
        file: Option<&Path>,
        text: &str,
        env: &Env<'_>,
        overrides: &Overrides,
    ) -> Result<CheckedConfig, ConfigError> {
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
            guard: settings.guard.settings,
            guard_lock: settings.guard.lock,
            rules: settings.rules,
            backends: settings.backends,
            outbound: settings.outbound,
            data_dir,
            log_level: settings.log_level,
            source: file.map(Path::to_owned),
        };
        overrides.apply(&mut config);
        let found = match ConfigLocation::find(None, None, Path::new("."), env) {
            ConfigLocation::File(found) => Some(found),
            ConfigLocation::Defaults => None,
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
        Ok(CheckedConfig { config, warnings })
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

/// Reads a client's file, which only names backends. All other settings have their defaults.
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

/// Calls `each` with every server of a client's file.
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

/// Parses a client's file into a tree. Returns `None` if it is not JSON.
fn parse_json(text: &str) -> Option<raw::Node> {
    json::parse(text, &foreign::LISTS).ok()
}

/// Recognises JSON by the content, or else by the name of the file.
fn is_json(file: Option<&Path>, text: &str) -> bool {
    let extension = file.and_then(Path::extension).and_then(|extension| extension.to_str());
    text.trim_start().starts_with('{')
        || extension.is_some_and(|extension| ["json", "jsonc"].iter().any(|json| extension.eq_ignore_ascii_case(json)))
}
