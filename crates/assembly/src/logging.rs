//! Logging, on standard error only.
//!
//! A bounded queue and a thread of its own carry the lines: a client that starts the gateway and never reads its
//! standard error must not block it. Lines that find the queue full are counted and reported later.

use crate::recording::{RecordingError, redactor};
use signalbox_config::{LogVerbosity, Warning};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{Fact, FactSink};
use signalbox_tape::{RedactionSettings, Redactor};
use signalbox_wire::printable::{self, OneLine};
use std::fmt::{self, Debug, Write as _};
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, LazyLock, OnceLock, RwLock};
use std::time::Duration;
use tracing::field::Field;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{DefaultFields, Format, Full, Writer, debug_fn};
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter, SubscriberBuilder};
use tracing_subscriber::registry::LookupSpan;

/// Function that changes the log level, set once logging has started.
type SetLevel = Box<dyn Fn(LogVerbosity) + Send + Sync>;
static SET_LEVEL: OnceLock<SetLevel> = OnceLock::new();
/// Removes secrets from lines: by the usual rules until a configuration is loaded, and in commands that record nothing.
static REDACTORS: LazyLock<RwLock<LogRedactors>> =
    LazyLock::new(|| RwLock::new(LogRedactors::of(&RedactionSettings::default()).unwrap_or_default()));
/// Targets of events whose text comes from rules or child processes.
const TEXT_OF_OTHERS: [&str; 3] = ["signalbox::rules", "signalbox::child_stderr", "signalbox::child_stdout"];
/// Target of events that ask the reader of the log to sign in at a backend. Their links work once, for one browser.
const SIGN_IN: &str = "signalbox::sign_in";
/// Members that every line of JSON has.
const MEMBERS: [&str; 5] = ["timestamp", "level", "fields", "message", "target"];

/// Logs the warnings of a configuration.
pub fn log_warnings(warnings: &[Warning]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

/// Sets the log level. Does nothing if logging has not started.
pub fn set_level(level: LogVerbosity) {
    if let Some(set) = SET_LEVEL.get() {
        set(level);
    }
}

/// Starts logging. Dropping the result writes the queued lines.
#[must_use]
pub fn start(level: LogVerbosity, json: bool) -> Flusher {
    let (writer, flusher) = queue_before(io::stderr(), json);
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let builder = builder(level, writer, colours && !json);
    // A second subscriber in one process (tests) is refused, and the first one stays.
    let (set, started): (SetLevel, _) = if json {
        let builder = builder.json().map_event_format(WithoutSecrets).with_filter_reloading();
        let handle = builder.reload_handle();
        (Box::new(move |level| drop(handle.reload(filter(level)))), builder.try_init())
    } else {
        let builder = in_words(builder).map_event_format(WithoutSecrets).with_filter_reloading();
        let handle = builder.reload_handle();
        (Box::new(move |level| drop(handle.reload(filter(level)))), builder.try_init())
    };
    if started.is_ok() {
        let _ = SET_LEVEL.set(set);
    }
    flusher
}

type Builder<Fields> = SubscriberBuilder<Fields, Format<Full, SystemTime>, EnvFilter, Queue>;

fn builder(level: LogVerbosity, writer: Queue, colours: bool) -> Builder<DefaultFields> {
    tracing_subscriber::fmt()
        .with_env_filter(filter(level))
        .with_timer(SystemTime)
        .with_ansi(colours)
        .with_target(level >= LogVerbosity::Debug)
        .with_writer(writer)
}

/// Keeps every event on one line, because values and messages may hold text of clients and backends.
fn in_words(builder: Builder<DefaultFields>) -> Builder<impl for<'a> FormatFields<'a> + Send + Sync + 'static> {
    builder.fmt_fields(debug_fn(field_on_one_line).delimited(" "))
}

