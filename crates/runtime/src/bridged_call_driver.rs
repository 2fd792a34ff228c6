//! Driver of a modern call at a legacy backend: runs the engine's [`BridgedCall`] and carries out its commands.

use crate::backend::ExclusiveUse;
use crate::gateway::Gateway;
use crate::origin::Attribution;
use crate::peer::Peer;
use crate::session::Session;
use bytes::Bytes;
use signalbox_engine::bridge::bridged_call::{BridgedCall, BridgedCallCommand, BridgedCallEnd};
use signalbox_engine::bridge::digest::request_digest_input;
use signalbox_engine::bridge::ticket::{Claim, Ticket};
use signalbox_engine::bridge::{capabilities, errors};
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Call, Event, ExchangeId, Fault, FaultKind, Principal};
use signalbox_wire::{Edits, Envelope, RawId, Revision, json, method};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// Time to wait for further questions before the client gets those that are there.
const SETTLE: Duration = Duration::from_millis(10);

/// Session and exchange that wait for the outcome of a call.
pub type Waiter = (Arc<Session>, ExchangeId);

/// A modern call at a legacy backend.
pub struct BridgedCallDriver {
    /// Number of the call among parked calls.
    pub park: u128,
    /// Principal on whose behalf the call runs.
    pub principal: Principal,
    backend: Arc<str>,
    method: String,
    params: Bytes,
    /// Size of the questions that were sent to the client, in bytes.
    shown: AtomicUsize,
    peer: Weak<Peer>,
    gateway: Weak<Gateway>,
    /// Set if the client accepts URL elicitation.
    takes_urls: bool,
    exclusive_use: Mutex<Option<ExclusiveUse>>,
    last: Mutex<Attribution>,
    machine: Mutex<BridgedCall<Waiter>>,
}

impl BridgedCallDriver {
    /// Creates the driver of a call that is about to be sent.
    #[must_use]
    pub fn new(
        gateway: &Arc<Gateway>,
        peer: &Arc<Peer>,
        backend: (&Arc<str>, Revision),
        waiter: Waiter,
        call: &Call,
        exclusive_use: Option<ExclusiveUse>,
    ) -> Arc<Self> {
        let principal = waiter.0.principal.clone();
        let stay = gateway.settings().park_timeout;
        Arc::new(Self {
            park: gateway.parks.next(),
            principal,
            backend: Arc::clone(backend.0),
            method: call.method.clone().into_owned(),
            params: call
                .envelope
                .params_span()
                .map_or_else(Bytes::new, |span| call.envelope.bytes().slice(span.range())),
            shown: AtomicUsize::new(0),
            peer: Arc::downgrade(peer),
            gateway: Arc::downgrade(gateway),
            takes_urls: capabilities::allows(
                &call.client.capabilities,
                method::ELICITATION_CREATE,
                br#"{"mode":"url"}"#,
            ),
            exclusive_use: Mutex::new(exclusive_use),
            last: Mutex::new(Attribution::of(&waiter.0, Some(waiter.1))),
            machine: Mutex::new(BridgedCall::new(waiter, call.client.capabilities.clone(), backend.1, stay)),
        })
    }

