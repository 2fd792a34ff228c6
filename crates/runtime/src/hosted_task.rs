//! A legacy backend's task that a modern client owns: runs the engine's [`HostedTaskMachine`] and carries out its
//! commands. The task is bound to the connection that created it.

use crate::bridged_call_driver::Waiter;
use crate::origin::{Attribution, Origin};
use crate::peer::Peer;
use bytes::Bytes;
use signalbox_engine::bridge::hosted_task::{HostedCommand, HostedTaskMachine, TaskQuery};
use signalbox_engine::bridge::tasks;
use signalbox_engine::correlation::MAX_CALL;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{AuthorizedCall, BackendUser, ClientProfile, Event, Fault, FaultKind, PeerId};
use signalbox_wire::{Edits, Envelope, RawId, Revision, Span, json, method};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

/// Receiver of a task's state.
#[derive(Clone)]
enum StateReceiver {
    /// A request about the task.
    Call(Waiter),
    /// Listen requests that name the task, and the name of the backend.
    Listeners(Arc<str>, Vec<Waiter>),
}

/// A task of a legacy backend that a modern client owns.
pub struct HostedTask {
    /// Id of the task at the backend.
    pub id: Box<str>,
    /// User that the task runs for.
    pub user: BackendUser,
    /// Connection that knows the task.
    pub peer_id: PeerId,
    peer: Weak<Peer>,
    timeout: Duration,
    last: Mutex<Attribution>,
    machine: Mutex<HostedTaskMachine<StateReceiver>>,
}

impl HostedTask {
    /// Creates a task that was just created on this connection. Returns `None` if `made` describes no task.
    #[must_use]
    pub fn new(
        peer: &Arc<Peer>,
        made: &[u8],
        client: &ClientProfile,
        backend: Revision,
        timeout: Duration,
    ) -> Option<Self> {
        let machine = HostedTaskMachine::new(made, client.capabilities.clone(), backend)?;
        Some(Self {
            id: machine.state().id.as_str().into(),
            user: peer.user.clone(),
            peer_id: peer.id,
            peer: Arc::downgrade(peer),
            timeout,
            last: Mutex::default(),
            machine: Mutex::new(machine),
        })
    }

    /// Sets the name by which clients know the task.
    pub fn rename(&self, name: &str) {
        self.lock().rename(name);
    }

    /// Returns the party that the task runs for: the sender of the last request about it.
    pub(crate) fn party(&self) -> Attribution {
        self.last.lock().unpoisoned().clone()
    }

    /// Returns how long the backend keeps the task, if it says so.
    #[must_use]
    pub fn stay(&self) -> Option<Duration> {
        self.lock().state().ttl.map(Duration::from_millis)
    }

    /// Returns true while the task may still be in progress.
    #[must_use]
    pub fn is_live(&self) -> bool {
        !tasks::is_terminal(self.lock().state().status) && !self.is_lost()
    }

