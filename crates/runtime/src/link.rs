//! Interface between the runtime and every transport to a backend.
//!
//! A link carries messages in both directions. Sending never waits: a message that cannot be accepted now is refused.
//! All incoming events are delivered to the [`LinkEvents`] that the link was opened with.

use crate::backend_credentials::RequestSender;
use bytes::Bytes;
use serde::Serialize;
use signalbox_engine::back::{Outbound, ToBackend};
use signalbox_engine::budget::Share;
use signalbox_engine::catalog::ListOwners;
use signalbox_engine::{BackendUser, Fault};
use signalbox_wire::{Envelope, RejectedMessage};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Boxed future, for methods of trait objects.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An open connection to a backend.
pub trait Link: Send + Sync {
    /// Sends a message. Keeps the order if the transport has one.
    ///
    /// # Errors
    /// If the link is closed or its queue is full. The message has then certainly not been sent.
    fn send(&self, message: ToBackend) -> Result<(), Fault>;

    /// Aborts a request. Over modern HTTP, dropping the connection cancels it.
    fn abort(&self, _key: u64) {}

    /// Opens the stream for messages that belong to no request, if the transport has one (GET).
    fn open_general(&self) {}

    /// Forgets an expired backend session, so that the link can be used for a new handshake.
    fn forget_session(&self) {}

    /// Closes the connection: ends a child process and all its descendants, or the backend session.
    fn close(&self);

    /// Returns the process id of a child.
    fn pid(&self) -> Option<u32> {
        None
    }
}

/// Receiver of the events of a link. All methods return at once. A link that reads a stream of messages awaits
/// [`LinkEvents::room`] before it delivers the next one.
pub trait LinkEvents: Send + Sync {
    /// Handles a message or an array of messages. `about` is the request on whose stream it arrived, `status` its HTTP
    /// status.
    fn received(&self, bytes: Bytes, about: Option<u64>, status: Option<u16>);

    /// Handles a message that the link has parsed already.
    fn message(&self, message: Envelope, about: Option<u64>, status: Option<u16>) {
        self.received(message.into_bytes(), about, status);
    }

    /// Handles a parsed message that arrived in an SSE event with this id.
    fn event(&self, message: Envelope, about: Option<u64>, status: Option<u16>, _id: &str) {
        self.message(message, about, status);
    }

    /// Returns a future that completes when the next message can be accepted, or after a time limit. `None` if it can
    /// be accepted now.
    fn room(&self) -> Option<BoxFuture<()>> {
        None
    }

    /// Returns the user of this connection. `None` if unknown; then no caller may be served what is for one user alone.
    fn user(&self) -> Option<BackendUser>;

    /// Returns the sender of a request in flight.
    fn asker(&self, _key: u64) -> RequestSender {
        RequestSender::Gateway
    }

    /// Returns the memory budget for messages of the backend, if it is bounded.
    fn share(&self) -> Option<Arc<Share>> {
        None
    }

    /// Reports that a request got no JSON-RPC answer and will not get one.
    fn failed(&self, key: u64, fault: Fault);

    /// Returns false once the answer to this request is no longer awaited, so that it need not be resent.
    fn is_wanted(&self, _key: u64) -> bool {
        true
    }

    /// Reports that a request is resent, because the backend has certainly not seen it.
    fn retried(&self, _key: u64) {}

    /// Reports that the backend closed this request's stream for now and will resume it on request (polling of
    /// 2025-11-25), after the delay `retry` if it named one.
    fn parted(&self, _key: u64, _retry: Option<Duration>) {}

    /// Reports that the backend does not know the session any more, and has certainly not processed this message.
    fn expired(&self, message: ToBackend);

    /// Reports that the backend refused the stream for messages that belong to no request. It may not know the session
    /// any more.
    fn doubted(&self) {}

    /// Releases a request that the transport itself sends, before there is a connection.
    fn asks(&self, message: Outbound) -> ToBackend {
        message.leave_untold(0)
    }

    /// Reports the backend's answer to a request of the transport.
    fn told(&self, _answer: &Bytes) {}

    /// Reports dropped input that is not a message and belongs to no request.
    fn garbage(&self, _why: &RejectedMessage) {}

