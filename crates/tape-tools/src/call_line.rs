//! Formats calls for lists, with names safe for display.

use serde_json::{Map, Value, json};
use signalbox_engine::record::{Entry, FinishedEntry};
use signalbox_tape::Story;
use signalbox_wire::{printable, timestamp};

/// Maximum length of a tool, method or backend name, in characters.
const MAX_NAME: usize = 200;

/// Method of a call, with its subject and backend if it has them.
struct CallTarget<'a> {
    method: &'a str,
    subject: Option<&'a str>,
    backend: Option<&'a str>,
}

/// Formats a finished call.
pub(crate) fn finished_call(tape: &str, entry: &Entry, finished: &FinishedEntry) -> Map<String, Value> {
    let began = entry.at.saturating_sub(finished.took);
    let target = CallTarget {
        method: &finished.method,
        subject: finished.subject.as_deref(),
        backend: finished.backend.as_deref(),
    };
    line(tape, entry.exchange, began, target, &finished.outcome, finished.took)
}

/// Formats a call from all its entries.
pub(crate) fn of_story(tape: &str, story: &Story<'_>) -> Map<String, Value> {
    let target = CallTarget { method: story.method, subject: story.subject, backend: story.backend };
    line(tape, Some(story.number), story.began, target, story.outcome, story.took)
}

fn line(
    tape: &str,
    exchange: Option<u64>,
    began: u64,
    target: CallTarget<'_>,
    outcome: &str,
    took: u64,
) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("tape".into(), tape.into());
    line.insert("exchange".into(), exchange.into());
    line.insert("began".into(), time(began).into());
    line.insert("method".into(), name(target.method).into());
    for (member, value) in [("subject", target.subject), ("backend", target.backend)] {
        if let Some(value) = value {
            line.insert(member.into(), name(value).into());
        }
    }
    line.insert("outcome".into(), name(outcome).into());
    line.insert("took_ms".into(), millis(took));
    line
}

/// Formats nanoseconds since 1970.
pub(crate) fn time(nanos: u64) -> String {
    timestamp::rfc3339_millis(nanos / 1_000_000)
}

/// Converts nanoseconds to milliseconds, rounded down to the microsecond.
pub(crate) fn millis(nanos: u64) -> Value {
    json!((nanos / 1_000) as f64 / 1_000.0)
}

/// Formats a name on one line, truncated if it is long.
pub(crate) fn name(text: &str) -> String {
    cut(&printable::one_line(text), MAX_NAME)
}

/// Truncates a text to `most` characters and states how many were cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => {
            let (shown, rest) = text.split_at(end);
            format!("{shown}… ({} more characters)", rest.chars().count())
        }
        None => text.to_owned(),
    }
}
