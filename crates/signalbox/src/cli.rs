//! Definition of the command line. Doc comments on its items are help texts.

mod api_key_args;
mod audit_args;
mod backtest_args;
mod guard_args;
mod hold;
mod permission_args;
mod relay_args;
mod replay_args;
mod rules_args;
mod seal_args;
mod sign_in_args;
mod tape_args;
mod tape_search_args;
mod transparent;
mod user_args;

use backtest_args::BACKTEST_HELP;
pub use backtest_args::BacktestArgs;
pub use hold::{EditArgs, HoldCommand, How, SessionsCommand, WatchArgs, Which};
use transparent::{PROXY_HELP, WRAP_HELP};
pub use transparent::{ProxyArgs, TapeTo, WrapArgs};

use api_key_args::API_KEYS_HELP;
pub use api_key_args::{ApiKeysCommand, NewApiKeyArgs, TrustWord};
use audit_args::AUDIT_HELP;
pub use audit_args::{
    AuditCommand, AuditExportArgs, AuditFormat, AuditPlaceArgs, AuditQueryArgs, AuditSearchArgs, AuditVerifyArgs,
};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use guard_args::GUARD_HELP;
pub use guard_args::{CanaryCommand, CanaryShape, GuardCommand, TextPosition};
pub use permission_args::{
    BreakGlassArgs, EntryKind, ExplainArgs, GrantArgs, GrantCommand, PolicyCommand, SwitchArgs, SwitchCommand, WhoArgs,
};
use permission_args::{GRANT_HELP, POLICY_HELP, SWITCH_HELP};
use relay_args::RELAY_HELP;
pub use relay_args::{MigrateArgs, RelayCommand};
use replay_args::REPLAY_HELP;
pub use replay_args::{
    BreakAt, OnErrorMode, OrderMode, PlayArgs, RecordMode, RepeatMode, ReplayAction, ReplayBranchArgs, ReplayCommand,
    ReplayControlArgs, ReplayRunArgs, ReplayServeArgs, ReplayShrinkArgs, TrialArgs,
};
use rules_args::RULES_HELP;
pub use rules_args::{EditRuleArgs, RulesCommand, TestArgs, TestPhase};
use seal_args::SEAL_HELP;
pub use seal_args::{
    ExportKeyArgs, KeyArgs, KeyFormat, KeysCommand, NewKeyArgs, SealCommand, SealVerifyArgs, SignArgs,
};
pub use sign_in_args::SignInArgs;
use sign_in_args::{LOGIN_HELP, LOGOUT_HELP};
use signalbox_config::duration;
use signalbox_config::{ListenAddr, LogVerbosity};
use std::path::PathBuf;
use std::time::Duration;
use tape_args::TAPE_HELP;
pub use tape_args::{
    DiffArgs, ExportArgs, Format, ImportFormatArg, PlacesArgs, ProveArgs, PruneArgs, RedactArgs, ShowArgs, TapeCommand,
    VerifyArgs,
};
pub use tape_search_args::{EntryType, SearchArgs};
use user_args::USERS_HELP;
pub use user_args::UsersCommand;

/// The gate that every MCP tool call goes through.
///
/// Signalbox stands between MCP clients and MCP servers: all servers ("backends") of one configuration file behind one
/// endpoint, over the network (`serve`: HTTP, HTTP+SSE, WebSocket, TCP) or standard input and output (`stdio`). Without
/// a command it serves over HTTP; without a configuration it offers a few safe demo tools. `signalbox ./server.js` and
/// `signalbox npx -y some-server` mean `wrap`, `signalbox http://…` means `proxy`, `signalbox :9000` means `serve` on
/// that port, and `signalbox talk.tape` shows a tape to a person and serves it to a program at the other end of a pipe.
#[derive(Debug, Parser)]
#[command(name = "signalbox", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// Command to run. Without one, `serve` runs.
    #[command(subcommand)]
    pub command: Option<CliCommand>,
}

const AFTER_HELP: &str = "\
Configuration: -c FILE, else $SIGNALBOX_CONFIG, else ./signalbox.toml, else signalbox/signalbox.toml in the user's \
config folder, else defaults. A client's `mcpServers` JSON file is accepted as it is. The variables SIGNALBOX_LISTEN, \
SIGNALBOX_DATA_DIR and SIGNALBOX_LOG_LEVEL win over the file, flags win over both.

