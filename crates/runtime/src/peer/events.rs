//! Implementation of [`LinkEvents`]: events of a link, as its connection receives them.

use super::Peer;
use super::expiry::ExpiryAction;
use crate::backend_credentials::RequestSender;
use crate::link::{BoxFuture, LinkEvents};
use crate::origin::Origin;
use bytes::Bytes;
use signalbox_engine::back::{BackCommand, Outbound, ToBackend};
use signalbox_engine::budget::Share;
use signalbox_engine::{BackendUser, Fault, FaultKind};
use signalbox_wire::{Envelope, Kind, RejectedMessage, batch, json, limits, method, scan};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Time limit for the ping that shows whether the backend still knows the session.
const DOUBT_TIMEOUT: Duration = Duration::from_secs(30);

impl Peer {
    /// Counts a message of the backend that matches nothing.
    pub(crate) fn count_stray(&self, what: &'static str) {
        if let Some(backend) = self.backend.upgrade() {
            backend.count_stray(what);
        }
    }
}

/// Forwards the events of a link to its connection. Ignores them once the connection is gone.
pub(super) struct PeerEvents(pub(super) Weak<Peer>);

impl PeerEvents {
    /// Rejects input from the backend that is not a message, or is not allowed.
    fn refuse(&self, about: Option<u64>, why: &dyn std::fmt::Display) {
        let Some(backend) = self.0.upgrade().and_then(|peer| peer.backend.upgrade()) else { return };
        tracing::warn!(backend = %backend.name, %why, "the backend sent something that is not a message");
        backend.count_stray("garbage");
        if let Some(key) = about {
            let text = format!("backend `{}` answered with something that is not JSON-RPC: {why}", backend.name);
            self.failed(key, Fault::new(FaultKind::BackendGarbage, text).with_str("backend", &backend.name));
        }
    }

    /// Handles a message, after a strict scan if one is configured and has not been done for it.
    fn parsed(&self, message: Envelope, about: Option<u64>, status: Option<u16>, event_id: Option<&str>) {
        let Some(peer) = self.0.upgrade() else { return };
        let Some(backend) = peer.backend.upgrade() else { return };
        let ungoverned = backend.strict_limits().filter(|limits| !message.holds(limits));
        match ungoverned.map_or(Ok(()), |limits| scan(message.bytes(), limits)) {
            Ok(()) => {
                peer.drive_event(event_id, |machine, now, out| machine.received(message, about, status, now, out));
            }
            Err(error) => {
                let named = matches!(message.kind(), Kind::Response | Kind::Error).then(|| message.id()).flatten();
                self.refuse(about.or_else(|| named.and_then(|id| id.as_u64())), &error);
            }
        }
    }

    fn received_batch(&self, bytes: Bytes, about: Option<u64>, status: Option<u16>) {
        let Some(backend) = self.0.upgrade().and_then(|peer| peer.backend.upgrade()) else { return };
        match batch::split(&bytes, backend.strict_limits().map_or(limits::BATCH, |limits| limits.batch)) {
            Ok(elements) => {
                for element in elements {
                    match Envelope::parse(element) {
                        Ok(message) => self.message(message, about, status),
                        Err(rejected) => self.garbage(&rejected),
                    }
                }
            }
            Err(rejected) => self.refuse(about, &rejected.error),
        }
    }
}

/// Returns the id of the request that an invalid message would answer: it has an id and no method.
fn answers(rejected: &RejectedMessage, bytes: &[u8]) -> Option<u64> {
    let id = rejected.id.as_ref()?.as_u64()?;
    json::member(bytes, "method").is_none().then_some(id)
}

impl LinkEvents for PeerEvents {
    fn received(&self, bytes: Bytes, about: Option<u64>, status: Option<u16>) {
        if batch::is_array(&bytes) {
            return self.received_batch(bytes, about, status);
        }
        let backend = self.0.upgrade().and_then(|peer| peer.backend.upgrade());
        let read = match backend.as_ref().and_then(|backend| backend.strict_limits()) {
            Some(limits) => Envelope::look(bytes.clone(), limits),
            None => Envelope::parse(bytes.clone()),
        };
        match read {
            Ok(message) => self.message(message, about, status),
            // On a pipe only the content can tell which request it would have answered.
            Err(rejected) => self.refuse(about.or_else(|| answers(&rejected, &bytes)), &rejected.error),
        }
    }

    fn message(&self, message: Envelope, about: Option<u64>, status: Option<u16>) {
        self.parsed(message, about, status, None);
    }

    fn event(&self, message: Envelope, about: Option<u64>, status: Option<u16>, id: &str) {
        self.parsed(message, about, status, Some(id));
    }

    fn room(&self) -> Option<BoxFuture<()>> {
        self.0.upgrade()?.backend.upgrade()?.gateway()?.room(0)
    }

