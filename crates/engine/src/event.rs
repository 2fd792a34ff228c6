//! Events from the driver to the front machine. The machine learns of the outside in no other way.

use crate::bridge::CallProgress;
use crate::catalog::ListChanges;
use crate::chain::HoldAnswer;
use crate::fault::Fault;
use crate::front::AuthorizedCall;
use crate::keys::{ExchangeId, PeerId, StreamId};
use crate::local_answer::LocalAnswer;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Era, RawId, Revision};
use std::sync::Arc;

/// Event for the front machine.
#[derive(Clone, Debug)]
pub enum Event {
    /// The client sent a message. Its answer, if any, goes to the stream.
    Received {
        /// Stream for the answer.
        stream: StreamId,
        /// The client's message, as the strict scan accepted it.
        message: Envelope,
    },
    /// The client sent input that is not a valid message, or not acceptable. The client gets the fault.
    Unreadable {
        /// Stream for the refusal.
        stream: StreamId,
        /// Id of the refusal, if it could be read.
        id: Option<RawId>,
        /// Era of the refusal.
        era: Era,
        /// Reason for the refusal.
        fault: Fault,
    },
    /// The client opened its general stream: a GET stream, or its stdio pipe.
    GeneralStream {
        /// Stream for messages that belong to no request.
        stream: StreamId,
    },
    /// The client accepts only answers on this stream: one JSON body.
    AnswersOnly {
        /// The stream for answers.
        stream: StreamId,
    },
    /// The client closed this stream.
    Gone {
        /// The stream that was closed.
        stream: StreamId,
    },
    /// A call is sent to its backend again, because it certainly was not processed.
    Retried {
        /// Exchange of the call.
        exchange: ExchangeId,
    },
    /// A backend answered a call.
    Answered {
        /// Exchange that waits for the answer.
        exchange: ExchangeId,
        /// The backend's answer, unmodified.
        message: Envelope,
        /// Changes made by the bridge between revisions.
        edits: Edits,
        /// HTTP status of the backend's answer, if it had one.
        status: Option<u16>,
    },
    /// A call is answered by the gateway in its backend's place, and does not leave.
    Kept {
        /// Exchange that waits for the answer.
        exchange: ExchangeId,
        /// Source of the answer, for the record.
        source: LocalAnswer,
        /// The answer, unmodified.
        message: Envelope,
        /// Changes made by the bridge between revisions.
        edits: Edits,
    },
    /// A backend of the new era wants more before it answers a call of the old one.
    Unfinished {
        /// Exchange of the call.
        exchange: ExchangeId,
        /// The backend's answer, unmodified.
        message: Envelope,
        /// Progress of the call with this answer.
        reach: CallProgress,
        /// The call as the client made it.
        call: AuthorizedCall,
        /// The revision agreed with the backend.
        backend: Revision,
    },
    /// An exchange is answered with the questions of a parked call.
    Reply {
        /// Exchange that waits for the answer.
        exchange: ExchangeId,
        /// Result with the questions.
        result: Bytes,
        /// The parked call, if one waits for the client's answers.
        park: Option<u128>,
    },
    /// A timer that the machine set with [`crate::Command::Wake`] fired.
    Wake {
        /// Exchange it is about.
        exchange: ExchangeId,
        /// Round of questions that timed out; `None` for a pause.
        round: Option<u32>,
    },
    /// An interceptor's question about a held message is answered.
    Consulted {
        /// Exchange of the message.
        exchange: ExchangeId,
        /// The answer to its question.
        answer: HoldAnswer,
    },
    /// A message is still held, and its client may get a progress notification.
    StillHeld {
        /// Exchange of the message.
        exchange: ExchangeId,
        /// Progress message for the client.
        text: Arc<str>,
    },
    /// A call failed without an answer of its backend.
    Failed {
        /// Exchange of the call.
        exchange: ExchangeId,
        /// Reason for the failure.
        fault: Fault,
    },
    /// A call was not sent, because its caller has to sign in at the backend first.
    SignIn {
        /// Exchange of the call.
        exchange: ExchangeId,
        /// Fault for the caller, with the address to open.
        fault: Fault,
        /// The call as the client made it.
        call: AuthorizedCall,
    },
    /// A backend asks the client something (old era only).
    Asked {
        /// Configured name of the backend.
        backend: Arc<str>,
        /// Connection that asked and waits for the answer.
        peer: PeerId,
        /// The backend's request, under the backend's own id.
        message: Envelope,
        /// Exchange on whose stream it arrived, if known.
        about: Option<ExchangeId>,
    },
    /// A backend sent a notification.
    Notified {
        /// Configured name of the backend.
        backend: Arc<str>,
        /// Connection that sent it.
        peer: PeerId,
        /// The notification, still with the backend's names.
        message: Envelope,
        /// Exchange on whose stream it arrived, or whose progress it reports.
        about: Option<ExchangeId>,
    },
    /// A backend connection is lost, so its questions need no answer.
    PeerGone {
        /// The connection that was lost.
        peer: PeerId,
    },
    /// A backend does not follow some of the resources and tasks that a listen request names.
    Unfollowed {
        /// Exchange of the listen request.
        exchange: ExchangeId,
        /// Configured name of the backend.
        backend: Arc<str>,
        /// The backend's URIs of the resources.
        uris: Vec<String>,
        /// The backend's ids of the tasks.
        tasks: Vec<String>,
    },
    /// The backends follow the targets of a listen request, or the wait for them is over.
    Listening {
        /// Exchange of the listen request.
        exchange: ExchangeId,
    },
    /// The lists that a request waited for are known, or the wait is over.
    ListsReady {
        /// Exchange that waited for the lists.
        exchange: ExchangeId,
    },
    /// The catalog changed, so clients may have to be notified.
    ListsChanged {
        /// Lists whose content may differ.
        changed: ListChanges,
    },
    /// The session ends: by DELETE, end of input, expiry or shutdown.
    Close,
}
