//! A connection that has become a WebSocket: one client, one session, one message per frame.
//!
//! While the client does not read, no further frame is read from it.

use super::client_connection::{ClientConnection, WatchedSocket};
use super::place::no_place;
use super::upgrade::{PendingUpgrade, SocketFormat, UpgradedSocket};
use crate::batch;
use crate::protobuf::{self, RequestOrigin};
use crate::stdio_front::intake::{self, Addressee, Unreadable};
use crate::tls::MaybeTlsStream;
use crate::unknown_caller;
use crate::websocket::{CloseCode, Duplex, Ending, Outgoing, Patience, Role, SocketEvent, Utf8Bytes};
use bytes::Bytes;
use hyper_util::rt::TokioIo;
use signalbox_engine::front::Mode;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{Caller, Carrier, Fault, FaultKind, Limit};
use signalbox_runtime::counters::Counters;
use signalbox_runtime::outbox::OUTBOX_BOUND;
use signalbox_runtime::{Gateway, Session, StreamReader};
use signalbox_wire::batch::is_array;
use signalbox_wire::{Envelope, Era, Kind};
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

/// Maximum number of unanswered protobuf requests whose origin is remembered.
const MAX_ORIGINS: usize = 10_000;

/// In ticks of 15 s: as long as an idle connection is kept, and slightly longer than a body may take.
const PATIENCE: Patience = Patience { silent: 5, unfinished: 3 };
/// Close reason for a client that loses its place.
const NO_PLACE: &str = "all places for connections are taken, and this caller has more than its share";
/// Maximum time for a client to read the answer to its first message.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// The session of a WebSocket. Dropping it closes the session.
pub struct Socket {
    gateway: Arc<Gateway>,
    session: Arc<Session>,
    stream: StreamReader,
    /// Set if messages are protobuf in binary frames.
    protobuf: bool,
    /// Origins of unanswered protobuf requests, by JSON-RPC id.
    origins: Mutex<HashMap<Box<[u8]>, RequestOrigin>>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.session.close();
    }
}

/// Serves a client until it leaves, the session is closed, or the front stops and no request is in flight.
pub async fn serve(connection: &ClientConnection, pending: PendingUpgrade) {
    let PendingUpgrade { upgrade, socket } = pending;
    let upgraded = match upgrade.await {
        Ok(upgraded) => upgraded,
        Err(error) => return tracing::debug!(%error, "a connection was not upgraded"),
    };
    let Ok(parts) = upgraded.downcast::<TokioIo<WatchedSocket>>() else {
        return tracing::error!("an upgraded connection is not of this front");
    };
    let gateway = &connection.front.gateway;
    let most = gateway.settings().limits.message;
    let mut limit = most;
    let share = match &socket {
        UpgradedSocket::Session(socket) => {
            let caller = || socket.session.caller.clone();
            limit = unknown_caller::limit(gateway, caller, most, socket.protobuf);
            Arc::clone(socket.session.share())
        }
        UpgradedSocket::Unproved(_) => connection.share(),
    };
    let raw = parts.io.into_inner().socket;
    let mut duplex = Duplex::new(raw, &parts.read_buf, Role::Server, limit, Some(share), PATIENCE).await;
    let socket = match socket {
        UpgradedSocket::Session(socket) => socket,
        UpgradedSocket::Unproved(format) => match admit(connection, &mut duplex, format).await {
            Ok(socket) => socket,
            Err((code, reason)) => return duplex.close(code, reason).await,
        },
    };
    socket.run(connection, duplex).await;
}

/// Returns the close reason for a client whose credential, or the rights that came with it, lapsed.
fn lapse_reason(word: Option<&str>) -> &'static str {
    match word {
        Some("expired") => "the caller's credential is expired; connect with another one",
        Some("revoked") => "the caller's credential is revoked",
        _ => "the caller's credential is good for something else by now; connect again",
    }
}