fn field_on_one_line(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    if field.name() != "message" {
        let name = field.name().trim_start_matches("r#");
        match writer.has_ansi_escapes() {
            true => write!(writer, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m")?,
            false => write!(writer, "{name}=")?,
        }
    }
    write!(OneLine(writer), "{value:?}")
}

/// Sets the redaction of log lines, which is that of tapes.
///
/// # Errors
/// If the settings are invalid, or the system provides no randomness.
pub fn redact(settings: &RedactionSettings) -> Result<(), RecordingError> {
    *REDACTORS.write().unpoisoned() = LogRedactors::of(settings)?;
    Ok(())
}

/// Returns a text of a child process as the log would have it.
#[must_use]
pub fn redacted(text: &str) -> String {
    REDACTORS.read().unpoisoned().others.text(text.to_owned())
}

/// Redactors for lines of text from rules and child processes, and for the gateway's own, which quote outside text too.
struct LogRedactors {
    others: Redactor,
    own: Redactor,
}

impl LogRedactors {
    fn of(settings: &RedactionSettings) -> Result<Self, RecordingError> {
        // A rule for arguments called `message` must not empty every line.
        let mut own = settings.clone();
        own.keys.retain(|rule| !MEMBERS.iter().any(|name| name.eq_ignore_ascii_case(&rule.name)));
        Ok(Self { others: redactor(settings)?, own: redactor(&own)? })
    }
}

impl Default for LogRedactors {
    fn default() -> Self {
        Self { others: Redactor::none(), own: Redactor::none() }
    }
}

/// Formatter that redacts the line of an event.
struct WithoutSecrets<F>(F);

impl<S, N, F> FormatEvent<S, N> for WithoutSecrets<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let target = event.metadata().target();
        if target == SIGN_IN {
            return self.0.format_event(ctx, writer, event);
        }
        let is_of_others = TEXT_OF_OTHERS.contains(&target);
        let mut line = String::new();
        self.0.format_event(ctx, Writer::new(&mut line), event)?;
        let redacted = {
            let redactors = REDACTORS.read().unpoisoned();
            let redactor = if is_of_others { &redactors.others } else { &redactors.own };
            redactor.text(line.trim_end().to_owned())
        };
        // Colours within a line would hide secrets from the patterns.
        if writer.has_ansi_escapes() && redacted == line.trim_end() {
            return self.0.format_event(ctx, writer, event);
        }
        writeln!(writer, "{redacted}")
    }
}

/// Returns the filter for a level. Events of libraries appear from `warn` on, unless the level is `trace`.
fn filter(level: LogVerbosity) -> EnvFilter {
    let word = level.as_str();
    if level == LogVerbosity::Trace || level <= LogVerbosity::Warn {
        return EnvFilter::new(word);
    }
    // A prefix that matches all crates of Signalbox.
    EnvFilter::new(format!("warn,signalbox={word}"))
}

/// Logs the end of every exchange at `debug`, with the numbers that tapes and `watch` use.
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
                took_seconds = end.took.as_secs_f64(),
                "a call ended"
            );
        }
    }
}

/// Maximum number of queued lines.
const LINES: usize = 4096;
/// Time that shutdown waits for queued lines.
const FLUSH: Duration = Duration::from_secs(1);

enum Item {
    Line(Vec<u8>),
    End,
}

/// Writer that queues lines without blocking.
#[derive(Clone)]
struct Queue {
    lines: SyncSender<Item>,
    lost: Arc<AtomicU64>,
    /// True if lines are JSON.
    json: bool,
}

/// Writes the queued lines when dropped, waiting at most a second.
pub struct Flusher {
    lines: SyncSender<Item>,
    ended: Receiver<()>,
}

