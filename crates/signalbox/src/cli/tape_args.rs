//! Command line of `signalbox tape`.

use super::Which;
use super::tape_search_args::SearchArgs;
use crate::failure::Failure;
use clap::{Args, Subcommand, ValueEnum};
use signalbox_config::duration::{self, NoDuration};
use signalbox_replay::{IgnoredPlaces, Paths, ignore_file};
use std::path::PathBuf;
use std::time::Duration;

pub(super) fn millis(text: &str) -> Result<Duration, NoDuration> {
    duration::read_or(text, Duration::from_millis(1))
}

fn days(text: &str) -> Result<Duration, NoDuration> {
    duration::read_or(text, Duration::from_secs(24 * 60 * 60))
}

/// Text below the help of `signalbox tape`.
pub const TAPE_HELP: &str = "\
A TAPE is the id of a tape in the store, an unambiguous prefix of it, `last`, or a file.

Examples:
  signalbox tape list
  signalbox tape show last
  signalbox tape show last --tail 20 --tool deploy --follow
  signalbox tape show last --exchange 12
  signalbox tape search 'connection refused' --tool deploy --since 2026-11-15
  signalbox tape search timeout --facets
  signalbox tape search --param path='/etc/*' --result '/isError=true' --page 2
  signalbox tape stats last
  signalbox tape export last -o calls.html
  signalbox tape diff before.tape last --ignore '/**/timestamp'
  signalbox tape keep
  signalbox tape verify last
  signalbox tape prune --older-than 7d --dry-run";

const VERIFY_HELP: &str = "\
A person who can write to the data folder can also sign with the key that is kept there. A key that was noted elsewhere
before and is pinned now proves more; so do signed heads that were anchored elsewhere (`seal.anchor`).

Examples:
  signalbox tape verify last
  signalbox tape verify talk.tape --pin ed25519-39f713d0a644253f04529421b9f51b9b08979d08
  signalbox tape verify last --anchor /mnt/other-machine/anchors.jsonl
  signalbox tape verify --proof entry-17.json --pin ed25519-39f713d0a644253f04529421b9f51b9b08979d08";

const PROVE_HELP: &str = "\
`tape search --json`, `tape verify` and exported JSON lines name entries by their number (`seq`). Values that the auditor must not see
are removed first: `tape redact`, and then `tape prove` of the copy.

Examples:
  signalbox tape prove last --entry 17 -o entry-17.json
  signalbox tape verify --proof entry-17.json --pin ed25519-39f713d0a644253f04529421b9f51b9b08979d08";

const REDACT_HELP: &str = "\
Examples:
  signalbox tape redact last --path /params/arguments/password -o for-the-auditor.tape
  signalbox tape redact last --path '/result/content/*/text' --path '/**/email' -o copy.tape";