/// Waits for the first message, which must authenticate the caller, answers it, and opens the session.
async fn admit(
    connection: &ClientConnection,
    duplex: &mut Duplex<MaybeTlsStream>,
    format: SocketFormat,
) -> Result<Socket, (CloseCode, &'static str)> {
    const REFUSED: &str = "the first message did not prove who calls";
    let front = &connection.front;
    let first = poll_fn(|cx| {
        connection.register_waker(cx.waker());
        if connection.is_displaced() {
            return Poll::Ready(None);
        }
        // A ping to a silent client may be written in between.
        loop {
            let step = duplex.poll_step(cx, true, |_| Poll::<Option<Outgoing>>::Pending);
            if !matches!(step, Poll::Ready(SocketEvent::Written)) {
                return step.map(Some);
            }
        }
    });
    let message = match timeout(front.spec.authentication_timeout, first).await {
        Ok(Some(SocketEvent::Message(message))) => message,
        Ok(Some(_)) => return Err((CloseCode::Policy, REFUSED)),
        Ok(None) => return Err((CloseCode::Again, NO_PLACE)),
        Err(_) => {
            const LATE: &str = "no message proved in time who calls";
            front.gateway.counters.refused(Limit::HeadTime);
            let fault = Fault::new(FaultKind::Unauthenticated, LATE);
            front.gateway.refused(&connection.caller(), None, &fault, None);
            return Err((CloseCode::Policy, LATE));
        }
    };
    let proved = connection.pending_connection("websocket").prove(&front.gateway, message);
    let (opened, answer) = match proved {
        Ok((caller, answer)) => {
            connection.set_caller(&caller);
            if connection.is_provisional() && !connection.settle() {
                front.gateway.refused(&connection.caller(), None, &no_place(), None);
                return Err((CloseCode::Again, NO_PLACE));
            }
            (Socket::open(connection, caller, format), answer)
        }
        Err(refused) => {
            let reply = refused.reply();
            front.gateway.refused(&connection.caller(), None, &refused.fault, Some(&reply));
            send(duplex, reply).await;
            return Err((CloseCode::Policy, REFUSED));
        }
    };
    match opened {
        Ok(socket) => {
            send(duplex, answer).await;
            duplex.charge_to(Arc::clone(socket.session.share()));
            Ok(socket)
        }
        Err(fault) => {
            send(duplex, fault.reply(None, Era::Legacy)).await;
            Err((CloseCode::Policy, "no session could be opened"))
        }
    }
}

/// Writes one message, within [`ANSWER_TIME`].
async fn send(duplex: &mut Duplex<MaybeTlsStream>, message: Bytes) {
    let mut waiting = Utf8Bytes::try_from(message).ok().map(Outgoing::Text);
    let writing = poll_fn(|cx| {
        duplex.poll_step(cx, false, |_| match waiting.take() {
            Some(message) => Poll::Ready(Some(message)),
            None => Poll::Pending,
        })
    });
    let _ = timeout(ANSWER_TIME, writing).await;
}

impl Socket {
    /// Opens the session.
    ///
    /// # Errors
    /// Returns a fault if there are too many sessions or the gateway is shutting down.
    pub fn open(connection: &ClientConnection, caller: Caller, format: SocketFormat) -> Result<Self, Fault> {
        let gateway = Arc::clone(&connection.front.gateway);
        let session = gateway.open_session(caller, Mode::Pipe, &Gateway::new_session_id()?, "websocket")?;
        let Some(stream) = session.open_general() else {
            session.close();
            return Err(Fault::new(FaultKind::Overloaded, "the session has no room for a stream"));
        };
        if format == SocketFormat::Governed {
            session.speak_dialect();
        }
        Ok(Self { gateway, session, stream, protobuf: format == SocketFormat::Protobuf, origins: Mutex::default() })
    }

    async fn run(self, connection: &ClientConnection, mut duplex: Duplex<MaybeTlsStream>) {
        loop {
            let step = poll_fn(|cx| {
                connection.register_waker(cx.waker());
                // The front wakes every connection twice a second while it stops, so this is checked until it holds.
                if connection.is_stopped() && self.session.in_flight() == 0 {
                    self.session.close();
                }
                if connection.is_displaced() {
                    return Poll::Ready(None);
                }
                let room = self.stream.outbox().len() < OUTBOX_BOUND;
                duplex.poll_step(cx, room, |cx| self.poll_message(cx)).map(Some)
            });
            let Some(step) = step.await else {
                drop(self);
                return duplex.close(CloseCode::Again, NO_PLACE).await;
            };
            match step {
                SocketEvent::Message(bytes) => {
                    if let Some(room) = self.gateway.room(bytes.len()) {
                        room.await;
                    }
                    self.take(bytes, connection.is_stopped()).await;
                }
                SocketEvent::Written => {}
                SocketEvent::Finished if self.session.lapse().is_some() => {
                    let reason = lapse_reason(self.session.lapse());
                    drop(self);
                    return duplex.close(CloseCode::Policy, reason).await;
                }
                SocketEvent::Finished if self.session.is_ended() => {
                    return duplex.close(CloseCode::Away, "the gateway is shutting down").await;
                }
                SocketEvent::Finished => {
                    self.gateway.counters.refused(Limit::SlowReader);
                    return duplex.close(CloseCode::Policy, "the client reads too slowly").await;
                }
                SocketEvent::Ended(ending) => return self.end(duplex, &ending).await,
            }
        }
    }

