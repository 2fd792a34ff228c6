//! What a client's connection is doing, and since when.
//!
//! A timer per request costs more than the rest of this file does per connection. So a connection only notes what it
//! enters, against a clock that moves twice a second; whoever moves the clock looks through all connections and tells
//! those that have taken too long.

use super::entry::Visit;
use super::upgrade::PendingUpgrade;
use super::{COMMIT_AFTER, FrontShared};
use crate::admission::ConnectionPermit;
use crate::first_message::Newcomer;
use crate::front_clock::over;
use crate::places::unknown_caller;
use crate::tls::MaybeTlsStream;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use http::{HeaderMap, HeaderValue};
use signalbox_engine::authenticator::{Arrival, Shown};
use signalbox_engine::budget::Share;
use signalbox_engine::caller::Identity;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Caller, Fault, FaultKind, Limit, Principal, Proof};
use signalbox_runtime::clock::unix_millis;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How long a connection may wait for its next request, or for its client to take any of an answer.
pub const KEPT_FOR: Duration = Duration::from_secs(75);

/// Ends now.
pub(super) const CUT: u8 = 1;
/// The first message has been waited for long enough.
const DUE: u8 = 2;
/// Ends before the next request, since its place is taken.
pub(super) const EVICTED: u8 = 4;
/// Ends what it is busy with, since its place is taken.
pub(super) const DISPLACED: u8 = 8;
/// Has been displaced since the last tick.
const PARTING: u8 = 16;

/// What a connection can be doing.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Phase {
    /// The head of a request is on its way, or has been since the connection was opened.
    Head,
    /// Nothing is on its way.
    Quiet,
    /// A request is answered; what that may take is timed elsewhere.
    Busy,
    /// A request waits for the first message of its answer.
    Waiting,
}

/// The headers that credentials come in.
const CREDENTIAL_HEADERS: [&str; 2] = ["authorization", "x-api-key"];

/// The sender of the last request, and the credentials that came with it: the next request with the same ones
/// has the same caller.
struct Identified {
    caller: Caller,
    credentials: [Option<HeaderValue>; 2],
}

impl Identified {
    fn is_still(&self, headers: &HeaderMap, now: u64) -> bool {
        let same = |(name, before): (&str, &Option<HeaderValue>)| match (headers.get(name), before) {
            (None, None) => true,
            (Some(one), Some(other)) => verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok(),
            _ => false,
        };
        CREDENTIAL_HEADERS.into_iter().zip(&self.credentials).all(same) && self.caller.is_current(now)
    }
}

/// A client's connection.
pub struct ClientConnection {
    /// The front it came to.
    pub front: Arc<FrontShared>,
    /// The phase and the tick it began at.
    doing: AtomicU64,
    orders: AtomicU8,
    /// One more than the tick since which the client takes nothing of what is written; 0 while it does.
    stuck: AtomicU32,
    waker: OnceLock<Waker>,
    upgrade: Mutex<Option<Box<PendingUpgrade>>>,
    /// Who has shown a certificate, or owns the other end.
    shown: OnceLock<Shown>,
    /// Who calls, once that is known.
    caller: Mutex<Option<Identified>>,
    /// What that caller may make the gateway hold on this connection, once it has sent something large.
    share: Mutex<Option<(Principal, Arc<Share>)>>,
    pub(super) address: Option<SocketAddr>,
    /// Its place among the connections that may be open, until it ends or another one is given it.
    pub(super) place: Mutex<Option<ConnectionPermit>>,
    /// True while that place is in the reserve.
    pub(super) provisional: AtomicBool,
    /// True while the request is for another entry than the usual one.
    pub(super) visiting: AtomicBool,
    pub(super) visit: Mutex<Option<Visit>>,
}

