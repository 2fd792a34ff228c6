//! Arguments of `wrap` and `proxy`.

use super::seconds;
use clap::Args;
use signalbox_config::ListenAddr;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// File for the recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct TapeTo {
    /// Record to this tape file, which must not exist yet [default: a tape in the data folder]
    #[arg(long, value_name = "FILE")]
    pub tape: Option<PathBuf>,
    /// Do not record the messages
    #[arg(long, conflicts_with = "tape")]
    pub no_tape: bool,
}

/// Arguments of the command `wrap`.
#[derive(Debug, Clone, Args)]
pub struct WrapArgs {
    #[command(flatten)]
    pub to: TapeTo,
    /// Apply the rules of this file, which may change what passes
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Time that the server may keep running after its client has gone
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = seconds)]
    pub grace: Duration,
    /// Server to run, and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Arguments of the command `proxy`.
#[derive(Debug, Clone, Args)]
pub struct ProxyArgs {
    /// Address to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: ListenAddr,
    #[command(flatten)]
    pub to: TapeTo,
    /// Apply the rules of this file, which may change what passes
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// MCP endpoint, http://HOST/PATH or https://HOST/PATH
    pub url: String,
}

pub(super) const WRAP_HELP: &str = "\
Every byte passes unchanged, both ways, even what is not JSON; standard error, signals and the exit code are the \
server's own. Every byte is also recorded, where only you can read it (`signalbox tape show last`), or in the database of \
`record.postgres`, with the secrets of `record.redact` redacted. `signalbox status` and `signalbox watch` show what is \
happening. With --rules it is a gateway with one backend, which records like any gateway. \
`signalbox ./server.js` and `signalbox npx -y some-server` mean the same.

Examples:
  signalbox wrap -- npx -y @modelcontextprotocol/server-everything stdio
  signalbox wrap --tape talk.tape -- python3 server.py
  signalbox wrap --rules rules.toml --tape talk.tape -- python3 server.py
  an entry of a client's mcpServers file:
  \"files\": {\"command\": \"signalbox\", \"args\": [\"wrap\", \"--\", \"my-server\", \"--root\", \"/srv\"]}";

pub(super) const PROXY_HELP: &str = "\
Requests, answers and event streams pass unchanged; only Host and the headers of single connections are changed. \
Point the client to the printed address. What passes is also recorded, where only you can read it (`signalbox tape show \
last`), or in the database of `record.postgres`, with the secrets of `record.redact` redacted. `signalbox status` and \
`signalbox watch` show what is happening. With --rules it is a gateway with one backend, which records like any gateway. \
`signalbox http://…` means the same.

Examples:
  signalbox proxy http://127.0.0.1:3000/mcp
  signalbox proxy --listen 127.0.0.1:9000 --tape talk.tape https://mcp.example/mcp";
