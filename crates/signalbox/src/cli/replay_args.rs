//! Command line of `signalbox replay`.

use super::PlacesArgs;
use clap::{Args, Subcommand, ValueEnum};
use signalbox_config::ListenAddr;
use signalbox_config::keys::MOST_SEED;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Commands that play tapes.
#[derive(Debug, Subcommand)]
pub enum ReplayCommand {
    /// Let a tape answer as a server
    ///
    /// Over standard input and output if a program is at the other end or with --stdio, else over HTTP. The server is
    /// not needed: handshake, lists and answers come from the tape. A call that is not on the tape is refused. The
    /// error names the nearest recorded call and where it differs.
    #[command(after_help = SERVE_HELP)]
    Serve(Box<ReplayServeArgs>),
    /// Send a tape's calls to a live server again, and compare the answers
    ///
    /// Only tools that the tape knows to be read-only are called, unless --allow-writes says otherwise. Ids and other
    /// values that the server generates take the place of the recorded ones in later calls.
    ///
    /// Exits with 1 if an answer differs, is late or does not come, or if a call is not sent because it may mean
    /// another object. Exits with 2 if the server does not start or answer, and for a wrong command line.
    #[command(after_help = RUN_HELP)]
    Run(Box<ReplayRunArgs>),
    /// Branch off a tape after some call
    ///
    /// The tape answers up to that call, perhaps with another answer to it. From there on the live server answers, or,
    /// without one, the rest of the tape. The result is recorded onto a new tape that names this one as its parent.
    #[command(after_help = BRANCH_HELP)]
    Branch(Box<ReplayBranchArgs>),
    /// Find the fewest calls of a tape with which `replay run` still fails
    ///
    /// Tries ever fewer calls, each time against the server started anew, and writes those that are needed
    /// onto a new tape.
    #[command(after_help = SHRINK_HELP)]
    Shrink(Box<ReplayShrinkArgs>),
    /// Drive a run that was started with --control or --interactive
    ///
    /// Every action prints the state of the run that follows. Calls are counted from 1, in the order in
    /// which they are sent.
    #[command(after_help = CONTROL_HELP)]
    Control(ReplayControlArgs),
}

/// Arguments of `replay run`.
#[derive(Debug, Clone, Args)]
pub struct ReplayRunArgs {
    /// Tape: a file, a recorded tape by its name, or `last`
    pub tape: String,
    #[command(flatten)]
    pub trial: TrialArgs,
    /// Accept the new answers: record them onto this new tape, whose parent is this one
    #[arg(long, value_name = "FILE")]
    pub update: Option<PathBuf>,
    /// Run this many times, at least a second apart, and propose patterns for the values that differ from run to run
    ///
    /// A pattern leaves open only values that change by themselves, such as moments, numbers and ids: `"Created
    /// <word>."`. Other differences are named and not learned.
    #[arg(long, value_name = "TIMES", num_args = 0..=1, default_missing_value = "2", value_parser = clap::value_parser!(u32).range(2..=100))]
    pub learn: Option<u32>,
    /// Write the proposals of --learn to this file, after asking
    #[arg(long, value_name = "FILE", requires = "learn")]
    pub save: Option<PathBuf>,
    /// Write the file without asking
    #[arg(long, requires = "save")]
    pub yes: bool,
    /// Show where each value of a request comes from, and what stands for it now
    #[arg(long)]
    pub explain: bool,
    /// Begin paused, and let `signalbox replay control` and the API drive the run
    #[arg(long)]
    pub control: bool,
    /// Begin paused, and drive the run in a view on this terminal; the API can drive it, too
    #[arg(long)]
    pub interactive: bool,
    /// Write a JUnit report to this file
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write a SARIF report to this file
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Print annotations for GitHub too [default: if GITHUB_ACTIONS is set]
    #[arg(long)]
    pub github: bool,
    /// The server to start
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "against", required_unless_present = "against")]
    pub command: Vec<OsString>,
}

