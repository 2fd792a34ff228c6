//! The audit log: the table `mcp.protocol.audit`.

use super::error::{ConfigError, Problem};
use super::read::{Table, Text};
use super::secret::{Secret, token_from_env};
use super::values::{bad, folder};
use signalbox_audit::EventSelection;
use signalbox_audit::sinks::SyslogAddress;
use signalbox_store::PostgresStore;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Names of the sinks that can be required.
const SINKS: [&str; 4] = ["file", "database", "remote", "syslog"];

/// Settings of the audit log: the events it records and the sinks they go to.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// Kinds of events that are recorded.
    pub logged: EventSelection,
    /// Days for which records are kept.
    pub retention_days: u64,
    /// `true` if a record must be on disk before its call is forwarded.
    pub fsync: bool,
    /// Names of the sinks that must have a record before its call is forwarded.
    pub required: Vec<String>,
    /// Maximum size, in bytes, of the records that wait for slow sinks.
    pub spool_max: u64,
    /// `true` if records contain the arguments of calls.
    pub payloads: bool,
    /// Duration from which a call is recorded as slow.
    pub slow_call: Duration,
    /// Address that is notified of critical violations as soon as they happen.
    pub alert_webhook: Option<String>,
    /// Log file, if configured. An empty path stands for the default file in the data folder.
    pub file: Option<PathBuf>,
    /// Database, if configured. Its address may hold a password.
    pub database: Option<Secret>,
    /// Address to which batches of records are posted, if configured.
    pub remote: Option<String>,
    /// Bearer token for `remote`.
    pub remote_token: Option<Secret>,
    /// Syslog listener, if records go to one.
    pub syslog: Option<SyslogAddress>,
}

/// Checks the table. Returns `None` if the audit log is off.
pub(super) fn check(table: &Table<'_>) -> Result<Option<Audit>, ConfigError> {
    let sinks = table.table("sinks")?;
    let file = file(&sinks)?;
    let database = database(&sinks)?;
    let remote = remote(&sinks)?;
    let syslog = syslog(&sinks)?;
    let required = required(
        table,
        &[
            ("file", file.is_some()),
            ("database", database.is_some()),
            ("remote", remote.is_some()),
            ("syslog", syslog.is_some()),
        ],
    )?;
    let audit = Audit {
        logged: EventSelection {
            tool_invocations: table.flag("log_tool_invocations")?,
            security_events: table.flag("log_security_events")?,
            performance_events: table.flag("log_performance_events")?,
            protocol_errors: table.flag("log_protocol_errors")?,
        },
        retention_days: table.count("retention_days")?,
        fsync: table.choice("sync")? == "fsync",
        required,
        spool_max: table.count("spool_max")?,
        payloads: table.flag("payloads")?,
        slow_call: table.duration("slow_call")?,
        alert_webhook: given(table, "alert_webhook")?.map(|text| web(table, &text)).transpose()?,
        file,
        database,
        remote,
        remote_token: token_from_env(&sinks, "remote_token_env")?,
        syslog,
    };
    let somewhere =
        audit.file.is_some() || audit.database.is_some() || audit.remote.is_some() || audit.syslog.is_some();
    match table.flag("enabled")? {
        true if !somewhere => Err(table.key_error("enabled", Problem::Needs("a sink: see `mcp.protocol.audit.sinks`"))),
        true => Ok(Some(audit)),
        false => Ok(None),
    }
}

/// Returns the text of a key, or `None` if it is missing or empty.
fn given<'a>(table: &Table<'a>, key: &str) -> Result<Option<Text<'a>>, ConfigError> {
    Ok(table.text(key)?.filter(|text| !text.value.is_empty()))
}

fn file(sinks: &Table<'_>) -> Result<Option<PathBuf>, ConfigError> {
    let path = match given(sinks, "file_path")? {
        Some(_) => folder(sinks, "file_path")?.unwrap_or_default(),
        None => PathBuf::new(),
    };
    Ok(sinks.flag("file_sink")?.then_some(path))
}

