//! Logs, on standard error only.
//!
//! Lines go through a bounded queue to a thread of their own: a client that starts us and never reads our standard error
//! must not be able to stop us. Lines that find the queue full are counted and reported later.

mod queue;

pub use queue::Flusher;

use signalbox_config::{LogLevel, Warning};
use signalbox_engine::{Fact, FactSink};
use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;
use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::SystemTime;

/// Changes how much is logged, once logging has started.
type SetLevel = Box<dyn Fn(LogLevel) + Send + Sync>;
static SET_LEVEL: OnceLock<SetLevel> = OnceLock::new();

/// Logs what was tolerated in a configuration.
pub fn log_warnings(warnings: &[Warning]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

/// Logs so much from now on. Without a log nothing happens.
pub fn set_level(level: LogLevel) {
    if let Some(set) = SET_LEVEL.get() {
        set(level);
    }
}

/// Starts logging. What is still queued is written when the result is dropped.
#[must_use]
pub fn start(level: LogLevel, json: bool) -> Flusher {
    let (writer, flusher) = queue::start(io::stderr());
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(level))
        .with_writer(writer)
        .with_timer(SystemTime)
        .with_ansi(colours && !json)
        .with_target(level >= LogLevel::Debug);
    // A second subscriber in one process (tests) is refused; the first one goes on.
    let (set, started): (SetLevel, _) = if json {
        let builder = builder.json().with_filter_reloading();
        let handle = builder.reload_handle();
        (Box::new(move |level| drop(handle.reload(filter(level)))), builder.try_init())
    } else {
        let builder = builder.with_filter_reloading();
        let handle = builder.reload_handle();
        (Box::new(move |level| drop(handle.reload(filter(level)))), builder.try_init())
    };
    if started.is_ok() {
        let _ = SET_LEVEL.set(set);
    }
    flusher
}

/// Our own messages at this level; those of libraries only where something is odd, unless everything is wanted.
fn filter(level: LogLevel) -> EnvFilter {
    let word = level.as_str();
    if level == LogLevel::Trace || level <= LogLevel::Warn {
        return EnvFilter::new(word);
    }
    // A prefix: it names all of our crates.
    EnvFilter::new(format!("warn,signalbox={word}"))
}

/// Logs the end of every exchange at `debug`, by the numbers under which tapes and `watch` know it.
pub struct ExchangeLog;

impl FactSink for ExchangeLog {
    fn wants_messages(&self) -> bool {
        false
    }

    fn fact(&self, fact: &Fact) {
        let Fact::Finished(end) = fact else { return };
        if tracing::enabled!(Level::DEBUG) {
            tracing::debug!(
                exchange = %end.exchange,
                session = %end.session,
                method = %end.method,
                subject = end.subject.as_deref(),
                backend = end.backend.as_deref(),
                outcome = end.outcome.label(),
                took = ?end.took,
                "a call ended"
            );
        }
    }
}
