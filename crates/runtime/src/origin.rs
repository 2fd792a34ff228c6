//! Origin of a request to a backend, which gets the answer, and the party that messages are attributed to in facts.

use crate::backend::{ExclusiveUse, GuardedCall};
use crate::backend_credentials::RequestSender;
use crate::bridged_call_driver::{BridgedCallDriver, Waiter};
use crate::gateway::Gateway;
use crate::hosted_task::HostedTask;
use crate::session::Session;
use signalbox_engine::back::Account;
use signalbox_engine::bridge::hosted_task::TaskQuery;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{ExchangeId, Fact, Fault};
use signalbox_wire::Envelope;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// Answer to a request of the gateway itself.
pub type OwnAnswer = Result<Envelope, Fault>;

/// Origin of a request to a backend.
#[derive(Clone)]
pub enum Origin {
    /// A client's exchange, which may have exclusive use of the connection.
    Exchange(Arc<Session>, ExchangeId, Option<Arc<ExclusiveUse>>),
    /// A modern call at a legacy backend, which may outlive the exchange that started it.
    BridgedCall(Arc<BridgedCallDriver>),
    /// A request about a legacy backend's task that a modern client owns.
    Hosted(Arc<HostedTask>, TaskQuery),
    /// A `subscriptions/listen` of a client, forwarded to a backend.
    Listen(Arc<Session>, ExchangeId),
    /// The gateway's own listen request for the resources that legacy sessions watch.
    Watches(u64),
    /// The gateway itself, which waits for the answer.
    Own(OwnReply),
    /// A copy of a request, whose answer is only recorded.
    Fork(Arc<Session>, ExchangeId),
    /// The gateway itself, which ignores the answer.
    Discard,
}

impl Origin {
    /// Returns the session and exchange that get the answer, if there are any.
    #[must_use]
    pub fn exchange(&self) -> Option<Waiter> {
        match self {
            Self::Exchange(session, id, _) | Self::Listen(session, id) => Some((Arc::clone(session), *id)),
            Self::BridgedCall(call) => call.waiter(),
            Self::Hosted(..) | Self::Watches(_) | Self::Own(_) | Self::Fork(..) | Self::Discard => None,
        }
    }

    /// Returns the exchange that gets the answer, if there is one.
    #[must_use]
    pub(crate) fn exchange_id(&self) -> Option<ExchangeId> {
        match self {
            Self::Exchange(_, id, _) | Self::Listen(_, id) => Some(*id),
            Self::BridgedCall(call) => call.waiter().map(|(_, id)| id),
            Self::Hosted(..) | Self::Watches(_) | Self::Own(_) | Self::Fork(..) | Self::Discard => None,
        }
    }

    /// Returns the party that the request and everything that follows from it is attributed to.
    #[must_use]
    pub fn party(&self) -> Attribution {
        match self {
            Self::Exchange(session, id, _) | Self::Listen(session, id) | Self::Fork(session, id) => {
                Attribution::of(session, Some(*id))
            }
            Self::BridgedCall(call) => call.party(),
            Self::Hosted(task, _) => task.party(),
            Self::Watches(_) | Self::Own(_) | Self::Discard => Attribution::GATEWAY,
        }
    }

    /// Returns true for a call of a client, even if its client is away at the moment.
    #[must_use]
    pub fn is_call(&self) -> bool {
        matches!(self, Self::Exchange(..) | Self::BridgedCall(_))
    }

    /// Returns true for a call of a client, a copy of one, or a request about a task.
    #[must_use]
    pub fn is_work(&self) -> bool {
        self.is_call() || matches!(self, Self::Hosted(..) | Self::Fork(..))
    }

    /// Returns the key by which the breaker knows a client's call. `None` for other origins.
    #[must_use]
    pub(crate) fn guarded_call(&self) -> Option<GuardedCall> {
        match self {
            Self::Exchange(session, id, _) => Some(GuardedCall::of(session, Some(*id))),
            Self::BridgedCall(call) => match call.waiter() {
                Some((session, id)) => Some(GuardedCall::of(&session, Some(id))),
                None => call.party().0.map(|(session, _)| GuardedCall::of(&session, None)),
            },
            _ => None,
        }
    }

    /// Returns true if this is the given exchange.
    #[must_use]
    pub fn is(&self, session: &Arc<Session>, id: ExchangeId) -> bool {
        match self {
            Self::Exchange(own, own_id, _) | Self::Listen(own, own_id) => *own_id == id && Arc::ptr_eq(own, session),
            Self::BridgedCall(call) => {
                call.waiter().is_some_and(|(own, own_id)| own_id == id && Arc::ptr_eq(&own, session))
            }
            Self::Hosted(..) | Self::Watches(_) | Self::Own(_) | Self::Fork(..) | Self::Discard => false,
        }
    }

    /// Returns the bridged call, if this is one.
    #[must_use]
    pub fn bridged_call(&self) -> Option<Arc<BridgedCallDriver>> {
        match self {
            Self::BridgedCall(call) => Some(Arc::clone(call)),
            _ => None,
        }
    }

    /// Returns true if this is the given bridged call.
    #[must_use]
    pub fn is_bridged_call(&self, call: &Arc<BridgedCallDriver>) -> bool {
        matches!(self, Self::BridgedCall(own) if Arc::ptr_eq(own, call))
    }
}

/// Sender for the answer to a request of the gateway itself. Usable once.
#[derive(Clone)]
pub struct OwnReply(Arc<Mutex<Option<oneshot::Sender<OwnAnswer>>>>);

impl OwnReply {
    /// Creates a sender and its receiver.
    #[must_use]
    pub fn new() -> (Self, oneshot::Receiver<OwnAnswer>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(sender)))), receiver)
    }

    /// Sends the answer. A second one is ignored.
    pub fn send(&self, answer: OwnAnswer) {
        if let Some(sender) = self.0.lock().unpoisoned().take() {
            let _ = sender.send(answer);
        }
    }
}

/// Party that a message on a connection is attributed to: a session, or the gateway itself.
#[derive(Clone, Default)]
pub struct Attribution(Option<(Arc<Session>, Option<ExchangeId>)>);

impl Attribution {
    pub const GATEWAY: Self = Self(None);

    /// Creates the party of a session, and of an exchange if the message belongs to one.
    #[must_use]
    pub fn of(session: &Arc<Session>, exchange: Option<ExchangeId>) -> Self {
        Self(Some((Arc::clone(session), exchange)))
    }

    /// Returns the attribution in the form that facts use.
    #[must_use]
    pub fn account(&self, gateway: &Gateway) -> Account {
        match &self.0 {
            Some((session, exchange)) => {
                Account { session: session.key, caller: session.caller.clone(), exchange: *exchange, own: false }
            }
            None => Account::own(gateway.caller.clone()),
        }
    }

    /// Returns the sender of the request that the message belongs to.
    pub(crate) fn asker(&self) -> RequestSender {
        match &self.0 {
            Some((session, exchange)) => {
                session.caller_of(*exchange).map_or(RequestSender::Gone, RequestSender::Caller)
            }
            None => RequestSender::Gateway,
        }
    }

    /// Notes a fact of this party after its earlier ones.
    pub(crate) fn note(&self, gateway: &Gateway, fact: Fact) {
        match &self.0 {
            Some((session, _)) => gateway.note(session, [fact]),
            None => gateway.note_own(fact),
        }
    }
}
