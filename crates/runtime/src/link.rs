//! The seam between the runtime and every transport toward a backend.
//!
//! A link is a duplex of messages. Sending never waits: what cannot be taken now is refused. What comes back is posted to
//! the [`LinkEvents`] that the link was opened with.

use crate::status::AddressStatus;
use bytes::Bytes;
use signalbox_engine::Fault;
use signalbox_engine::back::{Outbound, ToBackend};
use signalbox_engine::budget::Share;
use signalbox_wire::{Envelope, Rejected};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A boxed future, as trait objects need it.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An open connection to a backend.
pub trait Link: Send + Sync {
    /// Hands a message over. Order is kept where the transport has one.
    ///
    /// # Errors
    /// A fault if the link is closed or its queue is full; the message is then surely not sent.
    fn send(&self, message: ToBackend) -> Result<(), Fault>;

    /// Stops any work on this request: in the new era over HTTP, dropping the connection is the cancellation.
    fn abort(&self, _key: u64) {}

    /// Opens the stream for what belongs to no request, where the transport has one of its own (GET).
    fn open_general(&self) {}

    /// Forgets the backend session that has expired, so that a new handshake can be made on the same link.
    fn forget_session(&self) {}

    /// Ends the connection: a child process and all its descendants, or the backend session.
    fn close(&self);

    /// The process id of a child.
    fn pid(&self) -> Option<u32> {
        None
    }
}

/// Where a link posts what happens on it. All calls return at once; a link that reads a stream of messages awaits
/// [`LinkEvents::room`] before it posts the next.
pub trait LinkEvents: Send + Sync {
    /// A message came, or an array of them. `about` is the request on whose own stream it came, `status` the HTTP status it had.
    fn received(&self, bytes: Bytes, about: Option<u64>, status: Option<u16>);

    /// A message came that the link has read already.
    fn message(&self, message: Envelope, about: Option<u64>, status: Option<u16>) {
        self.received(message.into_bytes(), about, status);
    }

    /// Comes to its end when there is room for the next message, or waiting for it is over. None while there is room.
    fn room(&self) -> Option<BoxFuture<()>> {
        None
    }

    /// What the backend may make the gateway hold, where that is bounded.
    fn share(&self) -> Option<Arc<Share>> {
        None
    }

    /// This request got no JSON-RPC answer and will not get one.
    fn failed(&self, key: u64, fault: Fault);

    /// False once nobody waits for the answer to this request any more, so that it need not be sent again.
    fn is_wanted(&self, _key: u64) -> bool {
        true
    }

    /// This request is sent again, since the backend has surely seen nothing of it.
    fn retried(&self, _key: u64) {}

    /// The backend closed this request's stream for now and will go on with it when asked to (2025-11-25 polling), after this
    /// wait where it named one.
    fn parted(&self, _key: u64, _retry: Option<Duration>) {}

    /// The backend no longer knows our session, and has surely not processed this message.
    fn expired(&self, message: ToBackend);

    /// The backend does not know the stream for what belongs to no request, and perhaps no longer our session.
    fn doubted(&self) {}

    /// The transport asks something for itself, before there is a connection.
    fn asks(&self, message: Outbound) -> ToBackend {
        message.leave_untold(0)
    }

    /// What the backend answered to that.
    fn told(&self, _answer: &Bytes) {}

    /// Something came that is no message and belongs to no request; it was dropped.
    fn garbage(&self, _why: &Rejected) {}

    /// Something that came was dropped, for this reason in a word.
    fn dropped(&self, _reason: &'static str) {}

    /// A child wrote this line where only messages belong; it is fit to be shown.
    fn stray_line(&self, _line: String) {}

    /// A child that has ended wrote these lines to its standard error last; they are fit to be shown.
    fn last_words(&self, _lines: Vec<String>) {}

    /// The connection is gone with everything on it.
    fn lost(&self, why: String);
}

/// Opens links to one backend.
pub trait Connector: Send + Sync {
    /// Opens a new connection.
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>>;

    /// True where the transport mirrors parts of a message into headers, and cancels by closing.
    fn carries_headers(&self) -> bool;

    /// True where every connection is a process of its own, which sessions share by the rule of invariant 14.
    fn is_process(&self) -> bool;

    /// What was dropped or refused on its connections so far, by reason.
    fn dropped(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::new()
    }

    /// `stdio`, `http`, …: for people.
    fn kind(&self) -> &'static str;

    /// How often messages were sent again that had surely not been processed.
    fn retries(&self) -> u64 {
        0
    }

    /// The state of each address, where there are several.
    fn addresses(&self) -> Vec<AddressStatus> {
        Vec::new()
    }
}