/// Arguments of `replay shrink`.
#[derive(Debug, Clone, Args)]
pub struct ReplayShrinkArgs {
    /// Tape: a file, a recorded tape by its name, or `last`
    pub tape: String,
    /// New tape, a file that must not exist yet
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub trial: TrialArgs,
    /// Server to start, anew for each try
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "against", required_unless_present = "against")]
    pub command: Vec<OsString>,
}

/// Arguments of `replay branch`.
#[derive(Debug, Clone, Args)]
pub struct ReplayBranchArgs {
    /// Tape: a file, a recorded tape by its name, or `last`
    pub tape: String,
    /// Number of the last call that the tape answers, as `tape show` has it
    #[arg(long, value_name = "CALL")]
    pub at: u64,
    /// Answer that call with this instead: a result as JSON, or @FILE
    #[arg(long, value_name = "JSON")]
    pub answer: Option<String>,
    /// Listen on this address instead of standard input; port 0 takes any free one
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<ListenAddr>,
    /// Speak on standard input and output, whatever they are
    #[arg(long, conflicts_with = "listen")]
    pub stdio: bool,
    /// New tape, a file that must not exist yet [default: a tape in the data folder]
    #[arg(long, value_name = "FILE")]
    pub tape_to: Option<PathBuf>,
    /// Apply the rules of this file
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Seed of the rules' random numbers: the same seed, the same faults [default: another one each time]
    #[arg(long, value_name = "NUMBER", value_parser = seed())]
    pub seed: Option<u64>,
    /// Address of the server that answers from there on
    #[arg(long, value_name = "URL")]
    pub against: Option<String>,
    /// Command of the server that answers from there on
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "against")]
    pub command: Vec<OsString>,
}

/// Calls to send, the server they go to, and the differences that count.
#[derive(Debug, Clone, Args)]
pub struct TrialArgs {
    /// Address of the server
    #[arg(long, value_name = "URL")]
    pub against: Option<String>,
    /// Send only calls of this session of the tape
    #[arg(long, value_name = "NUMBER")]
    pub session: Option<u64>,
    /// Send only calls of this method, such as `tools/*`; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub method: Vec<String>,
    /// Send only calls of this tool, prompt or URI; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub tool: Vec<String>,
    /// Send also calls that may change something
    #[arg(long)]
    pub allow_writes: bool,
    /// Tool that is read-only, whatever the tape says; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub read_only: Vec<String>,
    #[command(flatten)]
    pub places: PlacesArgs,
    /// Numbers may differ by this much, or by this part of the larger one
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0)]
    pub tolerance: f64,
    /// Report calls that take longer than recorded by more than this
    ///
    /// A request that changes nothing opens the connection of each session before its first call, so that the handshake
    /// with the server does not count.
    #[arg(long, value_name = "TIME", value_parser = super::seconds)]
    pub timing: Option<Duration>,
    /// Time limit for an answer
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = super::seconds)]
    pub timeout: Duration,
    /// Keep the recorded pauses, this many times as fast; `max` has none
    #[arg(long, value_name = "FACTOR", default_value = "max", value_parser = speed)]
    pub speed: Speed,
    /// Order in which calls are sent
    #[arg(long, value_enum, default_value_t)]
    pub order: OrderMode,
    /// Seed of `--order random` and of the random numbers of rules: the same seed, the same faults
    #[arg(long, value_name = "NUMBER", value_parser = seed())]
    pub seed: Option<u64>,
    /// Action after a call that fails
    #[arg(long, value_enum, default_value_t)]
    pub on_error: OnErrorMode,
    /// Move moments in arguments by the time since the recording
    ///
    /// If one moment of a request is within a day of its call, all of them move, so that their order stays.
    #[arg(long)]
    pub update_timestamps: bool,
    /// Leave out notifications that the client sent on its own, such as changed roots
    #[arg(long)]
    pub skip_notifications: bool,
    /// Apply the rules of this file between tape and server: they may change, delay or damage messages
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
}

/// Arguments of `replay control`.
#[derive(Debug, Clone, Args)]
pub struct ReplayControlArgs {
    /// Process to drive, if several controlled runs use this data folder
    #[arg(long, value_name = "PID", global = true)]
    pub pid: Option<u32>,
    #[command(subcommand)]
    pub action: ReplayAction,
}

