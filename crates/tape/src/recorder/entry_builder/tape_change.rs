//! Change from one tape to the next, on which calls in flight continue.

use super::EntryBuilder;
use crate::recorder::tape_series::NextTape;
use signalbox_engine::keys::SessionKey;
use signalbox_engine::record::{Content, DecisionEntry, Entry};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for which an answer may be recorded after its call has ended.
const LATE_ANSWER: Duration = Duration::from_millis(100);
/// Maximum delay until a fact reaches the recorder.
const LATE_FACT: Duration = Duration::from_secs(3);

impl EntryBuilder {
    /// Returns true if no call is in flight apart from the `silent` ones.
    pub(crate) fn is_quiet(&self, silent: usize) -> bool {
        self.exchanges.is_quiet(silent, self.clock.last().saturating_sub(nanos(LATE_ANSWER)))
    }

    /// Returns the number of calls in flight without a message for this long.
    pub(crate) fn silent_for(&self, time: Duration, now: Instant) -> usize {
        self.exchanges.silent_since(self.clock.time_of(now).saturating_sub(nanos(time)))
    }

    /// Returns the end of the current tape. It is not before the last entry, and no outstanding fact is older.
    pub(crate) fn end_of_tape(&self, now: Instant) -> u64 {
        self.clock.last().max(self.clock.time_of(now).saturating_sub(nanos(LATE_FACT)))
    }

    /// Returns the start of the next tape: the first entry that is held back, or the end of the current tape.
    pub(crate) fn start_of_next(&self, ended: u64) -> u64 {
        self.sampling_buffer.first_held().map_or(ended, |held| held.min(ended))
    }

    /// Notes on the current tape which calls continue on the next one.
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

    /// Begins the next tape, on which sessions, callers and rules are described again before entries that need them.
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
