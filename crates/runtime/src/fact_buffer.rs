//! What happened on a worker, noted there and told when the worker has nothing else to do and there is something to tell, or
//! at the gateway's next tick: whoever waits for an answer does not wait for the bookkeeping.
//!
//! What happens in one session is told in its order. A session that goes on on another thread has what it noted before told
//! first.

use crate::gateway::Gateway;
use crate::session::Session;
use signalbox_engine::Fact;
use signalbox_engine::chain::Effect;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::log_level::LogLevel;
use std::cell::OnceCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A worker that is idle tells this many facts at once, since a few at a time cost about as much.
const SOME: usize = 32;
/// Most facts that wait to be told; a worker that is never idle tells them when there are so many.
const MANY: usize = 64;
/// A message of this size is told at once, so that little memory waits.
const LARGE: usize = 64 << 10;

/// Numbers are never used twice, so that nothing of one gateway gets into the fact_buffer of another.
static NEXT: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// The fact_buffer of this thread, and whose it is.
    static MINE: OnceCell<(u32, Arc<FactBuffer>)> = const { OnceCell::new() };
}

/// The fact_buffer of one worker.
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

/// The fact_buffers of a gateway.
#[derive(Debug)]
pub(crate) struct FactBuffers {
    of: u32,
    all: Mutex<Vec<Arc<FactBuffer>>>,
}

/// The fact_buffer in which a session noted something last; 0 where that has been told.
#[derive(Default, Debug)]
pub(crate) struct LastNoted(Mutex<u32>);

impl Default for FactBuffers {
    fn default() -> Self {
        Self { of: NEXT.fetch_add(1, Ordering::Relaxed), all: Mutex::default() }
    }
}

impl FactBuffers {
    /// Does something with the fact_buffer of this thread. It has none before it was first idle, or where it works for another
    /// gateway.
    fn with_mine<T>(&self, act: impl FnOnce(Option<&FactBuffer>) -> T) -> T {
        MINE.with(|mine| act(mine.get().filter(|(of, _)| *of == self.of).map(|(_, fact_buffer)| &**fact_buffer)))
    }

    /// Gives this thread a fact_buffer, unless it has one.
    fn open(&self) {
        MINE.with(|mine| {
            mine.get_or_init(|| {
                let fact_buffer =
                    Arc::new(FactBuffer { number: NEXT.fetch_add(1, Ordering::Relaxed), pages: Mutex::default() });
                lock(&self.all).push(Arc::clone(&fact_buffer));
                (self.of, fact_buffer)
            });
        });
    }

    /// True where nothing waits to be told.
    pub fn is_empty(&self) -> bool {
        lock(&self.all).iter().all(|fact_buffer| {
            let pages = lock(&fact_buffer.pages);
            pages.facts.is_empty() && pages.effects.is_empty()
        })
    }

    fn numbered(&self, number: u32) -> Option<Arc<FactBuffer>> {
        lock(&self.all).iter().find(|fact_buffer| fact_buffer.number == number).cloned()
    }
}

impl Gateway {
    /// A worker has nothing else to do. From the first time on, what happens on its thread waits for this.
    pub fn idle(&self) {
        self.fact_buffers.open();
        self.fact_buffers.with_mine(|fact_buffer| {
            if let Some(fact_buffer) = fact_buffer {
                let mut pages = lock(&fact_buffer.pages);
                if pages.facts.len() >= SOME || pages.effects.len() >= SOME {
                    self.tell_all(&mut pages);
                } else if !pages.facts.is_empty() || !pages.effects.is_empty() {
                    self.pulse.quicken();
                }
            }
        });
    }

    /// Tells all that was noted up to now, on any thread.
    pub fn settle(&self) {
        let all = lock(&self.fact_buffers.all).clone();
        for fact_buffer in all {
            self.tell_all(&mut lock(&fact_buffer.pages));
        }
    }

    /// Notes what came of one event, in order. Nothing waits where answers wait for what is told.
    pub(crate) fn note(&self, session: &Session, facts: impl IntoIterator<Item = Fact>) {
        self.fact_buffers.with_mine(|mine| {
            let mine = mine.filter(|_| !self.is_durable());
            let mut last = lock(&session.noted.0);
            let number = mine.map_or(0, |fact_buffer| fact_buffer.number);
            if *last != number {
                if *last != 0
                    && let Some(other) = self.fact_buffers.numbered(*last)
                {
                    self.tell_all(&mut lock(&other.pages));
                }
                *last = number;
            }
            match mine {
                Some(fact_buffer) => self.enter(&mut lock(&fact_buffer.pages), facts),
                None => self.tell(&facts.into_iter().collect::<Vec<_>>()),
            }
        });
    }

    /// Notes what belongs to no session.
    pub(crate) fn note_own(&self, fact: Fact) {
        self.fact_buffers.with_mine(|mine| match mine.filter(|_| !self.is_durable()) {
            Some(fact_buffer) => self.enter(&mut lock(&fact_buffer.pages), [fact]),
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

    /// Has done what interceptors want done besides, behind what goes out.
    pub(crate) fn run_effects(&self, effects: Vec<Effect>) {
        if effects.is_empty() {
            return;
        }
        // A web address is told by a task, which is begun here.
        let can_wait = !effects.iter().any(|effect| matches!(effect, Effect::Notify { .. }));
        self.fact_buffers.with_mine(|mine| match mine.filter(|_| can_wait) {
            Some(fact_buffer) => {
                let mut pages = lock(&fact_buffer.pages);
                pages.effects.extend(effects);
                if pages.effects.len() >= MANY {
                    self.tell_all(&mut pages);
                }
            }
            None => effects.into_iter().for_each(|effect| self.effect(effect)),
        });
    }

    /// Does what an interceptor wants done besides.
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
            // A fork comes as a command of its own.
            Effect::Fork { .. } => {}
        }
    }

    fn tell_all(&self, pages: &mut Pages) {
        if !pages.facts.is_empty() {
            // Taken out first, so that nothing is told twice if whoever hears it fails.
            let mut facts = std::mem::take(&mut pages.facts);
            self.tell(&facts);
            facts.clear();
            pages.facts = facts;
        }
        pages.effects.drain(..).for_each(|effect| self.effect(effect));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unpoisoned()
}