/// Actions on a controlled run.
#[derive(Debug, Clone, Subcommand)]
pub enum ReplayAction {
    /// Show the state, the last verdict and the next request
    Show,
    /// Send calls until a breakpoint or the end
    Play,
    /// Send no more calls for now
    Pause,
    /// End the run: it prints its report and exits
    Stop,
    /// Send one call, then pause
    Step,
    /// Make this call the next one
    ///
    /// Forward, the calls in between are not sent. Backward, calls from there on are sent again on a new connection.
    Seek {
        /// Number of the call, counted from 1
        call: usize,
    },
    /// Change the speed of the run
    Speed {
        /// Factor of the recorded speed, from 0.1 to 10, or `max` for no pauses
        #[arg(value_parser = speed)]
        factor: Speed,
    },
    /// Stop before certain calls, or after a difference
    Break {
        #[command(flatten)]
        at: BreakAt,
    },
    /// Clear a breakpoint, or all of them
    Clear {
        /// Number of the breakpoint [default: all]
        id: Option<u64>,
    },
    /// Send a request of your own now; its answer is printed and not compared
    Inject {
        /// Request to send, such as {"method":"tools/list"}
        request: String,
    },
    /// Replace the next request; its answer is compared with the recorded one all the same
    Modify {
        /// Whole request, as JSON
        #[arg(long, value_name = "JSON", required_unless_present = "params", conflicts_with = "params")]
        request: Option<String>,
        /// Only the params of the request, as JSON
        #[arg(long, value_name = "JSON")]
        params: Option<String>,
    },
}

/// Point at which a controlled run stops.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub struct BreakAt {
    /// Before this call, counted from 1
    #[arg(long, value_name = "NUMBER")]
    pub call: Option<usize>,
    /// Before calls of this method, such as `tools/*`
    #[arg(long, value_name = "PATTERN")]
    pub method: Option<String>,
    /// Before calls of this tool, prompt or URI
    #[arg(long, value_name = "PATTERN")]
    pub tool: Option<String>,
    /// After a call whose answer differs, is too slow or does not come
    #[arg(long)]
    pub difference: bool,
}

/// Playback speed of a tape; `Maybe(None)` has no pauses.
pub type Speed = Maybe<f64>;

/// An optional value. clap would take a plain `Option` for an argument that may be absent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Maybe<T>(pub Option<T>);

fn speed(text: &str) -> Result<Speed, SpeedError> {
    if text == "max" {
        return Ok(Maybe(None));
    }
    let speed = text.parse::<f64>().ok().filter(|speed| (0.01..=1000.0).contains(speed));
    speed.map(|speed| Maybe(Some(speed))).ok_or(SpeedError)
}

fn seed() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(..=MOST_SEED)
}

/// Error for a text that is not a speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `max`, or a number from 0.01 to 1000")]
struct SpeedError;

/// Order in which calls are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OrderMode {
    /// As recorded, one at a time
    #[default]
    Sequential,
    /// As recorded; calls that overlapped then overlap now
    Correlated,
    /// Lists first, then reads, then calls
    Priority,
    /// In random order, shuffled by --seed
    Random,
}

/// Action after a call that fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OnErrorMode {
    /// Send the next call
    #[default]
    Continue,
    /// Pause, in a run with --control or --interactive
    Pause,
    /// End the whole run
    Stop,
    /// Send the same call again, up to three times
    Retry,
}

