//! Reads the table `relay`.

use super::error::{ConfigError, Problem};
use super::read::Table;
use super::values::bad;
use http::Uri;
use signalbox_relay::store::redis::address::RedisAddress;
use signalbox_relay::{ListedTools, MigrationPhase, RelayLimits, when};
use std::time::Duration;

/// Settings of the relay for tools in web pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayConfig {
    /// Phase of the legacy routes.
    pub phase: MigrationPhase,
    /// Time after which an unused session ends.
    pub ttl: Duration,
    /// Address of the gateway without a slash at the end. `None` stands for the listener's own address.
    pub public_url: Option<String>,
    /// Origins of other sites whose pages may use the relay.
    pub origins: Vec<String>,
    /// Tools of CODAP that are listed.
    pub tools: ListedTools,
    /// `true` if a code is enough to call tools.
    pub anonymous: bool,
    /// Date on which the legacy routes end.
    pub sunset: Option<String>,
    /// Redis that keeps sessions. `None` stands for the memory of this process.
    pub redis: Option<RedisAddress>,
    pub limits: RelayLimits,
}

/// Checks the table. Returns `None` if the relay is off.
pub(super) fn check(table: &Table<'_>) -> Result<Option<RelayConfig>, ConfigError> {
    let limits = table.table("limits")?;
    let word = table.choice("phase")?;
    let phase = MigrationPhase::ALL.into_iter().find(|phase| phase.word() == word).unwrap_or_default();
    let word = table.choice("tools")?;
    let tools = ListedTools::ALL.into_iter().find(|tools| tools.word() == word).unwrap_or_default();
    let relay = RelayConfig {
        phase,
        ttl: table.duration("ttl")?,
        public_url: public_url(table)?,
        origins: origins(table)?,
        tools,
        anonymous: table.flag("anonymous")?,
        sunset: sunset(table)?,
        redis: redis(table)?,
        limits: RelayLimits {
            sessions_per_minute: limits.count("sessions_per_minute")?,
            requests_per_minute: limits.count("requests_per_minute")?,
            mcp_requests_per_minute: limits.count("mcp_requests_per_minute")?,
            wrong_codes_per_minute: limits.count("wrong_codes_per_minute")?,
            max_sessions: limits.count("max_sessions")?,
            queue: limits.count("queue")?,
            body: limits.count("body")?,
            request_timeout: limits.duration("request_timeout")?,
            request_ttl: limits.duration("request_ttl")?,
        },
    };
    Ok(Some(relay).filter(|_| table.flag("enabled").unwrap_or(false)))
}

/// Returns `true` for `http` or `https` with a host and nothing behind it.
fn is_origin(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let web = matches!(uri.scheme_str(), Some("http" | "https"));
    let bare = uri.path() == "/" && uri.query().is_none() && !text.ends_with('/') && !text.contains('@');
    web && bare && uri.host().is_some_and(|host| !host.is_empty())
}

fn public_url(table: &Table<'_>) -> Result<Option<String>, ConfigError> {
    let Some(text) = table.text("public_url")?.filter(|text| !text.value.is_empty()) else { return Ok(None) };
    let bare = text.value.strip_suffix('/').unwrap_or(&text.value);
    match is_origin(bare) {
        true => Ok(Some(bare.to_owned())),
        false => Err(bad(table, &text, "an address like `https://box.example`, without a path")),
    }
}

fn origins(table: &Table<'_>) -> Result<Vec<String>, ConfigError> {
    let read = |text: super::read::Text<'_>| match is_origin(&text.value) {
        true => Ok(text.value),
        false => Err(bad(table, &text, "an origin like `https://codap.concord.org`")),
    };
    table.texts("origins")?.into_iter().map(read).collect()
}

fn sunset(table: &Table<'_>) -> Result<Option<String>, ConfigError> {
    let Some(text) = table.text("sunset")?.filter(|text| !text.value.is_empty()) else { return Ok(None) };
    match when::http_date(&text.value) {
        Some(_) => Ok(Some(text.value)),
        None => Err(bad(table, &text, "a day like `2027-06-30`")),
    }
}

/// Reads the address of Redis. It may hold a password, so a bad one is not shown.
fn redis(table: &Table<'_>) -> Result<Option<RedisAddress>, ConfigError> {
    const EXPECTED: &str = "`memory`, or an address like `redis://cache.example:6379/0` or `rediss://cache.example:6380/0` (see docs/relay.md)";
    let Some(text) = table.text("store")?.filter(|text| text.value != "memory") else { return Ok(None) };
    let bad = |_| table.document.error(&text.path, text.at, Problem::BadHiddenValue(EXPECTED));
    RedisAddress::read(&text.value).map(Some).map_err(bad)
}

