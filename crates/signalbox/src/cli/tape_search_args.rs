//! Command line of `signalbox tape search`.

use super::tape_args::millis;
use clap::{Args, ValueEnum};
use std::time::Duration;

/// Arguments of `tape search`.
#[derive(Debug, Clone, Default, Args)]
pub struct SearchArgs {
    /// Words that a message must contain, all of them; "a phrase" in quotes
    pub text: Option<String>,
    /// Only in this tape, or in this file
    #[arg(long, value_name = "TAPE")]
    pub tape: Option<String>,
    /// Only in this session of the tape
    #[arg(long, value_name = "NUMBER")]
    pub session: Option<u64>,
    /// Only in the session that its client knows by this id; tapes store a keyed hash of it
    #[arg(long, value_name = "ID", conflicts_with = "session")]
    pub session_id: Option<String>,
    /// Only with this method; a trailing * stands for any rest. May be given several times
    #[arg(long, value_name = "METHOD")]
    pub method: Vec<String>,
    /// Only about this tool, prompt or URI
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Only through this backend
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Only on behalf of this principal
    #[arg(long, value_name = "NAME")]
    pub principal: Option<String>,
    /// Only calls with this outcome: success, tool_error, error, timed_out, …
    #[arg(long, value_name = "OUTCOME")]
    pub outcome: Option<String>,
    /// Only errors with this code
    #[arg(long, value_name = "CODE", allow_hyphen_values = true)]
    pub code: Option<i64>,
    /// Only calls that took at least this long, such as 500ms or 2s; a plain number means milliseconds
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub slower_than: Option<Duration>,
    /// Only from this moment on: 2026-11-15, 2026-11-15T09:05:00Z, or 2h, 30m, 7d ago
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only before this moment
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Only requests with this value: NAME=VALUE of the arguments, or /PATH=VALUE with a path below params. VALUE may
    /// have * and ?. May be given several times
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "facets")]
    pub param: Vec<String>,
    /// Only results with this value, as --param has it; with --param, only calls with both. May be given several times
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "facets")]
    pub result: Vec<String>,
    /// Only entries of this type; with `end`, --since and --until are about when calls ended. May
    /// be given several times
    #[arg(long = "type", value_enum, value_name = "TYPE", conflicts_with = "facets")]
    pub types: Vec<EntryType>,
    /// Show at most this many entries
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    pub limit: usize,
    /// Show this page of the entries, counted from 1
    #[arg(long, value_name = "NUMBER", default_value_t = 1, conflicts_with = "facets")]
    pub page: usize,
    /// Show the oldest first
    #[arg(long)]
    pub oldest_first: bool,
    /// Count the calls by method, tool, backend, principal, outcome and error code, instead of listing them
    #[arg(long)]
    pub facets: bool,
}

/// Types of entries that can be searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EntryType {
    /// A request of either side
    Request,
    /// The result of a request
    Result,
    /// An error in place of a result
    Error,
    /// A notification of either side
    Notification,
    /// A decision of the gateway
    Decision,
    /// The end of a call, with its outcome
    End,
    /// A session that began or ended
    Session,
    /// Entries of any other type
    Other,
}
