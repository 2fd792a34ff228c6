//! Who waits for an answer of a backend, and whose messages are whose in the facts.

use crate::backend::{ExclusiveUse, GuardedCall};
use crate::backend_credentials::Asker;
use crate::bridged_call_driver::{BridgedCallDriver, Waiter};
use crate::gateway::Gateway;
use crate::hosted_task::HostedTask;
use crate::session::Session;
use signalbox_engine::back::Account;
use signalbox_engine::bridge::hosted::TaskQuery;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{ExchangeId, Fact, Fault};
use signalbox_wire::Envelope;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// The answer to a request of the gateway itself.
pub type OwnAnswer = Result<Envelope, Fault>;

/// Who made a request.
#[derive(Clone)]
pub enum Origin {
    /// A client's exchange, which may have the connection for itself.
    Exchange(Arc<Session>, ExchangeId, Option<Arc<ExclusiveUse>>),
    /// A call of the new era at an old backend, which may outlive the exchange that began it.
    BridgedCall(Arc<BridgedCallDriver>),
    /// A task of an old backend that a client of the new era asks about.
    Hosted(Arc<HostedTask>, TaskQuery),
    /// A `subscriptions/listen` of a client, forwarded to a backend.
    Listen(Arc<Session>, ExchangeId),
    /// The gateway's own listen request for the resources that old sessions watch.
    Watches(u64),
    /// The gateway itself, which waits for the answer.
    Own(OwnReply),
    /// A copy of a request, whose answer is only recorded.
    Fork(Arc<Session>, ExchangeId),
    /// The gateway itself, which ignores the answer.
    Nobody,
}

impl Origin {
    /// The session and exchange that get the answer, if there are any.
    #[must_use]
    pub fn exchange(&self) -> Option<Waiter> {
        match self {
            Self::Exchange(session, id, _) | Self::Listen(session, id) => Some((Arc::clone(session), *id)),
            Self::BridgedCall(call) => call.waiter(),
            Self::Hosted(..) | Self::Watches(_) | Self::Own(_) | Self::Fork(..) | Self::Nobody => None,
        }
    }

    /// The exchange that gets the answer, if there is one.
    #[must_use]
    pub(crate) fn exchange_id(&self) -> Option<ExchangeId> {
        match self {
            Self::Exchange(_, id, _) | Self::Listen(_, id) => Some(*id),
            Self::BridgedCall(call) => call.waiter().map(|(_, id)| id),
            Self::Hosted(..) | Self::Watches(_) | Self::Own(_) | Self::Fork(..) | Self::Nobody => None,
        }
    }

    /// The party that the request and everything that follows from it is attributed to.
    #[must_use]
    pub fn party(&self) -> Party {
        match self {
            Self::Exchange(session, id, _) | Self::Listen(session, id) | Self::Fork(session, id) => {
                Party::of(session, Some(*id))
            }
            Self::BridgedCall(call) => call.party(),
            Self::Hosted(task, _) => task.party(),
            Self::Watches(_) | Self::Own(_) | Self::Nobody => Party::GATEWAY,
        }
    }

    /// True for a call of a client, whether or not somebody waits for it at the moment.
    #[must_use]
    pub fn is_call(&self) -> bool {
        matches!(self, Self::Exchange(..) | Self::BridgedCall(_))
    }

    /// True for a call of a client, a copy of one, and a request about a task.
    #[must_use]
    pub fn is_work(&self) -> bool {
        self.is_call() || matches!(self, Self::Hosted(..) | Self::Fork(..))
    }

    /// A client's call as the breaker knows it. `None` for what is no call.
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

    /// True for this very exchange.
    #[must_use]
    pub fn is(&self, session: &Arc<Session>, id: ExchangeId) -> bool {
        match self {
            Self::Exchange(own, own_id, _) | Self::Listen(own, own_id) => *own_id == id && Arc::ptr_eq(own, session),
            Self::BridgedCall(call) => {
                call.waiter().is_some_and(|(own, own_id)| own_id == id && Arc::ptr_eq(&own, session))
            }
            Self::Hosted(..) | Self::Watches(_) | Self::Own(_) | Self::Fork(..) | Self::Nobody => false,
        }
    }

    /// The bridged call, if this is one.
    #[must_use]
    pub fn bridged_call(&self) -> Option<Arc<BridgedCallDriver>> {
        match self {
            Self::BridgedCall(call) => Some(Arc::clone(call)),
            _ => None,
        }
    }

    /// True for this very bridged call.
    #[must_use]
    pub fn is_bridged_call(&self, call: &Arc<BridgedCallDriver>) -> bool {
        matches!(self, Self::BridgedCall(own) if Arc::ptr_eq(own, call))
    }
}

/// Takes the answer to a request of the gateway itself, once.
#[derive(Clone)]
pub struct OwnReply(Arc<Mutex<Option<oneshot::Sender<OwnAnswer>>>>);

impl OwnReply {
    /// A reply and the receiver that waits for it.
    #[must_use]
    pub fn new() -> (Self, oneshot::Receiver<OwnAnswer>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(sender)))), receiver)
    }

    /// Hands the answer over; a second one is lost.
    pub fn send(&self, answer: OwnAnswer) {
        if let Some(sender) = self.0.lock().unpoisoned().take() {
            let _ = sender.send(answer);
        }
    }
}

/// Whom a message on a connection is attributed to: a session, or the gateway itself.
#[derive(Clone, Default)]
pub struct Party(Option<(Arc<Session>, Option<ExchangeId>)>);

impl Party {
    /// The gateway itself.
    pub const GATEWAY: Self = Self(None);

    /// A session, and one of its exchanges if the message belongs to one.
    #[must_use]
    pub fn of(session: &Arc<Session>, exchange: Option<ExchangeId>) -> Self {
        Self(Some((Arc::clone(session), exchange)))
    }

    /// The attribution as facts have it.
    #[must_use]
    pub fn account(&self, gateway: &Gateway) -> Account {
        match &self.0 {
            Some((session, exchange)) => {
                Account { session: session.key, caller: session.caller.clone(), exchange: *exchange, own: false }
            }
            None => Account::own(gateway.caller.clone()),
        }
    }

    /// The sender of its request.
    pub(crate) fn asker(&self) -> Asker {
        match &self.0 {
            Some((session, exchange)) => session.caller_of(*exchange).map_or(Asker::Gone, Asker::Caller),
            None => Asker::Gateway,
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
