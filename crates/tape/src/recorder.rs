//! Turns the facts of the gateway into entries of a tape, without holding up the calls it records.
//!
//! A [`Recorder`] is a [`FactSink`]. Threads that serve calls push facts into a bounded queue and continue. One thread,
//! named `tape`, takes batches from the queue, makes entries of them (`maker`) and passes these to a [`TapeWriter`].
//! The maker drops entries that the filter or the sampling excludes, redacts the rest, holds entries back while the
//! sampling has not decided about their exchange (`sampling_buffer`), and numbers them on release.
//!
//! ```text
//!   fact(), facts() ──► queue ──────► maker ───────────────► TapeWriter::append
//!   backend(), rules()    │            filter, sample,           │        │
//!   barrier(), trigger()  │            redact, number            ok      error
//!                         │                                      │        │
//!                         ▼ full                                 ▼        ▼
//!                     lost, counted                        ┌─► writing ──► failing: pause, 10 ms and
//!                     as queue_full,                       │                 │ then twice as long, try again
//!                     or as disk while failing             └──── stored ◄────┤
//!                                                                            └──► given up when stop() runs out of
//!   stop(within) ──► closed: no more facts, the rest is written, the tape ends    time: lost, counted as disk
//! ```
//!
//! Invariants:
//!
//! - **Reporting a fact never blocks.** A fact that does not fit into the queue is counted as lost. With
//!   [`OnFull::Wait`] the threads that read messages from clients and backends wait ([`Recorder::room`]) once half of
//!   the queue is used, for a bounded time. Beyond seven eighths the queue takes no notifications, so that a flood of
//!   them cannot push calls off the tape.
//! - **Losses are reported.** Every lost fact is counted by its [`GapReason`], and the tape gets a gap entry with the
//!   number of facts as soon as it can be written. Only facts after [`Recorder::stop`] are ignored without a count.
//! - **Nothing is stored before it is redacted.** The queue holds the original messages; entries are made of redacted
//!   bytes.
//! - **Entries are in the order of their events**, and have the times of these: see `fact_order`.
//! - **Entries are numbered when they are certain to be on the tape**, so that sampling leaves no holes in the
//!   numbers.
//! - **A barrier resolves once**: with `Ok` when everything before it is on disk, or else with the reason
//!   ([`BarrierError`]). If the store fails, waiting barriers fail at once and not after the retries.
//! - **A batch is offered again until the store takes it.** If the error may concern a single entry, each entry is
//!   offered alone after five tries, and one that the store refuses becomes a gap.
//! - **A tape that is large or old ends between two entries** ([`TapeSeries`]), and the next one continues with the
//!   same facts: none is lost or on both. It repeats the descriptions that its entries refer to (`introductions`), and
//!   receives the entries that sampling still holds back.
//! - **A failure is reported once**: one error line when the store begins to fail, one info line when it works again.
//!
//! The recorder must never block a call because the disk is slow (strict recording waits at barriers, which the caller
//! requests), never write from two threads, never queue more than its bounds (apart from one oversized fact at a time,
//! and the few inputs about backends and rules), and never leave a barrier unresolved when the writing thread ends,
//! even by a panic.

mod adaptive;
mod admission;
mod barrier;
mod clients;
mod clock;
mod counters;
mod entry_builder;
mod exchanges;
mod fact_order;
mod filter;
mod introductions;
pub(crate) mod message;
mod message_arena;
mod numbering;
mod priority;
mod queue;
mod recorder_input;
mod redaction_ahead;
mod sampling;
mod sampling_buffer;
mod session_hash;
mod sessions;
mod settings;
mod tape_bounds;
mod tape_series;
#[cfg(test)]
mod tests;
mod withheld;
mod words;
mod writing;

pub use barrier::{Barrier, BarrierError};
pub use clock::Anchor;
pub use counters::{GapReason, RecorderStats};
pub use exchanges::MAX_EXCHANGES;
pub use filter::{Choice, Filter};
pub use priority::{Priorities, Priority};
pub use queue::MAX_BARRIERS;
pub use sampling::{Sampling, SamplingTrigger};
pub use session_hash::SessionHash;
pub use settings::{HoldLimits, OnFull, RecorderSettings};
pub use tape_bounds::{GRACE, TapeBounds};
pub use tape_series::{NextTape, NextTapeError, TapeFactory, TapeSeries};

use signalbox_engine::lock::LockResultExt;

use crate::redact::Redactor;
use crate::seal::Chain;
use counters::Counters;
use entry_builder::EntryBuilder;
use fact_order::FactOrder;
use queue::Queue;
use recorder_input::RecorderInput;
use signalbox_engine::record::{BackendOffer, RulesEntry, TapeWriter};
use signalbox_engine::{Fact, FactSink};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use writing::{Following, Writing};

/// Time that a recorder dropped without [`Recorder::stop`] has to write its pending facts.
const DROP_WITHIN: Duration = Duration::from_secs(2);