    /// Ends after the connection failed or was closed. The session ends first, since no answer can be delivered any
    /// more.
    async fn end(self, duplex: Duplex<MaybeTlsStream>, ending: &Ending) {
        tracing::debug!(session = %self.session.key, "the client {ending}");
        let most = self.gateway.settings().limits.message;
        let caller = || self.session.caller.clone();
        let bound = unknown_caller::limit(&self.gateway, caller, most, self.protobuf);
        let is_unknown = bound < most && matches!(ending, Ending::TooLarge);
        if is_unknown {
            unknown_caller::count(&self.gateway, &self.session.caller);
        }
        let limit = match ending {
            Ending::TooLarge if is_unknown => None,
            Ending::TooLarge => Some(Limit::MessageSize),
            Ending::Slow => Some(Limit::MessageTime),
            Ending::NoRoom(_) => Some(Limit::Memory),
            _ => None,
        };
        if let Some(limit) = limit {
            self.gateway.counters.refused(limit);
        }
        let reason = match ending {
            Ending::TooLarge if is_unknown => {
                "the message is larger than 1 MiB, and only its signature proves the caller"
            }
            Ending::TooLarge => "the message is too large",
            Ending::NotText => "the message is not UTF-8",
            Ending::Silent => "the client gives no sign of life",
            Ending::Slow => "the message takes too long",
            Ending::NoRoom(_) => "there is no room for the message; try again later",
            Ending::Protocol(_) => "this is not WebSocket",
            Ending::Closed(..) | Ending::Broken(_) => "",
        };
        if is_unknown || limit.is_some() || matches!(ending, Ending::NotText | Ending::Protocol(_)) {
            let fault = Fault::new(FaultKind::InvalidRequest, reason);
            self.gateway.refused(&self.session.caller, None, &fault, None);
        }
        drop(self);
        match ending.code() {
            Some(code) => duplex.close(code, reason).await,
            None => duplex.closed().await,
        }
    }

    async fn take(&self, bytes: Bytes, stopped: bool) {
        let taken = if self.protobuf {
            self.take_protobuf(bytes, stopped).await
        } else if stopped {
            self.take_while_stopping(bytes)
        } else {
            batch::receive(&self.gateway, &self.session, &self.stream, bytes).await
        };
        if let Err(unreadable) = taken {
            Counters::add(&self.gateway.counters.malformed);
            tracing::debug!(session = %self.session.key, fault = %unreadable.fault, "a message was refused");
            if let Some((id, fault)) = unreadable.into_refusal() {
                self.session.refuse(&self.stream, id, fault);
            }
        }
    }

    async fn take_protobuf(&self, bytes: Bytes, stopped: bool) -> Result<(), Unreadable> {
        let unreadable = |fault| Unreadable { fault, answer: Addressee::UnknownRequest };
        let decoded = protobuf::decode(&self.gateway, &self.session.caller, bytes).await.map_err(unreadable)?;
        if stopped {
            return self.take_while_stopping(decoded.json);
        }
        let message = intake::read(decoded.json, &self.gateway.settings())?;
        if let Some(id) = message.id_token().filter(|_| message.kind() == Kind::Request) {
            let mut origins = self.origins.lock().unpoisoned();
            // A cancelled request is never answered; bound the entries that such requests leave behind.
            if origins.len() >= MAX_ORIGINS {
                origins.clear();
            }
            origins.insert(id.into(), decoded.origin);
        }
        self.session.receive_with(&self.stream, message, decoded.proof.carried(Carrier::default()));
        Ok(())
    }

    /// Takes a message while the front stops. Requests are refused, alone or in a batch; responses to the server still
    /// count.
    fn take_while_stopping(&self, bytes: Bytes) -> Result<(), Unreadable> {
        let draining = || Fault::new(FaultKind::Draining, "the gateway is shutting down");
        if is_array(&bytes) {
            return Err(Unreadable { fault: draining(), answer: Addressee::UnknownRequest });
        }
        let message = intake::read(bytes, &self.gateway.settings())?;
        if message.kind() == Kind::Request {
            self.session.refuse(&self.stream, message.id(), draining());
        } else {
            self.session.receive(&self.stream, message);
        }
        Ok(())
    }

    /// Polls the next message for the client.
    fn poll_message(&self, cx: &mut Context<'_>) -> Poll<Option<Outgoing>> {
        loop {
            let Some(out) = std::task::ready!(self.stream.outbox().poll_next(cx)) else { return Poll::Ready(None) };
            // A WebSocket stays open, so there is no break after which the client reconnects.
            if let Some(message) = (!out.part).then(|| self.encode(out.into_bytes())).flatten() {
                return Poll::Ready(Some(message));
            }
        }
    }

    fn encode(&self, bytes: Bytes) -> Option<Outgoing> {
        if !self.protobuf {
            return self.text(bytes).map(Outgoing::Text);
        }
        let origin = |id: &[u8]| self.origins.lock().unpoisoned().remove(id).unwrap_or_default();
        let message = protobuf::encode(&self.gateway, &self.session, bytes, origin).map(Outgoing::Binary);
        if message.is_none() {
            self.gateway.counters.dropped("not_protobuf");
        }
        message
    }

    fn text(&self, bytes: Bytes) -> Option<Utf8Bytes> {
        let error = match Utf8Bytes::try_from(bytes.clone()) {
            Ok(text) => return Some(text),
            Err(error) => error,
        };
        self.gateway.counters.dropped("not_text");
        tracing::warn!(session = %self.session.key, %error, "a message is not UTF-8 and cannot be sent as text");
        let id = Envelope::parse(bytes).ok().filter(|message| message.method().is_none())?.id()?;
        let fault = Fault::new(FaultKind::BackendGarbage, format!("the answer is not UTF-8: {error}"));
        Utf8Bytes::try_from(fault.reply(Some(&id), Era::Legacy)).ok()
    }
}