impl ClientConnection {
    /// A connection that was opened just now, from this address, in this place.
    pub fn new(front: Arc<FrontShared>, address: Option<SocketAddr>, place: Option<ConnectionPermit>) -> Arc<Self> {
        let doing = AtomicU64::new(pack(Phase::Head, front.clock.now()));
        let provisional = AtomicBool::new(place.as_ref().is_some_and(ConnectionPermit::is_provisional));
        Arc::new(Self {
            front,
            doing,
            orders: AtomicU8::new(0),
            stuck: AtomicU32::new(0),
            waker: OnceLock::new(),
            upgrade: Mutex::default(),
            shown: OnceLock::new(),
            caller: Mutex::default(),
            share: Mutex::default(),
            address,
            place: Mutex::new(place),
            provisional,
            visiting: AtomicBool::new(false),
            visit: Mutex::default(),
        })
    }

    /// Finds out who sends a request, before its body is read. A connection carries one request at a time.
    ///
    /// # Errors
    /// If a proof is not valid, or none was given.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<(), Fault> {
        let all = &self.front.spec.authenticators;
        let mut last = self.caller.lock().unpoisoned();
        if !all.is_per_request() {
            // The clock is read only for a credential that can end.
            if last.as_ref().is_none_or(|last| last.caller.can_end() && !last.caller.is_current(unix_millis())) {
                *last = None;
                *last = Some(self.identify(headers)?);
            }
            return Ok(());
        }
        if last.as_ref().is_some_and(|last| last.is_still(headers, unix_millis())) {
            return Ok(());
        }
        // Nobody is taken for whoever sent the request before.
        *last = None;
        *last = Some(self.identify(headers)?);
        Ok(())
    }

    fn identify(&self, headers: &HeaderMap) -> Result<Identified, Fault> {
        if CREDENTIAL_HEADERS.into_iter().any(|name| headers.get_all(name).iter().nth(1).is_some()) {
            let fault = Fault::new(FaultKind::Unauthenticated, "a request carries one credential, not several");
            return Err(fault.with_str("error", "invalid_request"));
        }
        let caller = self.front.spec.authenticators.identify(&Arrival {
            transport: self.front.spec.transport,
            address: self.address,
            shown: self.shown.get(),
            header: &|name| headers.get(name).map(HeaderValue::as_bytes),
            now: unix_millis(),
        })?;
        self.front.gateway.identified(&caller);
        Ok(Identified { caller, credentials: CREDENTIAL_HEADERS.map(|name| headers.get(name).cloned()) })
    }

    /// Notes the caller that the first message on the connection proved.
    pub fn proved(&self, caller: &Caller) {
        let identified = Identified { caller: caller.clone(), credentials: [None, None] };
        *self.caller.lock().unpoisoned() = Some(identified);
    }

    /// The caller of the last request, if it is known.
    pub(super) fn last_caller(&self) -> Option<Caller> {
        self.caller.lock().unpoisoned().as_ref().map(|last| last.caller.clone())
    }

    /// True if a request shows a credential.
    pub fn shows_credential(headers: &HeaderMap) -> bool {
        CREDENTIAL_HEADERS.into_iter().any(|name| headers.contains_key(name))
    }

    /// Who sent the request that the connection is busy with, or nobody known where that was not asked.
    pub fn caller(&self) -> Caller {
        self.last_caller().unwrap_or_else(|| unknown_caller(self.address, self.front.spec.transport))
    }

    /// What its client may make the gateway hold.
    pub fn share(&self) -> Arc<Share> {
        let principal = self.caller().principal().clone();
        let mut share = self.share.lock().unpoisoned();
        match &*share {
            Some((of, share)) if *of == principal => Arc::clone(share),
            _ => {
                let new = self.front.gateway.budget.connection(&principal);
                *share = Some((principal, Arc::clone(&new)));
                new
            }
        }
    }

    /// True if its caller has proved nothing, where that is required: the message itself has to.
    pub fn must_still_prove(&self) -> bool {
        self.front.gateway.settings().require_proof && self.caller().identity().proof == Proof::Unproved
    }

    /// Who connected, for a first message that has to prove who calls.
    pub fn newcomer(&self, transport: &'static str) -> Newcomer<'_> {
        let authenticators = &self.front.spec.authenticators;
        Newcomer { authenticators, transport, address: self.address, shown: self.shown.get() }
    }

    /// Who it is, who goes on by another transport.
    pub fn caller_by(&self, transport: &'static str) -> Caller {
        Caller::new(Identity { transport, ..self.caller().identity().clone() })
    }

    /// The connection can be spoken on, and this is what is proved for all of it.
    pub fn secured(&self, shown: Option<Shown>) {
        if let Some(shown) = shown {
            let _ = self.shown.set(shown);
        }
        self.enter(Phase::Head);
    }

    /// The connection goes on as something else once its last answer is written. It stays busy until its end.
    pub fn upgrade(&self, pending: PendingUpgrade) {
        *self.upgrade.lock().unpoisoned() = Some(Box::new(pending));
    }

    /// What it goes on as.
    pub fn upgraded(&self) -> Option<Box<PendingUpgrade>> {
        self.upgrade.lock().unpoisoned().take()
    }

    /// A request has come.
    pub fn begin(&self) {
        self.enter(Phase::Busy);
    }

    /// Its answer is there as a whole.
    pub fn end(&self) {
        self.enter(Phase::Quiet);
    }

    /// What `poll` waits for, or nothing if that takes longer than a client should be left without a sign of life.
    pub async fn soon<T>(&self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        let mut waits = false;
        let came = poll_fn(|cx| {
            if let Poll::Ready(came) = poll(cx) {
                return Poll::Ready(Some(came));
            }
            if !waits {
                waits = true;
                self.orders.fetch_and(!DUE, Ordering::Relaxed);
                self.enter(Phase::Waiting);
            } else if self.orders.load(Ordering::Relaxed) & DUE != 0 {
                return Poll::Ready(None);
            }
            Poll::Pending
        })
        .await;
        self.enter(Phase::Busy);
        came
    }

    /// Remembers whom to wake when there is an order.
    pub fn attend(&self, waker: &Waker) {
        if self.waker.get().is_none() {
            let _ = self.waker.set(waker.clone());
        }
    }

    /// True once the connection should end after the answer it is busy with. All connections of a front learn it at
    /// once: a client that sees one of them end can begin nothing on another.
    pub fn is_stopped(&self) -> bool {
        self.front.stopping.load(Ordering::Acquire)
    }

    /// True once it should end at once. A connection without a place does so while no request of it is answered.
    pub fn is_cut(&self) -> bool {
        let orders = self.orders.load(Ordering::Acquire);
        orders & CUT != 0 || orders & (EVICTED | DISPLACED) != 0 && self.doing().0 == Phase::Head
    }

    /// True once another connection has its place: it takes no further request.
    pub fn is_evicted(&self) -> bool {
        self.orders.load(Ordering::Relaxed) & (EVICTED | DISPLACED) != 0
    }

    /// True once another connection has its place, and what it is busy with ends for that.
    pub fn is_displaced(&self) -> bool {
        self.orders.load(Ordering::Relaxed) & DISPLACED != 0
    }

    /// The order for a displaced connection at a tick: it has until the second one to say its last words.
    pub(super) fn parting(&self) -> u8 {
        match self.orders.load(Ordering::Relaxed) & (DISPLACED | PARTING) {
            DISPLACED => PARTING,
            0 => 0,
            _ => CUT,
        }
    }

    fn enter(&self, phase: Phase) {
        self.doing.store(pack(phase, self.front.clock.now()), Ordering::Relaxed);
    }

    pub(super) fn doing(&self) -> (Phase, u32) {
        unpack(self.doing.load(Ordering::Relaxed))
    }

    /// Bytes of the client came.
    fn came(&self) {
        if self.doing().0 == Phase::Quiet {
            self.enter(Phase::Head);
        }
    }

    /// The client took bytes of an answer, or would not.
    fn went(&self, taken: bool) {
        let stuck = self.stuck.load(Ordering::Relaxed);
        if !taken {
            if stuck == 0 {
                self.stuck.store(self.front.clock.now().saturating_add(1), Ordering::Relaxed);
            }
            return;
        }
        if stuck != 0 {
            self.stuck.store(0, Ordering::Relaxed);
        }
        if self.doing().0 == Phase::Quiet {
            self.enter(Phase::Quiet);
        }
    }

    /// Since when the client takes nothing.
    pub(super) fn stuck(&self) -> Option<u32> {
        self.stuck.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Counts why the connection is cut, if it is.
    pub(super) fn count(&self, slow: bool, late: u8) {
        let counters = &self.front.gateway.counters;
        if slow {
            counters.refused(Limit::SlowReader);
        } else if late & CUT != 0 && self.doing().0 == Phase::Head {
            counters.refused(Limit::HeadTime);
        }
    }

    pub(super) fn order(&self, order: u8) {
        self.orders.fetch_or(order, Ordering::AcqRel);
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }
}

/// What a connection has to be told that has been doing this since then.
pub(super) fn verdict((phase, since): (Phase, u32), now: u32, header_timeout: Duration) -> u8 {
    let over = |most: Duration| over(since, now, most);
    match phase {
        Phase::Head if over(header_timeout) => CUT,
        Phase::Quiet if over(KEPT_FOR) => CUT,
        Phase::Waiting if over(COMMIT_AFTER) => DUE,
        _ => 0,
    }
}

fn pack(phase: Phase, tick: u32) -> u64 {
    u64::from(tick) << 8 | u64::from(phase as u8)
}

fn unpack(doing: u64) -> (Phase, u32) {
    let phase = match doing & 0xff {
        0 => Phase::Head,
        1 => Phase::Quiet,
        2 => Phase::Busy,
        _ => Phase::Waiting,
    };
    (phase, u32::try_from(doing >> 8).unwrap_or(u32::MAX))
}

/// The connection's socket, which notes what passes.
pub struct WatchedSocket<S = MaybeTlsStream> {
    /// The socket.
    pub socket: S,
    /// Whose it is.
    pub connection: Arc<ClientConnection>,
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedSocket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.socket).poll_read(cx, into);
        if read.is_ready() {
            self.connection.came();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedSocket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.connection.went(written.is_ready());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, parts);
        self.connection.went(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// Held by an answer that goes on after its head: the connection is busy until this is dropped.
pub struct BusyConnection(Arc<ClientConnection>);

impl BusyConnection {
    /// For an answer on this connection.
    pub fn new(connection: &Arc<ClientConnection>) -> Self {
        Self(Arc::clone(connection))
    }

    /// True once the front stops.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    /// True once another connection has its place.
    pub fn is_displaced(&self) -> bool {
        self.0.is_displaced()
    }
}

impl Drop for BusyConnection {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front_clock::ticks;

    #[test]
    fn what_takes_too_long_is_told_so_and_nothing_else() {
        let told = |phase, after: Duration| verdict((phase, 100), 100 + ticks(after), Duration::from_secs(10));
        let seconds = Duration::from_secs;
        assert_eq!((told(Phase::Head, seconds(9)), told(Phase::Head, seconds(10))), (0, CUT));
        assert_eq!((told(Phase::Quiet, seconds(74)), told(Phase::Quiet, KEPT_FOR)), (0, CUT));
        assert_eq!((told(Phase::Waiting, seconds(4)), told(Phase::Waiting, COMMIT_AFTER)), (0, DUE));
        assert_eq!(told(Phase::Busy, seconds(100_000)), 0);
        // A connection may have noted its phase after the clock was read.
        assert_eq!(verdict((Phase::Head, 7), 3, Duration::ZERO), 0);
    }

    #[test]
    fn a_phase_is_read_as_it_was_noted() {
        for phase in [Phase::Head, Phase::Quiet, Phase::Busy, Phase::Waiting] {
            assert_eq!(unpack(pack(phase, u32::MAX)), (phase, u32::MAX));
        }
    }
}