/// Refuses a backend that has the relay's name.
pub(super) fn check_name(root: &Table<'_>, names: impl Iterator<Item = impl AsRef<str>>) -> Result<(), ConfigError> {
    let mut names = names;
    match names.any(|name| name.as_ref() == signalbox_relay::BACKEND) {
        true => {
            let expected = "another name than `relay`, which is taken while `relay.enabled` is set";
            Err(root.table("backends")?.key_error(signalbox_relay::BACKEND, Problem::BadHiddenValue(expected)))
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Overrides};
    use std::path::Path;

    fn load(text: &str) -> Result<Option<RelayConfig>, ConfigError> {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        Ok(Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default())?.config.relay)
    }

    /// Bad values, each with the exact message it gives.
    #[test]
    fn bad_values_are_told_with_their_places() {
        for (text, expected) in BAD {
            assert_eq!(load(text).unwrap_err().to_string(), *expected, "{text}");
        }
    }

    const BAD: &[(&str, &str)] = &[
        (
            "[relay]\nphase = 'later'\n",
            "signalbox.toml:2:9: relay.phase: expected `dual`, `deprecated` or `mcp-only`, found `later`",
        ),
        (
            "[relay]\npublic_url = 'https://box.example/path'\n",
            "signalbox.toml:2:14: relay.public_url: expected an address like `https://box.example`, without a path, found `https://box.example/path`",
        ),
        (
            "[relay]\norigins = ['codap.concord.org']\n",
            "signalbox.toml:2:12: relay.origins[0]: expected an origin like `https://codap.concord.org`, found `codap.concord.org`",
        ),
        (
            "[relay]\nstore = 'file'\n",
            "signalbox.toml:2:9: relay.store: expected `memory`, or an address like `redis://cache.example:6379/0` or `rediss://cache.example:6380/0` (see docs/relay.md)",
        ),
        (
            "[relay]\nsunset = 'soon'\n",
            "signalbox.toml:2:10: relay.sunset: expected a day like `2027-06-30`, found `soon`",
        ),
        (
            "[relay.limits]\nqueue = 0\n",
            "signalbox.toml:2:9: relay.limits.queue: expected a whole number from 1 to 10000, found `0`",
        ),
    ];

    /// Proves CO-2 and CO-5.
    #[test]
    fn every_key_is_read_and_without_enabled_there_is_none() {
        assert_eq!(load("").unwrap(), None);
        assert_eq!(load("[relay]\nphase = 'mcp-only'\n").unwrap(), None);
        let plain = load("[relay]\nenabled = true\n").unwrap().unwrap();
        assert_eq!(
            (plain.phase, plain.ttl, plain.tools),
            (MigrationPhase::Dual, Duration::from_secs(600), ListedTools::Document)
        );
        assert_eq!(plain.limits, RelayLimits::default());
        let text = "[relay]\nenabled = true\nphase = 'deprecated'\nttl = '2m'\npublic_url = 'https://box.example/'\n\
                    origins = ['https://codap.concord.org']\ntools = 'both'\nanonymous = true\nsunset = '2027-06-30'\n\
                    [relay.limits]\nqueue = 5\nbody = 2048\nrequest_timeout = '3s'\nrequest_ttl = '1h'\n";
        let relay = load(text).unwrap().unwrap();
        assert_eq!((relay.phase, relay.tools, relay.anonymous), (MigrationPhase::Deprecated, ListedTools::Both, true));
        assert_eq!(relay.public_url.as_deref(), Some("https://box.example"));
        assert_eq!((relay.limits.queue, relay.limits.body), (5, 2_048));
        assert_eq!(relay.limits.request_ttl, Duration::from_secs(3_600), "CO-5");
        assert_eq!(relay.sunset.as_deref(), Some("2027-06-30"));
        let text = "[relay]\nenabled = true\nstore = 'rediss://cache.example/2?prefix=eu:'\n";
        let redis = load(text).unwrap().unwrap().redis.unwrap();
        assert_eq!((redis.to_string().as_str(), redis.prefix()), ("rediss://cache.example:6379/2", "eu:"));
        assert!(load("[relay]\nenabled = true\n[backends.relay]\nurl = 'http://127.0.0.1:1/mcp'\n").is_err());
        assert!(load("[backends.relay]\nurl = 'http://127.0.0.1:1/mcp'\n").is_ok());
    }
}
