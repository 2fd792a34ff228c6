//! Parameters of a load run.

use std::io;
use std::time::Duration;

use crate::args::{Args, usage};
use crate::page_text::PageText;
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
/// The flags that do not.
pub const SWITCHES: &[&str] = &["one-session"];

const CONNECTIONS_MAX: u64 = 512;
const SECONDS_MAX: f64 = 600.0;
const RATE_MAX: f64 = 1_000_000.0;
const PAYLOAD_MAX: usize = 1024 * 1024;
/// Default number of calls over all connections.
const CALLS_MAX: u64 = 100_000_000;
/// First id of the first connection. Those of the next one start `ID_SPAN` later.
pub const ID_FIRST: u64 = 100_000_000_000;
/// Distance between the ids of two connections.
pub const ID_SPAN: u64 = 1_000_000_000;

/// Validated parameters of a load run.
#[derive(Debug)]
pub struct Plan {
    /// Target of the calls.
    pub target: LoadTarget,
    /// Command of the stdio server to start, if the target is one.
    pub command: Vec<String>,
    /// Number of concurrent calls: one on each connection, or all on one pipe.
    pub connections: u64,
    /// True if all connections belong to one session of the old era.
    pub one_session: bool,
    /// Size of a call's body, in bytes.
    pub payload: usize,
    /// Text of the calls, a different piece for each; `None` repeats one letter.
    pub pages: Option<PageText>,
    /// Duration of the measurement.
    pub window: Duration,
    /// Duration of the warm-up before it.
    pub warmup: Duration,
    /// Tool to call; `None` looks for one called `echo`.
    pub tool: Option<String>,
    /// Calls on each connection, including the warm-up.
    pub calls_each: u64,
    pub pids: Vec<u32>,
    /// Interval between two calls of one connection; `None` makes each call as soon as the previous one is answered.
    pub pause: Option<Duration>,
}

impl Plan {
    /// Parses and validates the flags.
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
            pages: args.optional::<String>("pages")?.map(|folder| PageText::read(&folder)).transpose()?,
            window: Duration::from_secs_f64(seconds),
            warmup: Duration::from_secs_f64(warmup),
            tool: args.optional("tool")?,
            calls_each: calls.div_ceil(connections).min(ID_SPAN - 1),
            pids: args.all("pid")?,
            pause: rate.map(|rate| Duration::from_secs_f64(connections as f64 / rate)),
        })
    }
}
