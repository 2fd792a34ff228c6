//! What waits to be written down, within bounds.

use crate::event::Note;
use signalbox_engine::Fact;
use signalbox_engine::audit::Intent;
use signalbox_engine::fact::{Decision, Finished, RefusedFact};
use signalbox_engine::lock::LockResultExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;

/// Most intents and facts that wait to be written down.
pub const MAX_WAITING: usize = 65_536;

/// What the log is told.
#[derive(Debug)]
pub enum Input {
    /// Calls that wait to leave, since when, in milliseconds since 1970, and who is told that they may.
    Intents(Vec<Intent>, u64, oneshot::Sender<bool>),
    /// Something was decided about an exchange.
    Decision(Arc<Decision>),
    /// An exchange is over.
    Finished(Arc<Finished>),
    /// Something was refused before it became an exchange.
    Refused(Arc<RefusedFact>),
    /// Something that is no fact about a message.
    Note(Box<Note>),
}

impl Input {
    /// What the log has to know of a fact, if anything.
    #[must_use]
    pub fn of(fact: &Fact) -> Option<Self> {
        match fact {
            Fact::Decision(decision) => Some(Self::Decision(Arc::clone(decision))),
            Fact::Finished(finished) => Some(Self::Finished(Arc::clone(finished))),
            Fact::Refused(refused) => Some(Self::Refused(Arc::clone(refused))),
            Fact::Message(_) | Fact::Lost(_) | Fact::Session(_) | Fact::SessionEnded { .. } => None,
        }
    }
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
    /// Calls wait for some of it.
    pub awaited: bool,
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
    /// Adds something that its caller sees to: it writes, or urges the thread to. False if there is no room for it, which is
    /// counted.
    #[must_use]
    pub fn push(&self, input: Input) -> bool {
        self.state.lock().unpoisoned().waiting.add(input)
    }

    /// Adds what has to be known of facts, under one lock.
    pub fn push_facts(&self, facts: &[Fact]) {
        let mut inputs = facts.iter().filter_map(Input::of).peekable();
        if inputs.peek().is_none() {
            return;
        }
        let mut state = self.state.lock().unpoisoned();
        for input in inputs {
            let _ = state.waiting.add(input);
        }
        self.rouse(state);
    }

    /// Adds something that is no fact about a message. What has no room is counted.
    pub fn push_note(&self, note: Note) {
        let mut state = self.state.lock().unpoisoned();
        let _ = state.waiting.add(Input::Note(Box::new(note)));
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

    /// Takes all there is, in exchange for a queue that is empty.
    pub fn take_now(&self, empty: Vec<Input>) -> Taken {
        let mut state = self.state.lock().unpoisoned();
        let closed = state.waiting.closed;
        std::mem::replace(&mut state.waiting, Taken { inputs: empty, lost: 0, closed, awaited: false })
    }

    /// True if calls wait for what is here.
    pub fn is_awaited(&self) -> bool {
        self.state.lock().unpoisoned().waiting.awaited
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
            let gathers = |state: &mut State| {
                let Taken { inputs, closed, awaited, .. } = &state.waiting;
                !state.urgent && !closed && !awaited && inputs.len() < MANY
            };
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
            true => {
                self.awaited |= matches!(input, Input::Intents(..));
                self.inputs.push(input);
            }
            false => self.lost += 1,
        }
        room
    }
}
