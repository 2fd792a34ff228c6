//! Delivers facts and the effects of rules to the sinks, by way of the buffers of worker threads.

use super::Gateway;
use crate::fact_buffer::BufferedItems;
use crate::session::Session;
use signalbox_engine::Fact;
use signalbox_engine::chain::Effect;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::log_level::LogLevel;

/// Number of facts at which an idle worker flushes. Smaller batches cost about as much as larger ones.
const FLUSH_WHEN_IDLE: usize = 32;
/// Maximum number of facts in a buffer. A worker that is never idle flushes at this size.
const MAX_BUFFERED: usize = 64;
/// Message size in bytes that causes an immediate flush, so that buffers hold little memory.
const LARGE: usize = 64 << 10;

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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
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
