//! What waits to be written down, within bounds.

use signalbox_engine::Fact;
use signalbox_engine::audit::Intent;
use signalbox_engine::lock::LockResultExt;
use std::sync::{Condvar, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// Most intents and facts that wait to be written down.
pub const MAX_WAITING: usize = 65_536;

/// What the log is told.
#[derive(Debug)]
pub enum Input {
    /// Calls that wait to leave, since when, in milliseconds since 1970, and who is told that they may.
    Intents(Vec<Intent>, u64, oneshot::Sender<bool>),
    /// Something that happened.
    Fact(Fact),
}

/// What was taken out.
#[derive(Default, Debug)]
pub struct Taken {
    /// In the order in which it came.
    pub inputs: Vec<Input>,
    /// How much had no room since the last time.
    pub lost: u64,
    /// Nothing more will come.
    pub closed: bool,
}

/// The queue between those who serve calls and the thread that writes.
#[derive(Default, Debug)]
pub struct Intake {
    state: Mutex<Taken>,
    changed: Condvar,
}

impl Intake {
    /// Adds something. False if there is no room for it, which is counted.
    #[must_use]
    pub fn push(&self, input: Input) -> bool {
        let mut state = self.state.lock().unpoisoned();
        if state.closed || state.inputs.len() >= MAX_WAITING {
            state.lost += 1;
            return false;
        }
        state.inputs.push(input);
        if state.inputs.len() == 1 {
            self.changed.notify_one();
        }
        true
    }

    /// Adds facts under one lock.
    pub fn push_facts(&self, facts: impl Iterator<Item = Fact>) {
        let mut state = self.state.lock().unpoisoned();
        let before = state.inputs.len();
        for fact in facts {
            match state.closed || state.inputs.len() >= MAX_WAITING {
                true => state.lost += 1,
                false => state.inputs.push(Input::Fact(fact)),
            }
        }
        if before == 0 && !state.inputs.is_empty() {
            self.changed.notify_one();
        }
    }

    /// Takes all there is, as soon as there is something, or after this time.
    pub fn take(&self, within: Option<Duration>) -> Taken {
        let nothing = |state: &mut Taken| state.inputs.is_empty() && state.lost == 0 && !state.closed;
        let state = self.state.lock().unpoisoned();
        let mut state = match within {
            None => self.changed.wait_while(state, nothing).unpoisoned(),
            Some(within) => self.changed.wait_timeout_while(state, within, nothing).unpoisoned().0,
        };
        let closed = state.closed;
        Taken { closed, ..std::mem::replace(&mut *state, Taken { closed, ..Taken::default() }) }
    }

    /// Takes nothing more.
    pub fn close(&self) {
        self.state.lock().unpoisoned().closed = true;
        self.changed.notify_all();
    }
}
