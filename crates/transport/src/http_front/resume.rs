//! Streams whose client went away and may come back: old revisions resume by `Last-Event-ID`.

use super::sse_body::Ring;
use signalbox_runtime::StreamReader;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a lost stream waits for its client.
pub const PARKED_FOR: Duration = Duration::from_secs(60);
/// Most lost streams that wait at a time.
pub const MAX_PARKED: usize = 1024;

/// A lost stream with what its client may have missed.
pub struct Parked {
    /// The stream itself, which goes on filling.
    pub reader: StreamReader,
    /// The newest events.
    pub ring: Ring,
    /// True where the last message is among them.
    pub done: bool,
}

type Key = (Box<str>, u64);

/// The lost streams, by session and stream.
#[derive(Default)]
pub struct ResumeStore(Mutex<HashMap<Key, (Instant, Parked)>>);

impl ResumeStore {
    /// Lets a stream wait.
    pub fn park(&self, session: &str, parked: Parked) {
        let key = (session.into(), parked.reader.id().0);
        let now = Instant::now();
        let mut gone = Vec::new();
        {
            let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let old: Vec<Key> =
                table.iter().filter(|(_, (since, _))| now - *since > PARKED_FOR).map(|(key, _)| key.clone()).collect();
            gone.extend(old.iter().filter_map(|key| table.remove(key)));
            if table.len() < MAX_PARKED {
                table.insert(key, (now, parked));
            } else {
                gone.push((now, parked));
            }
        }
        // Readers tell their session that nobody reads them any more; the table must not be locked meanwhile.
        drop(gone);
    }

    /// The stream that a `Last-Event-ID` names, and the number of the event that was seen.
    pub fn take(&self, session: &str, event_id: &str) -> Option<(Parked, u64)> {
        let (stream, seen) = event_id.split_once('-')?;
        let key = (session.into(), stream.parse().ok()?);
        let seen = seen.parse().ok()?;
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.remove(&key).map(|(_, parked)| (parked, seen))
    }

    /// Drops what has waited too long, and everything of sessions that are gone.
    pub fn sweep(&self, alive: impl Fn(&str) -> bool) {
        let now = Instant::now();
        let mut gone = Vec::new();
        {
            let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let old: Vec<Key> = table
                .iter()
                .filter(|(key, (since, _))| now - *since > PARKED_FOR || !alive(&key.0))
                .map(|(key, _)| key.clone())
                .collect();
            gone.extend(old.iter().filter_map(|key| table.remove(key)));
        }
        drop(gone);
    }
}
