//! Everything that can happen to a front machine.

use crate::bridge::Reach;
use crate::catalog::Changed;
use crate::chain::HoldAnswer;
use crate::exchange::Call;
use crate::fault::Fault;
use crate::keys::{ExchangeId, PeerId, StreamId};
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Era, RawId, Revision};
use std::sync::Arc;

/// What happened. A front machine is told nothing in any other way.
#[derive(Clone, Debug)]
pub enum Event {
    /// The client sent a message; its answer, if it is due one, goes to the stream.
    Received {
        /// Where an answer goes.
        stream: StreamId,
        /// The message.
        message: Envelope,
    },
    /// The client sent something that is no message, or none that may be taken, and is told so.
    Unreadable {
        /// Where the refusal goes.
        stream: StreamId,
        /// The id it is addressed to, where that could be read.
        id: Option<RawId>,
        /// The era in whose words it is refused.
        era: Era,
        /// Why.
        fault: Fault,
    },
    /// The client opened a stream for what belongs to no call: a GET stream, or its stdio pipe.
    GeneralStream {
        /// The stream.
        stream: StreamId,
    },
    /// The client takes nothing but answers on this stream: one JSON body.
    AnswersOnly {
        /// The stream.
        stream: StreamId,
    },
    /// Nobody reads this stream any more.
    Gone {
        /// The stream.
        stream: StreamId,
    },
    /// A call is sent to its backend again, which has surely not processed it.
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
        /// The HTTP status the backend gave it, where it had one.
        status: Option<u16>,
    },
    /// A call is answered from what a backend said before.
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
        /// What the backend said.
        message: Envelope,
        /// What kind of answer that is.
        reach: Reach,
        /// The call as it came.
        call: Box<Call>,
        /// The backend's revision.
        backend: Revision,
    },
    /// An exchange is answered with this result: what a parked call wants to know.
    Reply {
        /// The exchange.
        exchange: ExchangeId,
        /// The result.
        result: Bytes,
        /// The call that waits for the client to come back, where one does.
        park: Option<u128>,
    },
    /// A moment that the machine asked for is over.
    Wake {
        /// The exchange it is about.
        exchange: ExchangeId,
        /// The round of questions whose time is over; none for a pause.
        round: Option<u32>,
    },
    /// What an interceptor wanted to know about a message that waits.
    Consulted {
        /// The exchange of the message.
        exchange: ExchangeId,
        /// What came of its question.
        answer: HoldAnswer,
    },
    /// A message goes on waiting; its client may be told.
    StillHeld {
        /// The exchange of the message.
        exchange: ExchangeId,
        /// What it waits for, for a person.
        text: Arc<str>,
    },
    /// A call could not be brought to an answer.
    Failed {
        /// The exchange.
        exchange: ExchangeId,
        /// Why.
        fault: Fault,
    },
    /// A backend asks the client something (old era only).
    Asked {
        /// The backend's configured name.
        backend: Arc<str>,
        /// The connection that asked, and waits for the answer.
        peer: PeerId,
        /// The request.
        message: Envelope,
        /// The exchange on whose stream it arrived, where that is known.
        about: Option<ExchangeId>,
    },
    /// A backend tells the client something.
    Notified {
        /// The backend's configured name.
        backend: Arc<str>,
        /// The connection.
        peer: PeerId,
        /// The notification.
        message: Envelope,
        /// The exchange on whose stream it arrived, or whose progress it tells.
        about: Option<ExchangeId>,
    },
    /// The connection behind these exchanges is gone: questions it asked need no answer any more.
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
        /// The tasks, likewise.
        tasks: Vec<String>,
    },
    /// The backends follow what a listen request names, or have been waited for long enough.
    Listening {
        /// The exchange of the listen request.
        exchange: ExchangeId,
    },
    /// The lists a held list request waited for are there, or have been waited for long enough.
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
