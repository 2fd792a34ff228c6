//! Arguments of `replay`.

use clap::{Args, Subcommand, ValueEnum};
use signalbox_config::ListenAddr;
use std::ffi::OsString;
use std::path::PathBuf;

/// Commands that play tapes.
#[derive(Debug, Subcommand)]
pub enum ReplayCommand {
    /// Let a tape answer as a server
    ///
    /// Over standard input and output if a program is at the other end or with --stdio, else over HTTP. The server is not
    /// needed: handshake, lists and answers come from the tape. A call that is not on it is refused, and the error names the
    /// nearest recorded call and where it differs.
    #[command(after_help = SERVE_HELP)]
    Serve(Box<ReplayServeArgs>),
}

/// Arguments of `replay serve`.
#[derive(Debug, Clone, Args)]
pub struct ReplayServeArgs {
    /// The tape: a file, a recorded tape by its name, or `last`
    pub tape: String,
    /// Listen on this address instead of standard input; port 0 takes any free one
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<ListenAddr>,
    /// Speak on standard input and output, whatever they are
    #[arg(long, conflicts_with = "listen")]
    pub stdio: bool,
    /// How it is played.
    #[command(flatten)]
    pub play: PlayArgs,
    /// Which calls go to the server itself, and onto a new tape
    #[arg(long, value_enum, default_value_t, value_name = "WHICH")]
    pub record: RecordMode,
    /// The new tape, a file that must not exist yet [default: a tape in the data folder]
    #[arg(long, value_name = "FILE")]
    pub tape_to: Option<PathBuf>,
    /// Apply the rules of this file
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// The address of the server itself, for --record
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub against: Option<String>,
    /// The server itself, for --record
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// How a tape is played.
#[derive(Debug, Clone, Default, Args)]
pub struct PlayArgs {
    /// Play what this backend answered, instead of what clients saw
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Play only this session of the tape
    #[arg(long, value_name = "NUMBER")]
    pub session: Option<u64>,
    /// What follows the last recorded answer to a call
    #[arg(long, value_enum, default_value_t)]
    pub repeat: RepeatMode,
    /// Keep the recorded pauses, so many times as fast; `max` has none
    #[arg(long, value_name = "FACTOR", default_value = "max")]
    pub speed: String,
    /// A path in requests that does not tell calls apart, such as /params/arguments/at; may be repeated
    #[arg(long, value_name = "PATH")]
    pub ignore: Vec<String>,
}

/// What follows the last recorded answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum RepeatMode {
    /// An error
    #[default]
    Refuse,
    /// The last answer again
    Last,
    /// All answers again, from the first
    Cycle,
}

/// Which calls go to the server itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum RecordMode {
    /// None: what is not on the tape is refused
    #[default]
    None,
    /// All if there is no such tape file yet, which is then made; else none
    Once,
    /// Those that are not on the tape
    New,
    /// All
    All,
}

pub(super) const REPLAY_HELP: &str = "\
A tape is only read. What is recorded meanwhile goes onto a new tape, which names this one as its parent.";

const SERVE_HELP: &str = "\
Examples:
  signalbox replay serve talk.tape --listen 127.0.0.1:9000
  signalbox replay serve talk.tape --ignore /params/arguments/timestamp
  signalbox replay serve talk.tape --record new --tape-to more.tape -- npx -y some-server
  an entry of a client's mcpServers file:
  \"files\": {\"command\": \"signalbox\", \"args\": [\"replay\", \"serve\", \"/home/me/talk.tape\"]}";
