//! The bounded queue of events to record.

use crate::event::AuditNote;
use signalbox_engine::Fact;
use signalbox_engine::audit::Intent;
use signalbox_engine::fact::{Decision, FinishedFact, RefusedFact};
use signalbox_engine::lock::LockResultExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;

/// Maximum number of queued intents and facts.
pub const MAX_WAITING: usize = 65_536;

/// Input of the log.
#[derive(Debug)]
pub enum Input {
    /// Intents of calls that wait to be forwarded, their time in milliseconds since 1970, and the sender that releases
    /// them.
    Intents(Vec<Intent>, u64, oneshot::Sender<bool>),
    /// Decision about an exchange.
    Decision(Arc<Decision>),
    /// End of an exchange.
    Finished(Arc<FinishedFact>),
    /// Message rejected before it became an exchange.
    Refused(Arc<RefusedFact>),
    /// Event that is not a fact about a message, and the sender that confirms it, if its cause waits for that.
    Note(Box<AuditNote>, Option<oneshot::Sender<bool>>),
}

impl Input {
    /// Returns the input for a fact, if the log records facts of its kind.
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

/// Time for which the thread lets facts accumulate before it writes them.
const LINGER: Duration = Duration::from_millis(25);
/// Number of inputs that the thread writes without waiting for more.
const MANY: usize = 512;

/// Queue of inputs, or the inputs taken out of it.
#[derive(Default, Debug)]
pub struct InputQueue {
    /// Inputs in order of arrival.
    pub inputs: Vec<Input>,
    /// Number of inputs dropped since the last time because the queue was full.
    pub lost: u64,
    /// True once the queue accepts no more inputs.
    pub closed: bool,
    /// True if calls or administrators wait for some of the inputs.
    pub awaited: bool,
}

#[derive(Default, Debug)]
struct State {
    waiting: InputQueue,
    /// True while the thread sleeps until an input arrives.
    resting: bool,
    /// True if the thread has to write at once.
    urgent: bool,
}

/// Queue between the threads that serve calls and the writer: the log's thread, or the calling thread if no other is
/// writing.
#[derive(Default, Debug)]
pub struct Intake {
    state: Mutex<State>,
    changed: Condvar,
}

impl Intake {
    /// Adds an input without waking the thread: the caller writes it, or calls `urge`. Returns false if the queue is
    /// full, and counts the loss.
    #[must_use]
    pub fn push(&self, input: Input) -> bool {
        self.state.lock().unpoisoned().waiting.add(input)
    }

    /// Adds the inputs for these facts under one lock.
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

    /// Adds an event that is not a fact about a message. Counts it as lost if the queue is full.
    pub fn push_note(&self, note: AuditNote) {
        let mut state = self.state.lock().unpoisoned();
        let _ = state.waiting.add(Input::Note(Box::new(note), None));
        self.rouse(state);
    }

    /// Makes the thread write at once.
    pub fn urge(&self) {
        let mut state = self.state.lock().unpoisoned();
        let before = std::mem::replace(&mut state.urgent, true);
        drop(state);
        if !before {
            self.changed.notify_one();
        }
    }

    /// Wakes the thread if it sleeps. A thread that lets inputs accumulate wakes by itself.
    fn rouse(&self, mut state: MutexGuard<'_, State>) {
        let resting = std::mem::replace(&mut state.resting, false);
        drop(state);
        if resting {
            self.changed.notify_one();
        }
    }

    /// Takes all inputs and leaves `empty` as the queue's buffer.
    pub fn take_now(&self, empty: Vec<Input>) -> InputQueue {
        let mut state = self.state.lock().unpoisoned();
        let closed = state.waiting.closed;
        std::mem::replace(&mut state.waiting, InputQueue { inputs: empty, lost: 0, closed, awaited: false })
    }

    /// Returns true if calls wait for queued inputs.
    pub fn is_awaited(&self) -> bool {
        self.state.lock().unpoisoned().waiting.awaited
    }

    /// Waits for inputs, at most for `within`. Then lets more of them accumulate for a moment unless a call waits. Only
    /// the log's thread calls this.
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
                let InputQueue { inputs, closed, awaited, .. } = &state.waiting;
                !state.urgent && !closed && !awaited && inputs.len() < MANY
            };
            state = self.changed.wait_timeout_while(state, LINGER, gathers).unpoisoned().0;
        }
        state.urgent = false;
    }

    /// Closes the queue: further inputs count as lost.
    pub fn close(&self) {
        let mut state = self.state.lock().unpoisoned();
        state.waiting.closed = true;
        state.resting = false;
        drop(state);
        self.changed.notify_all();
    }
}

impl InputQueue {
    /// Returns true if the writer has nothing to do.
    fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.lost == 0 && !self.closed
    }

    fn add(&mut self, input: Input) -> bool {
        let room = !self.closed && self.inputs.len() < MAX_WAITING;
        match room {
            true => {
                self.awaited |= matches!(input, Input::Intents(..) | Input::Note(_, Some(_)));
                self.inputs.push(input);
            }
            false => self.lost += 1,
        }
        room
    }
}
