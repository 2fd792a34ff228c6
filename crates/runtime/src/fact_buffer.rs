//! Buffers facts per worker thread, so that answers do not wait for bookkeeping. A worker hands its facts to the sinks when it is
//! idle and has enough of them, or when the gateway ticks.
//!
//! The facts of one session reach the sinks in order: when a session continues on another thread, the buffer of the previous
//! thread is emptied first.

use crate::gateway::Gateway;
use crate::session::Session;
use signalbox_engine::Fact;
use signalbox_engine::chain::Effect;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::log_level::LogLevel;
use std::cell::OnceCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// An idle worker hands facts over once it has this many, since fewer at a time cost about as much.
const SOME: usize = 32;
/// Most facts in a buffer; a worker that is never idle hands them over when there are so many.
const MANY: usize = 64;
/// A message of this size is handed over at once, so that buffers hold little memory.
const LARGE: usize = 64 << 10;

/// Numbers are never used twice, so that facts of one gateway do not get into a buffer of another.
static NEXT: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// The buffer of this thread, and the number of its gateway's buffers.
    static MINE: OnceCell<(u32, Arc<FactBuffer>)> = const { OnceCell::new() };
}

/// The buffer of one worker.
#[derive(Debug)]
struct FactBuffer {
    number: u32,
    pages: Mutex<Pages>,
}

#[derive(Default, Debug)]
struct Pages {
    facts: Vec<Fact>,
    effects: Vec<Effect>,
}

/// The buffers of a gateway.
#[derive(Debug)]
pub(crate) struct FactBuffers {
    of: u32,
    all: Mutex<Vec<Arc<FactBuffer>>>,
}

/// The number of the buffer in which a session noted its last facts; 0 if these were handed over at once.
#[derive(Default, Debug)]
pub(crate) struct LastNoted(Mutex<u32>);

impl Default for FactBuffers {
    fn default() -> Self {
        Self { of: NEXT.fetch_add(1, Ordering::Relaxed), all: Mutex::default() }
    }
}

impl FactBuffers {
    /// Runs something with the buffer of this thread. A thread has none before it was first idle, or if it works for another
    /// gateway.
    fn with_mine<T>(&self, act: impl FnOnce(Option<&FactBuffer>) -> T) -> T {
        MINE.with(|mine| act(mine.get().filter(|(of, _)| *of == self.of).map(|(_, fact_buffer)| &**fact_buffer)))
    }

    /// Gives this thread a buffer, unless it has one.
    fn open(&self) {
        MINE.with(|mine| {
            mine.get_or_init(|| {
                let fact_buffer =
                    Arc::new(FactBuffer { number: NEXT.fetch_add(1, Ordering::Relaxed), pages: Mutex::default() });
                self.all.lock().unpoisoned().push(Arc::clone(&fact_buffer));
                (self.of, fact_buffer)
            });
        });
    }

    /// True if every buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.all.lock().unpoisoned().iter().all(|fact_buffer| {
            let pages = fact_buffer.pages.lock().unpoisoned();
            pages.facts.is_empty() && pages.effects.is_empty()
        })
    }

    fn numbered(&self, number: u32) -> Option<Arc<FactBuffer>> {
        self.all.lock().unpoisoned().iter().find(|fact_buffer| fact_buffer.number == number).cloned()
    }
}

impl Gateway {
    /// Called by a worker that has nothing else to do. From the first call on, facts of its thread are buffered.
    pub fn idle(&self) {
        self.fact_buffers.open();
        self.fact_buffers.with_mine(|fact_buffer| {
            if let Some(fact_buffer) = fact_buffer {
                let mut pages = fact_buffer.pages.lock().unpoisoned();
                if pages.facts.len() >= SOME || pages.effects.len() >= SOME {
                    self.tell_all(&mut pages);
                } else if !pages.facts.is_empty() || !pages.effects.is_empty() {
                    self.pulse.quicken();
                }
            }
        });
    }

    /// Hands over the facts of all threads.
    pub fn settle(&self) {
        let all = self.fact_buffers.all.lock().unpoisoned().clone();
        for fact_buffer in all {
            self.tell_all(&mut fact_buffer.pages.lock().unpoisoned());
        }
    }

    /// Notes the facts of one event of a session, in order. With strict recording they are not buffered.
    pub(crate) fn note(&self, session: &Session, facts: impl IntoIterator<Item = Fact>) {
        self.fact_buffers.with_mine(|mine| {
            let mine = mine.filter(|_| !self.is_durable());
            let mut last = session.noted.0.lock().unpoisoned();
            let number = mine.map_or(0, |fact_buffer| fact_buffer.number);
            if *last != number {
                if *last != 0
                    && let Some(other) = self.fact_buffers.numbered(*last)
                {
                    self.tell_all(&mut other.pages.lock().unpoisoned());
                }
                *last = number;
            }
            match mine {
                Some(fact_buffer) => self.enter(&mut fact_buffer.pages.lock().unpoisoned(), facts),
                None => self.tell(&facts.into_iter().collect::<Vec<_>>()),
            }
        });
    }

    /// Notes a fact that belongs to no session.
    pub(crate) fn note_own(&self, fact: Fact) {
        self.fact_buffers.with_mine(|mine| match mine.filter(|_| !self.is_durable()) {
            Some(fact_buffer) => self.enter(&mut fact_buffer.pages.lock().unpoisoned(), [fact]),
            None => self.tell(&[fact]),
        });
    }

    fn enter(&self, pages: &mut Pages, facts: impl IntoIterator<Item = Fact>) {
        let before = pages.facts.len();
        pages.facts.extend(facts);
        let is_large = |fact: &Fact| matches!(fact, Fact::Message(message) if message.bytes.len() >= LARGE);
        if pages.facts.len() >= MANY || pages.facts[before..].iter().any(is_large) {
            self.tell_all(pages);
        }
    }

    /// Carries out the side effects that interceptors ask for, buffered like facts.
    pub(crate) fn run_effects(&self, effects: Vec<Effect>) {
        if effects.is_empty() {
            return;
        }
        // A webhook is posted by a task, which has to be spawned on this thread. Lines of the log are stamped when they
        // are written, and have to be in the order of the calls.
        let can_wait = !effects.iter().any(|effect| matches!(effect, Effect::Notify { .. } | Effect::Log { .. }));
        self.fact_buffers.with_mine(|mine| match mine.filter(|_| can_wait) {
            Some(fact_buffer) => {
                let mut pages = fact_buffer.pages.lock().unpoisoned();
                pages.effects.extend(effects);
                if pages.effects.len() >= MANY {
                    self.tell_all(&mut pages);
                }
            }
            None => effects.into_iter().for_each(|effect| self.effect(effect)),
        });
    }

    /// Carries out one side effect.
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
            // A fork arrives as a command of its own.
            Effect::Fork { .. } => {}
        }
    }

    fn tell_all(&self, pages: &mut Pages) {
        if !pages.facts.is_empty() {
            // Taken out first, so that nothing is told twice if a sink panics.
            let mut facts = std::mem::take(&mut pages.facts);
            self.tell(&facts);
            facts.clear();
            pages.facts = facts;
        }
        pages.effects.drain(..).for_each(|effect| self.effect(effect));
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

    /// Issue 31: lines of rules waited in the buffers of threads, and came out of order.
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
