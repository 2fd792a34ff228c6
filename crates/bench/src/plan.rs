//! What a load run is asked to do.

use std::io;
use std::time::Duration;

use crate::args::{Args, usage};
use crate::pages::Pages;
use crate::request::{LoadEra, LoadTarget};

/// The flags of `load` that take a value.
pub const FLAGS: &[&str] = &[
    "url",
    "command",
    "connections",
    "payload",
    "seconds",
    "warmup",
    "era",
    "tool",
    "max-calls",
    "pid",
    "rate",
    "bearer",
    "pages",
];
/// Those that do not.
pub const SWITCHES: &[&str] = &["one-session"];

const CONNECTIONS_MAX: u64 = 512;
const SECONDS_MAX: f64 = 600.0;
const RATE_MAX: f64 = 1_000_000.0;
const PAYLOAD_MAX: usize = 1024 * 1024;
/// Calls over all connections, unless told otherwise.
const CALLS_MAX: u64 = 100_000_000;
/// Ids of one connection start here, those of the next one `ID_SPAN` later.
pub const ID_FIRST: u64 = 100_000_000_000;
/// How far the ids of two connections are apart.
pub const ID_SPAN: u64 = 1_000_000_000;

/// The plan.
#[derive(Debug)]
pub struct Plan {
    /// Where calls go.
    pub target: LoadTarget,
    /// The stdio server to start, where they go to one.
    pub command: Vec<String>,
    /// How many calls are under way at a time: one on each connection, or all on one pipe.
    pub connections: u64,
    /// All connections belong to one session of the old era.
    pub one_session: bool,
    /// Bytes of a call's body.
    pub payload: usize,
    /// The text of calls, another piece for each; none for the same letter all over.
    pub pages: Option<Pages>,
    /// How long is measured.
    pub window: Duration,
    /// How long is waited before that.
    pub warmup: Duration,
    /// The tool to call; one that is called `echo` is looked for where none is given.
    pub tool: Option<String>,
    /// Calls on each connection, warming up included.
    pub calls_each: u64,
    /// The processes to measure.
    pub pids: Vec<u32>,
    /// How much time lies between two calls of one connection; none makes each call when the one before is answered.
    pub pause: Option<Duration>,
}

impl Plan {
    /// Reads and checks the flags.
    pub fn read(args: &Args) -> io::Result<Self> {
        let connections: u64 = args.or("connections", 16)?;
        let payload = args.or("payload", 256)?;
        let seconds = args.or("seconds", 2.0)?;
        let warmup = args.or("warmup", 0.3)?;
        if !(1..=CONNECTIONS_MAX).contains(&connections) || payload > PAYLOAD_MAX {
            return Err(usage(format!("at most {CONNECTIONS_MAX} connections and a payload of {PAYLOAD_MAX}")));
        }
        if !(0.0..=SECONDS_MAX).contains(&seconds) || !(0.0..=SECONDS_MAX).contains(&warmup) {
            return Err(usage(format!("at most {SECONDS_MAX} seconds")));
        }
        let era = args.or("era", LoadEra::Old)?;
        let command: Option<String> = args.optional("command")?;
        let command: Vec<String> = command.iter().flat_map(|line| line.split_whitespace()).map(str::to_owned).collect();
        let target = if command.is_empty() {
            LoadTarget { bearer: args.optional("bearer")?, ..LoadTarget::parse(&args.required::<String>("url")?, era)? }
        } else {
            LoadTarget::pipe(era)
        };
        let calls = args.or("max-calls", CALLS_MAX)?;
        let rate: Option<f64> = args.optional("rate")?;
        if rate.is_some_and(|rate| !(1.0..=RATE_MAX).contains(&rate)) {
            return Err(usage(format!("a rate from 1 to {RATE_MAX}")));
        }
        Ok(Self {
            target,
            command,
            connections,
            one_session: args.has("one-session"),
            payload,
            pages: args.optional::<String>("pages")?.map(|folder| Pages::read(&folder)).transpose()?,
            window: Duration::from_secs_f64(seconds),
            warmup: Duration::from_secs_f64(warmup),
            tool: args.optional("tool")?,
            calls_each: calls.div_ceil(connections).min(ID_SPAN - 1),
            pids: args.all("pid")?,
            pause: rate.map(|rate| Duration::from_secs_f64(connections as f64 / rate)),
        })
    }
}
