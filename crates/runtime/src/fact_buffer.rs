//! Buffers facts per worker thread, so that answers do not wait for bookkeeping. A worker flushes its facts to the
//! sinks when it is idle and has enough of them, or when the gateway ticks.
//!
//! The facts of one session reach the sinks in order: when a session continues on another thread, the buffer of the
//! previous thread is flushed first.

use signalbox_engine::Fact;
use signalbox_engine::chain::Effect;
use signalbox_engine::lock::LockResultExt;
use std::cell::OnceCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Source of buffer numbers. Never reused, so that facts of one gateway cannot enter a buffer of another.
static NEXT: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// Buffer of this thread, and the number of its gateway's buffers.
    static THREAD_BUFFER: OnceCell<(u32, Arc<FactBuffer>)> = const { OnceCell::new() };
}

/// Buffer of one worker thread.
#[derive(Debug)]
pub(crate) struct FactBuffer {
    pub number: u32,
    pub items: Mutex<BufferedItems>,
}

#[derive(Default, Debug)]
pub(crate) struct BufferedItems {
    pub facts: Vec<Fact>,
    pub effects: Vec<Effect>,
}

/// All buffers of a gateway.
#[derive(Debug)]
pub(crate) struct FactBuffers {
    of: u32,
    pub all: Mutex<Vec<Arc<FactBuffer>>>,
}

/// Number of the buffer that holds a session's latest facts, or 0 if they were not buffered.
#[derive(Default, Debug)]
pub(crate) struct LastBuffer(pub Mutex<u32>);

impl Default for FactBuffers {
    fn default() -> Self {
        Self { of: NEXT.fetch_add(1, Ordering::Relaxed), all: Mutex::default() }
    }
}

impl FactBuffers {
    /// Calls `act` with the buffer of this thread. A thread has none before it was first idle, or if it works for
    /// another gateway.
    pub fn with_thread_buffer<T>(&self, act: impl FnOnce(Option<&FactBuffer>) -> T) -> T {
        THREAD_BUFFER
            .with(|mine| act(mine.get().filter(|(of, _)| *of == self.of).map(|(_, fact_buffer)| &**fact_buffer)))
    }

    /// Creates the buffer of this thread, unless it exists.
    pub fn open(&self) {
        THREAD_BUFFER.with(|mine| {
            mine.get_or_init(|| {
                let fact_buffer =
                    Arc::new(FactBuffer { number: NEXT.fetch_add(1, Ordering::Relaxed), items: Mutex::default() });
                self.all.lock().unpoisoned().push(Arc::clone(&fact_buffer));
                (self.of, fact_buffer)
            });
        });
    }

    /// Returns true if every buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.all.lock().unpoisoned().iter().all(|fact_buffer| {
            let items = fact_buffer.items.lock().unpoisoned();
            items.facts.is_empty() && items.effects.is_empty()
        })
    }

    pub fn by_number(&self, number: u32) -> Option<Arc<FactBuffer>> {
        self.all.lock().unpoisoned().iter().find(|fact_buffer| fact_buffer.number == number).cloned()
    }
}
