//! Requests of one client that have no final answer yet, each with its stage.
//!
//! A single map holds all state of a request, so removing the exchange drops all of it at once.

use super::holding::SuspendedWalk;
use super::input_requests::{InputHistory, InputResponses};
use super::listen::ListenState;
use super::polling::TaskPoll;
use super::rounds::InputRound;
use super::task_results::TaskSubject;
use crate::dialect::DialectRequest;
use crate::exchange::Exchange;
use crate::keys::{ExchangeId, KeyMap};
use crate::profile::ClientProfile;
use signalbox_wire::Envelope;
use std::sync::Arc;

/// State in which an exchange waits. All stages but the common one are boxed, so that a plain call pays two words.
#[derive(Debug, Default)]
pub(super) enum Stage {
    /// The machine is handling the request, or a backend has it.
    #[default]
    InFlight,
    /// The request needs lists that the catalog does not have yet.
    AwaitingLists(Box<AwaitingLists>),
    /// An interceptor holds the request or its answer until its question is answered.
    Held(Box<SuspendedWalk>),
    /// The backend answered `input_required`, and is called again once the client has answered.
    AwaitingInput(Box<InputRound>),
    /// The backend created a task for the call, or the client asks for one, and the machine polls it. The client may be
    /// asked for input meanwhile.
    PollingTask(Box<TaskPoll>),
    /// A `subscriptions/listen` request is open.
    Listening(Box<ListenState>),
}

/// Request parked until the lists it needs are known.
#[derive(Debug)]
pub(super) struct AwaitingLists {
    pub message: Envelope,
    /// Profile of the client, for a request to be routed; `None` for a list or listen request.
    pub routed_for: Option<Arc<ClientProfile>>,
}

/// Exchange with its stage, and the data that outlives stages.
#[derive(Debug)]
pub(super) struct OpenExchange {
    pub exchange: Exchange,
    pub stage: Stage,
    /// Task that the request is about.
    task: Option<Box<TaskSubject>>,
    /// Questions that the backend has asked the client so far.
    input: Option<Box<InputHistory>>,
    /// Dialect request, if the client speaks the governed dialect.
    pub dialect: Option<Box<DialectRequest>>,
}

/// All open exchanges of one session.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    /// Boxed, because every call moves its exchange into the map and out again.
    open: KeyMap<ExchangeId, Box<OpenExchange>>,
    /// Number of exchanges in [`Stage::Listening`].
    listening: usize,
}

impl Exchanges {
    pub fn insert(&mut self, exchange: Exchange) {
        let id = exchange.id;
        let open = OpenExchange { exchange, stage: Stage::InFlight, task: None, input: None, dialect: None };
        self.open.insert(id, Box::new(open));
    }

    pub fn open(&self, id: ExchangeId) -> Option<&OpenExchange> {
        self.open.get(&id).map(|one| &**one)
    }

    pub fn open_mut(&mut self, id: ExchangeId) -> Option<&mut OpenExchange> {
        self.open.get_mut(&id).map(|one| &mut **one)
    }

