//! Makes records and appends them to the journal. Whoever has the lock on it writes everything that waits: a call that is about to
//! leave, if nobody else is writing, and otherwise the thread of the log, which also writes what no call waits for.

use super::unix_ms;
use crate::chain::ChainPlace;
use crate::event::{AuditEvent, EventType, Object, RiskLevel};
use crate::intake::{Input, Taken};
use crate::journal::Journal;
use crate::maker::Maker;
use crate::progress::Progress;
use crate::settings::AuditSettings;
use crate::signed::{HEAD, SignedPlace};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long it waits for more before it tries again to tell what was lost.
const RETRY: Duration = Duration::from_secs(1);

/// What it takes to write.
#[derive(Debug)]
pub struct Writing {
    settings: AuditSettings,
    progress: Arc<Progress>,
    maker: Maker,
    journal: Journal,
    place: ChainPlace,
    /// The last place that was signed, and since when there are records after it.
    signed: u64,
    unsigned_since: Option<Instant>,
    /// What could not be written and is not told yet.
    untold: u64,
}

impl Writing {
    pub fn new(
        settings: AuditSettings,
        progress: Arc<Progress>,
        maker: Maker,
        journal: Journal,
        place: ChainPlace,
    ) -> Self {
        let signed = place.seq;
        Self { settings, progress, maker, journal, place, signed, unsigned_since: None, untold: 0 }
    }

    /// How long there is nothing to do if nothing comes: for ever, if nothing is left to sign or to tell.
    pub fn rest(&self) -> Option<Duration> {
        let sign = self.unsigned_since.map(|since| self.settings.head_interval.saturating_sub(since.elapsed()));
        let tell = (self.untold > 0).then_some(RETRY);
        [sign, tell].into_iter().flatten().min()
    }

    /// Writes what was taken, and a signed head if one is due.
    pub fn write(&mut self, Taken { inputs, lost, closed: closing }: Taken) {
        if lost > 0 {
            self.progress.lose(lost);
            self.untold += lost;
        }
        let before = self.place.clone();
        let mut text = String::new();
        if self.untold > 0 {
            let mut details = Object::new();
            details.number("count", self.untold);
            let event = AuditEvent::own(unix_ms(), EventType::RecordsLost, details.finish(), RiskLevel::High);
            self.place.append(&event, &mut text);
        }
        let (mut waiters, mut events) = (Vec::<(u64, oneshot::Sender<bool>)>::new(), Vec::new());
        for input in inputs {
            match input {
                Input::Intents(intents, at, waiter) => {
                    for intent in &intents {
                        let event = self.maker.intent(intent, at);
                        self.place.append(&event, &mut text);
                    }
                    waiters.push((self.place.seq, waiter));
                }
                Input::Event(event) => self.place.append(&event, &mut text),
                Input::Fact(fact) => {
                    self.maker.fact(&fact, &mut events);
                    for event in events.drain(..) {
                        self.place.append(&event, &mut text);
                    }
                }
            }
        }
        let head = self.sign_if_due(closing, &mut text);
        if text.is_empty() {
            return;
        }
        let (first, keeps) = (before.seq + 1, self.settings.spool_max);
        match self.journal.append(&text, first) {
            Ok(()) => {
                self.untold = 0;
                if let Some(head) = head
                    && let Err(error) = self.journal.keep_head(&head)
                {
                    tracing::warn!(%error, "the signed head of the audit log could not be kept");
                }
                let keep_from = self.journal.keeps_from(keeps);
                self.progress.written(self.place.seq, keep_from, waiters);
                self.journal.release(self.progress.acked_by_all().max(keep_from.saturating_sub(1)));
            }
            Err(error) => {
                let told = u64::from(self.untold > 0);
                let lost = (self.place.seq - before.seq).saturating_sub(told);
                self.untold += lost;
                self.place = before;
                self.signed = self.signed.min(self.place.seq);
                self.progress.not_written(lost, &error.to_string(), waiters);
            }
        }
    }

    /// Adds a signed head if one is due, and gives it for keeping.
    fn sign_if_due(&mut self, closing: bool, text: &mut String) -> Option<String> {
        let unsigned = self.place.seq - self.signed;
        if unsigned == 0 {
            self.unsigned_since = None;
            return None;
        }
        let since = *self.unsigned_since.get_or_insert_with(Instant::now);
        let due = closing || unsigned >= self.settings.head_every || since.elapsed() >= self.settings.head_interval;
        if !due {
            return None;
        }
        let ChainPlace { chain, seq, hash } = self.place.clone();
        let at = unix_ms();
        let head = SignedPlace { kind: HEAD, chain, from: seq, to: seq, hash, at }.sign(&self.settings.key)?;
        let event = AuditEvent::own(at, EventType::ChainHead, head.clone(), RiskLevel::Low);
        self.place.append(&event, text);
        (self.signed, self.unsigned_since) = (self.place.seq, None);
        Some(head)
    }
}