Exit codes: 0 fine, 1 failed, 2 usage or configuration.";

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// Configuration file, in our TOML or a client's mcpServers JSON
    #[arg(short, long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder for state [default: signalbox in the user's state folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Verbosity of the log: error, warn, info, debug or trace
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log_level: Option<LogVerbosity>,
    /// Print results and logs as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Ask the gateway at this address instead of those of the data folder; `tools` takes any MCP server
    #[arg(long, global = true, value_name = "URL", env = "SIGNALBOX_URL")]
    pub url: Option<String>,
    /// Key to show there; of a caller with the role `admin` for all but `tools`
    #[arg(long, global = true, value_name = "KEY", env = "SIGNALBOX_KEY", hide_env_values = true)]
    pub key: Option<String>,
}

/// Commands of the program.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Serve all backends over HTTP, HTTP+SSE and WebSocket, or over TCP (the default)
    #[command(after_help = SERVE_HELP)]
    Serve(ServeArgs),
    /// Serve all backends over standard input and output, for clients that start their servers
    #[command(after_help = STDIO_HELP)]
    Stdio,
    /// Run one server and record what passes, without changing a byte
    #[command(after_help = WRAP_HELP)]
    Wrap(WrapArgs),
    /// Proxy one HTTP server and record what passes, without changing it
    #[command(after_help = PROXY_HELP)]
    Proxy(ProxyArgs),
    /// List or call the tools of all backends
    #[command(after_help = TOOLS_HELP)]
    Tools {
        #[command(subcommand)]
        command: ToolsCommand,
    },
    /// Show the running signalbox processes and the state of their backends
    #[command(after_help = STATUS_HELP)]
    Status(StatusArgs),
    /// Have the running signalbox processes read their configuration again
    ///
    /// Unchanged backends, open sessions and calls in flight are not interrupted. Exits with 1 if a process refuses the
    /// configuration, which then keeps its own, or if keys need a restart; all other keys are then in force.
    #[command(after_help = RELOAD_HELP)]
    Reload,
    /// Hold messages for a person: release, edit, answer or refuse them
    #[command(after_help = hold::HOLD_HELP)]
    Hold {
        #[command(subcommand)]
        command: HoldCommand,
    },
    /// Watch calls as they happen, and decide on held ones
    ///
    /// Shows a list of calls on the terminal, with a filter, the details of each call, and held messages on top. With
    /// --json, or without a terminal, prints one line of JSON for each fact.
    #[command(after_help = hold::WATCH_HELP)]
    Watch(WatchArgs),
    /// Show connected clients, or end a session
    #[command(after_help = hold::SESSIONS_HELP)]
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// Check the setup, and say how to fix what is wrong
    ///
    /// Checks the configuration, the data folder, the port, certificates, the clock and the limits of the system, and
    /// starts every backend for a moment, unless a gateway runs them already. Each finding says what was found, where,
    /// and what to do about it. Exits with 1 if something does not work.
    #[command(after_help = DOCTOR_HELP)]
    Doctor,
    /// Show, search, measure, export and delete recordings
    #[command(after_help = TAPE_HELP)]
    Tape {
        #[command(subcommand)]
        command: TapeCommand,
    },
    /// Play tapes: let one answer as a server, or test a server with one
    #[command(after_help = REPLAY_HELP)]
    Replay {
        #[command(subcommand)]
        command: ReplayCommand,
    },
    /// Check, list and try out rules
    #[command(after_help = RULES_HELP)]
    Rules {
        #[command(subcommand)]
        command: RulesCommand,
    },
    /// Try rules on recorded tapes: what they would now block, change, hold, answer or let through
    #[command(after_help = BACKTEST_HELP)]
    Backtest(BacktestArgs),
    /// Switch tools, backends and callers off, at once
    #[command(after_help = SWITCH_HELP)]
    Switch {
        #[command(subcommand)]
        command: SwitchCommand,
    },
    /// Let a caller use something for a while
    #[command(after_help = GRANT_HELP)]
    Grant {
        #[command(subcommand)]
        command: GrantCommand,
    },
    /// Check permissions, and show what they would decide
    #[command(after_help = POLICY_HELP)]
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Try the guard on a text, and make values that must never leave
    #[command(after_help = GUARD_HELP)]
    Guard {
        #[command(subcommand)]
        command: GuardCommand,
    },
    /// Help clients of the relay's legacy API over to MCP
    #[command(after_help = RELAY_HELP)]
    Relay {
        #[command(subcommand)]
        command: RelayCommand,
    },
    /// Search, verify and export the audit log
    #[command(after_help = AUDIT_HELP)]
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Make, list and revoke API keys for callers
    #[command(after_help = API_KEYS_HELP)]
    Keys {
        #[command(subcommand)]
        command: ApiKeysCommand,
    },
    /// Add, list and remove people who can sign in at the gateway's own authorization server
    #[command(after_help = USERS_HELP)]
    Users {
        #[command(subcommand)]
        command: UsersCommand,
    },
    /// Make and trust keys, sign files and check signatures
    #[command(after_help = SEAL_HELP)]
    Seal {
        #[command(subcommand)]
        command: SealCommand,
    },
    /// Sign in at a backend that is protected by OAuth
    ///
    /// Prints the address to open in a browser on this machine, waits until the sign-in is complete, and keeps the
    /// token in the data folder, where running gateways find it.
    #[command(after_help = LOGIN_HELP)]
    Login(SignInArgs),
    /// Forget the token of a backend
    #[command(after_help = LOGOUT_HELP)]
    Logout(SignInArgs),
    /// Check the configuration without starting anything
    #[command(after_help = CHECK_HELP)]
    Check,
    /// Turn a client's mcpServers file, or a sentinel.toml, into our configuration
    #[command(after_help = IMPORT_HELP)]
    Import(ImportArgs),
    /// Print the manual page, or write all of them to a folder
    #[command(after_help = MAN_HELP)]
    Man(ManArgs),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// Shell that reads the script
        shell: Shell,
    },
    /// Describe the keys of the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
}

