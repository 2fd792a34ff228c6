//! Ends the tape at hand when it is large or old, and goes on with the next one.
//!
//! A tape ends where no call is under way. If there is no such moment within [`TapeSeries::grace`], it ends in the middle of
//! calls; both tapes then have a note for each of them, with the id of the other tape.

use super::{FIRST_PAUSE, TRIES_TOGETHER, Writing};
use crate::recorder::tape_bounds::TapeMeter;
use crate::recorder::tape_series::{TapeFactory, TapeSeries};
use crate::seal::Chain;
use signalbox_engine::record::{Entry, StoreError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The tapes that follow the one at hand.
pub(crate) struct Following {
    /// The id of the tape at hand.
    tape: Arc<str>,
    pub(super) meter: TapeMeter,
    grace: Duration,
    factory: Box<dyn TapeFactory>,
    /// Calls of which nothing was heard for long. No moment without them is waited for.
    silent: usize,
}

impl Following {
    pub(crate) fn new(series: TapeSeries) -> Self {
        let TapeSeries { first, bounds, grace, factory } = series;
        Self { tape: first.into(), meter: TapeMeter::new(bounds), grace, factory, silent: 0 }
    }
}

impl Writing {
    /// Looks whether the next tape is due, and begins it if it can. False if a store did not take the last entries at once.
    pub(super) fn look_at_bounds(&mut self, out: &mut Vec<Entry>) -> bool {
        let Some(following) = &mut self.following else { return true };
        let now = Instant::now();
        self.next_is_due = following.meter.is_due(now);
        if self.next_is_due {
            following.silent = self.maker.silent_for(following.grace, now);
        }
        self.change_tape(out)
    }

    /// Begins the next tape if it is due and no call is under way, or none was free of calls for too long.
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
        self.chain = next.seal.map(Chain::new);
        self.tape = next.writer;
        tracing::info!(tape = %id, before = %following.tape, "the tape is large or old enough; recording goes on on another tape");
        following.tape = id;
        following.meter.begin();
        following.factory.begun(next.info);
        (following, written)
    }

    /// Ends the tape at hand, as at the end of the process. False if the recorder has to stop before the store can do it.
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
                // The next tape may still be written. This one reads as that of a process that was killed.
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