    /// Reports dropped input, with the reason.
    fn dropped(&self, _reason: &'static str) {}

    /// Reports a line on a child's standard output that is not a message. It is safe to display.
    fn stray_line(&self, _line: String) {}

    /// Reports the last lines that an ended child wrote to its standard error. They are safe to display.
    fn last_words(&self, _lines: Vec<String>) {}

    /// Reports that the connection is lost with everything on it.
    fn lost(&self, why: String);
}

/// Factory of links to one backend.
pub trait Connector: Send + Sync {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>>;

    /// Returns true for HTTP: headers repeat parts of a message, and closing the connection cancels a request.
    fn carries_headers(&self) -> bool;

    /// Returns true if every connection is a separate process, so that their number is limited.
    fn is_process(&self) -> bool;

    /// Returns the number of messages dropped or refused on its connections, by reason.
    fn dropped(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::new()
    }

    /// Returns the display name of the transport, such as `stdio` or `http`.
    fn kind(&self) -> &'static str;

    /// Returns the number of resent messages that the backend had certainly not processed.
    fn retries(&self) -> u64 {
        0
    }

    /// Returns true while the backend is being told that sessions of closed links are over.
    fn is_ending_sessions(&self) -> bool {
        false
    }

    /// Returns true if callers may have to sign in at the backend.
    fn signs_in(&self) -> bool {
        false
    }

    /// Waits for the end of a sign-in of this user that is open in a browser, or, if `agreed`, that is offered but not
    /// opened yet. Returns `None` if there is none. The wait is bounded.
    fn sign_in_end(&self, _user: &BackendUser, _agreed: bool) -> Option<BoxFuture<()>> {
        None
    }

    /// Returns true if principals have credentials of their own, so that the backend may show each of them something
    /// different.
    fn is_per_user(&self) -> bool {
        false
    }

    /// Returns true if each principal has a credential that no other principal uses, so that the backend tells their
    /// tasks apart.
    fn has_own_credentials(&self) -> bool {
        false
    }

    /// Returns true if each request carries the token of its own caller, so that answers to callers of one principal
    /// may differ.
    fn is_per_caller(&self) -> bool {
        false
    }

    /// Returns the mapping from principals to the owners of the lists that they see, if several principals see the
    /// same.
    fn list_owners(&self) -> Option<Arc<dyn ListOwners>> {
        None
    }

    /// Returns true if the backend is reachable only through an endpoint of its own and takes no names from other
    /// backends.
    fn is_apart(&self) -> bool {
        false
    }

    /// Returns the status of each address, if there are several.
    fn addresses(&self) -> Vec<AddressStatus> {
        Vec::new()
    }
}

/// State of one address of a backend.
#[derive(Clone, Debug, Serialize)]
pub struct AddressStatus {
    pub address: String,
    /// Relative frequency with which the address is chosen.
    pub weight: u32,
    /// State of the address's breaker: `closed`, or `open` or `half open` if it is avoided because it fails.
    pub breaker: &'static str,
    /// Number of requests or connections in progress.
    pub busy: usize,
    /// Number of requests or connections sent to the address.
    pub sent: u64,
    /// Number of failed requests or connections.
    pub failed: u64,
}

/// A backend that cannot be reached, for tests that never send it anything.
#[cfg(test)]
pub(crate) mod nowhere {
    use super::*;
    use crate::backend::{Backend, BackendSpec, FailureRules, Lifetime};
    use signalbox_engine::FaultKind;
    use signalbox_engine::back::Wish;

    struct Nowhere;

    impl Connector for Nowhere {
        fn open(&self, _: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
            Box::pin(async { Err(Fault::new(FaultKind::BackendDown, "leads nowhere")) })
        }

        fn carries_headers(&self) -> bool {
            false
        }

        fn is_process(&self) -> bool {
            false
        }

        fn kind(&self) -> &'static str {
            "nowhere"
        }
    }

    /// A backend of this name.
    pub(crate) fn backend(name: &str) -> Arc<Backend> {
        let spec = BackendSpec {
            timeout: Duration::from_secs(1),
            start_timeout: Duration::from_secs(1),
            max_children: 1,
            wish: Wish::Auto,
            strict: None,
            failing: FailureRules::default(),
            lifetime: Lifetime::default(),
            questions: crate::backend::QuestionTime::default(),
            source: 0,
            allows: Box::new(|_| true),
        };
        Backend::new(name, Arc::new(Nowhere), spec)
    }
}
