//! Buffers facts per worker thread, so that answers do not wait for bookkeeping. A worker flushes its facts to the
//! sinks when it is idle and has enough of them, or when the gateway ticks.
//!
//! The facts of one session reach the sinks in order: when a session continues on another thread, the buffer of the
//! previous thread is flushed first.

use crate::gateway::Gateway;
use crate::session::Session;
use signalbox_engine::Fact;
use signalbox_engine::chain::Effect;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::log_level::LogLevel;
use std::cell::OnceCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Number of facts at which an idle worker flushes. Smaller batches cost about as much as larger ones.
const FLUSH_WHEN_IDLE: usize = 32;
/// Maximum number of facts in a buffer. A worker that is never idle flushes at this size.
const MAX_BUFFERED: usize = 64;
/// Message size in bytes that causes an immediate flush, so that buffers hold little memory.
const LARGE: usize = 64 << 10;

/// Source of buffer numbers. Never reused, so that facts of one gateway cannot enter a buffer of another.
static NEXT: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// Buffer of this thread, and the number of its gateway's buffers.
    static THREAD_BUFFER: OnceCell<(u32, Arc<FactBuffer>)> = const { OnceCell::new() };
}

/// Buffer of one worker thread.
#[derive(Debug)]
struct FactBuffer {
    number: u32,
    items: Mutex<BufferedItems>,
}

#[derive(Default, Debug)]
struct BufferedItems {
    facts: Vec<Fact>,
    effects: Vec<Effect>,
}

/// All buffers of a gateway.
#[derive(Debug)]
pub(crate) struct FactBuffers {
    of: u32,
    all: Mutex<Vec<Arc<FactBuffer>>>,
}

/// Number of the buffer that holds a session's latest facts, or 0 if they were not buffered.
#[derive(Default, Debug)]
pub(crate) struct LastBuffer(Mutex<u32>);

impl Default for FactBuffers {
    fn default() -> Self {
        Self { of: NEXT.fetch_add(1, Ordering::Relaxed), all: Mutex::default() }
    }
}

impl FactBuffers {
    /// Calls `act` with the buffer of this thread. A thread has none before it was first idle, or if it works for
    /// another gateway.
    fn with_thread_buffer<T>(&self, act: impl FnOnce(Option<&FactBuffer>) -> T) -> T {
        THREAD_BUFFER
            .with(|mine| act(mine.get().filter(|(of, _)| *of == self.of).map(|(_, fact_buffer)| &**fact_buffer)))
    }

    /// Creates the buffer of this thread, unless it exists.
    fn open(&self) {
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

    fn by_number(&self, number: u32) -> Option<Arc<FactBuffer>> {
        self.all.lock().unpoisoned().iter().find(|fact_buffer| fact_buffer.number == number).cloned()
    }
}

impl Gateway {
    /// Flushes enough buffered facts. Called by an idle worker; from the first call on, facts of its thread are
    /// buffered.
    pub fn idle(&self) {
        self.fact_buffers.open();
        self.fact_buffers.with_thread_buffer(|fact_buffer| {
            if let Some(fact_buffer) = fact_buffer {
                let mut items = fact_buffer.items.lock().unpoisoned();
                if items.facts.len() >= FLUSH_WHEN_IDLE || items.effects.len() >= FLUSH_WHEN_IDLE {
                    self.flush(&mut items);
                } else if !items.facts.is_empty() || !items.effects.is_empty() {
                    self.ticker.speed_up();
                }
            }
        });
    }

    /// Flushes the facts of all threads.
    pub fn settle(&self) {
        let all = self.fact_buffers.all.lock().unpoisoned().clone();
        for fact_buffer in all {
            self.flush(&mut fact_buffer.items.lock().unpoisoned());
        }
    }

    /// Notes the facts of one event of a session, in order. With strict recording they are not buffered.
    pub(crate) fn note(&self, session: &Session, facts: impl IntoIterator<Item = Fact>) {
        self.fact_buffers.with_thread_buffer(|mine| {
            let mine = mine.filter(|_| !self.is_durable());
            let mut last = session.noted.0.lock().unpoisoned();
            let number = mine.map_or(0, |fact_buffer| fact_buffer.number);
            if *last != number {
                if *last != 0
                    && let Some(other) = self.fact_buffers.by_number(*last)
                {
                    self.flush(&mut other.items.lock().unpoisoned());
                }
                *last = number;
            }
            match mine {
                Some(fact_buffer) => self.enter(&mut fact_buffer.items.lock().unpoisoned(), facts),
                None => self.send_facts(&facts.into_iter().collect::<Vec<_>>()),
            }
        });
    }

