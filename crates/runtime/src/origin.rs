//! Who waits for an answer of a backend.

use crate::backend::CallKey;
use crate::bridged_call_driver::{BridgedCallDriver, Waiter};
use crate::exclusive_use::ExclusiveUse;
use crate::hosted_task::HostedTask;
use crate::party::Party;
use crate::session::Session;
use signalbox_engine::bridge::hosted::TaskQuery;
use signalbox_engine::{ExchangeId, Fault};
use signalbox_wire::Envelope;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// The answer to a request of the gateway itself.
pub type OwnAnswer = Result<Envelope, Fault>;

/// Who asked.
#[derive(Clone)]
pub enum Origin {
    /// A client's exchange, with the connection for itself where there is a exclusive_use.
    Exchange(Arc<Session>, ExchangeId, Option<Arc<ExclusiveUse>>),
    /// A call of the new era at an old backend, which may outlive the exchange that began it.
    BridgedCall(Arc<BridgedCallDriver>),
    /// A task of an old backend that a client of the new era asks about.
    Hosted(Arc<HostedTask>, TaskQuery),
    /// A `subscriptions/listen` of a client, carried on to a backend.
    Listen(Arc<Session>, ExchangeId),
    /// The gateway's own listen request for what old sessions follow.
    Watches(u64),
    /// The gateway itself, which waits.
    Own(OwnReply),
    /// A copy of a request, whose answer is only written down.
    Fork(Arc<Session>, ExchangeId),
    /// The gateway itself, which does not care.
    Nobody,
}

impl Origin {
    /// The session and exchange to tell, where there are any.
    #[must_use]
    pub fn exchange(&self) -> Option<Waiter> {
        match self {
            Self::Exchange(session, id, _) | Self::Listen(session, id) => Some((Arc::clone(session), *id)),
            Self::BridgedCall(call) => call.waiter(),
            Self::Hosted(..) | Self::Watches(_) | Self::Own(_) | Self::Fork(..) | Self::Nobody => None,
        }
    }

    /// The exchange of it.
    #[must_use]
    pub(crate) fn exchange_id(&self) -> Option<ExchangeId> {
        match self {
            Self::Exchange(_, id, _) | Self::Listen(_, id) => Some(*id),
            Self::BridgedCall(call) => call.waiter().map(|(_, id)| id),
            Self::Hosted(..) | Self::Watches(_) | Self::Own(_) | Self::Fork(..) | Self::Nobody => None,
        }
    }

    /// On whose account the request, and whatever comes of it, goes.
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

    /// True for a call of a client, a copy of one, and what is asked about a task.
    #[must_use]
    pub fn is_work(&self) -> bool {
        self.is_call() || matches!(self, Self::Hosted(..) | Self::Fork(..))
    }

    /// The call of a client that this is, where somebody waits for it.
    #[must_use]
    pub(crate) fn call_key(&self) -> Option<CallKey> {
        match self {
            Self::Exchange(session, id, _) => Some((session.key, *id)),
            Self::BridgedCall(call) => call.waiter().map(|(session, id)| (session.key, id)),
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

    /// The call of the new era at an old backend, where it is one.
    #[must_use]
    pub fn bridged_call(&self) -> Option<Arc<BridgedCallDriver>> {
        match self {
            Self::BridgedCall(call) => Some(Arc::clone(call)),
            _ => None,
        }
    }

    /// True for this very call.
    #[must_use]
    pub fn is_bridged_call(&self, call: &Arc<BridgedCallDriver>) -> bool {
        matches!(self, Self::BridgedCall(own) if Arc::ptr_eq(own, call))
    }
}

/// The receiving end of a request of our own, usable once.
#[derive(Clone)]
pub struct OwnReply(Arc<Mutex<Option<oneshot::Sender<OwnAnswer>>>>);

impl OwnReply {
    /// A reply and the future that waits for it.
    #[must_use]
    pub fn new() -> (Self, oneshot::Receiver<OwnAnswer>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(sender)))), receiver)
    }

    /// Hands the answer over; a second one is lost.
    pub fn send(&self, answer: OwnAnswer) {
        if let Some(sender) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = sender.send(answer);
        }
    }
}