    pub fn remove(&mut self, id: ExchangeId) -> Option<Box<OpenExchange>> {
        let one = self.open.remove(&id)?;
        self.listening -= usize::from(one.stage.is_listening());
        Some(one)
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns the number of exchanges that wait for an answer. Listen requests do not.
    pub fn awaiting_answer(&self) -> usize {
        self.open.len() - self.listening
    }

    pub fn contains_key(&self, id: &ExchangeId) -> bool {
        self.open.contains_key(id)
    }

    pub fn get(&self, id: &ExchangeId) -> Option<&Exchange> {
        self.open.get(id).map(|one| &one.exchange)
    }

    pub fn get_mut(&mut self, id: &ExchangeId) -> Option<&mut Exchange> {
        self.open.get_mut(id).map(|one| &mut one.exchange)
    }

    pub fn keys(&self) -> impl Iterator<Item = ExchangeId> {
        self.open.keys().copied()
    }

    pub fn values(&self) -> impl Iterator<Item = &Exchange> {
        self.open.values().map(|one| &one.exchange)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Exchange> {
        self.open.values_mut().map(|one| &mut one.exchange)
    }

    /// Returns every exchange with its stage.
    pub fn stages(&self) -> impl Iterator<Item = (&Exchange, &Stage)> {
        self.open.values().map(|one| (&one.exchange, &one.stage))
    }

    pub fn stage(&self, id: ExchangeId) -> Option<&Stage> {
        self.open.get(&id).map(|one| &one.stage)
    }

    pub fn staged_mut(&mut self, id: ExchangeId) -> Option<(&mut Exchange, &Stage)> {
        self.open.get_mut(&id).map(|one| (&mut one.exchange, &one.stage))
    }

    /// Moves an exchange to another stage and drops the data of the former one.
    pub fn enter(&mut self, id: ExchangeId, stage: Stage) {
        if let Some(one) = self.open.get_mut(&id) {
            self.listening += usize::from(stage.is_listening());
            self.listening -= usize::from(one.stage.is_listening());
            one.stage = stage;
        }
    }

    /// Ends the wait for lists and returns the request.
    pub fn take_awaiting_lists(&mut self, id: ExchangeId) -> Option<AwaitingLists> {
        match self.leave(id, |stage| matches!(stage, Stage::AwaitingLists(_)))? {
            Stage::AwaitingLists(waiting) => Some(*waiting),
            _ => None,
        }
    }

    /// Ends the hold of an interceptor.
    pub fn take_held(&mut self, id: ExchangeId) -> Option<SuspendedWalk> {
        match self.leave(id, |stage| matches!(stage, Stage::Held(_)))? {
            Stage::Held(held) => Some(*held),
            _ => None,
        }
    }

    /// Ends a round of input, which puts the call in flight again.
    pub fn take_input_round(&mut self, id: ExchangeId) -> Option<InputRound> {
        match self.leave(id, |stage| matches!(stage, Stage::AwaitingInput(_)))? {
            Stage::AwaitingInput(round) => Some(*round),
            _ => None,
        }
    }

    /// Ends the polling of a task.
    pub fn take_poll(&mut self, id: ExchangeId) -> Option<TaskPoll> {
        match self.leave(id, |stage| matches!(stage, Stage::PollingTask(_)))? {
            Stage::PollingTask(poll) => Some(*poll),
            _ => None,
        }
    }

    fn leave(&mut self, id: ExchangeId, is_in: impl Fn(&Stage) -> bool) -> Option<Stage> {
        let stage = self.open.get_mut(&id).map(|one| &mut one.stage).filter(|stage| is_in(stage))?;
        self.listening -= usize::from(stage.is_listening());
        Some(std::mem::take(stage))
    }

    /// Returns the task that the machine polls for this exchange.
    pub fn poll(&self, id: ExchangeId) -> Option<&TaskPoll> {
        match self.stage(id)? {
            Stage::PollingTask(poll) => Some(poll),
            _ => None,
        }
    }

    pub fn poll_mut(&mut self, id: ExchangeId) -> Option<&mut TaskPoll> {
        self.polled_mut(id).map(|(_, poll)| poll)
    }

    pub fn polled_mut(&mut self, id: ExchangeId) -> Option<(&Exchange, &mut TaskPoll)> {
        match self.open_mut(id)? {
            OpenExchange { exchange, stage: Stage::PollingTask(poll), .. } => Some((exchange, poll)),
            _ => None,
        }
    }

    /// Returns the state of an open listen request.
    pub fn listener_mut(&mut self, id: ExchangeId) -> Option<(&Exchange, &mut ListenState)> {
        match self.open_mut(id)? {
            OpenExchange { exchange, stage: Stage::Listening(listener), .. } => Some((exchange, listener)),
            _ => None,
        }
    }

    /// Returns the client's answers so far, while it is being asked.
    pub fn input_responses(&self, id: ExchangeId) -> Option<&InputResponses> {
        match self.stage(id)? {
            Stage::AwaitingInput(round) => Some(round.responses()),
            Stage::PollingTask(poll) => poll.responses(),
            _ => None,
        }
    }

    pub fn input_responses_mut(&mut self, id: ExchangeId) -> Option<&mut InputResponses> {
        match &mut self.open.get_mut(&id)?.stage {
            Stage::AwaitingInput(round) => Some(round.responses_mut()),
            Stage::PollingTask(poll) => poll.responses_mut(),
            _ => None,
        }
    }

    /// Returns the questions that the client was asked during this exchange.
    pub fn input_history(&self, id: ExchangeId) -> Option<(&Exchange, &InputHistory)> {
        let one = self.open.get(&id)?;
        Some((&one.exchange, one.input.as_deref()?))
    }

    pub fn take_input_history(&mut self, id: ExchangeId) -> Box<InputHistory> {
        self.open.get_mut(&id).and_then(|one| one.input.take()).unwrap_or_default()
    }

    pub fn set_input_history(&mut self, id: ExchangeId, history: Box<InputHistory>) {
        if let Some(one) = self.open.get_mut(&id) {
            one.input = Some(history);
        }
    }

    /// Returns the task that the request is about, if any.
    pub fn task_subject(&self, id: ExchangeId) -> Option<(&Exchange, &TaskSubject)> {
        let one = self.open.get(&id)?;
        Some((&one.exchange, one.task.as_deref()?))
    }

    pub fn set_task_subject(&mut self, id: ExchangeId, task: TaskSubject) {
        if let Some(one) = self.open.get_mut(&id) {
            one.task = Some(Box::new(task));
        }
    }
}

impl Stage {
    pub fn is_listening(&self) -> bool {
        matches!(self, Self::Listening(_))
    }

    pub fn is_held(&self) -> bool {
        matches!(self, Self::Held(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_stage_costs_two_words() {
        assert!(size_of::<Stage>() <= 2 * size_of::<usize>());
    }
}