/// Commands about recorded tapes.
#[derive(Debug, Subcommand)]
pub enum TapeCommand {
    /// List the tapes of the store
    List,
    /// Show the calls of a tape, or one call with its four images and every decision
    Show(ShowArgs),
    /// Find messages by their text and properties
    Search(Box<SearchArgs>),
    /// Count calls, errors, times and bytes by method and tool; show call sequences, slow calls and recent anomalies
    Stats {
        /// Tape to count [default: all tapes]
        tape: Option<String>,
    },
    /// Compare two tapes: calls, answers by field, times, and what the servers offer
    ///
    /// Exit codes: 0 nothing differs, 1 something does, 2 the tapes cannot be compared.
    #[command(after_help = DIFF_HELP)]
    Diff(Box<DiffArgs>),
    /// Write a tape to a file: a tape file, JSON lines, HAR, OTLP or a page for a browser
    Export(ExportArgs),
    /// Import a tape file, exported JSON lines, a packet capture or a recording of another program into the store
    ///
    /// The format is told by the content. Secrets in recordings of other programs are taken out as `record.redact`
    /// says. Nothing is kept of a file that cannot be read to its end. Of packet captures, encrypted connections are
    /// left out, and so is what follows lost packets. The command reports both.
    Import {
        /// File to import, of any known format
        file: PathBuf,
        /// Format [default: by the content]
        #[arg(long, value_enum)]
        format: Option<ImportFormatArg>,
    },
    /// Make a running gateway write the calls in its ring to the tape
    ///
    /// With `record.sampling = "ring"` nothing is on the tape until something fires: an error, a slow call, a decision,
    /// or this command. The command returns when the calls are on disk.
    Keep {
        #[command(flatten)]
        which: Which,
    },
    /// Check that a tape is as it was recorded: no entry changed, added, missing or moved
    ///
    /// Exit codes: 0 valid, 1 broken, 3 intact but signed by an unknown key, 4 intact but never closed (a crash, or the
    /// end was cut off), 5 never sealed, 6 intact and closed, but some of what happened could not be recorded.
    #[command(after_help = VERIFY_HELP)]
    Verify(VerifyArgs),
    /// Write the proof that one entry is on a sealed tape, for an auditor who does not get the tape
    ///
    /// The file holds the entry, the hashes from there to the next signature, and that signature. It shows nothing of
    /// the other entries. `tape verify --proof` checks it, and so does examples/verify-seal/proof.py.
    #[command(after_help = PROVE_HELP)]
    Prove(ProveArgs),
    /// Write a copy of a sealed tape without some values; the rest still proves itself
    ///
    /// The copy is a tape file that `tape verify` checks against the original signatures, and that `replay serve`
    /// plays. It says where something was removed. Values below the members of `seal.commit` are removed one by one;
    /// for any other value, the whole message is removed. Names of members and the tape's own data about a message
    /// (tool, times, lengths) stay.
    #[command(after_help = REDACT_HELP)]
    Redact(RedactArgs),
    /// Delete old entries, or the oldest beyond a size
    Prune(PruneArgs),
    /// Delete one tape of the store
    Delete {
        /// Tape to delete, with all its entries
        tape: String,
        /// Delete it even while it is being written
        #[arg(long)]
        yes: bool,
    },
}

/// Arguments of `tape verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    /// Tape whose entries are checked
    #[arg(default_value = "last")]
    pub tape: String,
    /// Check the proof of one entry in this file instead of a tape
    #[arg(long, value_name = "FILE", conflicts_with = "tape")]
    pub proof: Option<PathBuf>,
    /// Only this key may have signed it: its id (ed25519-…) or its public key, as hexadecimal digits. May
    /// be given several times
    #[arg(long, value_name = "KEY")]
    pub pin: Vec<String>,
    /// Compare the tape with the signed heads of it in this file, which `seal.anchor` had kept elsewhere. May
    /// be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "proof")]
    pub anchor: Vec<PathBuf>,
}

