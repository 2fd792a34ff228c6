//! Every JSON-RPC message that a strict part sent or received, with its exact bytes after unframing.
//!
//! A client keeps its log in memory. A server may be several processes, so it writes to a file that they share: one
//! JSON line per message.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Most messages that are kept in memory; no test comes near.
const MAX_KEPT: usize = 1_000_000;

/// Which way a message went, as its witness sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageDirection {
    /// The witness sent it.
    Sent,
    /// The witness received it.
    Received,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logged {
    /// The connection: a pipe, or one HTTP request with its answer. Unique over all processes that share a log.
    pub connection: u64,
    /// Its place among the messages of its connection, from 0 on.
    pub sequence: u64,
    /// Which way it went.
    pub way: MessageDirection,
    /// When, in nanoseconds since 1970.
    pub at: u64,
    /// Its bytes, without line end, event fields, or the brackets and commas of a batch.
    pub text: String,
}

/// A log.
#[derive(Debug)]
pub struct WireLog {
    kept: Mutex<Kept>,
    /// Where the messages go instead of memory.
    file: Option<File>,
}

#[derive(Debug, Default)]
struct Kept {
    connections: u64,
    messages: Vec<Logged>,
}

impl WireLog {
    /// A log in memory.
    pub fn in_memory() -> Arc<Self> {
        Arc::new(Self { kept: Mutex::default(), file: None })
    }

    /// A log that adds to this file, which other processes may add to as well.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn in_file(path: &Path) -> anyhow::Result<Arc<Self>> {
        let file = File::options().create(true).append(true).open(path).with_context(|| format!("{path:?}"))?;
        Ok(Arc::new(Self { kept: Mutex::default(), file: Some(file) }))
    }

    /// A connection begins.
    pub fn connection(self: &Arc<Self>) -> Tap {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.connections += 1;
        let number = (u64::from(std::process::id()) << 32) | kept.connections;
        Tap { log: Some(self.clone()), connection: number, next: Arc::default() }
    }

    /// What was kept in memory so far.
    pub fn messages(&self) -> Vec<Logged> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).messages.clone()
    }

    fn keep(&self, tap: &Tap, way: MessageDirection, text: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sequence = tap.next.lock().unwrap_or_else(PoisonError::into_inner);
        for one in split(text) {
            let logged =
                Logged { connection: tap.connection, sequence: *sequence, way, at: now(), text: one.to_owned() };
            *sequence += 1;
            match &self.file {
                Some(file) => write(file, &logged),
                None if kept.messages.len() < MAX_KEPT => kept.messages.push(logged),
                None => eprintln!("no room for one more message"),
            }
        }
    }
}

/// One write per line, so that those of several processes do not mix.
fn write(mut file: &File, logged: &Logged) {
    let line = serde_json::to_string(logged).map(|line| format!("{line}\n"));
    let written = line.map_err(anyhow::Error::from).and_then(|line| Ok(file.write_all(line.as_bytes())?));
    if let Err(error) = written {
        eprintln!("the wire log cannot be written: {error:#}");
    }
}

/// The messages of a batch, each as it stands in it; anything else is one message.
fn split(text: &str) -> Vec<&str> {
    if !text.trim_start().starts_with('[') {
        return vec![text];
    }
    let batch: Result<Vec<&RawValue>, _> = serde_json::from_str(text);
    batch.map_or_else(|_| vec![text], |batch| batch.into_iter().map(RawValue::get).collect())
}

/// Nanoseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// What processes wrote to a file so far.
///
/// # Errors
/// When a line is none of ours.
pub fn read(path: &Path) -> anyhow::Result<Vec<Logged>> {
    // A server that was told nothing yet has made no file.
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
}

/// One connection as the log sees it; one without a log keeps nothing.
#[derive(Debug, Clone, Default)]
pub struct Tap {
    log: Option<Arc<WireLog>>,
    connection: u64,
    next: Arc<Mutex<u64>>,
}

impl Tap {
    /// A connection of this log, if there is one.
    pub fn of(log: Option<&Arc<WireLog>>) -> Self {
        log.map(WireLog::connection).unwrap_or_default()
    }

    /// A message or a batch was sent.
    pub fn sent(&self, text: &str) {
        self.keep(MessageDirection::Sent, text);
    }

    /// A message or a batch came.
    pub fn received(&self, text: &str) {
        self.keep(MessageDirection::Received, text);
    }

    fn keep(&self, way: MessageDirection, text: &str) {
        if let Some(log) = &self.log {
            log.keep(self, way, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_kept_as_its_messages_byte_for_byte() {
        let log = WireLog::in_memory();
        let (one, other) = (log.connection(), log.connection());
        one.sent(r#"[ {"id": 1, "a":"],[" } ,{"id":2}]"#);
        other.received(r#"{"id":3}"#);
        one.received("no JSON");
        let kept = log.messages();
        let texts: Vec<&str> = kept.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, [r#"{"id": 1, "a":"],[" }"#, r#"{"id":2}"#, r#"{"id":3}"#, "no JSON"]);
        assert_eq!(kept.iter().map(|one| one.sequence).collect::<Vec<_>>(), [0, 1, 0, 2]);
        assert_eq!(kept[0].connection, kept[3].connection);
        assert_ne!(kept[0].connection, kept[2].connection);
    }

    #[test]
    fn two_logs_share_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wire");
        assert_eq!(read(&path).unwrap(), []);
        let (one, other) = (WireLog::in_file(&path).unwrap(), WireLog::in_file(&path).unwrap());
        one.connection().sent("{\"a\":\"\\n\u{1f600}\"}");
        other.connection().received("{}");
        let kept = read(&path).unwrap();
        assert_eq!(
            kept.iter().map(|one| (one.way, one.text.as_str())).collect::<Vec<_>>(),
            [(MessageDirection::Sent, "{\"a\":\"\\n\u{1f600}\"}"), (MessageDirection::Received, "{}")]
        );
    }
}