/// Reads the database sink. A named database is used unless `database_sink` is false.
fn database(sinks: &Table<'_>) -> Result<Option<Secret>, ConfigError> {
    let wanted = sinks.flag("database_sink")?;
    let Some(url) = given(sinks, "database_url")? else {
        let missing = wanted && sinks.has("database_sink");
        return match missing {
            true => Err(sinks.key_error("database_sink", Problem::Needs("`database_url`"))),
            false => Ok(None),
        };
    };
    let expected = "an address like `postgresql://user@host/database`, or `sqlite:PATH`";
    let address = match url.value.strip_prefix("sqlite:") {
        Some("") => return Err(bad(sinks, &url, expected)),
        Some(path) => {
            let base = sinks.document.file.and_then(Path::parent);
            let path = base.map_or_else(|| PathBuf::from(path), |base| base.join(path));
            format!("sqlite:{}", path.display())
        }
        None if url.value.starts_with("postgres://") || url.value.starts_with("postgresql://") => {
            let checked = PostgresStore::check(&url.value);
            checked.map_err(|error| sinks.document.error(&url.path, url.at, Problem::BadDatabase(error)))?;
            url.value
        }
        // The address may hold a password, so the message does not show it.
        None => return Err(sinks.document.error(&url.path, url.at, Problem::BadHiddenValue(expected))),
    };
    Ok(wanted.then(|| Secret::new(address)))
}

fn remote(sinks: &Table<'_>) -> Result<Option<String>, ConfigError> {
    let wanted = sinks.flag("remote_sink")?;
    match given(sinks, "remote_endpoint")? {
        Some(text) => web(sinks, &text).map(|url| wanted.then_some(url)),
        None if wanted => Err(sinks.key_error("remote_sink", Problem::Needs("`remote_endpoint`"))),
        None => Ok(None),
    }
}

fn syslog(sinks: &Table<'_>) -> Result<Option<SyslogAddress>, ConfigError> {
    let expected = "`udp://host:514`, `tcp://host:514` or `unix:///dev/log`";
    let read = |text: Text<'_>| text.value.parse().map_err(|_| bad(sinks, &text, expected));
    given(sinks, "syslog")?.map(read).transpose()
}

/// Checks the web address to which records are posted.
fn web(table: &Table<'_>, text: &Text<'_>) -> Result<String, ConfigError> {
    if !text.value.starts_with("http://") && !text.value.starts_with("https://") {
        return Err(bad(table, text, "an address like `https://audit.example.com/api/events`"));
    }
    super::values::address(table, text).map(|url| url.to_string())
}

