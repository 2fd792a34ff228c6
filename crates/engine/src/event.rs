//! All that a driver can tell the front machine: it learns of the outside in no other way.

use crate::bridge::Reach;
use crate::catalog::Changed;
use crate::chain::HoldAnswer;
use crate::fault::Fault;
use crate::front::Authorized;
use crate::keys::{ExchangeId, PeerId, StreamId};
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Era, RawId, Revision};
use std::sync::Arc;

/// What happened. The front machine learns of nothing in any other way.
#[derive(Clone, Debug)]
pub enum Event {
    /// The client sent a message; the answer, if any, goes to the stream.
    Received {
        /// Where an answer goes.
        stream: StreamId,
        /// The message.
        message: Envelope,
    },
    /// The client sent something that is not a valid message, or may not be accepted, and is told so.
    Unreadable {
        /// Where the refusal goes.
        stream: StreamId,
        /// The id of the refusal, if it could be read.
        id: Option<RawId>,
        /// The era of the refusal.
        era: Era,
        /// Why.
        fault: Fault,
    },
    /// The client opened its general stream: a GET stream, or its stdio pipe.
    GeneralStream {
        /// The stream.
        stream: StreamId,
    },
    /// The client accepts only answers on this stream: one JSON body.
    AnswersOnly {
        /// The stream.
        stream: StreamId,
    },
    /// Nobody reads this stream any more.
    Gone {
        /// The stream.
        stream: StreamId,
    },
    /// A call is sent to its backend again, because it certainly was not processed.
    Retried {
        /// The exchange.
        exchange: ExchangeId,
    },
    /// A backend answered a call.
    Answered {
        /// The exchange it answers.
        exchange: ExchangeId,
        /// The answer as it came.
        message: Envelope,
        /// What the bridge between revisions has to change in it.
        edits: Edits,
        /// The HTTP status the backend gave it, if it had one.
        status: Option<u16>,
    },
    /// A call is answered from the read cache.
    Kept {
        /// The exchange it answers.
        exchange: ExchangeId,
        /// The answer.
        message: Envelope,
        /// What the bridge between revisions has to change in it.
        edits: Edits,
    },
    /// A backend of the new era wants more before it answers a call of the old one.
    Unfinished {
        /// The exchange.
        exchange: ExchangeId,
        /// The backend's answer.
        message: Envelope,
        /// How far the answer brings the call.
        reach: Reach,
        /// The call as it came.
        call: Authorized,
        /// The backend's revision.
        backend: Revision,
    },
    /// Answers an exchange with the questions of a parked call.
    Reply {
        /// The exchange.
        exchange: ExchangeId,
        /// The result.
        result: Bytes,
        /// The parked call, if one waits for the client to come back.
        park: Option<u128>,
    },
    /// A timer that the machine set with [`crate::Command::Wake`] fired.
    Wake {
        /// The exchange it is about.
        exchange: ExchangeId,
        /// The round of questions that timed out; `None` for a pause.
        round: Option<u32>,
    },
    /// An interceptor's question about a held message is answered.
    Consulted {
        /// The exchange of the message.
        exchange: ExchangeId,
        /// The answer to its question.
        answer: HoldAnswer,
    },
    /// A message is still held; its client may be told.
    StillHeld {
        /// The exchange of the message.
        exchange: ExchangeId,
        /// What it waits for, in words.
        text: Arc<str>,
    },
    /// A call failed.
    Failed {
        /// The exchange.
        exchange: ExchangeId,
        /// Why.
        fault: Fault,
    },
    /// A call was not sent, because its caller has to sign in at the backend first.
    SignIn {
        /// The exchange.
        exchange: ExchangeId,
        /// What the caller is told, with the address to open.
        fault: Fault,
        /// The call as it came.
        call: Authorized,
    },
    /// A backend asks the client something (old era only).
    Asked {
        /// The backend's configured name.
        backend: Arc<str>,
        /// The connection that asked, and waits for the answer.
        peer: PeerId,
        /// The request.
        message: Envelope,
        /// The exchange on whose stream it arrived, if known.
        about: Option<ExchangeId>,
    },
    /// A backend sent a notification.
    Notified {
        /// The backend's configured name.
        backend: Arc<str>,
        /// The connection.
        peer: PeerId,
        /// The notification.
        message: Envelope,
        /// The exchange on whose stream it arrived, or whose progress it reports.
        about: Option<ExchangeId>,
    },
    /// A backend connection is lost, so its questions need no answer.
    PeerGone {
        /// The connection.
        peer: PeerId,
    },
    /// A backend does not follow some of the resources and tasks that a listen request names.
    Unfollowed {
        /// The exchange of the listen request.
        exchange: ExchangeId,
        /// The backend.
        backend: Arc<str>,
        /// The resources, as the backend knows them.
        uris: Vec<String>,
        /// The tasks, as the backend knows them.
        tasks: Vec<String>,
    },
    /// The backends follow what a listen request names, or have been waited for long enough.
    Listening {
        /// The exchange of the listen request.
        exchange: ExchangeId,
    },
    /// The lists that a request waited for are known, or the wait is over.
    ListsReady {
        /// The held exchange.
        exchange: ExchangeId,
    },
    /// The catalog changed.
    ListsChanged {
        /// Which lists.
        changed: Changed,
    },
    /// The session ends: by DELETE, end of input, expiry or shutdown.
    Close,
}
