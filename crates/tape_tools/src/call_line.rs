//! One call in a list, and texts that are fit to be shown.

use serde_json::{Map, Value, json};
use signalbox_engine::record::{Entry, FinishedEntry};
use signalbox_tape::Story;
use signalbox_wire::{printable, timestamp};

/// Longest name of a tool, method or backend that is shown, in characters.
const MAX_NAME: usize = 200;

/// A call that has ended.
pub(crate) fn ended(tape: &str, entry: &Entry, finished: &FinishedEntry) -> Map<String, Value> {
    let began = entry.at.saturating_sub(finished.took);
    let about = (&*finished.method, finished.subject.as_deref(), finished.backend.as_deref());
    line(tape, entry.exchange, began, about, &finished.outcome, finished.took)
}

/// A call with all its entries.
pub(crate) fn of_story(tape: &str, story: &Story<'_>) -> Map<String, Value> {
    let about = (story.method, story.subject, story.backend);
    line(tape, Some(story.number), story.began, about, story.outcome, story.took)
}

fn line(
    tape: &str,
    exchange: Option<u64>,
    began: u64,
    (method, subject, backend): (&str, Option<&str>, Option<&str>),
    outcome: &str,
    took: u64,
) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("tape".into(), tape.into());
    line.insert("exchange".into(), exchange.into());
    line.insert("began".into(), time(began).into());
    line.insert("method".into(), name(method).into());
    for (member, value) in [("subject", subject), ("backend", backend)] {
        if let Some(value) = value {
            line.insert(member.into(), name(value).into());
        }
    }
    line.insert("outcome".into(), name(outcome).into());
    line.insert("took_ms".into(), millis(took));
    line
}

/// A moment in nanoseconds since 1970.
pub(crate) fn time(nanos: u64) -> String {
    timestamp::rfc3339_millis(nanos / 1_000_000)
}

/// A length of time in milliseconds, to the microsecond.
pub(crate) fn millis(nanos: u64) -> Value {
    json!((nanos / 1_000) as f64 / 1_000.0)
}

/// A name on one line, cut where it is long.
pub(crate) fn name(text: &str) -> String {
    cut(&printable::one_line(text), MAX_NAME)
}

/// So many characters of a text, and how many are left out.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => {
            let (shown, rest) = text.split_at(end);
            format!("{shown}… ({} more characters)", rest.chars().count())
        }
        None => text.to_owned(),
    }
}