    /// Returns the number of bytes that the call holds while it is parked.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.params.len() + self.shown.load(Ordering::Relaxed)
    }

    /// Returns the party that the call runs for: its present waiter, or the last one.
    pub(crate) fn party(&self) -> Attribution {
        let mut last = self.last.lock().unpoisoned();
        if let Some((session, exchange)) = self.waiter() {
            *last = Attribution::of(&session, Some(exchange));
        }
        last.clone()
    }

    /// Returns the present waiter.
    #[must_use]
    pub fn waiter(&self) -> Option<Waiter> {
        self.lock().bound().cloned()
    }

    /// Handles a question of the backend.
    pub fn asked(self: &Arc<Self>, message: &Envelope) {
        tracing::debug!(backend = %self.backend, method = message.method(), "bridge: the backend asks something, so the call is parked");
        self.drive(|bridged_call, _, out| bridged_call.asked(message, out));
    }

    /// Handles the withdrawal of a question by the backend.
    pub fn withdrawn(&self, id: &RawId) {
        self.lock().withdrawn(id);
    }

    /// Handles a notification of the backend about the call.
    pub fn notified(self: &Arc<Self>, message: Envelope) {
        self.drive(|bridged_call, _, out| bridged_call.notified(message, out));
    }

    /// Handles the answer of the backend.
    pub fn answered(self: &Arc<Self>, message: Envelope, edits: Edits, status: Option<u16>) {
        self.release_connection();
        if self.shown_urls(&message) {
            return self.over();
        }
        self.drive(|bridged_call, _, out| bridged_call.ended(BridgedCallEnd::Answer { message, edits, status }, out));
    }

    /// Handles a failure of the call.
    pub fn failed(self: &Arc<Self>, fault: Fault) {
        self.release_connection();
        self.drive(|bridged_call, _, out| bridged_call.ended(BridgedCallEnd::Fault(fault), out));
    }

    /// Ends the call without an answer.
    pub fn over(&self) {
        self.release_connection();
        self.lock().over();
    }

    /// Frees the connection for other calls, because the backend is done with this one.
    fn release_connection(&self) {
        let exclusive_use = self.exclusive_use.lock().unpoisoned().take();
        drop(exclusive_use);
    }

    /// Continues the call with the answers that the client came back with.
    ///
    /// # Errors
    /// If the answers do not match the questions. The call stays parked.
    pub fn resumed(self: &Arc<Self>, waiter: Waiter, round: u32, responses: &[u8]) -> Result<(), Fault> {
        let mut verdict = Ok(());
        self.drive(|bridged_call, _, out| verdict = bridged_call.resumed(waiter, round, responses, out));
        verdict
    }

    /// Abandons the call if its client did not come back in time.
    pub fn tick(self: &Arc<Self>) {
        self.drive(|bridged_call, now, out| bridged_call.tick(now, out));
    }

    /// Abandons the call because its client will not come back.
    pub fn abandon(self: &Arc<Self>) {
        if let Some(peer) = self.peer.upgrade() {
            peer.abandon(self);
        }
    }

    fn drive(
        self: &Arc<Self>,
        run: impl FnOnce(&mut BridgedCall<Waiter>, Instant, &mut Vec<BridgedCallCommand<Waiter>>),
    ) {
        let mut commands = Vec::new();
        run(&mut self.lock(), crate::clock::now(), &mut commands);
        for command in commands {
            self.perform(command);
        }
    }

    fn perform(self: &Arc<Self>, command: BridgedCallCommand<Waiter>) {
        let (peer, gateway) = (self.peer.upgrade(), self.gateway.upgrade());
        match (command, peer, gateway) {
            (BridgedCallCommand::Settle, ..) => {
                let this = Arc::clone(self);
                tokio::spawn(async move {
                    tokio::time::sleep(SETTLE).await;
                    this.drive(|bridged_call, now, out| bridged_call.settled(now, out));
                });
            }
            (BridgedCallCommand::Show { to, requests, round }, _, Some(gateway)) => {
                self.show(&gateway, &to, &requests, round)
            }
            (BridgedCallCommand::Upstream(draft), Some(peer), _) => peer.send_one_way(draft, &self.party()),
            (BridgedCallCommand::Notify { to: (session, exchange), message }, Some(peer), _) => {
                let backend = Arc::clone(&self.backend);
                session.handle(Event::Notified { backend, peer: peer.id, message, about: Some(exchange) });
            }
            (BridgedCallCommand::Deliver { to: (session, exchange), ended }, _, gateway) => {
                if let Some(gateway) = gateway {
                    gateway.parks.take(self.park);
                }
                session.handle(match *ended {
                    BridgedCallEnd::Answer { message, edits, status } => {
                        Event::Answered { exchange, message, edits, status }
                    }
                    BridgedCallEnd::Fault(fault) => Event::Failed { exchange, fault },
                });
            }
            (BridgedCallCommand::Hold(until), Some(peer), _) => peer.hold(self, until),
            (BridgedCallCommand::Release, Some(peer), _) => peer.release(self),
            (BridgedCallCommand::Abandon, peer, gateway) => {
                tracing::info!(backend = %self.backend, method = self.method, "no client came back for a parked call");
                if let Some(gateway) = gateway {
                    gateway.parks.take(self.park);
                    gateway.counters.dropped("park_expired");
                }
                if let Some(peer) = peer {
                    peer.abandon(self);
                }
            }
            (BridgedCallCommand::Dropped, _, Some(gateway)) => gateway.counters.dropped("parked_notification"),
            _ => {}
        }
    }

    /// Translates the error by which a server of 2025-11-25 refuses a call until the user has visited some URLs. A
    /// modern client is asked to visit them, and its next round runs as a new call. Returns false if it is not that
    /// error.
    fn shown_urls(&self, message: &Envelope) -> bool {
        let (Some((session, exchange)), Some(gateway)) = (self.waiter(), self.gateway.upgrade()) else { return false };
        let Some(urls) = errors::url_elicitations(message).filter(|_| self.takes_urls) else { return false };
        let mut requests = b"{".to_vec();
        for (index, url) in urls.iter().enumerate() {
            if index > 0 {
                requests.push(b',');
            }
            requests.extend_from_slice(format!("\"u{}\":", index + 1).as_bytes());
            requests.extend_from_slice(&url.to_input_request());
        }
        requests.push(b'}');
        let ticket = self.ticket(&gateway, Claim::Again { number: self.park });
        let Some(state) = ticket.seal(gateway.parks.sealer()) else { return false };
        gateway.parks.refuse(self.park, &self.principal, gateway.millis(), ticket.expires);
        session.handle(Event::Reply { exchange, result: input_required(&requests, &state), park: None });
        true
    }

    fn ticket(&self, gateway: &Gateway, claim: Claim) -> Ticket {
        let sealer = gateway.parks.sealer();
        Ticket {
            claim,
            principal: self.principal.clone(),
            expires: gateway.millis() + u64::try_from(gateway.settings().park_timeout.as_millis()).unwrap_or(u64::MAX),
            digest: sealer.digest(&request_digest_input(&self.method, &self.params)),
        }
    }

    /// Answers the exchange with the questions and a ticket that the client must return.
    fn show(self: &Arc<Self>, gateway: &Arc<Gateway>, (session, exchange): &Waiter, requests: &[u8], round: u32) {
        self.shown.store(requests.len(), Ordering::Relaxed);
        let ticket = self.ticket(gateway, Claim::Parked { park: self.park, round });
        let state = ticket.seal(gateway.parks.sealer()).filter(|_| gateway.parks.insert(self));
        let Some(state) = state else {
            if let Some(peer) = self.peer.upgrade() {
                peer.abandon(self);
            }
            let fault = Fault::new(FaultKind::Overloaded, "too many calls wait for input of their clients");
            return session.handle(Event::Failed { exchange: *exchange, fault });
        };
        let result = input_required(requests, &state);
        session.handle(Event::Reply { exchange: *exchange, result, park: Some(self.park) });
    }

    fn lock(&self) -> MutexGuard<'_, BridgedCall<Waiter>> {
        self.machine.lock().unpoisoned()
    }
}

/// Builds the `input_required` result from the questions and the state that the client must return.
pub(crate) fn input_required(requests: &[u8], state: &str) -> Bytes {
    let mut result = br#"{"resultType":"input_required","inputRequests":"#.to_vec();
    result.extend_from_slice(requests);
    result.extend_from_slice(b",\"requestState\":");
    json::write_quoted(&mut result, state);
    result.push(b'}');
    result.into()
}
