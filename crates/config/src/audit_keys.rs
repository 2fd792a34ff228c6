//! The configuration keys of the audit log.

use crate::key_parts::{count, key, one_of, seconds};
use crate::keys::{ConfigKey, KeyKind};

const MIB: u64 = 1024 * 1024;
const DAY: f64 = 24.0 * 3600.0;

/// Every key of `mcp.protocol.audit`, in the order of the reference.
pub(crate) const AUDIT_KEYS: &[ConfigKey] = &[
    key("mcp.protocol.audit.enabled", KeyKind::Flag(false), "Write an audit log; see docs/audit.md."),
    key(
        "mcp.protocol.audit.log_tool_invocations",
        KeyKind::Flag(true),
        "Log every call: its intent before it leaves for the backend, and its outcome.",
    ),
    key(
        "mcp.protocol.audit.log_security_events",
        KeyKind::Flag(true),
        "Log violations, refused callers, and grants that break the glass.",
    ),
    key("mcp.protocol.audit.log_performance_events", KeyKind::Flag(true), "Log calls that take `slow_call` or longer."),
    key("mcp.protocol.audit.log_protocol_errors", KeyKind::Flag(true), "Log messages that cannot be served."),
    key("mcp.protocol.audit.retention_days", count(90, 1, 36_500), "Number of days for which records are kept."),
    key(
        "mcp.protocol.audit.sync",
        one_of(&["write", "fsync"], "write"),
        "When an intent counts as written: once the system has it, so that it survives the end of the process, or once it is on the disk, so that it survives the end of the machine.",
    ),
    key(
        "mcp.protocol.audit.required",
        KeyKind::Texts,
        "Sinks that must have the record of a call before the call is forwarded: `file`, `database`, `remote`, `syslog`. Other sinks may catch up later.",
    ),
    key(
        "mcp.protocol.audit.spool_max",
        count(256 * MIB, 65_536, 1024 * 1024 * MIB),
        "Maximum size of the records that wait in the data folder for slow sinks, in bytes. A sink that falls further behind gets a signed gap in place of the oldest records.",
    ),
    key(
        "mcp.protocol.audit.payloads",
        KeyKind::Flag(false),
        "Write the arguments of calls too, without the secrets that `record.redact` takes out.",
    ),
    key("mcp.protocol.audit.slow_call", seconds(10.0, DAY), "Duration from which a call is logged as slow."),
    key(
        "mcp.protocol.audit.alert_webhook",
        KeyKind::Text(""),
        "Address to which every critical violation and every grant that breaks the glass is posted at once.",
    ),
    key("mcp.protocol.audit.sinks.file_sink", KeyKind::Flag(true), "Write records to a file, a new one each day."),
    key(
        "mcp.protocol.audit.sinks.file_path",
        KeyKind::Text(""),
        "File of the log, relative to this one. By default `audit/audit.log` in the data folder.",
    ),
    key(
        "mcp.protocol.audit.sinks.database_sink",
        KeyKind::Flag(true),
        "Keep records in the database of `database_url`, if that is set.",
    ),
    key(
        "mcp.protocol.audit.sinks.database_url",
        KeyKind::Text(""),
        "Database of the log: `postgresql://user:password@host/database`, or `sqlite:PATH`.",
    ),
    key(
        "mcp.protocol.audit.sinks.remote_sink",
        KeyKind::Flag(false),
        "Post records to `remote_endpoint`, in batches, each a JSON array.",
    ),
    key("mcp.protocol.audit.sinks.remote_endpoint", KeyKind::Text(""), "Address that records are posted to."),
    key(
        "mcp.protocol.audit.sinks.remote_token_env",
        KeyKind::Text(""),
        "Environment variable with the token that is sent to this address, as `Authorization: Bearer TOKEN`.",
    ),
    key(
        "mcp.protocol.audit.sinks.syslog",
        KeyKind::Text(""),
        "Send records to syslog (RFC 5424): `udp://host:514`, `tcp://host:514` or `unix:///dev/log`.",
    ),
];