/// Starts the thread that writes the lines.
fn queue_before(output: impl Write + Send + 'static, json: bool) -> (Queue, Flusher) {
    let (lines, queued) = sync_channel(LINES);
    let (end, ended) = sync_channel(1);
    let lost = Arc::new(AtomicU64::new(0));
    let queue = Queue { lines: lines.clone(), lost: Arc::clone(&lost), json };
    let thread = std::thread::Builder::new().name("log".to_owned());
    // A failure to start the thread loses the log but nothing else.
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
            let _ = writeln!(output, "{missing} log lines were lost because standard error was not read in time");
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
    /// Queues one line. The formatter makes one call per line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // JSON leaves C1 controls and bidirectional marks unescaped, and a terminal that shows the log would obey them.
        let shown = match self.json {
            true => printable::json(&String::from_utf8_lossy(line)).into_bytes(),
            false => line.to_vec(),
        };
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Item::Line(shown)) {
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
        let (mut queue, flusher) = queue_before(sink.clone(), false);
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

    /// What a client or a backend can put into a log line to forge another or to speak to a terminal.
    const CANARY: &str =
        "x\u{1b}[31m\u{1b}]0;t\u{7}\nINFO forged\r\u{9b}1m\u{85}\u{2028}\u{202e}\u{2066}\u{feff}\u{7f}y";

    fn log(subscriber: impl tracing::Subscriber + Send + Sync + 'static, sink: &Sink, flusher: Flusher) -> String {
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!("a backend said {CANARY}");
            tracing::warn!(method = %CANARY, subject = CANARY, error = ?Some(CANARY), "called");
            let error = io::Error::other(CANARY);
            tracing::error!(error = &error as &dyn std::error::Error, "failed");
        });
        drop(flusher);
        String::from_utf8(sink.text.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_rule_for_members_of_messages_leaves_the_members_of_a_line() {
        let key = |name: &str| signalbox_tape::redact::KeyRule { name: name.into(), action: Default::default() };
        let keys = vec![key("Message"), key("card")];
        let redactors = LogRedactors::of(&RedactionSettings { keys, ..RedactionSettings::none() }).unwrap();
        let line = |card: &str| format!(r#"{{"level":"INFO","fields":{{"message":"said","card":"{card}"}}}}"#);
        assert_eq!(redactors.own.text(line("4111")), line("[redacted]"));
        assert!(!redactors.others.text(line("4111")).contains("said"));
    }

    #[test]
    fn no_text_of_others_forges_a_log_line_or_speaks_to_the_terminal() {
        for (json, colours) in [(false, false), (false, true), (true, false)] {
            let sink = Sink::default();
            let (queue, flusher) = queue_before(sink.clone(), json);
            let builder = builder(LogVerbosity::Debug, queue, colours);
            let text = match json {
                true => log(builder.json().finish(), &sink, flusher),
                false => log(in_words(builder).finish(), &sink, flusher),
            };
            assert_eq!(text.lines().count(), 3, "{text:?}");
            let own = ["\u{1b}[0m", "\u{1b}[2m", "\u{1b}[3m", "\u{1b}[31m", "\u{1b}[33m"];
            let rest = own.iter().fold(text.replace('\n', ""), |text, own| match colours {
                // Only ours are at the edge of a word; those of the canary follow its `x`.
                true => text.replace(own, ""),
                false => text,
            });
            assert!(!text.contains("x\u{1b}"), "{text:?}");
            assert_eq!(rest.chars().find(|char| printable::is_harmful(*char)), None, "{text:?}");
            assert!(rest.contains("forged"), "{text:?}");
            if json {
                let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
                assert_eq!(first["fields"]["message"], format!("a backend said {CANARY}"), "JSON keeps the value");
            }
        }
    }

    /// Whatever quotes outside text in the log has to do without what tapes and the audit log take out.
    #[test]
    fn secrets_are_taken_out_of_every_line() {
        let secret = concat!("gh", "p_", "0123456789abcdefABCDEF0123456789abcd");
        let link = format!("http://127.0.0.1:8080/auth/connect/{}", "a1B2c3D4".repeat(5));
        for (json, colours) in [(false, false), (false, true), (true, false)] {
            let sink = Sink::default();
            let (queue, flusher) = queue_before(sink.clone(), json);
            let builder = builder(LogVerbosity::Debug, queue, colours);
            let say = || {
                tracing::info!(target: "signalbox::rules", "called with {secret}");
                tracing::info!(target: "signalbox::child_stderr", backend = "files", "token {secret} is good");
                tracing::debug!(target: "signalbox::child_stdout", line = secret, "called with no JSON");
                tracing::debug!(why = %format!("sign in at {link} first"), "called without a token");
                tracing::warn!(error = ?Some(secret), "called in vain");
                tracing::warn!(target: "signalbox::sign_in", "begin at {link}?to=sign-in");
            };
            match json {
                true => {
                    tracing::subscriber::with_default(builder.json().map_event_format(WithoutSecrets).finish(), say)
                }
                false => {
                    tracing::subscriber::with_default(in_words(builder).map_event_format(WithoutSecrets).finish(), say)
                }
            }
            drop(flusher);
            let text = String::from_utf8(sink.text.lock().unwrap().clone()).unwrap();
            assert!(text.lines().count() == 6 && text.matches("called").count() == 4, "{text}");
            assert!(!text.contains(secret) && text.matches(&link).count() == 1, "{text}");
            assert!(text.contains("files") && text.ends_with('\n'), "{text}");
            assert!(
                !json || text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()),
                "{text}"
            );
        }
    }
}
