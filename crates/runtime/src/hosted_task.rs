//! A task of an old backend that clients of the new era ask about: the engine's [`Hosted`], and the doing of what it asks
//! for. It stays with the connection on which it was made.

use crate::berthed::Waiter;
use crate::origin::Origin;
use crate::party::Party;
use crate::peer::Peer;
use bytes::Bytes;
use signalbox_engine::bridge::hosted::{About, Hosted, HostedCommand};
use signalbox_engine::bridge::tasks;
use signalbox_engine::correlation::MAX_CALL;
use signalbox_engine::{Call, ClientProfile, Event, Fault, FaultKind, PeerId, Principal};
use signalbox_wire::{Edits, Envelope, RawId, Revision, json, method};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The task.
pub struct HostedTask {
    /// Its id under the backend.
    pub id: Box<str>,
    /// On whose behalf it runs.
    pub principal: Principal,
    /// The connection that knows it.
    pub peer_id: PeerId,
    peer: Weak<Peer>,
    timeout: Duration,
    last: Mutex<Party>,
    machine: Mutex<Hosted<Waiter>>,
}

impl HostedTask {
    /// A task that was just made on this connection. `None` where `made` tells of none.
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
            principal: peer.principal.clone(),
            peer_id: peer.id,
            peer: Arc::downgrade(peer),
            timeout,
            last: Mutex::default(),
            machine: Mutex::new(machine),
        })
    }

    /// Clients know the task by this name.
    pub fn rename(&self, name: &str) {
        self.lock().rename(name);
    }

    /// On whose account it runs: of whoever asked about it last.
    pub(crate) fn party(&self) -> Party {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long the task is kept, where it says so.
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

    /// A client asks or tells something about it.
    pub fn request(self: &Arc<Self>, waiter: Waiter, call: &Call) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Party::of(&waiter.0, Some(waiter.1));
        self.drive(|machine, out| match &*call.method {
            method::TASKS_GET => machine.get(waiter, out),
            method::TASKS_CANCEL => machine.cancel(waiter, out),
            method::TASKS_UPDATE => machine.update(waiter, &call.responses(), out),
            other => {
                let fault = Fault::new(FaultKind::MethodNotFound, format!("Method not found: {other}"));
                out.push(HostedCommand::Fail(waiter, fault));
            }
        });
    }

    /// The backend asks something in its course.
    pub fn asked(self: &Arc<Self>, message: &Envelope) {
        self.drive(|machine, out| machine.asked(message, out));
    }

    /// The backend takes a question back.
    pub fn withdrawn(&self, id: &RawId) {
        self.lock().withdrawn(id);
    }

    /// The backend answered a request about it, or will not.
    pub fn answered(self: &Arc<Self>, about: About, answer: Result<&Envelope, Fault>) {
        self.drive(|machine, out| machine.answered(about, answer, out));
    }

    fn drive(self: &Arc<Self>, run: impl FnOnce(&mut Hosted<Waiter>, &mut Vec<HostedCommand<Waiter>>)) {
        let mut commands = Vec::new();
        run(&mut self.lock(), &mut commands);
        for command in commands {
            self.perform(command);
        }
    }

    fn perform(self: &Arc<Self>, command: HostedCommand<Waiter>) {
        match command {
            HostedCommand::Ask(about) => {
                // `tasks/result` is answered when the task is over, whenever that is.
                let timeout = if about == About::Result { MAX_CALL } else { self.timeout };
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
            HostedCommand::Deliver((session, exchange), bytes) => session.handle(told(exchange, bytes)),
            HostedCommand::Fail((session, exchange), fault) => session.handle(Event::Failed { exchange, fault }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Hosted<Waiter>> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn told(exchange: signalbox_engine::ExchangeId, bytes: Bytes) -> Event {
    match Envelope::parse(bytes) {
        Ok(message) => Event::Answered { exchange, message, edits: Edits::new(), status: None },
        Err(_) => {
            let fault = Fault::new(FaultKind::BackendGarbage, "what the backend said of a task is not JSON");
            Event::Failed { exchange, fault }
        }
    }
}