/// Arguments of the command `serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// Address to listen on; port 0 takes any free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<ListenAddr>,
}

/// Arguments of the command `status`.
#[derive(Debug, Clone, Default, Args)]
pub struct StatusArgs {
    /// Repeat at this interval, by default 2s, until Ctrl-C
    ///
    /// Redraws in place on a terminal; elsewhere prints one report after the other, with --json one per line.
    #[arg(short, long, value_name = "TIME", num_args = 0..=1, default_missing_value = "2s", value_parser = seconds)]
    pub watch: Option<Duration>,
}

const STATUS_HELP: &str = "\
Rates and times cover the last minute; with --watch, rates cover the time between two reports. Processes are found by \
their control sockets in the data folder, so use the same --data-dir (or configuration) they run with.

Examples:
  signalbox status
  signalbox status --watch
  signalbox status --watch 10 --json | jq '.[].traffic.total'";

const RELOAD_HELP: &str = "\
Examples:
  signalbox reload
  signalbox check && signalbox reload --json";

const SERVE_HELP: &str = "\
Examples:
  signalbox serve
  signalbox serve -c signalbox.toml --listen 127.0.0.1:9000
  signalbox -c ~/.cursor/mcp.json --log-level debug";

const STDIO_HELP: &str = "\
The client is the owner of the pipe, or the holder of the API key or token in SIGNALBOX_STDIO_TOKEN, which is read once.

Example, an entry of a client's mcpServers file:
  \"signalbox\": {\"command\": \"signalbox\", \"args\": [\"stdio\", \"-c\", \"/home/me/signalbox.toml\"]}";

const TOOLS_HELP: &str = "\
Asks the gateway that runs with this data folder, over its control socket and as the local user; rules, limits and \
recording apply as to any call. If none runs, if it runs with another file than -c names, or with --fresh, the configured \
backends are started just for this command.

Examples:
  signalbox tools list
  signalbox tools list --fresh
  signalbox tools list --json --url http://127.0.0.1:8080/mcp
  signalbox tools call echo text=hello
  signalbox tools call countdown from=3 interval_ms=100
  signalbox tools call echo --args '{\"text\": \"hello\"}'";

