//! Logs, on standard error only.
//!
//! Lines go through a bounded queue to a thread of their own: a client that starts us and never reads our standard error
//! must not be able to stop us. Lines that find the queue full are counted and reported later.

use signalbox_config::{LogLevel, Warning};
use signalbox_engine::{Fact, FactSink};
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
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
    let (writer, flusher) = queue_before(io::stderr());
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

/// Most lines that wait.
const LINES: usize = 4096;
/// How long the end may take for what is still queued.
const FLUSH: Duration = Duration::from_secs(1);

enum Item {
    Line(Vec<u8>),
    End,
}

/// Queues lines; never waits.
#[derive(Clone)]
struct Queue {
    lines: SyncSender<Item>,
    lost: Arc<AtomicU64>,
}

/// Writes what is queued when dropped, as long as somebody reads it.
pub struct Flusher {
    lines: SyncSender<Item>,
    ended: Receiver<()>,
}

/// Starts the thread that writes.
fn queue_before(output: impl Write + Send + 'static) -> (Queue, Flusher) {
    let (lines, queued) = sync_channel(LINES);
    let (end, ended) = sync_channel(1);
    let lost = Arc::new(AtomicU64::new(0));
    let queue = Queue { lines: lines.clone(), lost: Arc::clone(&lost) };
    let thread = std::thread::Builder::new().name("log".to_owned());
    // Without the thread nothing is logged, but everything else works.
    let _ = thread.spawn(move || {
        write(output, &queued, &lost);
        let _ = end.send(());
    });
    (queue, Flusher { lines, ended })
}

fn write(mut output: impl Write, queued: &Receiver<Item>, lost: &AtomicU64) {
    while let Ok(Item::Line(line)) = queued.recv() {
        let _ = output.write_all(&line);
        let missing = lost.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let _ = writeln!(output, "{missing} log lines were lost because nobody read them in time");
        }
    }
    let _ = output.flush();
}

impl Drop for Flusher {
    fn drop(&mut self) {
        if self.lines.try_send(Item::End).is_ok() {
            let _ = self.ended.recv_timeout(FLUSH);
        }
    }
}

impl Write for Queue {
    /// One call per line: that is how the formatter writes.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Item::Line(line.to_vec())) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::lock::LockResultExt;
    use std::sync::Mutex;

    #[derive(Clone, Default)]
    struct Sink {
        text: Arc<Mutex<Vec<u8>>>,
        gate: Arc<Mutex<()>>,
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _open = self.gate.lock().unpoisoned();
            self.text.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_does_not_read_stops_nobody_and_the_loss_is_said() {
        let sink = Sink::default();
        let closed = sink.gate.lock().unwrap();
        let (mut queue, flusher) = queue_before(sink.clone());
        for _ in 0..LINES + 100 {
            queue.write_all(b"line\n").unwrap();
        }
        drop(closed);
        // Dropping the flusher waits only for a moment, so the last line is waited for here.
        let started = std::time::Instant::now();
        let text = loop {
            let text = String::from_utf8(sink.text.lock().unwrap().clone()).unwrap();
            if text.matches("line\n").count() >= LINES || started.elapsed().as_secs() > 20 {
                break text;
            }
            std::thread::yield_now();
        };
        drop(flusher);
        assert!(text.contains("log lines were lost"));
        assert!(text.matches("line\n").count() >= LINES);
    }
}
