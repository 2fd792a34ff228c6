//! Commands of a back machine, and the only way to a backend. The engine builds a [`Draft`], which becomes an
//! [`Outbound`] and leaves as a [`ToBackend`] together with its fact. Only the engine can create drafts, and links
//! accept only [`ToBackend`].

use crate::bridge::CallProgress;
use crate::budget::{OverBudget, Share};
use crate::caller::Caller;
use crate::exchange::MethodName;
use crate::fact::{MessageFact, Point};
use crate::fault::Fault;
use crate::front::AuthorizedCall;
use crate::keys::{ExchangeId, Numbers, SessionKey};
use crate::profile::{ClientProfile, ServerProfile};
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Era, RawId, Revision, builder, meta, method};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Instant;

/// Message to a backend under construction. Only the engine can create one.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(crate) bytes: Bytes,
    pub(crate) key: Option<u64>,
    pub(crate) revision: Option<Revision>,
    pub(crate) method: MethodName,
    pub(crate) name: Option<Box<str>>,
    pub(crate) params: Vec<(String, String)>,
}

impl Draft {
    /// Creates a message that gets no answer: a notification, or the answer to a question.
    pub(crate) fn word(method: impl Into<MethodName>, bytes: Bytes) -> Self {
        Self { bytes, key: None, revision: None, method: method.into(), name: None, params: Vec::new() }
    }

    /// Creates the refusal of a question.
    pub(crate) fn refusal(id: &RawId, fault: &Fault) -> Self {
        Self::word("", builder::error(Some(id), fault.code(Era::Legacy), &fault.message, None))
    }

    /// Returns the message as it is so far.
    #[must_use]
    pub fn message(&self) -> &Bytes {
        &self.bytes
    }

    /// Converts the draft into a message that is ready to leave.
    pub(crate) fn depart(self) -> Outbound {
        let Self { bytes, key, revision, method, name, params } = self;
        Outbound { bytes, key, revision, method, name, params, epoch: 0, number: None }
    }
}

/// Builds a `server/discover` request for transports that must know a server's revisions before there is a connection.
/// It has no side effects and opens no session. `info` is our `clientInfo` object.
#[must_use]
pub fn probe(info: &str) -> Outbound {
    let params = format!(
        r#"{{"_meta":{{"{}":"{}","{}":{{}},"{}":{info}}}}}"#,
        meta::PROTOCOL_VERSION,
        Revision::LATEST.as_str(),
        meta::CLIENT_CAPABILITIES,
        meta::CLIENT_INFO,
    );
    let id = RawId::number(0);
    let bytes = builder::RequestBuilder::new(method::SERVER_DISCOVER).id(id).params_raw(params.as_bytes()).build();
    let word = Draft::word(method::SERVER_DISCOVER, bytes);
    Draft { key: Some(0), revision: Some(Revision::LATEST), ..word }.depart()
}

/// Session, caller and exchange to which a message to or from a backend is attributed.
#[derive(Clone, Debug)]
pub struct Account {
    /// Session of the message; [`SessionKey::GATEWAY`] if it belongs to none.
    pub session: SessionKey,
    /// Caller on whose behalf the message is sent.
    pub caller: Caller,
    /// Exchange of the message, if it belongs to one.
    pub exchange: Option<ExchangeId>,
    /// True for the gateway's own traffic.
    pub own: bool,
}

impl Account {
    /// Returns the account for the gateway's own traffic on a connection that was opened for this caller.
    #[must_use]
    pub fn own(caller: Caller) -> Self {
        Self { session: SessionKey::GATEWAY, caller, exchange: None, own: true }
    }

    /// Builds the fact that a message passed this point.
    #[must_use]
    pub fn fact(self, at: Instant, point: Point, backend: &Arc<str>, bytes: &Bytes, number: u64) -> MessageFact {
        MessageFact {
            exchange: self.exchange,
            backend: Some(Arc::clone(backend)),
            number,
            own: self.own,
            ..MessageFact::new(at, self.session, self.caller, point, bytes.clone())
        }
    }
}