/// Records every fact within its bounds, and reports the facts that it could not record.
#[derive(Debug)]
pub struct Recorder {
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Recorder {
    /// Starts to record into `tape`. The head of the tape should describe the redaction and the sampling:
    /// [`Redactor::describe`], [`RecorderSettings::sampling_words`].
    ///
    /// # Errors
    /// Fails if the writing thread cannot be started.
    pub fn start(
        settings: RecorderSettings,
        redactor: Redactor,
        tape: Box<dyn TapeWriter>,
        anchor: Anchor,
    ) -> std::io::Result<Self> {
        Self::begin(settings, redactor, tape, anchor, None)
    }

    /// Starts to record into `tape`, and continues on the next tape of `series` when it is large or old.
    ///
    /// # Errors
    /// Fails if the writing thread cannot be started.
    pub fn start_series(
        settings: RecorderSettings,
        redactor: Redactor,
        tape: Box<dyn TapeWriter>,
        anchor: Anchor,
        series: TapeSeries,
    ) -> std::io::Result<Self> {
        Self::begin(settings, redactor, tape, anchor, Some(series))
    }

    fn begin(
        settings: RecorderSettings,
        redactor: Redactor,
        tape: Box<dyn TapeWriter>,
        anchor: Anchor,
        series: Option<TapeSeries>,
    ) -> std::io::Result<Self> {
        let counters = Arc::new(Counters::default());
        let queue = Arc::new(Queue::new(&settings, Arc::clone(&counters)));
        let maker = EntryBuilder::new(&settings, redactor, anchor, Arc::clone(&counters), series.is_some());
        let chain = settings.seal.clone().map(Chain::new);
        let writing = Writing {
            queue: Arc::clone(&queue),
            counters: Arc::clone(&counters),
            settings,
            maker,
            tape,
            chain,
            order: FactOrder::default(),
            ready: VecDeque::new(),
            settled: None,
            untold: 0,
            following: series.map(Following::new),
            next_is_due: false,
        };
        let thread = std::thread::Builder::new().name("tape".to_owned()).spawn(move || writing.run())?;
        Ok(Self { queue, counters, thread: Mutex::new(Some(thread)) })
    }

    /// Records the current offer of a backend.
    pub fn backend(&self, seen: BackendOffer) {
        self.queue.tell(RecorderInput::Backend(Instant::now(), Box::new(seen)));
    }

    /// Records the rules in force from now on.
    pub fn rules(&self, rules: RulesEntry) {
        self.queue.tell(RecorderInput::Rules(Instant::now(), Box::new(rules)));
    }

    /// Records only the outline of messages to and from these backends, and of the messages to their callers, from now
    /// on.
    pub fn withhold(&self, backends: Vec<Arc<str>>) {
        self.queue.tell(RecorderInput::Withhold(Instant::now(), backends));
    }

    /// Registers a callback that runs before facts are sorted. It must flush the facts that threads still buffer.
    pub fn settle_with(&self, settle: impl Fn() + Send + Sync + 'static) {
        self.queue.settle_with(Box::new(settle));
    }

    /// Returns a barrier that resolves when every fact so far is on disk.
    #[must_use]
    pub fn barrier(&self) -> Barrier {
        self.queue.barrier()
    }

    /// Returns `None` while a message of this size fits, else a barrier that resolves when it does, with the maximum
    /// time to wait.
    #[must_use]
    pub fn room(&self, bytes: usize) -> Option<(Barrier, Duration)> {
        self.queue.room(bytes)
    }

    /// Writes the content of the ring, and the exchanges after it as the settings demand.
    pub fn trigger(&self) {
        self.queue.trigger();
    }

    /// Returns the current statistics.
    #[must_use]
    pub fn stats(&self) -> RecorderStats {
        let (depth, bytes) = self.queue.depth();
        RecorderStats { queue_depth: depth as u64, queue_bytes: bytes as u64, ..self.counters.snapshot() }
    }

    /// Stops taking facts, writes the pending ones and ends the tape. Gives up on a failing store after `within`.
    pub fn stop(&self, within: Duration) {
        self.queue.close(within);
        // Holding the lock until the thread has ended makes a concurrent `stop` wait for the writes too.
        let mut thread = self.thread.lock().unpoisoned();
        // The settle callback may drop the last owner of the recorder on the writing thread, which cannot join itself.
        if let Some(thread) = thread.take().filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl FactSink for Recorder {
    fn wants_messages(&self) -> bool {
        true
    }

    fn wait_for_room(&self) {
        if let Some((room, within)) = self.queue.room(0) {
            let _ = room.wait(within);
        }
    }

    fn fact(&self, fact: &Fact) {
        self.queue.push(std::slice::from_ref(fact));
    }

    fn facts(&self, facts: &[Fact]) {
        self.queue.push(facts);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop(DROP_WITHIN);
    }
}
