//! Command lines of `hold`, `watch` and `sessions`.

use clap::{Args, Subcommand};
use signalbox_config::duration;
use std::time::Duration;

/// Selection of the process.
#[derive(Debug, Clone, Default, Args)]
pub struct Which {
    /// The process to ask, if several run with this data folder
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
}

/// Commands about held messages.
#[derive(Debug, Subcommand)]
pub enum HoldCommand {
    /// Show held messages and breakpoints
    List {
        #[command(flatten)]
        which: Which,
    },
    /// Show a held message in full, with everything known about it
    Show {
        /// Number from `hold list` [default: the only held message]
        id: Option<u64>,
        #[command(flatten)]
        which: Which,
    },
    /// Let a held message continue unchanged
    Release {
        /// Number from `hold list` [default: the only held message]
        id: Option<u64>,
        /// Let the caller use the same tool without another consent for this long, like 1h
        #[arg(long = "for", value_name = "TIME")]
        lasting: Option<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Change a held message and let it continue
    ///
    /// Without --message, --params or --result, $VISUAL or $EDITOR (otherwise vi) opens the message in a private file,
    /// and what you save there is sent on. If it cannot be used, it is opened again, with the reason. Leaving the
    /// editor without a change, or with an empty file, leaves the message held; an edit that could not be used is then
    /// kept in a file.
    #[command(after_help = EDIT_HELP)]
    Edit(EditArgs),
    /// Answer a held request in the backend's place, or replace a held answer
    Answer {
        /// Number from `hold list` [default: the only held message]
        id: Option<u64>,
        /// The result, a JSON object; `-` reads standard input
        #[arg(long, value_name = "JSON", required_unless_present = "text")]
        result: Option<String>,
        /// The result of a tool that says this text
        #[arg(long, value_name = "TEXT", conflicts_with = "result")]
        text: Option<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Refuse a held message: its client gets an error
    Refuse {
        /// Number from `hold list` [default: the only held message]
        id: Option<u64>,
        /// Reason that the client is told
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Hold the next tool calls
    Next {
        /// Number of calls to hold
        #[arg(default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
        /// Only calls of tools whose name matches this pattern
        #[arg(long, value_name = "PATTERN")]
        tool: Option<String>,
        #[command(flatten)]
        how: How,
    },
    /// Hold every call of tools whose name matches a pattern (`*` any text, `?` any character)
    Tool {
        /// Pattern for the names that clients see
        pattern: String,
        #[command(flatten)]
        how: How,
    },
    /// Hold every request whose method matches a pattern, such as `resources/*`
    Method {
        /// Pattern for methods, such as `resources/*`
        pattern: String,
        #[command(flatten)]
        how: How,
    },
    /// Clear one breakpoint, or all of them
    ///
    /// Messages that are already held stay held.
    Clear {
        /// Number from `hold list` [default: all breakpoints]
        id: Option<u64>,
        #[command(flatten)]
        which: Which,
    },
}

/// Direction and time limit of held messages.
#[derive(Debug, Clone, Args)]
pub struct How {
    /// Hold the answers instead of the requests
    #[arg(long)]
    pub answers: bool,
    /// Time until the client of a held message gets an error, such as 20s or 5m [default: 50s]
    #[arg(long, value_name = "TIME", value_parser = duration::of_seconds)]
    pub within: Option<Duration>,
    #[command(flatten)]
    pub which: Which,
}

/// Arguments of `hold edit`.
#[derive(Debug, Clone, Args)]
pub struct EditArgs {
    /// Number from `hold list` [default: the only held message]
    pub id: Option<u64>,
    /// The whole message, as JSON; `-` reads standard input
    #[arg(long, value_name = "JSON", group = "what")]
    pub message: Option<String>,
    /// Only its params, as JSON; `-` reads standard input
    #[arg(long, value_name = "JSON", group = "what")]
    pub params: Option<String>,
    /// Only its result, as JSON; `-` reads standard input
    #[arg(long, value_name = "JSON", group = "what")]
    pub result: Option<String>,
    #[command(flatten)]
    pub which: Which,
}

/// Arguments of the command `watch`.
#[derive(Debug, Clone, Default, Args)]
pub struct WatchArgs {
    #[command(flatten)]
    pub which: Which,
}

/// Commands about client sessions.
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// Show the connected clients
    List {
        #[command(flatten)]
        which: Which,
    },
    /// Show one session and its calls in flight
    Show {
        /// Number from `sessions list`, or the id that its client uses
        id: String,
        #[command(flatten)]
        which: Which,
    },
    /// End all sessions that have been idle for a while and have no call in flight
    Cleanup {
        /// Idle for at least this long, such as 90s or 30m; a plain number means seconds
        #[arg(long, value_name = "TIME", default_value = "10m", value_parser = super::seconds)]
        idle: std::time::Duration,
        /// Only show which sessions would be ended
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        which: Which,
    },
    /// End a session: its calls are cancelled and its client has to connect again
    End {
        /// Number from `sessions list`, or the id that its client uses
        id: String,
        #[command(flatten)]
        which: Which,
    },
}

pub(super) const HOLD_HELP: &str = "\
A held message waits until a person decides, or until its time runs out (50s unless --within says otherwise: clients \
give up on a call after a minute, unless they follow its progress).

Examples:
  signalbox hold next
  signalbox hold tool 'write_*' --within 5m
  signalbox hold list
  signalbox hold show
  signalbox hold release
  signalbox hold release 4 --for 1h
  signalbox hold edit 1
  signalbox hold edit 1 --params '{\"name\": \"echo\", \"arguments\": {\"text\": \"hi\"}}'
  signalbox hold answer 2 --text 'not today'
  signalbox hold refuse 3 --reason 'ask me first'
  signalbox hold clear";

const EDIT_HELP: &str = "\
Examples:
  signalbox hold edit 1
  signalbox hold edit 1 --params '{\"name\": \"echo\", \"arguments\": {\"text\": \"hi\"}}'
  jq -c . edited.json | signalbox hold edit 1 --message -";

pub(super) const WATCH_HELP: &str = "\
Keys: up and down (or k and j) move, enter shows one call, / filters, p pauses, q quits. n holds the next tool call; r \
releases a held message, e edits it in $EDITOR, a answers it, x refuses it, c clears the breakpoints.

Examples:
  signalbox watch
  signalbox watch --json | jq -c 'select(.type == \"finished\") | [.subject, .outcome, .took_us]'";

pub(super) const SESSIONS_HELP: &str = "\
Examples:
  signalbox sessions list
  signalbox sessions show 3
  signalbox sessions end 3";
