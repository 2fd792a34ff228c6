//! The audit log of a process.

mod writing;

use crate::chain::ChainPlace;
use crate::event::Note;
use crate::intake::{Input, Intake};
use crate::journal::{Cursor, Journal, JournalError, Resumed};
use crate::maker::{Maker, Words};
use crate::progress::{AuditStats, Progress, SinkStats};
use crate::settings::AuditSettings;
use crate::sinks::{Runner, Sink};
use bytes::Bytes;
use signalbox_engine::audit::{Intended, Intent, IntentLog};
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Fact, FactSink};
use signalbox_seal::SigningKey;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;
use writing::Writing;

/// How often a call looks whether it can write itself.
const TRIES: usize = 40;
/// How often a call writes for others that came meanwhile before it leaves that to the thread.
const ROUNDS: usize = 8;
/// A write that takes longer than this shows a disk that is slow,
const SLOW: Duration = Duration::from_millis(20);
/// for which calls do not write themselves for so long.
const LEFT_TO_THREAD_MS: u64 = 1_000;

/// Why there is no audit log.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The journal cannot be opened.
    #[error("the audit journal cannot be opened: {0}")]
    Journal(#[from] JournalError),
    /// A file or a thread cannot be had.
    #[error("the audit log cannot be started: {0}")]
    System(#[from] io::Error),
}

/// Writes down what leaves for backends and what came of it.
#[derive(Debug)]
pub struct AuditLog {
    door: Arc<Door>,
    /// Arguments are written.
    payloads: AtomicBool,
    /// Calls wait for their intents.
    intends: AtomicBool,
    folder: PathBuf,
    chain: String,
    /// What the threads are made of, until they begin.
    parts: Mutex<Option<Parts>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// One replacement of sinks at a time.
    turn: Mutex<()>,
}

/// What calls and the thread of the log share.
#[derive(Debug)]
struct Door {
    intake: Intake,
    /// Changes only while `writing` is locked.
    progress: Mutex<Arc<Progress>>,
    /// Set once the log has begun.
    writing: Mutex<Option<Writing>>,
    /// From this time on, in milliseconds since 1970, calls write for themselves.
    own_from: AtomicU64,
}

#[derive(Debug)]
struct Parts {
    settings: AuditSettings,
    journal: Journal,
    place: ChainPlace,
    runners: Vec<Runner>,
}

impl AuditLog {
    /// Opens the journal for these sinks; `fresh` names the chain if a new one begins. Nothing is written before
    /// [`AuditLog::begin`].
    ///
    /// # Errors
    /// If the journal cannot be opened.
    pub fn open(settings: AuditSettings, sinks: Vec<Box<dyn Sink>>, fresh: &str) -> Result<Self, StartError> {
        let opened = Journal::open(&settings.folder, fresh, settings.spool_max, settings.fsync)?;
        Self::of_journal(settings, sinks, opened)
    }

    /// Opens the journal of a chain whose process has ended, to deliver what sinks lack of it. `None` if another process
    /// has it.
    ///
    /// # Errors
    /// If the journal cannot be opened.
    pub fn open_chain(
        settings: AuditSettings,
        sinks: Vec<Box<dyn Sink>>,
        chain: &str,
    ) -> Result<Option<Self>, StartError> {
        let opened = Journal::open_chain(&settings.folder, chain, settings.spool_max, settings.fsync)?;
        opened.map(|opened| Self::of_journal(settings, sinks, opened)).transpose()
    }

    fn of_journal(
        settings: AuditSettings,
        sinks: Vec<Box<dyn Sink>>,
        (journal, place, folder): (Journal, ChainPlace, PathBuf),
    ) -> Result<Self, StartError> {
        let oldest = journal.keeps_from(u64::MAX);
        let chain = place.chain.clone();
        let opened = sinks.into_iter().map(|sink| OpenedSink::open(sink, &folder, &settings, place.seq));
        let opened = opened.collect::<io::Result<Vec<_>>>()?;
        let stats = opened.iter().map(|one| one.stats.clone()).collect();
        let progress = Arc::new(Progress::new(place.seq, oldest, stats));
        let runners = runners(opened, &progress, (&folder, &settings.key, &chain));
        let door = Door {
            intake: Intake::default(),
            progress: Mutex::new(progress),
            writing: Mutex::default(),
            own_from: AtomicU64::new(own_from(&settings)),
        };
        Ok(Self {
            door: Arc::new(door),
            payloads: AtomicBool::new(settings.payloads),
            intends: AtomicBool::new(settings.logged.tool_invocations),
            folder,
            chain,
            parts: Mutex::new(Some(Parts { settings, journal, place, runners })),
            thread: Mutex::default(),
            turn: Mutex::default(),
        })
    }

    /// Goes on by other settings and with other sinks. The chain goes on, and calls are written meanwhile: sinks of
    /// before have so long to take what there is, and those of the same name and place go on where they ended. Blocks.
    ///
    /// # Errors
    /// If no thread or file can be had.
    pub fn replace(&self, settings: AuditSettings, sinks: Vec<Box<dyn Sink>>, within: Duration) -> io::Result<()> {
        let _turn = self.turn.lock().unpoisoned();
        let (before, progress, key) = {
            let mut guard = self.door.writing.lock().unpoisoned();
            let Some(writing) = &mut *guard else { return Err(io::Error::other("the audit log has not begun")) };
            let (written, before) = writing.reached();
            let before = Arc::clone(before);
            // What sinks have is known once the former ones have ended; until then the journal keeps everything.
            let stats = sinks.iter().map(|sink| SinkStats {
                name: sink.name().to_owned(),
                required: is_required(&settings, &**sink),
                ..SinkStats::default()
            });
            let progress = Arc::new(Progress::new(written, before.keep_from(), stats.collect()));
            let waiters = before.retire(Instant::now() + within);
            progress.go_on(&before.stats(), waiters);
            self.payloads.store(settings.payloads, Ordering::Relaxed);
            self.intends.store(settings.logged.tool_invocations, Ordering::Relaxed);
            self.door.own_from.store(own_from(&settings), Ordering::Relaxed);
            let key = settings.key.clone();
            *self.door.progress.lock().unpoisoned() = Arc::clone(&progress);
            writing.follow(settings.clone(), Arc::clone(&progress));
            (before, progress, key)
        };
        before.wait_until_done();
        let written = progress.stats().written;
        let opened = sinks.into_iter().map(|sink| OpenedSink::open(sink, &self.folder, &settings, written));
        let opened = opened.collect::<io::Result<Vec<_>>>()?;
        for (index, one) in opened.iter().enumerate() {
            progress.acked(index, one.stats.acked, 0);
        }
        runners(opened, &progress, (&self.folder, &key, &self.chain)).into_iter().try_for_each(Runner::spawn)
    }

    /// Begins to write, with the ids of this run. What was told before is written too.
    ///
    /// # Errors
    /// If no thread can be had.
    pub fn begin(&self, run: AuditRun) -> io::Result<()> {
        let Some(Parts { settings, journal, place, runners }) = self.parts.lock().unpoisoned().take() else {
            return Ok(());
        };
        runners.into_iter().try_for_each(Runner::spawn)?;
        let anchor = clocks();
        let maker = Maker::new(
            Words { redactor: settings.redactor.clone(), payloads: settings.payloads },
            settings.logged,
            settings.slow,
            run,
            anchor,
        );
        let door = Arc::clone(&self.door);
        let writing = Writing::new(settings, door.progress(), maker, journal, place);
        *door.writing.lock().unpoisoned() = Some(writing);
        let thread = Builder::new().name("audit".to_owned()).spawn(move || door.run())?;
        *self.thread.lock().unpoisoned() = Some(thread);
        Ok(())
    }

    /// Writes down something that is no fact about a message. What has no room is counted.
    pub fn note(&self, note: Note) {
        self.door.intake.push_note(note);
    }

    /// The folder of its journal.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The numbers so far.
    #[must_use]
    pub fn stats(&self) -> AuditStats {
        self.door.progress().stats()
    }

    /// Takes nothing more, writes what it has, and gives sinks so long to take it. What they do not take
    /// waits in the journal.
    pub fn stop(&self, within: Duration) {
        self.door.intake.close();
        if let Some(thread) = self.thread.lock().unpoisoned().take() {
            let _ = thread.join();
        }
        let progress = self.door.progress();
        progress.end(Instant::now() + within);
        progress.wait_until_done();
    }
}

impl Drop for AuditLog {
    /// Its threads end; what sinks have not taken waits in the journal.
    fn drop(&mut self) {
        self.door.intake.close();
        self.door.progress().end(Instant::now());
    }
}

impl IntentLog for AuditLog {
    fn intend(&self, mut intents: Vec<Intent>) -> Intended {
        if !self.intends.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(true));
        }
        if !self.payloads.load(Ordering::Relaxed) {
            intents.iter_mut().for_each(|intent| intent.message = Bytes::new());
        }
        let ((written, told), now) = (oneshot::channel(), unix_ms());
        if !self.door.intake.push(Input::Intents(intents, now, written)) {
            let may_leave = self.door.progress().requires_nothing();
            return Box::pin(std::future::ready(may_leave));
        }
        let door = Arc::clone(&self.door);
        Box::pin(async move {
            door.write_now(now);
            told.await.unwrap_or(false)
        })
    }
}

