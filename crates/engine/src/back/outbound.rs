//! What a back machine asks for.

use crate::bridge::Reach;
use crate::exchange::{Call, MethodName};
use crate::fault::Fault;
use crate::profile::{ClientProfile, ServerProfile};
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Revision};
use std::sync::Arc;

/// A message for the link, with what a header-carrying transport has to mirror.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// The message.
    pub bytes: Bytes,
    /// The request's id, or none for what gets no answer.
    pub key: Option<u64>,
    /// The revision agreed with the backend, once it is.
    pub revision: Option<Revision>,
    /// The method, for `Mcp-Method`.
    pub method: MethodName,
    /// The name or URI, for `Mcp-Name`; only toward the new era.
    pub name: Option<Box<str>>,
    /// `Mcp-Param-*` headers with their encoded values.
    pub params: Vec<(String, String)>,
    /// How many backend sessions the connection had before the one this was sent in.
    pub epoch: u32,
}

/// What is to be done for a backend connection.
#[derive(Clone, Debug)]
pub enum BackCommand<O> {
    /// Send this.
    Transmit(Outbound),
    /// Stop the transport's work on this request, if it still does any.
    Abort(u64),
    /// An answer for whoever asked.
    Answer {
        /// Who asked.
        to: O,
        /// The answer.
        message: Envelope,
        /// What the bridge changes in it.
        edits: Edits,
        /// The HTTP status it came with.
        status: Option<u16>,
    },
    /// The backend wants more before it answers, from a client that cannot be told so in one message.
    Unfinished {
        /// Who asked.
        to: O,
        /// What the backend said.
        message: Envelope,
        /// What kind of answer that is.
        reach: Reach,
        /// The call as it came.
        call: Box<Call>,
    },
    /// An old backend made a task of a call of the new era.
    TaskMade {
        /// Who asked.
        to: O,
        /// What the backend said.
        message: Envelope,
        /// What makes of it the answer for a client that knows tasks.
        edits: Edits,
        /// The HTTP status it came with.
        status: Option<u16>,
        /// The client.
        client: Arc<ClientProfile>,
    },
    /// Parts of an answer were rewritten, since the client's revision lacks them.
    Rewritten(Vec<&'static str>),
    /// No answer will come.
    Fail {
        /// Who asked.
        to: O,
        /// Why.
        fault: Fault,
    },
    /// The backend tells something.
    Notify {
        /// The request it is about, where that is known.
        about: Option<O>,
        /// The notification.
        message: Envelope,
    },
    /// The backend asks something.
    Ask {
        /// The request on whose stream it asks, where that is known.
        about: Option<O>,
        /// The request.
        message: Envelope,
    },
    /// Calls may be sent now.
    Ready(Arc<ServerProfile>),
    /// The connection cannot be used.
    Unusable(Fault),
    /// A message that fits nothing was dropped.
    Stray(&'static str),
}