fn required(table: &Table<'_>, sinks: &[(&str, bool)]) -> Result<Vec<String>, ConfigError> {
    let mut required = Vec::new();
    for text in table.texts("required")? {
        if !SINKS.contains(&text.value.as_str()) {
            return Err(bad(table, &text, "`file`, `database`, `remote` or `syslog`"));
        }
        if !sinks.iter().any(|(name, used)| *name == text.value && *used) {
            return Err(bad(table, &text, "a sink that is used"));
        }
        required.push(text.value);
    }
    Ok(required)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Overrides};

    fn load(text: &str) -> Result<Option<Audit>, ConfigError> {
        let env = |name: &str| match name {
            "HOME" => Some("/home/ada".to_owned()),
            "AUDIT_TOKEN" => Some("t0ken".to_owned()),
            "TORN" => Some("two words".to_owned()),
            _ => None,
        };
        let loaded = Config::parse(Path::new("/etc/signalbox.toml"), text, &env, &Overrides::default())?;
        Ok(loaded.config.audit)
    }

    /// The tables of `mcp.protocol.audit` are read.
    /// Proves G-38, G-39, G-40 and G-41.
    #[test]
    fn the_tables_of_the_governed_configuration_are_read() {
        let text = "[mcp.protocol.audit]\nenabled = true\nlog_tool_invocations = true\nlog_security_events = true\n\
            log_performance_events = true\nlog_protocol_errors = true\nretention_days = 90\n\
            [mcp.protocol.audit.sinks]\nfile_sink = true\nfile_path = \"/var/log/groundhog/mcp-audit.log\"\n\
            database_sink = true\ndatabase_url = \"postgresql://user:pass@localhost/groundhog\"\n\
            remote_sink = false\nremote_endpoint = \"https://audit.example.com/api/events\"\n";
        let audit = load(text).unwrap().unwrap();
        assert_eq!(audit.file, Some("/var/log/groundhog/mcp-audit.log".into()));
        assert_eq!(audit.database.unwrap().expose(), "postgresql://user:pass@localhost/groundhog");
        assert_eq!((audit.remote, audit.retention_days, audit.fsync, audit.payloads), (None, 90, false, false));
        let all = EventSelection {
            tool_invocations: true,
            security_events: true,
            performance_events: true,
            protocol_errors: true,
        };
        assert_eq!(audit.logged, all);
        let remote = load(&text.replace("remote_sink = false", "remote_sink = true")).unwrap().unwrap();
        assert_eq!(remote.remote.as_deref(), Some("https://audit.example.com/api/events"));
        assert_eq!(load(&text.replace("enabled = true", "enabled = false")).unwrap(), None);
        assert_eq!(load("").unwrap(), None);
    }

    /// Our own keys, and each switch of `mcp.protocol.audit`.
    #[test]
    fn every_other_key_is_read() {
        let audit = load(
            "[mcp.protocol.audit]\nenabled = true\nsync = \"fsync\"\nrequired = [\"file\", \"syslog\"]\nspool_max = 1000000\n\
            payloads = true\nslow_call = \"3s\"\nalert_webhook = \"https://chat.example/hook\"\nlog_security_events = false\n\
            [mcp.protocol.audit.sinks]\ndatabase_url = \"sqlite:audit.db\"\nsyslog = \"udp://127.0.0.1:514\"\n",
        );
        let audit = audit.unwrap().unwrap();
        assert!(audit.fsync && audit.payloads && !audit.logged.security_events && audit.logged.tool_invocations);
        assert_eq!((audit.required, audit.spool_max), (vec!["file".to_owned(), "syslog".to_owned()], 1_000_000));
        assert_eq!(
            (audit.slow_call, audit.alert_webhook.as_deref()),
            (Duration::from_secs(3), Some("https://chat.example/hook"))
        );
        assert_eq!(audit.file, Some(PathBuf::new()));
        assert_eq!(audit.database.unwrap().expose(), "sqlite:/etc/audit.db");
        assert_eq!(audit.syslog, Some(SyslogAddress::Udp("127.0.0.1:514".to_owned())));
        let none = "[mcp.protocol.audit]\nenabled = true\n[mcp.protocol.audit.sinks]\ndatabase_url = \"sqlite:a\"\ndatabase_sink = false\n";
        assert_eq!(load(none).unwrap().unwrap().database, None);
    }

    /// The remote sink is shown a token from a variable, which is in no message.
    #[test]
    fn the_token_of_the_remote_sink_comes_from_a_variable() {
        let text = |name: &str| {
            format!(
                "[mcp.protocol.audit]\nenabled = true\n[mcp.protocol.audit.sinks]\nremote_sink = true\n\
                 remote_endpoint = 'https://audit.example/'\nremote_token_env = '{name}'\n"
            )
        };
        let audit = load(&text("AUDIT_TOKEN")).unwrap().unwrap();
        assert_eq!(audit.remote_token.as_ref().map(Secret::expose), Some("t0ken"));
        assert!(!format!("{audit:?}").contains("t0ken"));
        assert_eq!(load(&text("")).unwrap().unwrap().remote_token, None);
        for name in ["NOT_SET", "TORN"] {
            let error = load(&text(name)).unwrap_err().to_string();
            assert!(error.contains("remote_token_env") && !error.contains("two words"), "{error}");
        }
    }
}
