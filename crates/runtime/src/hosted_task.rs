//! A task of an old backend that a client of the new era has: runs the engine's [`Hosted`] and carries out its
//! commands. The task stays with the connection that made it.

use crate::bridged_call_driver::Waiter;
use crate::origin::{Origin, Party};
use crate::peer::Peer;
use bytes::Bytes;
use signalbox_engine::bridge::hosted::{Hosted, HostedCommand, TaskQuery};
use signalbox_engine::bridge::tasks;
use signalbox_engine::correlation::MAX_CALL;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Authorized, BackendUser, ClientProfile, Event, Fault, FaultKind, PeerId};
use signalbox_wire::{Edits, Envelope, RawId, Revision, Span, json, method};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

/// Who gets the state of a task.
#[derive(Clone)]
enum Asker {
    /// A request about it.
    Call(Waiter),
    /// Listen requests that name it, and the backend's name.
    Listeners(Arc<str>, Vec<Waiter>),
}

/// The task.
pub struct HostedTask {
    /// Its id under the backend.
    pub id: Box<str>,
    /// The user that it runs for.
    pub user: BackendUser,
    /// The connection that knows it.
    pub peer_id: PeerId,
    peer: Weak<Peer>,
    timeout: Duration,
    last: Mutex<Party>,
    machine: Mutex<Hosted<Asker>>,
}

impl HostedTask {
    /// A task that was just made on this connection. `None` if `made` describes none.
    #[must_use]
    pub fn new(
        peer: &Arc<Peer>,
        made: &[u8],
        client: &ClientProfile,
        backend: Revision,
        timeout: Duration,
    ) -> Option<Self> {
        let machine = Hosted::new(made, client.capabilities.clone(), backend)?;
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

    /// The party it runs for: whoever asked about it last.
    pub(crate) fn party(&self) -> Party {
        self.last.lock().unpoisoned().clone()
    }

    /// How long the task is kept, if it says so.
    #[must_use]
    pub fn stay(&self) -> Option<Duration> {
        self.lock().state().ttl.map(Duration::from_millis)
    }

    /// True while it may still be worked on.
    #[must_use]
    pub fn is_live(&self) -> bool {
        !tasks::is_terminal(self.lock().state().status) && !self.is_lost()
    }

    /// True once the connection that knows it is gone.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.peer.upgrade().is_none_or(|peer| peer.is_lost())
    }

    /// Handles a client's request about it.
    pub fn request(self: &Arc<Self>, waiter: Waiter, call: &Authorized) {
        *self.last.lock().unpoisoned() = Party::of(&waiter.0, Some(waiter.1));
        let asker = Asker::Call(waiter);
        self.drive(|machine, out| match &*call.method {
            method::TASKS_GET => machine.get(asker, out),
            method::TASKS_CANCEL => machine.cancel(asker, out),
            method::TASKS_UPDATE => machine.update(asker, &call.responses(), out),
            other => {
                let fault = Fault::new(FaultKind::MethodNotFound, format!("Method not found: {other}"));
                out.push(HostedCommand::Fail(asker, fault));
            }
        });
    }

    /// The name by which clients know it.
    pub(crate) fn name(&self) -> String {
        self.lock().name().to_owned()
    }

    /// Sends these listen requests its state, as soon as that is complete.
    pub(crate) fn tell(self: &Arc<Self>, backend: &Arc<str>, listeners: Vec<Waiter>) {
        self.drive(|machine, out| machine.get(Asker::Listeners(Arc::clone(backend), listeners), out));
    }

    /// The backend asks something during the task.
    pub fn asked(self: &Arc<Self>, message: &Envelope) {
        self.drive(|machine, out| machine.asked(message, out));
    }

    /// The backend withdraws a question.
    pub fn withdrawn(&self, id: &RawId) {
        self.lock().withdrawn(id);
    }

    /// The backend answered a request about it, or failed to.
    pub fn answered(self: &Arc<Self>, about: TaskQuery, answer: Result<&Envelope, Fault>) {
        self.drive(|machine, out| machine.answered(about, answer, out));
    }

    fn drive(self: &Arc<Self>, run: impl FnOnce(&mut Hosted<Asker>, &mut Vec<HostedCommand<Asker>>)) {
        let mut commands = Vec::new();
        run(&mut self.lock(), &mut commands);
        for command in commands {
            self.perform(command);
        }
    }

    fn perform(self: &Arc<Self>, command: HostedCommand<Asker>) {
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
                    peer.tell(bytes, &self.party());
                }
            }
            HostedCommand::Deliver(Asker::Call((session, exchange)), bytes) => session.handle(told(exchange, bytes)),
            HostedCommand::Deliver(Asker::Listeners(backend, listeners), bytes) => {
                let Some(message) = notification(bytes) else { return };
                for (session, exchange) in listeners {
                    let (backend, message, about) = (Arc::clone(&backend), message.clone(), Some(exchange));
                    session.handle(Event::Notified { backend, peer: self.peer_id, message, about });
                }
            }
            HostedCommand::Fail(Asker::Call((session, exchange)), fault) => {
                session.handle(Event::Failed { exchange, fault });
            }
            // Listeners will hear of the next change.
            HostedCommand::Fail(Asker::Listeners(..), _) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Hosted<Asker>> {
        self.machine.lock().unpoisoned()
    }
}

/// Turns the answer to `tasks/get` into `notifications/tasks`. `None` if it is an error.
fn notification(answer: Bytes) -> Option<Envelope> {
    let answer = Envelope::parse(answer).ok()?;
    let result = Bytes::copy_from_slice(answer.result()?);
    let mut edits = Edits::new();
    edits.remove_member(&result, Span::new(0, result.len()), "resultType");
    let params = edits.apply(&result);
    let head = format!(r#"{{"jsonrpc":"2.0","method":"{}","params":"#, method::TASKS_CHANGED);
    Envelope::parse([head.as_bytes(), &params, b"}"].concat().into()).ok()
}

fn told(exchange: signalbox_engine::ExchangeId, bytes: Bytes) -> Event {
    match Envelope::parse(bytes) {
        Ok(message) => Event::Answered { exchange, message, edits: Edits::new(), status: None },
        Err(_) => {
            let fault = Fault::new(FaultKind::BackendGarbage, "the backend's answer about a task is not JSON");
            Event::Failed { exchange, fault }
        }
    }
}
