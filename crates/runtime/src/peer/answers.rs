//! Delivery of a backend's answers to the origin of the request.

use super::Peer;
use crate::bridged_call_driver::Waiter;
use crate::origin::Origin;
use crate::session::Session;
use signalbox_engine::bridge::CallProgress;
use signalbox_engine::{AuthorizedCall, Event, ExchangeId, Fault, FaultKind};
use signalbox_wire::{Edits, Envelope, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Peer {
    pub(super) fn answer(self: &Arc<Self>, to: Origin, message: Envelope, edits: Edits, status: Option<u16>) {
        match to {
            Origin::Exchange(session, exchange, _) => {
                session.handle(Event::Answered { exchange, message, edits, status });
            }
            Origin::BridgedCall(call) => call.answered(message, edits, status),
            Origin::Hosted(task, about) => task.answered(about, Ok(&message)),
            Origin::Own(reply) => reply.send(Ok(message)),
            Origin::Watches(number) => self.watch_ended(number, message.error().map(refused)),
            Origin::Listen(session, exchange) => self.listen_ended((session, exchange), message.error().is_some()),
            Origin::Fork(..) | Origin::Discard => {}
        }
    }

    pub(super) fn fail(self: &Arc<Self>, to: &Origin, fault: Fault) {
        match to {
            Origin::Exchange(session, exchange, _) => session.handle(Event::Failed { exchange: *exchange, fault }),
            Origin::BridgedCall(call) => call.failed(fault),
            Origin::Hosted(task, about) => task.answered(*about, Err(fault)),
            Origin::Own(reply) => reply.send(Err(fault)),
            Origin::Watches(number) => self.watch_ended(*number, Some(fault)),
            Origin::Listen(session, exchange) => self.listen_ended((Arc::clone(session), *exchange), false),
            Origin::Fork(session, _) => session.gateway.counters.dropped("fork"),
            Origin::Discard => {}
        }
    }

    /// Asks the caller to sign in before its call can be sent.
    pub(super) fn sign_in(self: &Arc<Self>, to: &Origin, fault: Fault, call: AuthorizedCall) {
        match to {
            Origin::Exchange(session, exchange, _) => {
                session.handle(Event::SignIn { exchange: *exchange, fault, call });
            }
            // The backend has not seen the call, so there is nothing to park.
            Origin::BridgedCall(bridged) if bridged.waiter().is_some() => {
                if let Some((session, exchange)) = bridged.waiter() {
                    bridged.over();
                    session.handle(Event::SignIn { exchange, fault, call });
                }
            }
            other => self.fail(other, fault),
        }
    }

    fn listen_ended(self: &Arc<Self>, waiter: Waiter, refused: bool) {
        if let Some(backend) = self.backend.upgrade() {
            backend.follow_ended(self, &waiter, refused);
        }
    }

    /// Forwards a request for input from a modern backend, which it needs before it answers a legacy client.
    pub(super) fn unfinished(&self, to: &Origin, message: Envelope, reach: CallProgress, call: AuthorizedCall) {
        let (Some((session, exchange)), Some(profile)) = (to.exchange(), self.profile()) else { return };
        tracing::debug!(peer = %self.id, ?reach, "bridge: the backend needs more input before it answers");
        session.handle(Event::Unfinished { exchange, message, reach, call, backend: profile.revision });
    }

    /// Sends a copy of a request. Returns false if the connection is not ready for it.
    pub(crate) fn fork(
        &self,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: AuthorizedCall,
        timeout: Duration,
    ) -> bool {
        let mut inner = self.lock();
        if !inner.machine.is_ready() {
            return false;
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        let origin = Origin::Fork(Arc::clone(session), exchange);
        let sent = inner
            .machine
            .call(origin, call, timeout, crate::clock::now())
            .and_then(|message| self.transmit(&mut inner, message));
        sent.is_ok()
    }

    /// Sends a request whose answer is discarded, unless the connection is not ready for it.
    pub(crate) fn send_and_discard(&self, call: AuthorizedCall, timeout: Duration) {
        let mut inner = self.lock();
        let sent = inner
            .machine
            .call(Origin::Discard, call, timeout, crate::clock::now())
            .and_then(|message| self.transmit(&mut inner, message));
        if let Err(fault) = sent {
            tracing::debug!(peer = %self.id, %fault, "could not send a request whose answer is not awaited");
        }
    }
}

/// Returns the fault for a legacy session whose subscription a modern backend refuses.
fn refused(error: &[u8]) -> Fault {
    let text = json::member(error, "message").and_then(|span| json::string(span.of(error)));
    let why = text.as_deref().unwrap_or("no reason given").chars().take(200).collect::<String>();
    Fault::new(FaultKind::BackendGarbage, format!("the backend refuses to tell of changes: {why}"))
}
