//! Ends the entries of one tape and begins those of the next: calls that are under way go on there.

use super::Maker;
use crate::recorder::tape_series::NextTape;
use signalbox_engine::keys::SessionKey;
use signalbox_engine::record::{Content, DecisionEntry, Entry};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long after its end the answer of a call may be recorded.
const LATE_ANSWER: Duration = Duration::from_millis(100);
/// What happened longer ago than this was told.
const LATE_FACT: Duration = Duration::from_secs(3);

impl Maker {
    /// True if no call is under way, apart from so many of which nothing was heard for long.
    pub(crate) fn is_quiet(&self, silent: usize) -> bool {
        self.exchanges.is_quiet(silent, self.clock.last().saturating_sub(nanos(LATE_ANSWER)))
    }

    /// Number of calls without an end of which nothing was heard for this long.
    pub(crate) fn silent_for(&self, time: Duration, now: Instant) -> usize {
        self.exchanges.silent_since(self.clock.time_of(now).saturating_sub(nanos(time)))
    }

    /// When the tape at hand ends, which is not before its last entry: no fact that is still to come happened before it.
    pub(crate) fn end_of_tape(&self, now: Instant) -> u64 {
        self.clock.last().max(self.clock.time_of(now).saturating_sub(nanos(LATE_FACT)))
    }

    /// When the next tape begins: with the first entry that is held back, or where the tape at hand ends.
    pub(crate) fn start_of_next(&self, ended: u64) -> u64 {
        self.sampling_buffer.first_held().map_or(ended, |held| held.min(ended))
    }

    /// Notes on the tape at hand which calls go on on the next one.
    pub(crate) fn leave_tape(&mut self, next: &str, out: &mut Vec<Entry>) {
        let buffer = &self.sampling_buffer;
        let mut cut: Vec<u64> = self
            .exchanges
            .known()
            .filter(|(number, ended)| buffer.is_cut(*number, *ended))
            .map(|(number, _)| number)
            .collect();
        cut.sort_unstable();
        if cut.is_empty() {
            return;
        }
        let note = Arc::new(DecisionEntry::continues_on(next));
        let at = self.clock.last();
        for number in cut {
            let content = Content::Decisions(vec![Arc::clone(&note)]);
            let entry = Entry { exchange: Some(number), ..Entry::new(0, at, Arc::default(), content) };
            self.sampling_buffer.write(entry, out);
        }
    }

    /// Begins the next tape. Sessions, callers and rules are described again before the first entry that needs them.
    pub(crate) fn begin_tape(&mut self, next: &NextTape, before: &Arc<str>) {
        self.exchanges.forget_bases();
        self.sessions.begin_tape();
        // Hashes of secrets are equal within a tape only.
        self.redactor = self.redactor.with_key(next.hash_key);
        self.words = Default::default();
        let known = self.exchanges.known().map(|(number, _)| number);
        let sessions = self.sampling_buffer.begin_tape(next.seal.as_ref(), before, known);
        for session in sessions {
            self.session(SessionKey(session));
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
