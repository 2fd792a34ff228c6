//! Turns inputs into records and appends them to the journal. The thread that holds its lock writes the whole queue: a
//! call about to be forwarded if no other thread is writing, and otherwise the thread of the log, which also writes
//! records that no call waits for.

use super::{clocks, unix_ms};
use crate::chain::ChainPlace;
use crate::event::{AuditEvent, EventType, Object, RiskLevel};
use crate::event_builder::{EventBuilder, TextPolicy};
use crate::intake::{Input, InputQueue, Intake};
use crate::journal::Journal;
use crate::progress::{LogProgress, RecordWaiter};
use crate::settings::AuditSettings;
use crate::signed::{HEAD, SignedPlace};
use signalbox_seal::ChainHash;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between attempts to record a loss.
const RETRY: Duration = Duration::from_secs(1);
/// Maximum capacity of the buffers kept for the next write.
const MAX_KEPT_INPUTS: usize = 4_096;
const MAX_KEPT_TEXT: usize = 1 << 20;

/// Writer of the log: turns inputs into chained records in the journal.
#[derive(Debug)]
pub struct LogWriter {
    settings: AuditSettings,
    progress: Arc<LogProgress>,
    maker: EventBuilder,
    journal: Journal,
    place: ChainPlace,
    /// Last signed position, and the time of the first record after it.
    signed: u64,
    unsigned_since: Option<Instant>,
    /// Number of lost records that no record states yet.
    untold: u64,
    /// True if an earlier process was killed before it could state its losses: there may have been more.
    at_least: bool,
    /// Buffers reused by the next write.
    inputs: Vec<Input>,
    text: String,
}

impl LogWriter {
    pub fn new(
        settings: AuditSettings,
        progress: Arc<LogProgress>,
        maker: EventBuilder,
        journal: Journal,
        place: ChainPlace,
    ) -> Self {
        let (signed, untold) = (place.seq, journal.lost_behind(place.seq));
        let (unsigned_since, at_least, inputs, text) = (None, untold > 0, Vec::new(), String::new());
        Self { settings, progress, maker, journal, place, signed, unsigned_since, untold, at_least, inputs, text }
    }

    /// Applies new settings and sinks. The chain continues.
    pub fn follow(&mut self, settings: AuditSettings, progress: Arc<LogProgress>) {
        self.maker.follow(
            TextPolicy { redactor: settings.redactor.clone(), payloads: settings.payloads },
            settings.logged,
            settings.slow,
        );
        self.journal.follow(settings.spool_max, settings.fsync);
        (self.settings, self.progress) = (settings, progress);
    }

    /// Returns the number of the last record, and the progress of the sinks.
    pub fn reached(&self) -> (u64, &Arc<LogProgress>) {
        (self.place.seq, &self.progress)
    }

    /// Returns the time until the writer has to sign or to report a loss; `None` if there is neither to do.
    pub fn rest(&self) -> Option<Duration> {
        let sign = self.unsigned_since.map(|since| self.settings.head_interval.saturating_sub(since.elapsed()));
        let tell = (self.untold > 0).then_some(RETRY);
        [sign, tell].into_iter().flatten().min()
    }

    /// Writes all queued inputs, and a signed head if one is due. Returns true if the queue is closed.
    pub fn write_all(&mut self, intake: &Intake) -> bool {
        let mut taken = intake.take_now(std::mem::take(&mut self.inputs));
        let closed = taken.closed;
        let mut text = std::mem::take(&mut self.text);
        self.maker.set_clocks(clocks());
        self.write(&mut taken, &mut text);
        self.inputs = recycle(taken.inputs, MAX_KEPT_INPUTS, Vec::clear, Vec::capacity);
        self.text = recycle(text, MAX_KEPT_TEXT, String::clear, String::capacity);
        closed
    }

    fn write(&mut self, taken: &mut InputQueue, text: &mut String) {
        if taken.lost > 0 {
            self.progress.lose(taken.lost);
            self.untold += taken.lost;
        }
        let before = (self.place.seq, self.place.hash);
        if self.untold > 0 {
            let mut told = String::new();
            let mut details = Object::new(&mut told);
            details.number("count", self.untold);
            if self.at_least {
                details.raw("at_least", "true");
            }
            details.finish();
            let event = AuditEvent::own(unix_ms(), EventType::RecordsLost, &told, RiskLevel::High);
            self.place.append(&event, text);
        }
        let mut waiters = SmallVec::<[RecordWaiter; 4]>::new();
        for input in taken.inputs.drain(..) {
            let mut emit = |event: &AuditEvent<'_>| self.place.append(event, text);
            match input {
                Input::Intents(intents, at, waiter) => {
                    intents.into_iter().for_each(|intent| self.maker.intent(intent, at, &mut emit));
                    waiters.push((self.place.seq, waiter));
                }
                Input::Decision(decision) => self.maker.decision(&decision),
                Input::Finished(finished) => self.maker.finished(&finished, &mut emit),
                Input::Refused(refused) => self.maker.refused(&refused, &mut emit),
                Input::Note(note, waiter) => {
                    emit(&note.event());
                    waiters.extend(waiter.map(|waiter| (self.place.seq, waiter)));
                }
            }
        }
        let head = self.sign_if_due(taken.closed, text);
        if !text.is_empty() {
            self.append(text, head.as_deref(), before, waiters);
        }
    }

    /// Appends records to the journal. `progress` then resolves the waiters.
    fn append(
        &mut self,
        text: &str,
        head: Option<&str>,
        before: (u64, ChainHash),
        waiters: impl IntoIterator<Item = RecordWaiter>,
    ) {
        match self.journal.append(text, before.0 + 1) {
            Ok(()) => {
                (self.untold, self.at_least) = (0, false);
                if let Some(head) = head
                    && let Err(error) = self.journal.keep_head(head)
                {
                    tracing::warn!(%error, "the signed head of the audit log could not be kept");
                }
                let keep_from = self.journal.keeps_from(self.settings.spool_max);
                let acked = self.progress.written(self.place.seq, keep_from, waiters);
                self.journal.release(acked.max(keep_from.saturating_sub(1)));
            }
            Err(error) => {
                let told = u64::from(self.untold > 0);
                let lost = (self.place.seq - before.0).saturating_sub(told);
                self.untold += lost;
                (self.place.seq, self.place.hash) = before;
                self.signed = self.signed.min(self.place.seq);
                // Before calls go on without a record: a killed process must not take the number with it.
                if let Err(error) = self.journal.keep_lost(self.place.seq, self.untold) {
                    tracing::error!(%error, "the number of lost audit records cannot be kept");
                }
                self.progress.not_written(lost, &error.to_string(), waiters);
            }
        }
    }

    /// Appends a signed head if one is due, and returns it to be stored.
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
        let head =
            SignedPlace { kind: HEAD, chain, from: seq, to: seq, hash, at, sink: None }.sign(&self.settings.key)?;
        let event = AuditEvent::own(at, EventType::ChainHead, &head, RiskLevel::Low);
        self.place.append(&event, text);
        (self.signed, self.unsigned_since) = (self.place.seq, None);
        Some(head)
    }
}

/// Returns a cleared buffer for the next write; a new one if its capacity exceeds `most`.
fn recycle<T: Default>(mut buffer: T, most: usize, clear: fn(&mut T), capacity: fn(&T) -> usize) -> T {
    if capacity(&buffer) > most {
        return T::default();
    }
    clear(&mut buffer);
    buffer
}
