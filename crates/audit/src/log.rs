//! The audit log of a process, shared by the calls that write to it and the threads of its sinks.

mod writing;

use crate::chain::ChainPlace;
use crate::event::AuditNote;
use crate::event_builder::{EventBuilder, TextPolicy};
use crate::intake::{Input, Intake};
use crate::journal::{Cursor, Journal, JournalError, ResumePoint};
use crate::progress::{AuditStats, LogProgress, SinkStats};
use crate::settings::AuditSettings;
use crate::sinks::{Runner, Sink};
use bytes::Bytes;
use signalbox_engine::audit::{Intent, IntentLog, IntentWrite};
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Fact, FactSink};
use signalbox_seal::SigningKey;
use signalbox_wire::timestamp;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::oneshot;
use writing::LogWriter;

/// Number of attempts of a call to get the writer.
const TRIES: usize = 40;
/// Number of times that a call writes inputs that arrived meanwhile, before it leaves them to the thread.
const ROUNDS: usize = 8;
/// Threshold above which a write counts as slow.
const SLOW: Duration = Duration::from_millis(20);
/// Time after a slow write during which calls leave writing to the thread.
const LEFT_TO_THREAD_MS: u64 = 1_000;

/// Error of starting an audit log.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The journal cannot be opened.
    #[error("the audit journal cannot be opened: {0}")]
    Journal(#[from] JournalError),
    /// A file or a thread could not be created.
    #[error("the audit log cannot be started: {0}")]
    System(#[from] io::Error),
}

/// Audit log: records what is forwarded to backends, and the outcome.
#[derive(Debug)]
pub struct AuditLog {
    state: Arc<LogState>,
    /// True if records contain arguments.
    payloads: AtomicBool,
    /// True if calls wait until their intents are recorded.
    intends: AtomicBool,
    folder: PathBuf,
    chain: String,
    /// Parts of the threads, until `begin` starts them.
    parts: Mutex<Option<Parts>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Serialises replacements of sinks.
    turn: Mutex<()>,
}

/// State that calls share with the thread of the log.
#[derive(Debug)]
struct LogState {
    intake: Intake,
    /// Changes only while `writing` is locked.
    progress: Mutex<Arc<LogProgress>>,
    /// Set once the log has begun.
    writing: Mutex<Option<LogWriter>>,
    /// Time from which calls write for themselves, in milliseconds since 1970.
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
    /// Opens the journal for these sinks; `fresh` names the chain of a new journal. Writes nothing before
    /// [`AuditLog::begin`].
    ///
    /// # Errors
    /// If the journal cannot be opened.
    pub fn open(settings: AuditSettings, sinks: Vec<Box<dyn Sink>>, fresh: &str) -> Result<Self, StartError> {
        let (journal, place, folder) = Journal::open(&settings.folder, fresh, settings.spool_max, settings.fsync)?;
        Self::of_journal(settings, sinks, journal, place, folder)
    }

    /// Opens the journal of a chain whose process has ended, to deliver the records that sinks lack. `None` if another
    /// process has it locked.
    ///
    /// # Errors
    /// If the journal cannot be opened.
    pub fn open_chain(
        settings: AuditSettings,
        sinks: Vec<Box<dyn Sink>>,
        chain: &str,
    ) -> Result<Option<Self>, StartError> {
        let opened = Journal::open_chain(&settings.folder, chain, settings.spool_max, settings.fsync)?;
        opened.map(|(journal, place, folder)| Self::of_journal(settings, sinks, journal, place, folder)).transpose()
    }

    fn of_journal(
        settings: AuditSettings,
        sinks: Vec<Box<dyn Sink>>,
        journal: Journal,
        place: ChainPlace,
        folder: PathBuf,
    ) -> Result<Self, StartError> {
        let oldest = journal.keeps_from(u64::MAX);
        let chain = place.chain.clone();
        let opened = sinks.into_iter().map(|sink| OpenedSink::open(sink, &folder, &settings, place.seq));
        let opened = opened.collect::<io::Result<Vec<_>>>()?;
        let stats = opened.iter().map(|one| one.stats.clone()).collect();
        let progress = Arc::new(LogProgress::new(place.seq, oldest, stats));
        let runners = runners(opened, &progress, &folder, &settings.key, &chain);
        let state = LogState {
            intake: Intake::default(),
            progress: Mutex::new(progress),
            writing: Mutex::default(),
            own_from: AtomicU64::new(own_from(&settings)),
        };
        Ok(Self {
            state: Arc::new(state),
            payloads: AtomicBool::new(settings.payloads),
            intends: AtomicBool::new(settings.logged.tool_invocations),
            folder,
            chain,
            parts: Mutex::new(Some(Parts { settings, journal, place, runners })),
            thread: Mutex::default(),
            turn: Mutex::default(),
        })
    }

    /// Replaces the settings and sinks. The chain continues, and calls are recorded meanwhile. The former sinks have
    /// `within` to take the remaining records; sinks with the same name and place resume where they ended. Blocks.
    ///
    /// # Errors
    /// If a thread cannot be started or a file cannot be opened.
    pub fn replace(&self, settings: AuditSettings, sinks: Vec<Box<dyn Sink>>, within: Duration) -> io::Result<()> {
        let _turn = self.turn.lock().unpoisoned();
        let (before, progress, key) = {
            let mut guard = self.state.writing.lock().unpoisoned();
            let Some(writing) = &mut *guard else { return Err(io::Error::other("the audit log has not begun")) };
            let (written, before) = writing.reached();
            let before = Arc::clone(before);
            // The positions of the sinks are known once the former ones have ended. Until then the journal keeps
            // everything.
            let stats = sinks.iter().map(|sink| SinkStats {
                name: sink.name().to_owned(),
                required: is_required(&settings, &**sink),
                ..SinkStats::default()
            });
            let progress = Arc::new(LogProgress::new(written, before.keep_from(), stats.collect()));
            let waiters = before.retire(Instant::now() + within);
            progress.go_on(&before.stats(), waiters);
            self.payloads.store(settings.payloads, Ordering::Relaxed);
            self.intends.store(settings.logged.tool_invocations, Ordering::Relaxed);
            self.state.own_from.store(own_from(&settings), Ordering::Relaxed);
            let key = settings.key.clone();
            *self.state.progress.lock().unpoisoned() = Arc::clone(&progress);
            writing.follow(settings.clone(), Arc::clone(&progress));
            (before, progress, key)
        };
        // A call that found the writer taken left its intent in the queue.
        self.state.intake.urge();
        before.wait_until_done();
        let written = progress.stats().written;
        let opened = sinks.into_iter().map(|sink| OpenedSink::open(sink, &self.folder, &settings, written));
        let opened = opened.collect::<io::Result<Vec<_>>>()?;
        for (index, one) in opened.iter().enumerate() {
            progress.acked(index, one.stats.acked, 0);
        }
        runners(opened, &progress, &self.folder, &key, &self.chain).into_iter().try_for_each(Runner::spawn)
    }

    /// Starts writing, with the ids of this run. Inputs queued before are written too.
    ///
    /// # Errors
    /// If the thread of the log cannot be started.
    pub fn begin(&self, run: AuditRun) -> io::Result<()> {
        let Some(Parts { settings, journal, place, runners }) = self.parts.lock().unpoisoned().take() else {
            return Ok(());
        };
        runners.into_iter().try_for_each(Runner::spawn)?;
        let anchor = clocks();
        let maker = EventBuilder::new(
            TextPolicy { redactor: settings.redactor.clone(), payloads: settings.payloads },
            settings.logged,
            settings.slow,
            run,
            anchor,
        );
        let state = Arc::clone(&self.state);
        let writing = LogWriter::new(settings, state.progress(), maker, journal, place);
        *state.writing.lock().unpoisoned() = Some(writing);
        let thread = Builder::new().name("audit".to_owned()).spawn(move || state.run())?;
        *self.thread.lock().unpoisoned() = Some(thread);
        Ok(())
    }

    /// Records an event that is not a fact about a message. Counts it as lost if the queue is full.
    pub fn note(&self, note: AuditNote) {
        self.state.intake.push_note(note);
    }

    /// Records an event like [`AuditLog::note`]. The returned future resolves once the record is as durable as the
    /// intents of calls, or to false if it cannot be written and must be. The log's thread writes it, so that no slow
    /// disk blocks the caller.
    pub fn note_confirmed(&self, note: AuditNote) -> IntentWrite {
        let (written, told) = oneshot::channel();
        if !self.state.intake.push(Input::Note(Box::new(note), Some(written))) {
            return Box::pin(std::future::ready(self.requires_nothing()));
        }
        self.state.intake.urge();
        Box::pin(async { told.await.unwrap_or(false) })
    }

    /// Returns true if what cannot be recorded may go on.
    #[must_use]
    pub fn requires_nothing(&self) -> bool {
        self.state.progress().requires_nothing()
    }

    /// Returns the folder of its journal.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the current counters.
    #[must_use]
    pub fn stats(&self) -> AuditStats {
        self.state.progress().stats()
    }

    /// Closes the queue, writes its rest, and gives sinks `within` to take it. What they do not take stays in the
    /// journal.
    pub fn stop(&self, within: Duration) {
        self.state.intake.close();
        if let Some(thread) = self.thread.lock().unpoisoned().take() {
            let _ = thread.join();
        }
        let progress = self.state.progress();
        progress.end(Instant::now() + within);
        progress.wait_until_done();
    }
}

impl Drop for AuditLog {
    /// Ends its threads. What sinks have not taken stays in the journal.
    fn drop(&mut self) {
        self.state.intake.close();
        self.state.progress().end(Instant::now());
    }
}

impl IntentLog for AuditLog {
    fn intend(&self, mut intents: Vec<Intent>) -> IntentWrite {
        if !self.intends.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(true));
        }
        if !self.payloads.load(Ordering::Relaxed) {
            intents.iter_mut().for_each(|intent| intent.message = Bytes::new());
        }
        let ((written, told), now) = (oneshot::channel(), unix_ms());
        if !self.state.intake.push(Input::Intents(intents, now, written)) {
            let may_leave = self.requires_nothing();
            return Box::pin(std::future::ready(may_leave));
        }
        let state = Arc::clone(&self.state);
        Box::pin(async move {
            state.write_now(now);
            told.await.unwrap_or(false)
        })
    }
}