impl FactSink for AuditLog {
    /// Decisions are told only to those who want messages.
    fn wants_messages(&self) -> bool {
        true
    }

    fn fact(&self, fact: &Fact) {
        self.facts(std::slice::from_ref(fact));
    }

    fn facts(&self, facts: &[Fact]) {
        self.door.intake.push_facts(facts);
    }
}

impl Door {
    fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress.lock().unpoisoned())
    }

    /// What the thread of the log does.
    fn run(&self) {
        let mut rest = None;
        loop {
            self.intake.wait(rest);
            let mut writing = self.writing.lock().unpoisoned();
            let Some(writing) = &mut *writing else { return };
            if writing.write_all(&self.intake) {
                return;
            }
            rest = writing.rest();
        }
    }

    /// The writer, if it is free or will be at once: one write takes some microseconds, less than it takes
    /// to wake a thread.
    fn soon(&self, tries: usize) -> Option<MutexGuard<'_, Option<Writing>>> {
        for _ in 0..tries {
            if let Ok(writing) = self.writing.try_lock() {
                return Some(writing);
            }
            (0..4).for_each(|_| std::hint::spin_loop());
        }
        None
    }

    /// Writes the queue, unless another thread is writing, which then writes these records too: after its last one it
    /// looks at the queue once more. A slow disk is left to the log's own thread for a while, since other calls may be
    /// waiting for this one.
    fn write_now(&self, now: u64) {
        if now < self.own_from.load(Ordering::Relaxed) {
            return self.intake.urge();
        }
        for round in 0..ROUNDS {
            let Some(mut guard) = self.soon(if round == 0 { TRIES } else { 1 }) else { return };
            // Before the log begins there is nobody to write, and then it is the thread.
            let Some(writing) = &mut *guard else { return };
            let began = Instant::now();
            writing.write_all(&self.intake);
            drop(guard);
            if began.elapsed() > SLOW {
                self.own_from.store(now + LEFT_TO_THREAD_MS, Ordering::Relaxed);
                break;
            }
            if !self.intake.is_awaited() {
                return;
            }
        }
        self.intake.urge();
    }
}

