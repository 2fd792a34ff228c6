//! Phases and time limits of a client connection.
//!
//! A timer per request would cost more than the rest of this file costs per connection. A connection therefore only
//! notes the phase it enters and the tick of a clock that advances twice a second. The thread that advances the clock
//! checks all connections and orders those that are over time to end.

use super::secondary_endpoint::EntryRequest;
use super::upgrade::PendingUpgrade;
use super::{COMMIT_AFTER, FrontState};
use crate::admission::ConnectionPermit;
use crate::first_message::PendingConnection;
use crate::front_clock::over;
use crate::places::unknown_caller;
use crate::tls::MaybeTlsStream;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use http::{HeaderMap, HeaderValue};
use signalbox_engine::authenticator::{Arrival, ConnectionProof};
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

/// Maximum time that a connection waits for its next request, or for its client to read any of an answer.
pub const KEPT_FOR: Duration = Duration::from_secs(75);

/// Order: end now, even during an answer.
pub(super) const CUT: u8 = 1;
/// Order: stop waiting for the first message.
const DUE: u8 = 2;
/// Order: end before the next request, because the place was given away.
pub(super) const EVICTED: u8 = 4;
/// Order: end the current request, because the place was given away.
pub(super) const DISPLACED: u8 = 8;
/// Set at the first tick after [`DISPLACED`].
const PARTING: u8 = 16;

/// Phase of a connection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Phase {
    /// Waits for a request head, of which no byte or some bytes have arrived.
    Head,
    /// Idle between two requests.
    Quiet,
    /// Processes a request; its time limits are elsewhere.
    Busy,
    /// Waits for the first message of an answer.
    Waiting,
}

/// Headers that carry credentials.
const CREDENTIAL_HEADERS: [&str; 2] = ["authorization", "x-api-key"];

/// Sender of the last request and its credentials. The next request with the same credentials has the same caller.
struct CachedCaller {
    caller: Caller,
    credentials: [Option<HeaderValue>; 2],
}

impl CachedCaller {
    fn matches(&self, headers: &HeaderMap, now: u64) -> bool {
        let same = |(name, before): (&str, &Option<HeaderValue>)| match (headers.get(name), before) {
            (None, None) => true,
            (Some(one), Some(other)) => verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok(),
            _ => false,
        };
        CREDENTIAL_HEADERS.into_iter().zip(&self.credentials).all(same) && self.caller.is_current(now)
    }
}

pub struct ClientConnection {
    /// Front that accepted the connection.
    pub front: Arc<FrontState>,
    /// Phase and the tick at which it began, packed.
    phase_and_tick: AtomicU64,
    orders: AtomicU8,
    /// Tick since which the client has read nothing, plus one; 0 while it reads.
    stuck: AtomicU32,
    waker: OnceLock<Waker>,
    upgrade: Mutex<Option<Box<PendingUpgrade>>>,
    /// Peer identity from its certificate or the socket's owner.
    shown: OnceLock<ConnectionProof>,
    /// Caller of the last request, once known.
    caller: Mutex<Option<CachedCaller>>,
    /// Memory share of that caller on this connection, once it has sent something large.
    share: Mutex<Option<(Principal, Arc<Share>)>>,
    pub(super) address: Option<SocketAddr>,
    /// Place among the open connections, until the connection ends or the place is given away.
    pub(super) place: Mutex<Option<ConnectionPermit>>,
    /// Set while the place is in the reserve.
    pub(super) provisional: AtomicBool,
    /// Set while the current request is for an entry.
    pub(super) has_entry_request: AtomicBool,
    pub(super) entry_request: Mutex<Option<EntryRequest>>,
}

impl ClientConnection {
    /// Creates a connection that was just accepted.
    pub fn new(front: Arc<FrontState>, address: Option<SocketAddr>, place: Option<ConnectionPermit>) -> Arc<Self> {
        let phase_and_tick = AtomicU64::new(pack(Phase::Head, front.clock.now()));
        let provisional = AtomicBool::new(place.as_ref().is_some_and(ConnectionPermit::is_provisional));
        Arc::new(Self {
            front,
            phase_and_tick,
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
            has_entry_request: AtomicBool::new(false),
            entry_request: Mutex::default(),
        })
    }

