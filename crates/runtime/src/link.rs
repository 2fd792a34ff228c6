//! The seam between the runtime and every transport toward a backend.
//!
//! A link carries messages in both directions. Sending never waits: a message that cannot be taken now is refused.
//! Everything that comes back is posted to the [`LinkEvents`] that the link was opened with.

use crate::backend_credentials::Asker;
use crate::status::AddressStatus;
use bytes::Bytes;
use signalbox_engine::back::{Outbound, ToBackend};
use signalbox_engine::budget::Share;
use signalbox_engine::catalog::ListOwners;
use signalbox_engine::{BackendUser, Fault};
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
    /// Hands a message over. Keeps the order if the transport has one.
    ///
    /// # Errors
    /// A fault if the link is closed or its queue is full. The message has then certainly not been sent.
    fn send(&self, message: ToBackend) -> Result<(), Fault>;

    /// Stops working on this request. Over HTTP in the new era, dropping the connection cancels it.
    fn abort(&self, _key: u64) {}

    /// Opens the stream for messages that belong to no request, if the transport has one (GET).
    fn open_general(&self) {}

    /// Forgets a backend session that has expired, so that the link can be used for a new handshake.
    fn forget_session(&self) {}

    /// Ends the connection: a child process and all its descendants, or the backend session.
    fn close(&self);

    /// The process id of a child.
    fn pid(&self) -> Option<u32> {
        None
    }
}

/// Receives the events of a link. All calls return at once. A link that reads a stream of messages awaits
/// [`LinkEvents::room`] before it posts the next one.
pub trait LinkEvents: Send + Sync {
    /// A message came, or an array of them. `about` is the request whose stream it came on, `status` its HTTP status.
    fn received(&self, bytes: Bytes, about: Option<u64>, status: Option<u16>);

    /// A message came that the link has parsed already.
    fn message(&self, message: Envelope, about: Option<u64>, status: Option<u16>) {
        self.received(message.into_bytes(), about, status);
    }

    /// A parsed message came in an SSE event that has this id.
    fn event(&self, message: Envelope, about: Option<u64>, status: Option<u16>, _id: &str) {
        self.message(message, about, status);
    }

    /// A future that completes when there is room for the next message, or after a time limit. `None`
    /// while there is room.
    fn room(&self) -> Option<BoxFuture<()>> {
        None
    }

    /// The user whose calls come by this connection. `None` if that is not known, and then no caller may be served what
    /// is for one user alone.
    fn user(&self) -> Option<BackendUser>;

    /// The sender of a request that is under way.
    fn asker(&self, _key: u64) -> Asker {
        Asker::Gateway
    }

    /// The memory that messages of the backend may take up, if that is bounded.
    fn share(&self) -> Option<Arc<Share>> {
        None
    }

    /// This request got no JSON-RPC answer and will not get one.
    fn failed(&self, key: u64, fault: Fault);

    /// False once nobody waits for the answer to this request any more, so that it need not be sent again.
    fn is_wanted(&self, _key: u64) -> bool {
        true
    }

    /// This request is sent again, since the backend has certainly seen nothing of it.
    fn retried(&self, _key: u64) {}

    /// The backend closed this request's stream for now and will continue it on request (polling of 2025-11-25), after
    /// this wait if it named one.
    fn parted(&self, _key: u64, _retry: Option<Duration>) {}

    /// The backend no longer knows our session, and has certainly not processed this message.
    fn expired(&self, message: ToBackend);

    /// The backend refused the stream for messages that belong to no request; perhaps it no longer knows our session.
    fn doubted(&self) {}

    /// The transport sends a request of its own, before there is a connection.
    fn asks(&self, message: Outbound) -> ToBackend {
        message.leave_untold(0)
    }

    /// The backend answered a request of the transport.
    fn told(&self, _answer: &Bytes) {}

    /// Something was dropped that is not a message and belongs to no request.
    fn garbage(&self, _why: &Rejected) {}

    /// Something that came was dropped for this reason.
    fn dropped(&self, _reason: &'static str) {}

    /// A child wrote this line, which is not a message, to its standard output. It is safe to show.
    fn stray_line(&self, _line: String) {}

    /// A child that has ended wrote these last lines to its standard error. They are safe to show.
    fn last_words(&self, _lines: Vec<String>) {}

    /// The connection is lost with everything on it.
    fn lost(&self, why: String);
}

/// Opens links to one backend.
pub trait Connector: Send + Sync {
    /// Opens a new connection.
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>>;

    /// True for HTTP: headers repeat parts of a message, and closing the connection cancels a request.
    fn carries_headers(&self) -> bool;

    /// True if every connection is a process of its own, so that their number is limited.
    fn is_process(&self) -> bool;

    /// What was dropped or refused on its connections so far, by reason.
    fn dropped(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::new()
    }

    /// The name of the transport for people: `stdio`, `http`, …
    fn kind(&self) -> &'static str;

    /// How often messages were sent again that the backend had certainly not processed.
    fn retries(&self) -> u64 {
        0
    }

    /// True while the backend is being told that sessions of closed links are over.
    fn is_ending_sessions(&self) -> bool {
        false
    }

    /// True if callers may have to sign in at the backend.
    fn signs_in(&self) -> bool {
        false
    }

    /// Waits for the end of a sign-in of this user that is open in a browser; with `agreed` also for one that is
    /// offered and not opened yet. `None` if there is none. The wait is bounded.
    fn sign_in_end(&self, _user: &BackendUser, _agreed: bool) -> Option<BoxFuture<()>> {
        None
    }

    /// True if principals have credentials of their own, so that the backend may show each of them something else.
    fn is_per_user(&self) -> bool {
        false
    }

    /// True if each request is made with the token of its own caller, so that answers to callers of
    /// one principal may differ.
    fn is_per_caller(&self) -> bool {
        false
    }

    /// Says whose lists principals are shown, where many of them are shown the same.
    fn list_owners(&self) -> Option<Arc<dyn ListOwners>> {
        None
    }

    /// True if it is reached by a way of its own alone, and takes no names from others.
    fn is_apart(&self) -> bool {
        false
    }

    /// The state of each address, if there are several.
    fn addresses(&self) -> Vec<AddressStatus> {
        Vec::new()
    }
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
