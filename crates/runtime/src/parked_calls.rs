//! Parked calls: calls that wait for their clients to come back. The client finds its call again by a ticket.

use crate::backend::Backend;
use crate::bridged_call_driver::BridgedCallDriver;
use crate::gateway::Gateway;
use crate::sealer::ProcessSealer;
use crate::session::Session;
use signalbox_engine::bridge::digest::request_digest_input;
use signalbox_engine::bridge::ticket::{Claim, Sealer, Ticket};
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{AuthorizedCall, Call, Event, ExchangeId, Fault, FaultKind, Principal};
use signalbox_wire::json;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

/// Maximum number of parked calls.
pub const MAX_PARKED: usize = 10_000;
/// Maximum number of parked calls of one principal.
pub const MAX_PARKED_EACH: usize = 1_000;
/// Maximum size of all parked calls in bytes: their params, and the questions to their clients.
pub const MAX_PARKED_BYTES: usize = 256 << 20;

/// Maximum number of calls that were refused until their users visit a URL, and may be repeated once.
pub const MAX_REFUSED: usize = 10_000;
/// Maximum number of such refused calls of one principal.
pub const MAX_REFUSED_EACH: usize = 1_000;

/// Parked calls of a gateway.
pub struct ParkedCalls {
    sealer: ProcessSealer,
    parked: Mutex<HashMap<u128, Arc<BridgedCallDriver>>>,
    refused: Mutex<VecDeque<RefusedCall>>,
    bytes_each: usize,
}

/// A call that was refused until its user visits a URL, and may be repeated once.
struct RefusedCall {
    number: u128,
    principal: Principal,
    /// Expiry, in milliseconds since the process started.
    expires: u64,
}