    /// Authenticates the sender of a request before its body is read. A connection carries one request at a time.
    ///
    /// # Errors
    /// Returns a fault if a proof is invalid or missing.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<(), Fault> {
        let all = &self.front.spec.authenticators;
        let mut last = self.caller.lock().unpoisoned();
        if !all.is_per_request() {
            // Read the clock only for a credential that can expire.
            if last.as_ref().is_none_or(|last| last.caller.can_end() && !last.caller.is_current(unix_millis())) {
                *last = None;
                *last = Some(self.identify(headers)?);
            }
            return Ok(());
        }
        if last.as_ref().is_some_and(|last| last.matches(headers, unix_millis())) {
            return Ok(());
        }
        // Clear first: if identification fails, the previous caller must not be used.
        *last = None;
        *last = Some(self.identify(headers)?);
        Ok(())
    }

    fn identify(&self, headers: &HeaderMap) -> Result<CachedCaller, Fault> {
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
        Ok(CachedCaller { caller, credentials: CREDENTIAL_HEADERS.map(|name| headers.get(name).cloned()) })
    }

    /// Records the caller that the first message on the connection proved.
    pub fn set_caller(&self, caller: &Caller) {
        let identified = CachedCaller { caller: caller.clone(), credentials: [None, None] };
        *self.caller.lock().unpoisoned() = Some(identified);
    }

    /// Returns the caller of the last request, if known.
    pub(super) fn last_caller(&self) -> Option<Caller> {
        self.caller.lock().unpoisoned().as_ref().map(|last| last.caller.clone())
    }

    /// Returns `true` if a request carries a credential.
    pub fn shows_credential(headers: &HeaderMap) -> bool {
        CREDENTIAL_HEADERS.into_iter().any(|name| headers.contains_key(name))
    }

    /// Returns the sender of the current request, or the unknown caller if it was not identified.
    pub fn caller(&self) -> Caller {
        self.last_caller().unwrap_or_else(|| unknown_caller(self.address, self.front.spec.transport))
    }

    /// Returns the memory share of the connection's caller.
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

    /// Returns `true` if the caller is unproved although a proof is required: the message itself must carry it.
    pub fn must_still_prove(&self) -> bool {
        self.front.gateway.settings().require_proof && self.caller().identity().proof == Proof::Unproved
    }

    /// Returns the connection details for authenticating its first message.
    pub fn pending_connection(&self, transport: &'static str) -> PendingConnection<'_> {
        let authenticators = &self.front.spec.authenticators;
        PendingConnection { authenticators, transport, address: self.address, shown: self.shown.get() }
    }

    /// Returns the caller under another transport name.
    pub fn caller_by(&self, transport: &'static str) -> Caller {
        Caller::new(Identity { transport, ..self.caller().identity().clone() })
    }

    /// Records that the connection is ready for HTTP, and the peer identity from the handshake.
    pub fn set_secured(&self, shown: Option<ConnectionProof>) {
        if let Some(shown) = shown {
            let _ = self.shown.set(shown);
        }
        self.enter(Phase::Head);
    }

    /// Switches protocols once the last answer is written. The connection stays busy until its end.
    pub fn upgrade(&self, pending: PendingUpgrade) {
        *self.upgrade.lock().unpoisoned() = Some(Box::new(pending));
    }

    /// Takes the pending upgrade.
    pub fn upgraded(&self) -> Option<Box<PendingUpgrade>> {
        self.upgrade.lock().unpoisoned().take()
    }

    /// Marks the arrival of a request.
    pub fn begin(&self) {
        self.enter(Phase::Busy);
    }

    /// Marks the end of an answer.
    pub fn end(&self) {
        self.enter(Phase::Quiet);
    }

    /// Polls until ready. Returns `None` if that takes longer than [`COMMIT_AFTER`].
    pub async fn wait_briefly<T>(&self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        let mut waits = false;
        let output = poll_fn(|cx| {
            if let Poll::Ready(output) = poll(cx) {
                return Poll::Ready(Some(output));
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
        output
    }

    /// Registers the waker for orders.
    pub fn register_waker(&self, waker: &Waker) {
        if self.waker.get().is_none() {
            let _ = self.waker.set(waker.clone());
        }
    }

    /// Returns `true` once the connection should end after its current answer. All connections of a front see it at the
    /// same time, so that a client that sees one of them end cannot start a request on another.
    pub fn is_stopped(&self) -> bool {
        self.front.stopping.load(Ordering::Acquire)
    }

    /// Returns `true` once the connection must end at once. A connection that lost its place does so unless it is
    /// answering a request.
    pub fn is_cut(&self) -> bool {
        let orders = self.orders.load(Ordering::Acquire);
        orders & CUT != 0 || orders & (EVICTED | DISPLACED) != 0 && self.phase().0 == Phase::Head
    }

    /// Returns `true` once the place was given away: the connection takes no further request.
    pub fn is_evicted(&self) -> bool {
        self.orders.load(Ordering::Relaxed) & (EVICTED | DISPLACED) != 0
    }

    /// Returns `true` once the place was given away and the current request must end.
    pub fn is_displaced(&self) -> bool {
        self.orders.load(Ordering::Relaxed) & DISPLACED != 0
    }

    /// Returns the order for a displaced connection at a tick. It has until the second tick to finish.
    pub(super) fn parting(&self) -> u8 {
        match self.orders.load(Ordering::Relaxed) & (DISPLACED | PARTING) {
            DISPLACED => PARTING,
            0 => 0,
            _ => CUT,
        }
    }

    fn enter(&self, phase: Phase) {
        self.phase_and_tick.store(pack(phase, self.front.clock.now()), Ordering::Relaxed);
    }

    pub(super) fn phase(&self) -> (Phase, u32) {
        unpack(self.phase_and_tick.load(Ordering::Relaxed))
    }

    /// Notes that bytes arrived from the client.
    fn received(&self) {
        if self.phase().0 == Phase::Quiet {
            self.enter(Phase::Head);
        }
    }

    /// Notes that the client read bytes of an answer, or that a write would block.
    fn wrote(&self, taken: bool) {
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
        if self.phase().0 == Phase::Quiet {
            self.enter(Phase::Quiet);
        }
    }

    /// Returns the tick since which the client has read nothing.
    pub(super) fn stuck(&self) -> Option<u32> {
        self.stuck.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Counts the reason for which the connection is about to be cut, if any.
    pub(super) fn count(&self, slow: bool, late: u8) {
        let counters = &self.front.gateway.counters;
        if slow {
            counters.refused(Limit::SlowReader);
        } else if late & CUT != 0 && self.phase().0 == Phase::Head {
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

/// Returns the order for a connection that has been in `phase` since a tick.
pub(super) fn phase_timeout(phase: Phase, since: u32, now: u32, header_timeout: Duration) -> u8 {
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

fn unpack(phase_and_tick: u64) -> (Phase, u32) {
    let phase = match phase_and_tick & 0xff {
        0 => Phase::Head,
        1 => Phase::Quiet,
        2 => Phase::Busy,
        _ => Phase::Waiting,
    };
    (phase, u32::try_from(phase_and_tick >> 8).unwrap_or(u32::MAX))
}

/// The connection's socket, which reports traffic to it.
pub struct WatchedSocket<S = MaybeTlsStream> {
    pub socket: S,
    /// Connection to report to.
    pub connection: Arc<ClientConnection>,
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedSocket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.socket).poll_read(cx, into);
        if read.is_ready() {
            self.connection.received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedSocket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.connection.wrote(written.is_ready());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, parts);
        self.connection.wrote(written.is_ready());
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

/// Marks the connection as busy until it is dropped. An answer that continues after its head holds it.
pub struct BusyConnection(Arc<ClientConnection>);

impl BusyConnection {
    /// Creates a guard for an answer on this connection.
    pub fn new(connection: &Arc<ClientConnection>) -> Self {
        Self(Arc::clone(connection))
    }

    /// Returns `true` once the front stops.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    /// Returns `true` once the connection lost its place.
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
        let told = |phase, after: Duration| phase_timeout(phase, 100, 100 + ticks(after), Duration::from_secs(10));
        let seconds = Duration::from_secs;
        assert_eq!((told(Phase::Head, seconds(9)), told(Phase::Head, seconds(10))), (0, CUT));
        assert_eq!((told(Phase::Quiet, seconds(74)), told(Phase::Quiet, KEPT_FOR)), (0, CUT));
        assert_eq!((told(Phase::Waiting, seconds(4)), told(Phase::Waiting, COMMIT_AFTER)), (0, DUE));
        assert_eq!(told(Phase::Busy, seconds(100_000)), 0);
        // A connection may have noted its phase after the clock was read.
        assert_eq!(phase_timeout(Phase::Head, 7, 3, Duration::ZERO), 0);
    }

    #[test]
    fn a_phase_is_read_as_it_was_noted() {
        for phase in [Phase::Head, Phase::Quiet, Phase::Busy, Phase::Waiting] {
            assert_eq!(unpack(pack(phase, u32::MAX)), (phase, u32::MAX));
        }
    }
}