impl FactSink for AuditLog {
    /// The engine reports decisions only to sinks that want messages.
    fn wants_messages(&self) -> bool {
        true
    }

    fn fact(&self, fact: &Fact) {
        self.facts(std::slice::from_ref(fact));
    }

    fn facts(&self, facts: &[Fact]) {
        self.state.intake.push_facts(facts);
    }
}

impl LogState {
    fn progress(&self) -> Arc<LogProgress> {
        Arc::clone(&self.progress.lock().unpoisoned())
    }

    /// Runs the thread of the log.
    fn run(&self) {
        // An earlier process may have left a loss to report.
        let mut rest = self.writing.lock().unpoisoned().as_ref().and_then(LogWriter::rest);
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

    /// Returns the writer if it is free or will be at once: one write takes some microseconds, less than waking a
    /// thread.
    fn soon(&self, tries: usize) -> Option<MutexGuard<'_, Option<LogWriter>>> {
        for _ in 0..tries {
            if let Ok(writing) = self.writing.try_lock() {
                return Some(writing);
            }
            (0..4).for_each(|_| std::hint::spin_loop());
        }
        None
    }

    /// Writes the queue unless another thread is writing. That thread then writes these inputs too: it checks the queue
    /// once more after its last one. Leaves a slow disk to the log's own thread for a while, since other calls may wait
    /// for this one.
    fn write_now(&self, now: u64) {
        if now < self.own_from.load(Ordering::Relaxed) {
            return self.intake.urge();
        }
        for round in 0..ROUNDS {
            let Some(mut guard) = self.soon(if round == 0 { TRIES } else { 1 }) else { return };
            // Before the log begins there is no writer. The log's thread writes the queue later.
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

/// Sink with its position.
struct OpenedSink {
    sink: Box<dyn Sink>,
    cursor: Cursor,
    stats: SinkStats,
    came_after: Option<u64>,
    unknown: bool,
}

impl OpenedSink {
    /// Opens the cursor of a sink. A sink at a new place begins with the oldest record of the journal, after a gap for
    /// what is no longer there.
    fn open(sink: Box<dyn Sink>, folder: &Path, settings: &AuditSettings, written: u64) -> io::Result<Self> {
        let (cursor, ResumePoint { last, moved }) = Cursor::open(folder, sink.name(), sink.place())?;
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

/// Returns the time from which calls write for themselves: never with `fsync`, because they would wait for the disk and
/// delay others.
fn own_from(settings: &AuditSettings) -> u64 {
    if settings.fsync { u64::MAX } else { 0 }
}

fn runners(
    opened: Vec<OpenedSink>,
    progress: &Arc<LogProgress>,
    folder: &Path,
    key: &SigningKey,
    chain: &str,
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

/// Returns the current time on both clocks, the wall clock as the time since 1970.
fn clocks() -> (Instant, Duration) {
    (Instant::now(), timestamp::since_1970(SystemTime::now()))
}

/// Returns the wall clock in milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    timestamp::millis_of(SystemTime::now())
}

#[cfg(test)]
mod tests;