/// A sink, and how far it came.
struct OpenedSink {
    sink: Box<dyn Sink>,
    cursor: Cursor,
    stats: SinkStats,
    came_after: Option<u64>,
    unknown: bool,
}

impl OpenedSink {
    /// A sink at another place than before begins with what is still there, behind a gap for what is not.
    fn open(sink: Box<dyn Sink>, folder: &Path, settings: &AuditSettings, written: u64) -> io::Result<Self> {
        let (cursor, Resumed { last, moved }) = Cursor::open(folder, sink.name(), sink.place())?;
        let (acked, unknown) = (last.unwrap_or(0).min(written), last.is_none());
        let came_after = (moved || unknown).then_some(written);
        let (name, required) = (sink.name().to_owned(), is_required(settings, &*sink));
        let stats = SinkStats { name, required, acked, ..SinkStats::default() };
        Ok(Self { sink, cursor, stats, came_after, unknown })
    }
}

fn is_required(settings: &AuditSettings, sink: &dyn Sink) -> bool {
    settings.required.iter().any(|one| one == sink.name())
}

/// From when on calls write for themselves: never if they would wait for the disk, and so hold up others.
fn own_from(settings: &AuditSettings) -> u64 {
    if settings.fsync { u64::MAX } else { 0 }
}

fn runners(
    opened: Vec<OpenedSink>,
    progress: &Arc<Progress>,
    (folder, key, chain): (&Path, &SigningKey, &str),
) -> Vec<Runner> {
    let runner = |(index, one): (usize, OpenedSink)| Runner {
        index,
        sink: one.sink,
        cursor: one.cursor,
        acked: one.stats.acked,
        required: one.stats.required,
        progress: Arc::clone(progress),
        folder: folder.to_owned(),
        key: key.clone(),
        chain: chain.to_owned(),
        came_after: one.came_after,
        unknown: one.unknown,
    };
    opened.into_iter().enumerate().map(runner).collect()
}

/// This moment on both clocks, on the second as the time since 1970.
fn clocks() -> (Instant, Duration) {
    (Instant::now(), since_1970())
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The wall clock in milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