const DOCTOR_HELP: &str = "\
Examples:
  signalbox doctor
  signalbox doctor -c signalbox.toml
  signalbox doctor --json | jq '.findings[] | select(.severity == \"problem\")'";

const CHECK_HELP: &str = "\
Example:
  signalbox check -c signalbox.toml";

const IMPORT_HELP: &str = "\
Examples:
  signalbox import ~/.cursor/mcp.json -o signalbox.toml
  signalbox import sentinel.toml -o signalbox.toml";

const MAN_HELP: &str = "\
Examples:
  signalbox man | man -l -
  signalbox man --out ~/.local/share/man/man1";

const COMPLETIONS_HELP: &str = "\
Examples:
  signalbox completions bash > ~/.local/share/bash-completion/completions/signalbox
  signalbox completions zsh > ~/.zfunc/_signalbox
  signalbox completions fish > ~/.config/fish/completions/signalbox.fish";

/// Arguments of the command `man`.
#[derive(Debug, Clone, Default, Args)]
pub struct ManArgs {
    /// Write one page per command to this folder, created if missing, and print their names
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Parses the interval of `--watch`, such as 500ms or 2s. A plain number is in seconds.
fn seconds(text: &str) -> Result<Duration, PauseError> {
    let pause = duration::of_seconds(text).map_err(|_| PauseError)?;
    if (0.1..=3600.0).contains(&pause.as_secs_f64()) { Ok(pause) } else { Err(PauseError) }
}

/// Error for a text that is not a valid interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a time such as 500ms, 2s or 1m, from 0.1 to 3600 seconds")]
struct PauseError;

/// Commands about the backends' tools.
#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List the tools, under the names clients see
    List {
        #[command(flatten)]
        from: From,
    },
    /// Call a tool and print its result
    ///
    /// Exits with 1 if the tool reports an error.
    Call {
        /// Name of the tool, as `tools list` shows it
        name: String,
        /// Arguments; each value is read as JSON if it is valid JSON, otherwise as text
        #[arg(value_name = "KEY=VALUE")]
        pairs: Vec<String>,
        /// Arguments as a JSON object
        #[arg(long, value_name = "JSON", default_value = "{}")]
        args: String,
        #[command(flatten)]
        from: From,
    },
    /// Approve every tool as it is listed now, in a file to commit
    ///
    /// Approvals of before stay. See `tools diff`.
    Pin {
        #[command(flatten)]
        lock: Lock,
        #[command(flatten)]
        from: From,
    },
    /// Show which tools differ from the approved ones: changed, new, renamed, or named like another
    ///
    /// Exits with 1 if a tool needs approval, so that it can be a check in CI.
    Diff {
        #[command(flatten)]
        lock: Lock,
        #[command(flatten)]
        from: From,
    },
    /// Approve tools as they are listed now, and show what that changes
    Approve {
        /// Tools, by their servers' own names
        #[arg(value_name = "BACKEND/TOOL", required = true)]
        names: Vec<String>,
        #[command(flatten)]
        lock: Lock,
        #[command(flatten)]
        from: From,
    },
}

/// File of approved definitions.
#[derive(Debug, Clone, Args)]
pub struct Lock {
    /// File of approved definitions; by default `guard.lock`, else signalbox.lock beside the configuration
    #[arg(long, value_name = "FILE")]
    pub lock: Option<PathBuf>,
}

/// Source of the tools.
#[derive(Debug, Clone, Args)]
pub struct From {
    /// Start the configured backends again, even if a gateway with this data folder runs them
    #[arg(long)]
    pub fresh: bool,
    #[command(flatten)]
    pub which: Which,
}

/// Arguments of the command `import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// File of the client, such as ~/.claude.json, claude_desktop_config.json or .cursor/mcp.json; or a sentinel.toml
    pub file: PathBuf,
    /// Write to this file, which must not exist yet, instead of standard output
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
}

/// Commands about the configuration's keys.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print a table of every key, in Markdown
    Reference,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_flags_go_before_and_after_the_command() {
        for line in ["signalbox -c x --json status", "signalbox status -c x --json"] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert!(cli.global.json && matches!(cli.command, Some(CliCommand::Status(_))), "{line}");
        }
        assert!(Cli::try_parse_from(["signalbox"]).unwrap().command.is_none());
    }
}