/// Arguments of `tape prove`.
#[derive(Debug, Clone, Args)]
pub struct ProveArgs {
    /// Tape that has the entry
    pub tape: String,
    /// Number of the entry
    #[arg(long, value_name = "NUMBER")]
    pub entry: u64,
    /// File to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Arguments of `tape redact`.
#[derive(Debug, Clone, Args)]
pub struct RedactArgs {
    /// Tape that is copied
    pub tape: String,
    /// Remove the values at this place: a JSON pointer from the top of the message, in which `*` stands for any name or
    /// index and `**` for any number of them. May be given several times
    #[arg(long, value_name = "PATH", required = true)]
    pub path: Vec<String>,
    /// Tape file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Arguments of `tape show`.
#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// Tape whose calls are shown
    #[arg(default_value = "last")]
    pub tape: String,
    /// Explain the call with this number
    #[arg(long, value_name = "NUMBER")]
    pub exchange: Option<u64>,
    /// Only calls of this session
    #[arg(long, value_name = "NUMBER")]
    pub session: Option<u64>,
    /// Only calls of this tool, prompt or URI
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Only calls through this backend
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Only calls of this method; a trailing * stands for any rest. May be given several times
    #[arg(long, value_name = "METHOD")]
    pub method: Vec<String>,
    /// Only calls with this outcome: success, tool_error, error, timed_out, …; or unfinished
    #[arg(long, value_name = "OUTCOME")]
    pub outcome: Option<String>,
    /// Show notifications as well
    #[arg(long)]
    pub notifications: bool,
    /// Show at most this many calls
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub limit: usize,
    /// Show only the last calls
    #[arg(long, value_name = "COUNT", conflicts_with = "limit")]
    pub tail: Option<usize>,
    /// Keep showing new calls until the tape ends
    #[arg(short, long, conflicts_with = "exchange")]
    pub follow: bool,
    /// Decrypt values with the key in this file. May be given several times
    #[arg(long, value_name = "FILE")]
    pub key_file: Vec<PathBuf>,
}

/// Text below the help of `signalbox tape diff`.
const DIFF_HELP: &str = "\
A PATH is a JSON pointer from the top of a message, in which `*` stands for any one member or item and `**` for any number of \
them. `@json` leads into the JSON that a text holds: /result/content/0/text/@json/items/*/id.

Examples:
  signalbox tape diff before.tape after.tape
  signalbox tape diff before.tape last --ignore '/**/timestamp' --tolerance
  signalbox tape diff before.tape last --ignore-file volatile.paths --timing 100ms
  signalbox tape diff before.tape last --breaking --json";

/// Places in messages that do not count when they are compared, or whose order does not.
#[derive(Debug, Clone, Default, Args)]
pub struct PlacesArgs {
    /// A place in messages that does not count, such as /**/timestamp. May be given several times
    #[arg(long, value_name = "PATH")]
    pub ignore: Vec<String>,
    /// A file with such paths, and patterns of values that `replay run --learn` proposes, one per line; lines that
    /// begin with # are comments. May be given several times
    #[arg(long, value_name = "FILE")]
    pub ignore_file: Vec<PathBuf>,
    /// A place in messages whose array may come in any order. May be given several times
    #[arg(long, value_name = "PATH")]
    pub unordered: Vec<String>,
}

impl PlacesArgs {
    /// Parses the places to ignore, and the arrays whose order does not count.
    ///
    /// # Errors
    /// If something is not a path, or a file of paths cannot be read.
    pub fn read(&self) -> Result<(IgnoredPlaces, Paths), Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
        let paths = Paths::parse(&self.ignore).map_err(|error| usage(&error))?;
        let mut ignored = IgnoredPlaces { paths, ..IgnoredPlaces::default() };
        for file in &self.ignore_file {
            ignore_file::add(file, &mut ignored).map_err(|error| usage(&error))?;
        }
        let unordered = Paths::parse(&self.unordered).map_err(|error| usage(&error))?;
        Ok((ignored, unordered))
    }
}

/// Arguments of `tape diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// Tape to compare with
    pub old: String,
    /// Tape that is compared with it
    pub new: String,
    #[command(flatten)]
    pub places: PlacesArgs,
    /// Two numbers are the same if they differ by at most this much, or this part of the larger one
    /// [without a number: 0.01]
    #[arg(long, value_name = "NUMBER", num_args = 0..=1, require_equals = true, default_missing_value = "0.01", value_parser = tolerance)]
    pub tolerance: Option<f64>,
    /// Compare JSON in texts as text, character by character
    #[arg(long)]
    pub exact_text: bool,
    /// Compare `_meta` as well
    #[arg(long)]
    pub meta: bool,
    /// Do not count calls in another order as a difference
    #[arg(long)]
    pub any_order: bool,
    /// Only calls of this method; a trailing * stands for any rest. May be given several times
    #[arg(long, value_name = "METHOD")]
    pub method: Vec<String>,
    /// Only calls of this tool, prompt or URI
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Only calls of this session of both tapes; OLD:NEW if it has another number on each
    #[arg(long, value_name = "NUMBER", value_parser = sessions)]
    pub session: Option<(u64, u64)>,
    /// Name calls that are slower by more than this, such as 100ms; a plain number means milliseconds
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub timing: Option<Duration>,
    /// Name these calls only if they also take more than this many times as long
    #[arg(long, value_name = "NUMBER", default_value_t = 1.5, requires = "timing", value_parser = tolerance)]
    pub timing_factor: f64,
    /// Exit with 1 only if something breaks clients that relied on the old tape
    #[arg(long)]
    pub breaking: bool,
    /// List at most this many calls
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub limit: usize,
    /// Decrypt values with the key in this file. May be given several times
    #[arg(long, value_name = "FILE")]
    pub key_file: Vec<PathBuf>,
}

