//! The audit log of a process.

mod writing;

use crate::event::Note;
use crate::intake::{Input, Intake};
use crate::journal::{Cursor, Journal, JournalError};
use crate::maker::{Maker, Words};
use crate::progress::{AuditStats, Progress, SinkStats};
use crate::settings::AuditSettings;
use crate::sinks::{Runner, Sink};
use bytes::Bytes;
use signalbox_engine::audit::{Intended, Intent, IntentLog};
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Fact, FactSink};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
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
    payloads: bool,
    folder: PathBuf,
    /// What the threads are made of, until they begin.
    parts: Mutex<Option<Parts>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What calls and the thread of the log share.
#[derive(Debug)]
struct Door {
    intake: Intake,
    progress: Arc<Progress>,
    /// Set once the log has begun.
    writing: Mutex<Option<Writing>>,
    /// From this time on, in milliseconds since 1970, calls write for themselves.
    own_from: AtomicU64,
}

#[derive(Debug)]
struct Parts {
    settings: AuditSettings,
    journal: Journal,
    place: crate::chain::ChainPlace,
    runners: Vec<Runner>,
}

impl AuditLog {
    /// Opens the journal for these sinks; `fresh` names the chain if a new one begins. Nothing is written before
    /// [`AuditLog::begin`].
    ///
    /// # Errors
    /// If the journal cannot be opened.
    pub fn open(settings: AuditSettings, sinks: Vec<Box<dyn Sink>>, fresh: &str) -> Result<Self, StartError> {
        let (journal, place, folder) = Journal::open(&settings.folder, fresh, settings.spool_max, settings.fsync)?;
        let oldest = journal.keeps_from(u64::MAX);
        let (mut stats, mut cursors) = (Vec::new(), Vec::new());
        for sink in sinks {
            let (cursor, last) = Cursor::open(&folder, sink.name())?;
            // A new sink begins with what is still there, behind a checkpoint for what is not.
            let (acked, came_at) = (last.unwrap_or(0).min(place.seq), last.is_none().then_some(oldest));
            let (name, required) = (sink.name().to_owned(), settings.required.iter().any(|one| one == sink.name()));
            stats.push(SinkStats { name, required, acked, ..SinkStats::default() });
            cursors.push((sink, cursor, (acked, required, came_at)));
        }
        let progress = Arc::new(Progress::new(place.seq, oldest, stats));
        let runner = |(index, (sink, cursor, (acked, required, came_at)))| Runner {
            index,
            sink,
            cursor,
            acked,
            required,
            progress: Arc::clone(&progress),
            folder: folder.clone(),
            key: settings.key.clone(),
            chain: place.chain.clone(),
            came_at,
        };
        let runners = cursors.into_iter().enumerate().map(runner).collect();
        let door = Door {
            intake: Intake::default(),
            progress: Arc::clone(&progress),
            writing: Mutex::default(),
            // Whoever waits for the disk itself must not hold up others.
            own_from: AtomicU64::new(if settings.fsync { u64::MAX } else { 0 }),
        };
        Ok(Self {
            door: Arc::new(door),
            payloads: settings.payloads,
            folder,
            parts: Mutex::new(Some(Parts { settings, journal, place, runners })),
            thread: Mutex::default(),
        })
    }

    /// Begins to write, with the ids of this run. What was told before is written too.
    ///
    /// # Errors
    /// If no thread can be had.
    pub fn begin(&self, run: AuditRun) -> io::Result<()> {
        let Some(Parts { settings, journal, place, runners }) = self.parts.lock().unpoisoned().take() else {
            return Ok(());
        };
        for runner in runners {
            Builder::new().name(format!("audit-{}", runner.sink.name())).spawn(move || runner.run())?;
        }
        let anchor = clocks();
        let maker = Maker::new(
            Words { redactor: settings.redactor.clone(), payloads: settings.payloads },
            settings.logged,
            settings.slow,
            run,
            anchor,
        );
        let door = Arc::clone(&self.door);
        let writing = Writing::new(settings, Arc::clone(&door.progress), maker, journal, place);
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
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// The numbers so far.
    #[must_use]
    pub fn stats(&self) -> AuditStats {
        self.door.progress.stats()
    }

    /// Takes nothing more, writes what it has, and gives sinks so long to take it. What they do not take waits in the journal.
    pub fn stop(&self, within: Duration) {
        self.door.intake.close();
        if let Some(thread) = self.thread.lock().unpoisoned().take() {
            let _ = thread.join();
        }
        self.door.progress.end(Instant::now() + within);
        self.door.progress.wait_until_done();
    }
}

impl Drop for AuditLog {
    /// Its threads end; what sinks have not taken waits in the journal.
    fn drop(&mut self) {
        self.door.intake.close();
        self.door.progress.end(Instant::now());
    }
}

impl IntentLog for AuditLog {
    fn intend(&self, mut intents: Vec<Intent>) -> Intended {
        if !self.payloads {
            intents.iter_mut().for_each(|intent| intent.message = Bytes::new());
        }
        let ((written, told), now) = (oneshot::channel(), unix_ms());
        if !self.door.intake.push(Input::Intents(intents, now, written)) {
            let may_leave = self.door.progress.requires_nothing();
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

    /// The writer, if it is free or will be at once: one write takes some microseconds, less than it takes to wake a thread.
    fn soon(&self, tries: usize) -> Option<MutexGuard<'_, Option<Writing>>> {
        for _ in 0..tries {
            if let Ok(writing) = self.writing.try_lock() {
                return Some(writing);
            }
            (0..4).for_each(|_| std::hint::spin_loop());
        }
        None
    }

    /// Writes what waits, unless somebody else is writing, who will write that too: whoever is done looks once more whether calls
    /// wait, since one that found it writing left. A disk that is slow is left to the thread for a while, since other calls may be
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