/// Message for the link, with the values that HTTP mirrors into headers. Only the engine can create one, and it leaves
/// only through [`Outbound::leave`], which records its fact.
#[derive(Clone, Debug)]
pub struct Outbound {
    bytes: Bytes,
    key: Option<u64>,
    revision: Option<Revision>,
    method: MethodName,
    name: Option<Box<str>>,
    params: Vec<(String, String)>,
    epoch: u32,
    number: Option<NonZeroU64>,
}

impl Outbound {
    /// Returns the bytes of the message.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the request's id; `None` if the message gets no answer.
    #[must_use]
    pub fn key(&self) -> Option<u64> {
        self.key
    }

    /// Returns the revision agreed with the backend, once the handshake is over.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// Returns the method, for `Mcp-Method`.
    #[must_use]
    pub fn method(&self) -> &MethodName {
        &self.method
    }

    /// Returns the name or URI, for `Mcp-Name`. Set only toward the new era.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the `Mcp-Param-*` headers with their encoded values.
    #[must_use]
    pub fn params(&self) -> &[(String, String)] {
        &self.params
    }

    /// Returns the number of earlier backend sessions on the connection when the message was sent.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Charges the message to the share of its backend for as long as any copy of it lives.
    ///
    /// # Errors
    /// Returns an error if the backend already uses its share of the memory budget.
    pub fn charge(&mut self, share: &Arc<Share>) -> Result<(), OverBudget> {
        self.bytes = share.hold(std::mem::take(&mut self.bytes))?;
        Ok(())
    }

    /// Converts the message into the form that links accept, and builds its fact. The fact of a resent message refers
    /// to its first sending.
    pub fn leave(
        mut self,
        epoch: u32,
        account: Account,
        backend: &Arc<str>,
        numbers: &Numbers,
        at: Instant,
    ) -> (ToBackend, MessageFact) {
        let number = numbers.message();
        let fact = account.fact(at, Point::BackendOut, backend, &self.bytes, number);
        let again = self.number;
        self.number = again.or_else(|| NonZeroU64::new(number));
        (self.leave_untold(epoch), MessageFact { again, ..fact })
    }

    /// Finishes the message without a fact, while no sink wants message facts.
    #[must_use]
    pub fn leave_untold(mut self, epoch: u32) -> ToBackend {
        self.epoch = epoch;
        ToBackend(self)
    }
}

/// Message on its way to a backend. Links accept nothing else.
#[derive(Clone, Debug)]
pub struct ToBackend(Outbound);

impl ToBackend {
    /// Returns the message for resending, because the backend certainly has not processed it.
    #[must_use]
    pub fn unprocessed(self) -> Outbound {
        self.0
    }
}

#[cfg(feature = "testing")]
impl ToBackend {
    /// Creates a message without a machine, for tests of links.
    #[must_use]
    pub fn for_test(
        key: Option<u64>,
        method: &'static str,
        revision: Option<Revision>,
        bytes: impl Into<Bytes>,
    ) -> Self {
        let word = Draft::word(method, bytes.into());
        Self(Draft { key, revision, ..word }.depart())
    }

    /// Adds the name and the headers of a request of the new era.
    #[must_use]
    pub fn named_for_test(mut self, name: Option<&str>, params: Vec<(String, String)>) -> Self {
        self.0.name = name.map(Into::into);
        self.0.params = params;
        self
    }

    /// Replaces the bytes and keeps the envelope data.
    #[must_use]
    pub fn with_bytes_for_test(mut self, bytes: impl Into<Bytes>) -> Self {
        self.0.bytes = bytes.into();
        self
    }
}

impl std::ops::Deref for ToBackend {
    type Target = Outbound;

    fn deref(&self) -> &Outbound {
        &self.0
    }
}

