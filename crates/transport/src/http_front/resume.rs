//! Streams that clients may resume with `Last-Event-ID`, in the revisions with sessions.

use super::track::Track;
use signalbox_engine::lock::LockResultExt;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Maximum time that a parked stream waits for its client.
pub const PARKED_FOR: Duration = Duration::from_secs(60);
/// Maximum number of parked streams.
pub const MAX_PARKED: usize = 1024;
/// Maximum number of parked streams per session.
pub const MAX_PARKED_PER_SESSION: usize = 64;
/// Maximum size of the events kept for all parked streams.
pub const MAX_PARKED_BYTES: usize = 64 * 1024 * 1024;

/// A stream without a reader.
struct ParkedStream {
    since: Instant,
    session: Box<str>,
    track: Arc<Track>,
    bytes: usize,
}

#[derive(Default)]
struct Table {
    /// Every stream that can be resumed, by session and number.
    sessions: HashMap<Box<str>, HashMap<u64, Arc<Track>>>,
    /// Parked streams that have ended, in case the last events did not arrive. Oldest first.
    over: VecDeque<ParkedStream>,
    /// Parked streams that were lost before their end. Oldest first.
    lost: VecDeque<ParkedStream>,
    bytes: usize,
}

/// Streams that clients may resume.
#[derive(Default)]
pub struct ResumeStore(Mutex<Table>);

impl ResumeStore {
    /// Registers a stream. A session has one general stream: a new one replaces a parked one, since the client started
    /// over.
    pub fn add(&self, session: &str, track: &Arc<Track>) {
        let mut gone = Vec::new();
        {
            let mut table = self.lock();
            if track.general {
                let old = |one: &ParkedStream| &*one.session == session && one.track.general;
                gone.extend(table.take(old));
            }
            table.sessions.entry(session.into()).or_default().insert(track.stream, Arc::clone(track));
        }
        drop(gone);
    }

    /// Returns the stream with this number.
    pub fn find(&self, session: &str, stream: u64) -> Option<Arc<Track>> {
        self.lock().sessions.get(session)?.get(&stream).cloned()
    }

    /// Removes a stream from the parked ones, because it has a reader again.
    pub fn unpark(&self, session: &str, track: &Arc<Track>) {
        let mut table = self.lock();
        let kept = table.sessions.entry(session.into()).or_default().insert(track.stream, Arc::clone(track));
        let found = table.unlist(|one| Arc::ptr_eq(&one.track, track));
        drop(table);
        drop((kept, found));
    }

    /// Parks a stream that has had no reader since `since`.
    pub fn park(&self, session: &str, track: &Arc<Track>, since: Instant) {
        let parked =
            ParkedStream { since, session: session.into(), track: Arc::clone(track), bytes: track.kept_bytes() };
        let mut gone = Vec::new();
        {
            let mut table = self.lock();
            table.bytes += parked.bytes;
            if track.is_over() { &mut table.over } else { &mut table.lost }.push_back(parked);
            gone.extend(table.shrink(session));
        }
        // Dropped readers report to their session, so the table must be unlocked.
        drop(gone);
    }

    /// Removes a stream, whether parked or not.
    pub fn forget(&self, session: &str, track: &Arc<Track>) {
        let mut table = self.lock();
        let gone = table.take(|one| Arc::ptr_eq(&one.track, track));
        let removed = table.sessions.get_mut(session).and_then(|all| all.remove(&track.stream));
        drop(table);
        drop((gone, removed));
    }

    /// Drops streams that waited too long, and all streams of closed sessions.
    pub fn sweep(&self, alive: impl Fn(&str) -> bool) {
        let now = Instant::now();
        let mut gone = Vec::new();
        let ended: Vec<HashMap<u64, Arc<Track>>>;
        {
            let mut table = self.lock();
            gone.extend(table.take(|one| now - one.since > PARKED_FOR || !alive(&one.session)));
            ended = table.sessions.extract_if(|session, _| !alive(session)).map(|(_, tracks)| tracks).collect();
        }
        drop((gone, ended));
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unpoisoned()
    }
}

impl Table {
    /// Removes parked streams from both lists.
    fn unlist(&mut self, fits: impl Fn(&ParkedStream) -> bool) -> Vec<ParkedStream> {
        let mut found = Vec::new();
        for list in [&mut self.over, &mut self.lost] {
            let (out, kept) = std::mem::take(list).into_iter().partition::<VecDeque<_>, _>(&fits);
            *list = kept;
            found.extend(out);
        }
        self.bytes -= found.iter().map(|one| one.bytes).sum::<usize>();
        found
    }

    /// Removes parked streams, so that they cannot be resumed, unless they have a reader again.
    fn take(&mut self, fits: impl Fn(&ParkedStream) -> bool) -> Vec<ParkedStream> {
        let found = self.unlist(fits);
        for one in &found {
            self.unname(one);
        }
        found
    }

    fn unname(&mut self, one: &ParkedStream) {
        if one.track.away() != Some(one.since) {
            return;
        }
        if let Some(tracks) = self.sessions.get_mut(&one.session) {
            tracks.remove(&one.track.stream);
        }
    }

    /// Evicts streams beyond the limits. For the limit per session, the oldest stream of that session. For the global
    /// limits, the oldest stream that has ended; if there is none, the newest lost one, so that a client cannot evict
    /// the streams of others.
    fn shrink(&mut self, session: &str) -> Vec<ParkedStream> {
        let mut gone = Vec::new();
        let own = |one: &ParkedStream| &*one.session == session;
        let count = self.over.iter().chain(&self.lost).filter(|one| own(one)).count();
        if count > MAX_PARKED_PER_SESSION {
            let list = if self.over.iter().any(own) { &mut self.over } else { &mut self.lost };
            gone.extend(list.iter().position(own).and_then(|at| list.remove(at)));
        }
        self.bytes -= gone.iter().map(|one| one.bytes).sum::<usize>();
        while self.over.len() + self.lost.len() > MAX_PARKED || self.bytes > MAX_PARKED_BYTES {
            let Some(one) = self.over.pop_front().or_else(|| self.lost.pop_back()) else { break };
            self.bytes -= one.bytes;
            gone.push(one);
        }
        for one in &gone {
            self.unname(one);
        }
        gone
    }
}
