//! Change to the next tape when the current one is large or old.
//!
//! A tape ends while no call is in flight. If there is no such moment within [`TapeSeries::grace`], it ends during
//! calls, and both tapes have a note about each of these calls with the id of the other tape.

use super::{FIRST_PAUSE, TRIES_TOGETHER, Writing};
use crate::recorder::tape_bounds::TapeMeter;
use crate::recorder::tape_series::{TapeFactory, TapeSeries};
use crate::seal::Chain;
use signalbox_engine::record::{Entry, StoreError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Progress of a [`TapeSeries`].
pub(crate) struct Following {
    /// Id of the current tape.
    tape: Arc<str>,
    pub(super) meter: TapeMeter,
    grace: Duration,
    factory: Box<dyn TapeFactory>,
    /// Number of calls without a recent message, for whose end the recorder does not wait.
    silent: usize,
}

impl Following {
    pub(crate) fn new(series: TapeSeries) -> Self {
        let TapeSeries { first, bounds, grace, factory } = series;
        Self { tape: first.into(), meter: TapeMeter::new(bounds), grace, factory, silent: 0 }
    }
}

impl Writing {
    /// Checks the bounds, and begins the next tape if it is due and possible. Returns false if the store did not accept
    /// the last entries at once.
    pub(super) fn look_at_bounds(&mut self, out: &mut Vec<Entry>) -> bool {
        let Some(following) = &mut self.following else { return true };
        let now = Instant::now();
        self.next_is_due = following.meter.is_due(now);
        if self.next_is_due {
            following.silent = self.maker.silent_for(following.grace, now);
        }
        self.change_tape(out)
    }

    /// Begins the next tape if it is due, and no call is in flight or the grace period is over.
    pub(super) fn change_tape(&mut self, out: &mut Vec<Entry>) -> bool {
        if !self.next_is_due {
            return true;
        }
        let Some(following) = self.following.take() else { return true };
        let now = Instant::now();
        if !self.maker.is_quiet(following.silent) && !following.meter.is_overdue(following.grace, now) {
            self.following = Some(following);
            return true;
        }
        self.next_is_due = false;
        let (following, written) = self.go_on(following, out, now);
        self.following = Some(following);
        written
    }

    fn go_on(&mut self, mut following: Following, out: &mut Vec<Entry>, now: Instant) -> (Following, bool) {
        let ended = self.maker.end_of_tape(now);
        let next = match following.factory.next_tape(self.maker.start_of_next(ended)) {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(tape = %following.tape, "the next tape cannot begin, so this one goes on: {error}");
                following.meter.postpone(now);
                return (following, true);
            }
        };
        self.maker.leave_tape(&next.info.id, out);
        let written = self.append(out, &[], true);
        if self.untold > 0 || !self.end_tape(ended) {
            return (following, false);
        }
        let id: Arc<str> = next.info.id.as_str().into();
        self.maker.begin_tape(&next, &following.tape);
        // Hashes of the next tape have a key of their own.
        self.ready.iter_mut().for_each(|queued| queued.redacted = None);
        self.chain = next.seal.map(Chain::new);
        self.tape = next.writer;
        tracing::info!(tape = %id, before = %following.tape, "the tape is large or old enough; recording goes on on another tape");
        following.tape = id;
        following.meter.begin();
        following.factory.begun(next.info);
        (following, written)
    }

    /// Ends the current tape as at the end of the process. Returns false if the recorder stops before the store accepts
    /// the end.
    fn end_tape(&mut self, ended: u64) -> bool {
        let closing = self.chain.as_ref().and_then(|chain| chain.closing(ended));
        let (mut pause, mut tries) = (FIRST_PAUSE, 0u32);
        while let Err(error) = self.tape.end_before_next(ended, closing.as_deref()) {
            tries += 1;
            self.fails(&error);
            self.queue.set_failing(true);
            if tries == 1 {
                self.own_bodies();
            }
            let about_store = matches!(error, StoreError::Full(_) | StoreError::Locked(_) | StoreError::Open { .. });
            if tries >= TRIES_TOGETHER && !about_store {
                // The next tape may still be written. This one reads like that of a killed process.
                self.queue.set_failing(false);
                return true;
            }
            if !self.queue.pause(pause) {
                return false;
            }
            pause = (pause * 2).min(self.settings.retry_at_most);
        }
        if tries > 0 {
            self.queue.set_failing(false);
            self.works();
        }
        if let (Some(chain), Some(closing)) = (&mut self.chain, closing) {
            chain.closed(&closing);
        }
        true
    }
}
