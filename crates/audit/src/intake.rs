//! What waits to be written down, within bounds.

use signalbox_engine::Fact;
use signalbox_engine::audit::Intent;
use signalbox_engine::lock::LockResultExt;
use std::sync::{Condvar, Mutex, MutexGuard};
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
    /// The same, as it is written down.
    Event(Box<crate::AuditEvent>),
}

/// How long the thread lets facts gather before it writes them.
const LINGER: Duration = Duration::from_millis(25);
/// So many are written without waiting for more.
const MANY: usize = 512;

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

#[derive(Default, Debug)]
struct State {
    waiting: Taken,
    /// The thread sleeps until something comes.
    resting: bool,
    /// Somebody waits for the thread.
    urgent: bool,
}

/// The queue between those who serve calls and whoever writes: the thread, or the caller itself if nobody is writing.
#[derive(Default, Debug)]
pub struct Intake {
    state: Mutex<State>,
    changed: Condvar,
}

impl Intake {
    /// Adds something. False if there is no room for it, which is counted.
    #[must_use]
    pub fn push(&self, input: Input) -> bool {
        let mut state = self.state.lock().unpoisoned();
        let taken = state.waiting.add(input);
        self.rouse(state);
        taken
    }

    /// Adds facts under one lock.
    pub fn push_facts(&self, facts: impl Iterator<Item = Fact>) {
        let mut state = self.state.lock().unpoisoned();
        for fact in facts {
            let _ = state.waiting.add(Input::Fact(fact));
        }
        self.rouse(state);
    }

    /// Has the thread write at once.
    pub fn urge(&self) {
        let mut state = self.state.lock().unpoisoned();
        let before = std::mem::replace(&mut state.urgent, true);
        drop(state);
        if !before {
            self.changed.notify_one();
        }
    }

    /// Wakes the thread if it sleeps. While it lets things gather, it wakes by itself.
    fn rouse(&self, mut state: MutexGuard<'_, State>) {
        let resting = std::mem::replace(&mut state.resting, false);
        drop(state);
        if resting {
            self.changed.notify_one();
        }
    }

    /// Takes all there is.
    pub fn take_now(&self) -> Taken {
        self.state.lock().unpoisoned().take()
    }

    /// Waits until there is something, or for this time, and lets more gather for a moment if nobody waits for it. For the thread.
    pub fn wait(&self, within: Option<Duration>) {
        let mut state = self.state.lock().unpoisoned();
        state.resting = state.waiting.is_empty() && !state.urgent;
        let rests = |state: &mut State| state.resting && !state.urgent;
        let mut state = match within {
            None => self.changed.wait_while(state, rests).unpoisoned(),
            Some(within) => self.changed.wait_timeout_while(state, within, rests).unpoisoned().0,
        };
        state.resting = false;
        if !state.waiting.inputs.is_empty() {
            let gathers =
                |state: &mut State| !state.urgent && !state.waiting.closed && state.waiting.inputs.len() < MANY;
            state = self.changed.wait_timeout_while(state, LINGER, gathers).unpoisoned().0;
        }
        state.urgent = false;
    }

    /// Takes nothing more.
    pub fn close(&self) {
        let mut state = self.state.lock().unpoisoned();
        state.waiting.closed = true;
        state.resting = false;
        drop(state);
        self.changed.notify_all();
    }
}

impl Taken {
    /// True if there is nothing to do.
    fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.lost == 0 && !self.closed
    }

    fn add(&mut self, input: Input) -> bool {
        let room = !self.closed && self.inputs.len() < MAX_WAITING;
        match room {
            true => self.inputs.push(input),
            false => self.lost += 1,
        }
        room
    }
}

impl State {
    fn take(&mut self) -> Taken {
        let closed = self.waiting.closed;
        Taken { closed, ..std::mem::replace(&mut self.waiting, Taken { closed, ..Taken::default() }) }
    }
}
