//! Command line of `signalbox relay`.

use clap::{Args, Subcommand};

/// Text below the help of `signalbox relay`.
pub const RELAY_HELP: &str = "\
The relay lets web pages offer tools; see docs/relay.md.

Examples:
  signalbox relay migrate -- -d '{\"sessionCode\":\"K7QWERTY\",\"tool\":\"get_items\"}' https://host/api/request
  echo '{\"url\":\"/api/metadata?code=K7QWERTY\"}' | signalbox relay migrate";

/// Commands about the relay.
#[derive(Debug, Subcommand)]
pub enum RelayCommand {
    /// Print the MCP requests that replace a call of the legacy API
    Migrate(MigrateArgs),
}

/// Arguments of `signalbox relay migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Print requests for clients of revision 2026-07-28, which have no sessions
    #[arg(long)]
    pub stateless: bool,
    /// Call as arguments of curl; without any, JSON {"method", "url", "body"} is read from standard input
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CURL")]
    pub call: Vec<String>,
}