/// Error for an invalid number, with the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadNumber(&'static str);

fn tolerance(text: &str) -> Result<f64, BadNumber> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or(BadNumber("it must be a number that is not negative, such as 0.01"))
}

fn sessions(text: &str) -> Result<(u64, u64), BadNumber> {
    let (old, new) = text.split_once(':').unwrap_or((text, text));
    let numbers = old.parse().ok().zip(new.parse().ok());
    numbers.ok_or(BadNumber("it must be the number of a session, or two: OLD:NEW"))
}

/// Formats in which a tape is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A tape file: compressed, indexed, complete
    Tape,
    /// One JSON object per line, complete
    Jsonl,
    /// HTTP Archive 1.2 (HAR)
    Har,
    /// OpenTelemetry spans, OTLP JSON
    Otlp,
    /// A page for a browser, in one file
    Html,
    /// A shell script that makes the calls again with curl
    Curl,
    /// A Postman collection, version 2.1
    Postman,
    /// An Insomnia workspace, export format 4
    Insomnia,
    /// A load test for k6
    K6,
    /// A test for Playwright, over HTTP
    Playwright,
    /// A test for pytest, against `signalbox replay serve`
    Pytest,
    /// A test for vitest, against `signalbox replay serve`
    Vitest,
}

/// Formats that can be imported.
#[derive(Debug, Copy, Clone, PartialEq, Eq, ValueEnum)]
pub enum ImportFormatArg {
    /// A tape file of Signalbox
    Tape,
    /// The JSON lines that `tape export` writes
    Jsonl,
    /// HTTP Archive 1.2, of this program, a browser or a proxy
    Har,
    /// A packet capture (pcap or pcapng) of MCP over plain HTTP or WebSocket
    Pcap,
    /// One MCP message per line, bare or with its direction and time
    Messages,
    /// A recording by `mcporter record`
    Mcporter,
    /// A recording by `mcp-rec record`
    McpRec,
    /// A cassette of `mcp-recorder`
    McpRecorder,
    /// A session log of `mcpsnoop`
    Mcpsnoop,
}

/// Arguments of `tape export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// Tape that is exported
    pub tape: String,
    /// File to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Format [default: by the end of the name: .tape, .jsonl, .har, .otlp or .json, .html, .sh,
    /// .postman_collection.json, .insomnia.json, .k6.js, .spec.js, .test.js, .py]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Export only this session
    #[arg(long, value_name = "NUMBER")]
    pub session: Option<u64>,
    /// Target of the calls, for formats that make them over HTTP [default: the server that `proxy` recorded, else
    /// http://127.0.0.1:8080/mcp]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Decrypt values with the key in this file before writing. May be given several times
    #[arg(long, value_name = "FILE")]
    pub key_file: Vec<PathBuf>,
}

/// Arguments of `tape prune`.
#[derive(Debug, Clone, Default, Args)]
pub struct PruneArgs {
    /// Delete entries older than this, such as 12h or 7d; a plain number means days [default: record.max_age_days]
    #[arg(long, value_name = "TIME", value_parser = days)]
    pub older_than: Option<Duration>,
    /// Delete the oldest entries beyond this many bytes [default: record.max_size]
    #[arg(long, value_name = "BYTES")]
    pub max_size: Option<u64>,
    /// Only show what would be deleted
    #[arg(long)]
    pub dry_run: bool,
}