impl ParkedCalls {
    /// Creates an empty set with a new key and a byte limit per principal.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn new(bytes_each: usize) -> Result<Self, Fault> {
        Ok(Self { sealer: ProcessSealer::new()?, parked: Mutex::default(), refused: Mutex::default(), bytes_each })
    }

    /// Returns the sealer of tickets.
    #[must_use]
    pub fn sealer(&self) -> &dyn Sealer {
        &self.sealer
    }

    /// Returns a new number for a call. It is unique but may be guessable, since tickets are sealed.
    #[must_use]
    pub fn next(&self) -> u128 {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        u128::from(NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    }

    /// Returns the number of parked calls.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns the size of the parked calls in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().values().map(|one| one.bytes()).sum()
    }

    /// Returns true if no call is parked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Parks a call. Returns false if a limit is reached.
    #[must_use]
    pub fn insert(&self, call: &Arc<BridgedCallDriver>) -> bool {
        let mut parked = self.lock();
        let own = || parked.values().filter(|one| one.principal == call.principal);
        let many = parked.len() >= MAX_PARKED || own().count() >= MAX_PARKED_EACH;
        let room = |held: usize, most: usize| held + call.bytes() <= most;
        let bytes = |all: &Arc<BridgedCallDriver>| all.bytes();
        let fits =
            room(own().map(bytes).sum(), self.bytes_each) && room(parked.values().map(bytes).sum(), MAX_PARKED_BYTES);
        if many || !fits {
            return false;
        }
        parked.insert(call.park, Arc::clone(call));
        true
    }

    /// Removes and returns a parked call.
    pub fn take(&self, park: u128) -> Option<Arc<BridgedCallDriver>> {
        self.lock().remove(&park)
    }

    /// Records that a call was refused until its user visits a URL. At the limit the oldest are forgotten, those of the
    /// same principal first, and cannot be repeated.
    pub fn refuse(&self, number: u128, principal: &Principal, now: u64, expires: u64) {
        let mut refused = self.refused.lock().unpoisoned();
        refused.retain(|one| one.expires >= now);
        if refused.iter().filter(|one| one.principal == *principal).count() >= MAX_REFUSED_EACH
            && let Some(oldest) = refused.iter().position(|one| one.principal == *principal)
        {
            refused.remove(oldest);
        }
        if refused.len() >= MAX_REFUSED {
            refused.pop_front();
        }
        refused.push_back(RefusedCall { number, principal: principal.clone(), expires });
    }

    /// Consumes a refused call. Returns false if it has been repeated already.
    pub fn redeem(&self, number: u128) -> bool {
        let mut refused = self.refused.lock().unpoisoned();
        let place = refused.iter().position(|one| one.number == number);
        place.and_then(|place| refused.remove(place)).is_some()
    }

    /// Abandons the calls whose clients did not come back in time.
    pub fn tick(&self) {
        let parked: Vec<Arc<BridgedCallDriver>> = self.lock().values().cloned().collect();
        for call in parked {
            call.tick();
        }
    }

    /// Abandons the calls of these principals.
    pub fn end(&self, of: impl Fn(&Principal) -> bool) {
        let theirs = |call: &Arc<BridgedCallDriver>| of(&call.principal);
        let ended: Vec<_> = self.lock().values().filter(|call| theirs(call)).cloned().collect();
        for call in ended {
            self.take(call.park);
            call.abandon();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u128, Arc<BridgedCallDriver>>> {
        self.parked.lock().unpoisoned()
    }
}

const GIVEN_BEFORE: &str =
    "no call waits for this input: it was given before, or the call is over; it is not run a second time";

impl Gateway {
    /// Handles a further round of a call to a legacy backend: continues the parked call, or runs a refused one as a new
    /// call.
    pub(crate) fn continue_call(
        self: &Arc<Self>,
        backend: &Arc<Backend>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: AuthorizedCall,
    ) {
        let verdict = self.read_ticket(session, &call).and_then(|ticket| match ticket.claim {
            Claim::Again { .. } if declines(&call) => {
                let text = "the user did not go where the backend sends every caller first; the call was not run";
                Err(Fault::new(FaultKind::InvalidParams, text))
            }
            Claim::Again { number } if self.parks.redeem(number) => Ok(true),
            Claim::Again { .. } => Err(Fault::new(FaultKind::InvalidParams, GIVEN_BEFORE)),
            Claim::Parked { park, round } => self.unpark(session, exchange, &call, park, round).map(|()| false),
        });
        match verdict {
            Ok(false) => {}
            Ok(true) => backend.dispatch(session, exchange, call.without_round()),
            Err(fault) => session.handle(Event::Failed { exchange, fault }),
        }
    }

    /// Returns true if the call belongs to a parked call or a task that a predecessor of its backend still works on.
    pub(crate) fn waits_at_predecessor(&self, session: &Session, call: &Call) -> bool {
        match call.round {
            Some(_) => self.read_ticket(session, call).is_ok(),
            None => self.tasks.hosted(&session.principal, call.name.as_deref().unwrap_or_default()).is_some(),
        }
    }

    /// Handles a call to a backend that was removed after routing. Its parked call or task may still be there.
    pub(crate) fn forward_late(
        &self,
        session: &Arc<Session>,
        exchange: ExchangeId,
        backend: &str,
        call: AuthorizedCall,
    ) {
        match self.backends().named(backend).next() {
            Some(backend) => backend.dispatch(session, exchange, call),
            None => session.handle(Event::Failed { exchange, fault: Self::no_backend(backend) }),
        }
    }

    fn read_ticket(&self, session: &Session, call: &Call) -> Result<Ticket, Fault> {
        let bad = |text: &str| Fault::new(FaultKind::InvalidParams, text);
        let base = call.envelope.bytes();
        let state = call.round.and_then(|round| round.state).map(|span| span.of(base)).and_then(json::string);
        let state = state.ok_or_else(|| bad("params.requestState is missing: it must be echoed as it was given"))?;
        let ticket = Ticket::open(&state, self.parks.sealer())
            .filter(|ticket| ticket.principal == session.principal)
            .ok_or_else(|| {
            bad("params.requestState was not given to this caller by this gateway, or was changed")
        })?;
        if ticket.expires < self.millis() {
            return Err(bad("the call waited too long for this input and was given up; it is not run a second time"));
        }
        let params = call.envelope.params().unwrap_or_default();
        if ticket.digest != self.parks.sealer().digest(&request_digest_input(&call.method, params)) {
            return Err(bad("params.requestState belongs to another request: method and params must stay the same"));
        }
        Ok(ticket)
    }

    fn unpark(
        &self,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: &AuthorizedCall,
        park: u128,
        round: u32,
    ) -> Result<(), Fault> {
        let Some(parked) = self.parks.take(park) else {
            return Err(Fault::new(FaultKind::InvalidParams, GIVEN_BEFORE));
        };
        let resumed = parked.resumed((Arc::clone(session), exchange), round, &call.responses());
        if resumed.is_err() && !self.parks.insert(&parked) {
            self.counters.dropped("park_full");
        }
        resumed
    }
}

/// Returns true if one of the answers is a refusal. If the call were repeated, the backend would only ask again.
fn declines(call: &Call) -> bool {
    let responses = call.responses();
    let mut actions = json::members(&responses).filter_map(|entry| {
        let answer = entry.value.of(&responses);
        json::member(answer, "action").and_then(|action| json::string(action.of(answer)))
    });
    actions.any(|action| action != "accept")
}
