//! Command line of `signalbox audit`.

use clap::{Args, Subcommand, ValueEnum};
use signalbox_assembly::recording::unix_nanos;
use signalbox_audit::search::AuditQuery;
use signalbox_audit::{CallStatus, EventType, RiskLevel};
use signalbox_tape::moment;
use std::path::PathBuf;

/// Text below the help of `signalbox audit`.
pub const AUDIT_HELP: &str = "\
Reads the files of the audit log that the configuration names, or its database; see docs/audit.md. Times are such as \
2026-11-17, 2026-11-17T09:05:00Z, or how long ago: 90s, 30m, 2h, 7d.

Examples:
  signalbox audit search --since 1h --status denied
  signalbox audit search --principal 'user:*' --tool 'files__*' --risk high --json
  signalbox audit search --id audit-18bcfe568000007-1
  signalbox audit verify
  signalbox audit export --since 30d --format csv -o november.csv";

/// Commands about the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Find records in the audit log
    Search(AuditSearchArgs),
    /// Check that no record was changed, removed or moved, and name the first that was
    ///
    /// Exits with 1 if something is wrong, and with 4 if nothing is wrong and not everything is proved: a copy without
    /// signatures, or with records behind the last one. Exits with 6 if the log itself says that others are not there:
    /// they could not be written, its sink was too far behind, or they were written to another place.
    ///
    /// Its last line says what no verification can notice: a person who can write to the log and to the data folder can
    /// remove the end of a chain, back to any signed head, and whole chains.
    Verify(AuditVerifyArgs),
    /// Write records in a format for other programs
    Export(AuditExportArgs),
}

/// Selection of the log to read.
#[derive(Debug, Clone, Default, Args)]
pub struct AuditPlaceArgs {
    /// Read the database of the configuration, even if there are files
    #[arg(long)]
    pub database: bool,
    /// Read these files instead, such as copies; several are allowed
    #[arg(long = "file", value_name = "FILE", conflicts_with = "database")]
    pub files: Vec<PathBuf>,
}

/// Arguments of `audit verify`.
#[derive(Debug, Clone, Default, Args)]
pub struct AuditVerifyArgs {
    #[command(flatten)]
    pub place: AuditPlaceArgs,
    /// Place of the log that the files are copies of, as its gaps and checkpoints name it: they count for that log only
    #[arg(long, value_name = "PLACE", requires = "files")]
    pub of: Option<String>,
}

/// Selection of the records.
#[derive(Debug, Clone, Default, Args)]
pub struct AuditQueryArgs {
    #[command(flatten)]
    pub place: AuditPlaceArgs,
    /// Only records of this time and later
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub since: Option<u64>,
    /// Only records from before this time
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub until: Option<u64>,
    /// Only of principals that fit this pattern
    #[arg(long, value_name = "PATTERN")]
    pub principal: Option<String>,
    /// Only about tools, prompts and URIs that fit this pattern
    #[arg(long, value_name = "PATTERN")]
    pub tool: Option<String>,
    /// Only about this backend
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Only calls that ended so: success, error, denied, killed, rate_limited, invalid_args, circuit_open, cancelled or
    /// not_recorded
    #[arg(long, value_name = "STATUS", value_parser = status)]
    pub status: Option<String>,
    /// Only records of at least this risk: low, medium, high or critical
    #[arg(long, value_name = "RISK", value_parser = risk)]
    pub risk: Option<RiskLevel>,
    /// Only events of this kind: tool_invocation, request, security_violation, definition_changed, break_glass,
    /// admin_action, performance, protocol_error, chain_head or records_lost
    #[arg(long = "type", value_name = "TYPE", value_parser = kind)]
    pub event_type: Option<EventType>,
    /// Only records of this call, by its audit id
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Show the arguments of calls too, where the log has them
    #[arg(long)]
    pub payloads: bool,
}

impl AuditQueryArgs {
    /// Returns the query that these arguments select.
    pub fn query(&self) -> AuditQuery {
        AuditQuery {
            since: self.since,
            until: self.until,
            principal: self.principal.clone(),
            tool: self.tool.clone(),
            backend: self.backend.clone(),
            status: self.status.clone(),
            risk: self.risk,
            event_type: self.event_type,
            correlation_id: self.id.clone(),
        }
    }
}

/// Arguments of `audit search`.
#[derive(Debug, Clone, Default, Args)]
pub struct AuditSearchArgs {
    #[command(flatten)]
    pub query: AuditQueryArgs,
    /// Show at most this many records, the last ones
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: usize,
}

/// Arguments of `audit export`.
#[derive(Debug, Clone, Default, Args)]
pub struct AuditExportArgs {
    #[command(flatten)]
    pub query: AuditQueryArgs,
    /// Format of the records
    #[arg(long, value_enum, default_value_t)]
    pub format: AuditFormat,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
}

/// Formats of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum AuditFormat {
    /// JSON, one record a line
    #[default]
    Jsonl,
    /// A table with a header line
    Csv,
}

/// Error for an unknown word. Lists the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of: {0}")]
struct UnknownWord(String);

fn risk(word: &str) -> Result<RiskLevel, UnknownWord> {
    RiskLevel::of(word).ok_or_else(|| UnknownWord(RiskLevel::ALL.map(RiskLevel::word).join(", ")))
}

fn kind(word: &str) -> Result<EventType, UnknownWord> {
    EventType::of(word).ok_or_else(|| UnknownWord(EventType::ALL.map(EventType::word).join(", ")))
}

fn status(word: &str) -> Result<String, UnknownWord> {
    let known = CallStatus::named(word).map(|status| status.word().to_owned());
    known.ok_or_else(|| UnknownWord(CallStatus::ALL.map(CallStatus::word).join(", ")))
}

fn millis(text: &str) -> Result<u64, moment::BadTime> {
    Ok(moment::read(text, unix_nanos())? / 1_000_000)
}