    /// Notes a fact that belongs to no session.
    pub(crate) fn note_own(&self, fact: Fact) {
        self.fact_buffers.with_thread_buffer(|mine| match mine.filter(|_| !self.is_durable()) {
            Some(fact_buffer) => self.enter(&mut fact_buffer.items.lock().unpoisoned(), [fact]),
            None => self.send_facts(&[fact]),
        });
    }

    fn enter(&self, items: &mut BufferedItems, facts: impl IntoIterator<Item = Fact>) {
        let before = items.facts.len();
        items.facts.extend(facts);
        let is_large = |fact: &Fact| matches!(fact, Fact::Message(message) if message.bytes.len() >= LARGE);
        if items.facts.len() >= MAX_BUFFERED || items.facts[before..].iter().any(is_large) {
            self.flush(items);
        }
    }

    /// Carries out the side effects that interceptors ask for, buffered like facts.
    pub(crate) fn run_effects(&self, effects: Vec<Effect>) {
        if effects.is_empty() {
            return;
        }
        // A webhook is posted by a task, which must be spawned on this thread. Log lines get their timestamp when they
        // are written, and must be in the order of the calls.
        let can_wait = !effects.iter().any(|effect| matches!(effect, Effect::Notify { .. } | Effect::Log { .. }));
        self.fact_buffers.with_thread_buffer(|mine| match mine.filter(|_| can_wait) {
            Some(fact_buffer) => {
                let mut items = fact_buffer.items.lock().unpoisoned();
                items.effects.extend(effects);
                if items.effects.len() >= MAX_BUFFERED {
                    self.flush(&mut items);
                }
            }
            None => effects.into_iter().for_each(|effect| self.effect(effect)),
        });
    }

    fn effect(&self, effect: Effect) {
        match effect {
            Effect::Log { level, text } if level >= LogLevel::Error => {
                tracing::error!(target: "signalbox::rules", "{text}")
            }
            Effect::Log { level: LogLevel::Warning, text } => tracing::warn!(target: "signalbox::rules", "{text}"),
            Effect::Log { level: LogLevel::Debug, text } => tracing::debug!(target: "signalbox::rules", "{text}"),
            Effect::Log { text, .. } => tracing::info!(target: "signalbox::rules", "{text}"),
            Effect::Count { names } => self.counters.counted(&names),
            Effect::Notify { url, body, within } => {
                if !self.webhooks.tell(&url, body, within) {
                    self.counters.dropped("webhook");
                }
            }
            // A fork arrives as a separate command.
            Effect::Fork { .. } => {}
        }
    }

    fn flush(&self, items: &mut BufferedItems) {
        if !items.facts.is_empty() {
            // Taken out first, so that no fact is delivered twice if a sink panics.
            let mut facts = std::mem::take(&mut items.facts);
            self.send_facts(&facts);
            facts.clear();
            items.facts = facts;
        }
        items.effects.drain(..).for_each(|effect| self.effect(effect));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GatewayParts, Settings};
    use std::sync::atomic::AtomicUsize;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    /// Counts the lines of the log.
    struct LineCount(Arc<AtomicUsize>);

    impl Subscriber for LineCount {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "signalbox::rules"
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    /// Lines of rules waited in the buffers of threads, and came out of order.
    #[tokio::test]
    async fn a_line_of_a_rule_is_logged_at_once() {
        let parts = GatewayParts::unguarded(Settings::default(), Vec::new()).unwrap();
        let gateway = Gateway::new(parts).unwrap();
        gateway.fact_buffers.open();
        let lines = Arc::new(AtomicUsize::new(0));
        tracing::subscriber::with_default(LineCount(Arc::clone(&lines)), || {
            for called in 1..4 {
                let text = format!("call {called}");
                gateway.run_effects(vec![Effect::Log { level: LogLevel::Warning, text }]);
                assert_eq!(lines.load(Ordering::Relaxed), called);
            }
        });
    }
}
