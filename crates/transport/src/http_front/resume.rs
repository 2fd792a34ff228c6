//! Streams whose client may come back to them: the revisions with sessions resume by `Last-Event-ID`.

use super::track::Track;
use signalbox_engine::lock::LockResultExt;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long a stream that nobody reads waits for its client.
pub const PARKED_FOR: Duration = Duration::from_secs(60);
/// Most streams that wait at a time.
pub const MAX_PARKED: usize = 1024;
/// Most of them that belong to one session.
pub const MAX_PARKED_PER_SESSION: usize = 64;
/// Most bytes of events that are kept for them, all in all.
pub const MAX_PARKED_BYTES: usize = 64 * 1024 * 1024;

/// A stream that nobody reads.
struct Resting {
    since: Instant,
    session: Box<str>,
    track: Arc<Track>,
    bytes: usize,
}

#[derive(Default)]
struct Table {
    /// Every stream that can be named, by session and number.
    sessions: HashMap<Box<str>, HashMap<u64, Arc<Track>>>,
    /// Those that have ended and wait only in case their end did not arrive, oldest first.
    over: VecDeque<Resting>,
    /// Those that were lost before their end, oldest first.
    lost: VecDeque<Resting>,
    bytes: usize,
}

/// The streams.
#[derive(Default)]
pub struct ResumeStore(Mutex<Table>);

impl ResumeStore {
    /// A stream began. A general one is the only one of its session: an earlier one that waits is given up, since its
    /// client has begun anew.
    pub fn add(&self, session: &str, track: &Arc<Track>) {
        let mut gone = Vec::new();
        {
            let mut table = self.lock();
            if track.general {
                let old = |one: &Resting| &*one.session == session && one.track.general;
                gone.extend(table.take(old));
            }
            table.sessions.entry(session.into()).or_default().insert(track.stream, Arc::clone(track));
        }
        drop(gone);
    }

    /// The stream of this number.
    pub fn find(&self, session: &str, stream: u64) -> Option<Arc<Track>> {
        self.lock().sessions.get(session)?.get(&stream).cloned()
    }

    /// Somebody reads the stream again.
    pub fn stir(&self, session: &str, track: &Arc<Track>) {
        let mut table = self.lock();
        let kept = table.sessions.entry(session.into()).or_default().insert(track.stream, Arc::clone(track));
        let found = table.unlist(|one| Arc::ptr_eq(&one.track, track));
        drop(table);
        drop((kept, found));
    }

    /// Nobody reads the stream since then.
    pub fn rest(&self, session: &str, track: &Arc<Track>, since: Instant) {
        let resting = Resting { since, session: session.into(), track: Arc::clone(track), bytes: track.kept_bytes() };
        let mut gone = Vec::new();
        {
            let mut table = self.lock();
            table.bytes += resting.bytes;
            if track.is_over() { &mut table.over } else { &mut table.lost }.push_back(resting);
            gone.extend(table.shrink(session));
        }
        // Readers tell their session that nobody reads them any more; the table must not be locked meanwhile.
        drop(gone);
    }

    /// Gives a stream up.
    pub fn forget(&self, session: &str, track: &Arc<Track>) {
        let mut table = self.lock();
        let gone = table.take(|one| Arc::ptr_eq(&one.track, track));
        let removed = table.sessions.get_mut(session).and_then(|all| all.remove(&track.stream));
        drop(table);
        drop((gone, removed));
    }

    /// Drops what has waited too long, and everything of sessions that are gone.
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
    /// Takes streams off the lists of those that wait.
    fn unlist(&mut self, fits: impl Fn(&Resting) -> bool) -> Vec<Resting> {
        let mut found = Vec::new();
        for list in [&mut self.over, &mut self.lost] {
            let (out, kept) = std::mem::take(list).into_iter().partition::<VecDeque<_>, _>(&fits);
            *list = kept;
            found.extend(out);
        }
        self.bytes -= found.iter().map(|one| one.bytes).sum::<usize>();
        found
    }

    /// Takes streams out that wait, so that they cannot be named any more, unless somebody reads them meanwhile.
    fn take(&mut self, fits: impl Fn(&Resting) -> bool) -> Vec<Resting> {
        let found = self.unlist(fits);
        for one in &found {
            self.unname(one);
        }
        found
    }

    fn unname(&mut self, one: &Resting) {
        if one.track.away() != Some(one.since) {
            return;
        }
        if let Some(tracks) = self.sessions.get_mut(&one.session) {
            tracks.remove(&one.track.stream);
        }
    }

    /// Takes out what goes beyond the bounds: of a session its own oldest, of all the oldest that have ended, and where
    /// there are none the newest, so that nobody can drive out the streams of others.
    fn shrink(&mut self, session: &str) -> Vec<Resting> {
        let mut gone = Vec::new();
        let own = |one: &Resting| &*one.session == session;
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