    fn user(&self) -> Option<BackendUser> {
        Some(self.0.upgrade()?.user.clone())
    }

    fn asker(&self, key: u64) -> RequestSender {
        let Some(peer) = self.0.upgrade() else { return RequestSender::Gone };
        // Reading the origin's party locks the session, so the peer must not be locked meanwhile.
        let (origin, pending) = {
            let inner = peer.lock();
            (inner.machine.origin(key).cloned(), inner.machine.is_pending(key))
        };
        match origin {
            Some(origin) => origin.party().asker(),
            // The handshake, which the gateway makes for the principal.
            None if pending => RequestSender::Gateway,
            None => RequestSender::Gone,
        }
    }

    fn share(&self) -> Option<Arc<Share>> {
        self.0.upgrade()?.backend.upgrade()?.share().cloned()
    }

    fn dropped(&self, reason: &'static str) {
        if let Some(peer) = self.0.upgrade() {
            peer.count_stray(reason);
        }
    }

    fn asks(&self, message: Outbound) -> ToBackend {
        match self.0.upgrade() {
            Some(peer) => peer.release_own(message),
            None => message.leave_untold(0),
        }
    }

    fn told(&self, answer: &Bytes) {
        if let (Some(peer), Ok(message)) = (self.0.upgrade(), Envelope::parse(answer.clone())) {
            peer.record_received(&BackCommand::Own(message), None);
        }
    }

    fn garbage(&self, why: &RejectedMessage) {
        self.refuse(None, why);
    }

    fn stray_line(&self, line: String) {
        if let Some(backend) = self.0.upgrade().and_then(|peer| peer.backend.upgrade()) {
            backend.state().condition.set_stray_line(line);
        }
    }

    fn last_words(&self, lines: Vec<String>) {
        if let Some(backend) = self.0.upgrade().and_then(|peer| peer.backend.upgrade()) {
            backend.state().condition.set_stderr_tail(lines);
        }
    }

    fn failed(&self, key: u64, fault: Fault) {
        if let Some(peer) = self.0.upgrade() {
            peer.drive(|machine, now, out| machine.failed(key, fault, now, out));
        }
    }

    fn is_wanted(&self, key: u64) -> bool {
        self.0.upgrade().is_some_and(|peer| peer.lock().machine.is_pending(key))
    }

    fn retried(&self, key: u64) {
        let Some(peer) = self.0.upgrade() else { return };
        let origin = peer.lock().machine.origin(key).cloned();
        if let Some((session, exchange)) = origin.and_then(|origin| origin.exchange()) {
            session.retried(exchange);
        }
    }

    fn parted(&self, key: u64, retry: Option<Duration>) {
        let Some(peer) = self.0.upgrade() else { return };
        let origin = peer.lock().machine.origin(key).cloned();
        if let Some((session, exchange)) = origin.and_then(|origin| origin.exchange()) {
            session.pause_stream(exchange, retry);
        }
    }

    /// Opens a new session after a message has found the old one expired. That message and later ones are resent in it,
    /// each once: with a backend that forgets every session, the handshake would otherwise repeat forever.
    fn expired(&self, message: ToBackend) {
        let message = message.unprocessed();
        let Some(peer) = self.0.upgrade() else { return };
        let Some(key) = message.key() else {
            return tracing::debug!(peer = %peer.id, method = %message.method(), "a notification met an expired session");
        };
        let verdict = peer.lock().expired(message, crate::clock::now());
        match verdict {
            ExpiryAction::Wait => {}
            ExpiryAction::Resend(message) => peer.resend(vec![message]),
            ExpiryAction::Reopen => {
                if let Some(link) = peer.link.get() {
                    link.forget_session();
                }
                peer.drive(|machine, now, out| machine.reopen(now, out));
            }
            ExpiryAction::GiveUp => {
                let name = peer.backend_name();
                let text = format!("backend `{name}` forgets its sessions as soon as they are opened");
                self.failed(key, Fault::new(FaultKind::BackendGarbage, text).with_str("backend", &name));
            }
        }
    }

    /// Pings the backend to find out whether it still knows the session. If not, the answer to the ping opens a new
    /// one. A backend that merely lacks the stream answers the ping, and nothing changes.
    fn doubted(&self) {
        let Some(peer) = self.0.upgrade() else { return };
        if let Err(fault) = peer.own(Origin::Discard, method::PING, "", DOUBT_TIMEOUT) {
            tracing::debug!(peer = %peer.id, %fault, "could not ask whether the session is still known");
        }
    }

    fn lost(&self, why: String) {
        let Some(peer) = self.0.upgrade() else { return };
        peer.end(&Fault::new(FaultKind::BackendDied, why));
    }
}
