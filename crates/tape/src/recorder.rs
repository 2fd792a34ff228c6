//! Makes a tape of facts: a bounded queue, and one thread that writes.

mod adaptive;
mod barrier;
mod clients;
mod clock;
mod counters;
mod exchanges;
mod filter;
mod maker;
mod message;
mod message_arena;
mod numbering;
mod priority;
mod queue;
mod recorder_input;
mod sampling;
mod sampling_buffer;
mod session_hash;
mod sessions;
mod settings;
#[cfg(test)]
mod tests;
mod words;
mod writing;

pub use barrier::{Barrier, NotRecorded};
pub use clock::Anchor;
pub use counters::{GapReason, RecorderStats};
pub use exchanges::MAX_EXCHANGES;
pub use filter::{Choice, Filter};
pub use priority::{Priorities, Priority};
pub use queue::MAX_BARRIERS;
pub use sampling::{Sampling, Trigger};
pub use session_hash::SessionHash;
pub use settings::{Hold, OnFull, RecorderSettings};
use signalbox_engine::lock::LockResultExt;

use crate::redact::Redactor;
use counters::Counters;
use maker::Maker;
use queue::Queue;
use recorder_input::RecorderInput;
use signalbox_engine::record::{BackendSeen, RulesEntry, TapeWriter};
use signalbox_engine::{Fact, FactSink};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use writing::Writing;

/// How long a recorder that is dropped without [`Recorder::stop`] may take to write what it has.
const DROP_WITHIN: Duration = Duration::from_secs(2);

/// Records every fact it is handed, within its bounds, and says what it could not.
#[derive(Debug)]
pub struct Recorder {
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Recorder {
    /// Begins to record into `tape`. The head of the tape should say what `redactor` takes out and what the settings leave
    /// out: [`Redactor::describe`], [`RecorderSettings::sampling_words`].
    ///
    /// # Errors
    /// Where no thread can be had.
    pub fn start(
        settings: RecorderSettings,
        redactor: Redactor,
        tape: Box<dyn TapeWriter>,
        anchor: Anchor,
    ) -> std::io::Result<Self> {
        let counters = Arc::new(Counters::default());
        let queue = Arc::new(Queue::new(&settings, Arc::clone(&counters)));
        let maker = Maker::new(&settings, redactor, anchor, Arc::clone(&counters));
        let writing = Writing { queue: Arc::clone(&queue), counters: Arc::clone(&counters), settings, maker, tape };
        let thread = std::thread::Builder::new().name("tape".to_owned()).spawn(move || writing.run())?;
        Ok(Self { queue, counters, thread: Mutex::new(Some(thread)) })
    }

    /// Writes down what a backend offers from now on.
    pub fn backend(&self, seen: BackendSeen) {
        self.queue.tell(RecorderInput::Backend(Instant::now(), Box::new(seen)));
    }

    /// Writes down by which rules is decided from now on.
    pub fn rules(&self, rules: RulesEntry) {
        self.queue.tell(RecorderInput::Rules(Instant::now(), Box::new(rules)));
    }

    /// Becomes ready when every fact so far is on disk.
    #[must_use]
    pub fn barrier(&self) -> Barrier {
        self.queue.barrier()
    }

    /// Ready when there is room for more facts; with it comes how long to wait at most. None while there is room.
    #[must_use]
    pub fn room(&self) -> Option<(Barrier, Duration)> {
        self.queue.room()
    }

    /// Writes what the ring holds, and what its settings say for afterwards.
    pub fn trigger(&self) {
        self.queue.trigger();
    }

    /// The numbers so far.
    #[must_use]
    pub fn stats(&self) -> RecorderStats {
        let (depth, bytes) = self.queue.depth();
        RecorderStats { queue_depth: depth as u64, queue_bytes: bytes as u64, ..self.counters.snapshot() }
    }

    /// Takes no more facts, writes those it has and ends the tape. A store that cannot write is given up after `within`.
    pub fn stop(&self, within: Duration) {
        self.queue.close(within);
        // Held until the thread has ended, so that nobody who stops it as well believes that all is written.
        let mut thread = self.thread.lock().unpoisoned();
        if let Some(thread) = thread.take() {
            let _ = thread.join();
        }
    }
}

impl FactSink for Recorder {
    fn wants_messages(&self) -> bool {
        true
    }

    fn wait_for_room(&self) {
        if let Some((room, within)) = self.queue.room() {
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