/// Command of a back machine to its driver.
#[derive(Clone, Debug)]
pub enum BackCommand<O> {
    /// Send this message on the link.
    Transmit(Outbound),
    /// Stop the transport's work on this request, if any.
    Abort(u64),
    /// Deliver an answer to its origin.
    Answer {
        /// Origin of the call.
        to: O,
        /// The backend's answer, unmodified.
        message: Envelope,
        /// Changes made by the bridge.
        edits: Edits,
        /// HTTP status of the answer.
        status: Option<u16>,
    },
    /// The backend wants more before it answers, and the client's revision cannot express that in one message.
    Unfinished {
        /// Origin of the call.
        to: O,
        /// The backend's answer, unmodified.
        message: Envelope,
        /// Progress of the call with this answer.
        reach: CallProgress,
        /// The call as the client made it.
        call: AuthorizedCall,
    },
    /// An old backend created a task for a call of the new era.
    TaskMade {
        /// Origin of the call.
        to: O,
        /// The backend's answer, unmodified.
        message: Envelope,
        /// Edits that turn it into an answer for a client that knows tasks.
        edits: Edits,
        /// HTTP status of the answer.
        status: Option<u16>,
        /// Profile of the client.
        client: Arc<ClientProfile>,
    },
    /// Parts of an answer were rewritten because the client's revision lacks them.
    Rewritten(Vec<&'static str>),
    /// No answer will come.
    Fail {
        /// Origin of the call.
        to: O,
        /// Reason for the failure.
        fault: Fault,
        /// The backend's answer, if that is the reason.
        message: Option<Envelope>,
    },
    /// A call was not sent, because its caller has to sign in first.
    SignIn {
        /// Origin of the call.
        to: O,
        /// Fault with the sign-in address, for the caller.
        fault: Fault,
        /// The call as the client made it.
        call: AuthorizedCall,
    },
    /// A message that the machine handled itself: an answer to the handshake, or a ping.
    Own(Envelope),
    /// The backend sent a notification.
    Notify {
        /// Origin of the request it is about, if known.
        about: Option<O>,
        /// The notification, still with the backend's names.
        message: Envelope,
    },
    /// The backend sent a request for the client.
    Ask {
        /// Origin of the request on whose stream it asks, if known.
        about: Option<O>,
        /// The backend's request, under the backend's own id.
        message: Envelope,
    },
    /// Calls may be sent now.
    Ready(Arc<ServerProfile>),
    /// The connection cannot be used.
    Unusable(Fault),
    /// A message that matches no request was dropped.
    Stray {
        /// Kind of message, for the counters.
        what: &'static str,
        /// Reason for the mismatch, for the tape.
        why: &'static str,
        /// The message that was dropped.
        message: Envelope,
    },
}

/// Message of a backend before it is processed.
#[derive(Debug)]
pub struct BackendMessage<'a, O> {
    /// Origin that the message belongs to; `None` for the gateway's own traffic.
    pub whose: Option<&'a O>,
    /// The backend's message, unmodified.
    pub message: &'a Envelope,
    /// Reason why the message will not be delivered, if that is certain.
    pub lost: Option<&'static str>,
}

impl<O> BackCommand<O> {
    /// Returns the backend's message in this command, if any.
    #[must_use]
    pub fn heard(&self) -> Option<BackendMessage<'_, O>> {
        let heard = |whose, message| Some(BackendMessage { whose, message, lost: None });
        match self {
            Self::Answer { to, message, .. } | Self::Unfinished { to, message, .. } => heard(Some(to), message),
            Self::TaskMade { to, message, .. } => heard(Some(to), message),
            Self::Fail { to, message: Some(message), .. } => heard(Some(to), message),
            Self::Notify { about, message } | Self::Ask { about, message } => heard(about.as_ref(), message),
            Self::Own(message) => heard(None, message),
            Self::Stray { why, message, .. } => Some(BackendMessage { whose: None, message, lost: Some(why) }),
            Self::Transmit(_)
            | Self::Abort(_)
            | Self::Rewritten(_)
            | Self::Fail { message: None, .. }
            | Self::SignIn { .. }
            | Self::Ready(_)
            | Self::Unusable(_) => None,
        }
    }
}
