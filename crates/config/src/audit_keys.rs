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
        "Log violations, callers who are refused, and broken glass.",
    ),
    key("mcp.protocol.audit.log_performance_events", KeyKind::Flag(true), "Log calls that take `slow_call` or longer."),
    key("mcp.protocol.audit.log_protocol_errors", KeyKind::Flag(true), "Log messages that cannot be served."),
    key("mcp.protocol.audit.retention_days", count(90, 1, 36_500), "For how many days records are kept."),
    key(
        "mcp.protocol.audit.sync",
        one_of(&["write", "fsync"], "write"),
        "When an intent counts as written: once the system has it, so that it survives the end of the process, or once it is on the disk, so that it survives the end of the machine.",
    ),
    key(
        "mcp.protocol.audit.required",
        KeyKind::Texts,
        "Sinks without which no call leaves: `file`, `database`, `remote`, `syslog`. Others get what they missed later.",
    ),
    key(
        "mcp.protocol.audit.spool_max",
        count(256 * MIB, 65_536, 1024 * 1024 * MIB),
        "Most bytes of records that wait in the data folder for sinks; a sink that is further behind gets a signed gap in place of the oldest.",
    ),
    key(
        "mcp.protocol.audit.payloads",
        KeyKind::Flag(false),
        "Write the arguments of calls too, without the secrets that `record.redact` takes out.",
    ),
    key("mcp.protocol.audit.slow_call", seconds(10.0, DAY), "How long a call takes that is logged as slow."),
    key(
        "mcp.protocol.audit.alert_webhook",
        KeyKind::Text(""),
        "An address that every critical violation, and every breaking of the glass, is posted to at once.",
    ),
    key("mcp.protocol.audit.sinks.file_sink", KeyKind::Flag(true), "Write records to a file, a new one each day."),
    key(
        "mcp.protocol.audit.sinks.file_path",
        KeyKind::Text(""),
        "Which file, relative to this one. By default `audit/audit.log` in the data folder.",
    ),
    key(
        "mcp.protocol.audit.sinks.database_sink",
        KeyKind::Flag(true),
        "Keep records in the database of `database_url`, where that is set.",
    ),
    key(
        "mcp.protocol.audit.sinks.database_url",
        KeyKind::Text(""),
        "Which database: `postgresql://user:password@host/database`, or `sqlite:PATH`.",
    ),
    key(
        "mcp.protocol.audit.sinks.remote_sink",
        KeyKind::Flag(false),
        "Post records to `remote_endpoint`, in batches, each a JSON array.",
    ),
    key("mcp.protocol.audit.sinks.remote_endpoint", KeyKind::Text(""), "Which address takes them."),
    key(
        "mcp.protocol.audit.sinks.remote_token_env",
        KeyKind::Text(""),
        "The variable with a token that this address is shown, as `Authorization: Bearer TOKEN`.",
    ),
    key(
        "mcp.protocol.audit.sinks.syslog",
        KeyKind::Text(""),
        "Send records to syslog (RFC 5424): `udp://host:514`, `tcp://host:514` or `unix:///dev/log`.",
    ),
];