/// Arguments of `replay serve`.
#[derive(Debug, Clone, Args)]
pub struct ReplayServeArgs {
    /// Tape: a file, a recorded tape by its name, or `last`
    pub tape: String,
    /// Listen on this address instead of standard input; port 0 takes any free one
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<ListenAddr>,
    /// Speak on standard input and output, whatever they are
    #[arg(long, conflicts_with = "listen")]
    pub stdio: bool,
    #[command(flatten)]
    pub play: PlayArgs,
    /// Calls that go to the server itself and onto a new tape
    #[arg(long, value_enum, default_value_t, value_name = "WHICH")]
    pub record: RecordMode,
    /// New tape, a file that must not exist yet [default: a tape in the data folder]
    #[arg(long, value_name = "FILE")]
    pub tape_to: Option<PathBuf>,
    /// Apply the rules of this file
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Seed of the rules' random numbers: the same seed, the same faults [default: another one each time]
    #[arg(long, value_name = "NUMBER", value_parser = seed())]
    pub seed: Option<u64>,
    /// Address of the server itself, for --record
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub against: Option<String>,
    /// Command of the server itself, for --record
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Part of a tape to play, and how.
#[derive(Debug, Clone, Default, Args)]
pub struct PlayArgs {
    /// Play what this backend answered, instead of what clients saw
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Play only this session of the tape
    #[arg(long, value_name = "NUMBER")]
    pub session: Option<u64>,
    /// Behaviour after the last recorded answer to a call
    #[arg(long, value_enum, default_value_t)]
    pub repeat: RepeatMode,
    /// Keep the recorded pauses, this many times as fast; `max` has none
    #[arg(long, value_name = "FACTOR", default_value = "max")]
    pub speed: String,
    /// Path in requests that does not tell calls apart, such as /params/arguments/at; may be repeated
    #[arg(long, value_name = "PATH")]
    pub ignore: Vec<String>,
}

/// Behaviour after the last recorded answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum RepeatMode {
    /// Answer with an error
    #[default]
    Refuse,
    /// Repeat the last answer
    Last,
    /// Repeat all answers, from the first
    Cycle,
}

/// Calls that go to the server itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum RecordMode {
    /// None: a call that is not on the tape is refused
    #[default]
    None,
    /// All if the tape file does not exist yet, which is then created; else none
    Once,
    /// Calls that are not on the tape
    New,
    /// All calls of the client
    All,
}

pub(super) const REPLAY_HELP: &str = "\
A tape is only read. What is recorded meanwhile goes onto a new tape, which names this one as its parent.

Examples:
  signalbox replay serve talk.tape --listen 127.0.0.1:9000
  signalbox replay run talk.tape -- my-server";

const SERVE_HELP: &str = "\
Examples:
  signalbox replay serve talk.tape --listen 127.0.0.1:9000
  signalbox replay serve talk.tape --ignore /params/arguments/timestamp
  signalbox replay serve talk.tape --record new --tape-to more.tape -- npx -y some-server
  an entry of a client's mcpServers file:
  \"files\": {\"command\": \"signalbox\", \"args\": [\"replay\", \"serve\", \"/home/me/talk.tape\"]}";

const RUN_HELP: &str = "\
Examples:
  signalbox replay run talk.tape -- npx -y @modelcontextprotocol/server-everything stdio
  signalbox replay run talk.tape --against http://127.0.0.1:3001/mcp --junit report.xml
  signalbox replay run talk.tape --learn --save volatile.paths -- my-server
  signalbox replay run talk.tape --ignore-file volatile.paths -- my-server
  signalbox replay run talk.tape --interactive -- my-server";

const BRANCH_HELP: &str = "\
Examples:
  signalbox replay branch talk.tape --at 7 -- my-server
  signalbox replay branch talk.tape --at 7 --answer '{\"content\": [], \"isError\": true}' --tape-to other.tape";

const SHRINK_HELP: &str = "\
Example:
  signalbox replay shrink failing.tape -o least.tape --allow-writes -- my-server";

const CONTROL_HELP: &str = "\
Examples:
  signalbox replay control break --tool 'delete_*'
  signalbox replay control play
  signalbox replay control modify --params '{\"name\":\"read\",\"arguments\":{\"path\":\"b.txt\"}}'
  signalbox replay control step
  signalbox replay control seek 3";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    /// The help names each exit code with its cause.
    #[test]
    fn the_help_of_run_names_its_exit_codes() {
        let mut replay = ReplayCommand::augment_subcommands(Command::new("replay"));
        let help = replay.find_subcommand_mut("run").unwrap().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for code in [
            "Exits with 1 if an answer differs, is late or does not come, or if a call is not sent because it may mean \
             another object.",
            "Exits with 2 if the server does not start or answer, and for a wrong command line.",
        ] {
            assert!(help.contains(code), "{code}\n{help}");
        }
    }
}
