//! Parts of the table of keys: the words of choices, and short constructors for the usual kinds.

use crate::keys::{ConfigKey, KeyKind, KeyState};

/// Words that `mcp.protocol.transport.type` accepts.
pub const TRANSPORTS: &[&str] = &["http", "websocket", "tcp"];
/// Words that `record.sampling` accepts.
pub const SAMPLINGS: &[&str] = &["all", "share", "adaptive", "every_nth", "errors", "slow", "ring"];
/// Words that `client_auth` accepts.
pub const CLIENT_AUTH: &[&str] = &["none", "optional", "required"];
/// Words that `min_version` accepts.
pub const TLS_VERSIONS: &[&str] = &["1.2", "1.3"];
/// Words of `gateway.log_level`, quietest first.
pub const LOG_LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];
/// Words of `trust_level`, most trusted first.
pub const TRUST_LEVELS: &[&str] = &["system", "verified", "community", "untrusted"];

/// Keys read from a server entry of a client's JSON file, beside `type` and `enabled`, which have other names here.
pub const FOREIGN_KEYS: &[&str] = &["command", "args", "env", "cwd", "url", "headers", "disabled"];

pub(crate) const fn key(path: &'static str, kind: KeyKind, meaning: &'static str) -> ConfigKey {
    ConfigKey { path, kind, state: KeyState::Built, meaning }
}

pub(crate) const fn otel(path: &'static str, kind: KeyKind, meaning: &'static str) -> ConfigKey {
    key(path, kind, meaning).of_feature("otel", "OpenTelemetry export is", cfg!(feature = "otel"))
}

/// Defines a limit on the number of requests. 0, the default, stands for no limit.
pub(crate) const fn limit(path: &'static str, meaning: &'static str) -> ConfigKey {
    key(path, count(0, 0, 1_000_000_000), meaning)
}

/// Defines such a limit with another default.
pub(crate) const fn limit_of(path: &'static str, default: u64, meaning: &'static str) -> ConfigKey {
    key(path, count(default, 0, 1_000_000_000), meaning)
}

pub(crate) const fn seconds(default: f64, max: f64) -> KeyKind {
    KeyKind::Seconds { default: Some(default), max }
}

pub(crate) const fn count(default: u64, min: u64, max: u64) -> KeyKind {
    KeyKind::Count { default, min, max }
}

pub(crate) const fn one_of(built: &'static [&'static str], default: &'static str) -> KeyKind {
    KeyKind::Choice { built, later: &[], default }
}