    /// Returns true once the connection that knows the task is gone.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.peer.upgrade().is_none_or(|peer| peer.is_lost())
    }

    /// Handles a client's request about the task.
    pub fn request(self: &Arc<Self>, waiter: Waiter, call: &AuthorizedCall) {
        *self.last.lock().unpoisoned() = Attribution::of(&waiter.0, Some(waiter.1));
        let receiver = StateReceiver::Call(waiter);
        self.drive(|machine, out| match &*call.method {
            method::TASKS_GET => machine.get(receiver, out),
            method::TASKS_CANCEL => machine.cancel(receiver, out),
            method::TASKS_UPDATE => machine.update(receiver, &call.responses(), out),
            other => {
                let fault = Fault::new(FaultKind::MethodNotFound, format!("Method not found: {other}"));
                out.push(HostedCommand::Fail(receiver, fault));
            }
        });
    }

    /// Returns the name by which clients know the task.
    pub(crate) fn name(&self) -> String {
        self.lock().name().to_owned()
    }

    /// Sends the state of the task to these listen requests, as soon as it is complete.
    pub(crate) fn notify_listeners(self: &Arc<Self>, backend: &Arc<str>, listeners: Vec<Waiter>) {
        self.drive(|machine, out| machine.get(StateReceiver::Listeners(Arc::clone(backend), listeners), out));
    }

    /// Handles a question of the backend during the task.
    pub fn asked(self: &Arc<Self>, message: &Envelope) {
        self.drive(|machine, out| machine.asked(message, out));
    }

    /// Handles the withdrawal of a question by the backend.
    pub fn withdrawn(&self, id: &RawId) {
        self.lock().withdrawn(id);
    }

    /// Handles the backend's answer to a request about the task, or its failure.
    pub fn answered(self: &Arc<Self>, about: TaskQuery, answer: Result<&Envelope, Fault>) {
        self.drive(|machine, out| machine.answered(about, answer, out));
    }

    fn drive(
        self: &Arc<Self>,
        run: impl FnOnce(&mut HostedTaskMachine<StateReceiver>, &mut Vec<HostedCommand<StateReceiver>>),
    ) {
        let mut commands = Vec::new();
        run(&mut self.lock(), &mut commands);
        for command in commands {
            self.perform(command);
        }
    }

    fn perform(self: &Arc<Self>, command: HostedCommand<StateReceiver>) {
        match command {
            HostedCommand::Ask(about) => {
                // `tasks/result` is answered when the task is over, so it gets the longest time limit.
                let timeout = if about == TaskQuery::Result { MAX_CALL } else { self.timeout };
                let params = format!(r#""taskId":{}"#, json::quote(&self.id));
                let origin = Origin::Hosted(Arc::clone(self), about);
                let sent = match self.peer.upgrade() {
                    Some(peer) => peer.own(origin, about.method(), &params, timeout),
                    None => Err(Fault::new(FaultKind::BackendDown, "the connection that ran this task is gone")),
                };
                if let Err(fault) = sent {
                    self.answered(about, Err(fault));
                }
            }
            HostedCommand::Upstream(bytes) => {
                if let Some(peer) = self.peer.upgrade() {
                    peer.send_one_way(bytes, &self.party());
                }
            }
            HostedCommand::Deliver(StateReceiver::Call((session, exchange)), bytes) => {
                session.handle(answer_event(exchange, bytes))
            }
            HostedCommand::Deliver(StateReceiver::Listeners(backend, listeners), bytes) => {
                let Some(message) = notification(bytes) else { return };
                for (session, exchange) in listeners {
                    let (backend, message, about) = (Arc::clone(&backend), message.clone(), Some(exchange));
                    session.handle(Event::Notified { backend, peer: self.peer_id, message, about });
                }
            }
            HostedCommand::Fail(StateReceiver::Call((session, exchange)), fault) => {
                session.handle(Event::Failed { exchange, fault });
            }
            // Listeners get the next change.
            HostedCommand::Fail(StateReceiver::Listeners(..), _) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, HostedTaskMachine<StateReceiver>> {
        self.machine.lock().unpoisoned()
    }
}

/// Turns the answer to `tasks/get` into `notifications/tasks`. Returns `None` if it is an error.
fn notification(answer: Bytes) -> Option<Envelope> {
    let answer = Envelope::parse(answer).ok()?;
    let result = Bytes::copy_from_slice(answer.result()?);
    let mut edits = Edits::new();
    edits.remove_member(&result, Span::new(0, result.len()), "resultType");
    let params = edits.apply(&result);
    let head = format!(r#"{{"jsonrpc":"2.0","method":"{}","params":"#, method::TASKS_CHANGED);
    Envelope::parse([head.as_bytes(), &params, b"}"].concat().into()).ok()
}

fn answer_event(exchange: signalbox_engine::ExchangeId, bytes: Bytes) -> Event {
    match Envelope::parse(bytes) {
        Ok(message) => Event::Answered { exchange, message, edits: Edits::new(), status: None },
        Err(_) => {
            let fault = Fault::new(FaultKind::BackendGarbage, "the backend's answer about a task is not JSON");
            Event::Failed { exchange, fault }
        }
    }
}
