//! Who waits for an answer of a backend.

use crate::session::Session;
use signalbox_engine::{ExchangeId, Fault};
use signalbox_wire::Envelope;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// The answer to a request of the gateway itself.
pub type OwnAnswer = Result<Envelope, Fault>;

/// Who asked.
#[derive(Clone)]
pub enum Origin {
    /// A client's exchange.
    Exchange(Arc<Session>, ExchangeId),
    /// A `subscriptions/listen` of a client, carried on to a backend.
    Listen(Arc<Session>, ExchangeId),
    /// The gateway itself, which waits.
    Own(OwnReply),
    /// The gateway itself, which does not care.
    Nobody,
}

impl Origin {
    /// The session and exchange to tell, where there are any.
    #[must_use]
    pub fn exchange(&self) -> Option<(&Arc<Session>, ExchangeId)> {
        match self {
            Self::Exchange(session, id) | Self::Listen(session, id) => Some((session, *id)),
            Self::Own(_) | Self::Nobody => None,
        }
    }

    /// True for this very exchange.
    #[must_use]
    pub fn is(&self, session: &Arc<Session>, id: ExchangeId) -> bool {
        self.exchange().is_some_and(|(own, own_id)| own_id == id && Arc::ptr_eq(own, session))
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
