//! The place of a client's connection: its confirmation once the caller is known, and the response on a connection that
//! lost it.

use super::FrontAnswer;
use super::answer::{plain, refusal};
use super::client_connection::{ClientConnection, DISPLACED, EVICTED, Phase};
use super::whole;
use crate::admission::ConnectionPermit;
use crate::front_clock::over;
use crate::places::{Activity, Evictable, EvictionReason, FoundPlace};
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{Caller, Fault, FaultKind, Limit};
use signalbox_wire::Era;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::timeout;

/// Time without a request after which a connection may lose its place.
pub const IDLE: Duration = Duration::from_secs(1);
/// Time to read the rest of a refused request, so that its answer is not lost to a TCP reset.
const LAST_WORD: Duration = Duration::from_secs(1);
/// Maximum number of bytes read of such a request.
const UNHEARD: usize = 256 * 1024;
/// Response body for a client without a place.
const NO_ROOM: &[u8] = b"too many connections are open\n";

impl Evictable for ClientConnection {
    fn known_caller(&self) -> Option<Caller> {
        self.last_caller()
    }

    fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    fn transport(&self) -> &'static str {
        self.front.spec.transport
    }

    fn activity(&self, now: u32) -> Activity {
        if self.is_provisional() || self.place.lock().unpoisoned().is_none() {
            return Activity::Unseated;
        }
        match self.phase() {
            (Phase::Head | Phase::Quiet, since) if over(since, now, IDLE) => Activity::Idle(since),
            (Phase::Head | Phase::Quiet, _) => Activity::Opening,
            (Phase::Busy | Phase::Waiting, _) => Activity::InUse,
        }
    }

    fn take_place(&self, reason: EvictionReason, now: u32) -> Option<ConnectionPermit> {
        let is_idle = reason == EvictionReason::Idle && matches!(self.activity(now), Activity::Idle(_));
        let is_due = |place: &mut ConnectionPermit| match reason {
            EvictionReason::Idle => is_idle,
            EvictionReason::Share => !place.is_provisional(),
            EvictionReason::Reserve => place.is_provisional(),
        };
        let place = self.place.lock().unpoisoned().take_if(is_due)?;
        let counters = &self.front.gateway.counters;
        match reason {
            EvictionReason::Idle => counters.refused(Limit::Idle),
            EvictionReason::Share => counters.refused(Limit::ConnectionShare),
            EvictionReason::Reserve => _ = counters.connections_refused.fetch_add(1, Ordering::Relaxed),
        }
        self.order(if reason == EvictionReason::Idle { EVICTED } else { DISPLACED });
        Some(place)
    }
}

impl ClientConnection {
    /// Returns `true` while the place is in the reserve, where a connection stays only until its caller is known.
    pub fn is_provisional(&self) -> bool {
        self.provisional.load(Ordering::Relaxed)
    }

    /// Moves the connection to a place outside the reserve. Returns `false` if there is none.
    pub fn settle(&self) -> bool {
        let front = &self.front;
        let found = {
            let mut connections = front.connections.lock().unpoisoned();
            connections.places.make_room(&front.spec.admission, &self.holder(), front.clock.advance())
        };
        let Some(FoundPlace { permit, report }) = found else { return false };
        if let Some(report) = report {
            report.report(&front.gateway);
        }
        let mut place = self.place.lock().unpoisoned();
        if place.is_some() {
            *place = Some(permit);
            self.provisional.store(false, Ordering::Relaxed);
        }
        true
    }

    /// Frees the place of a connection that has ended.
    pub fn leave(&self) {
        drop(self.place.lock().unpoisoned().take());
    }
}

/// Refuses a request on a connection without a place outside the reserve. The rest of the request is read for a moment:
/// closing a socket with unread bytes resets it, and the client would not get the answer.
pub async fn refuse(connection: &Arc<ClientConnection>, mut body: Incoming) -> FrontAnswer {
    let gateway = &connection.front.gateway;
    gateway.counters.connections_refused.fetch_add(1, Ordering::Relaxed);
    let status = StatusCode::SERVICE_UNAVAILABLE;
    gateway.refused(&connection.caller(), Some(status.as_u16()), &no_place(), None);
    let mut unheard = 0;
    let reading = async {
        while unheard < UNHEARD
            && let Some(Ok(frame)) = body.frame().await
        {
            unheard += frame.data_ref().map_or(0, bytes::Bytes::len);
        }
    };
    let _ = timeout(LAST_WORD, reading).await;
    let mut answer = plain(status);
    *answer.body_mut() = whole(NO_ROOM);
    let headers = answer.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Fault recorded for a request on a connection without a place.
pub fn no_place() -> Fault {
    Fault::new(FaultKind::Overloaded, "too many connections are open")
}

/// Fault of a request whose connection was displaced.
pub fn displaced_fault() -> Fault {
    let text =
        "all places for connections are taken, and this caller or address has more than its share; try again later";
    Fault::new(FaultKind::Overloaded, text)
}

/// Answer to a request whose connection was displaced.
pub fn displaced_answer() -> FrontAnswer {
    let mut answer = refusal(StatusCode::SERVICE_UNAVAILABLE, None, Era::Legacy, &displaced_fault());
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
