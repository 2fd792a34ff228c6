//! A WebSocket as a duplex of messages, for clients and for backends alike.
//!
//! One task drives each: it reads, writes, answers pings and sends its own. Nothing waits for the other side to read while
//! there is something to be read from it.

mod ending;
mod moving;
mod pulse;
#[cfg(test)]
mod tests;

pub(crate) use ending::Ending;
pub(crate) use pulse::Patience;
pub(crate) use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
pub(crate) use tokio_tungstenite::tungstenite::protocol::Role;
pub(crate) use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
pub(crate) use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::read_charge::ReadCharge;
use bytes::Bytes;
use futures_util::{Sink as _, SinkExt as _, Stream as _, StreamExt as _};
use moving::Moving;
use pulse::{Beat, Pulse};
use signalbox_engine::budget::{Share, WEIGHED};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};

/// The subprotocol that MCP is spoken under.
pub(crate) const SUBPROTOCOL: &str = "mcp";
/// How often it is looked whether the other side still moves; one that does not is pinged.
pub(crate) const TICK: Duration = Duration::from_secs(15);
/// How long the other side may take to answer a closing, or to stop sending.
const LINGER: Duration = Duration::from_secs(2);
/// Bytes read at once. Every open connection holds as many.
const READ_BUFFER: usize = 16 * 1024;
/// Bytes gathered before they are written in between; what is gathered is always written once nothing more waits.
const WRITE_BUFFER: usize = 64 * 1024;
/// Most messages gathered in one go.
const BATCH: usize = 64;

/// What happened next.
#[derive(Debug)]
pub(crate) enum SocketEvent {
    /// A message came.
    Message(Bytes),
    /// What was to be written is written, or some of it.
    Written,
    /// The source of messages has ended.
    Finished,
    /// The connection has ended, or must be.
    Ended(Ending),
}

/// A message to be written, in the kind of frame that carries it.
#[derive(Clone, Debug)]
pub(crate) enum Outgoing {
    /// JSON.
    Text(Utf8Bytes),
    /// Protobuf.
    Binary(Bytes),
}

impl Outgoing {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }
}

impl From<Utf8Bytes> for Outgoing {
    fn from(text: Utf8Bytes) -> Self {
        Self::Text(text)
    }
}

impl From<Outgoing> for Message {
    fn from(message: Outgoing) -> Self {
        match message {
            Outgoing::Text(text) => Self::Text(text),
            Outgoing::Binary(bytes) => Self::Binary(bytes),
        }
    }
}

/// A WebSocket after its handshake.
#[derive(Debug)]
pub(crate) struct Duplex<S> {
    socket: WebSocketStream<Moving<S>>,
    pulse: Pulse,
    ticks: Interval,
    unflushed: bool,
    /// Large messages that the socket may not have taken yet: they stay charged until it has.
    written: Vec<Outgoing>,
    /// How often something had come when the last message was whole.
    heard: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Duplex<S> {
    /// Takes over a socket. `early` was read with the handshake, `max` is the largest message. What the other side sends is
    /// charged to its `share`.
    pub(crate) async fn new(
        socket: S,
        early: &[u8],
        role: Role,
        (max, share): (usize, Option<Arc<Share>>),
        patience: Patience,
    ) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(WRITE_BUFFER)
            .max_message_size(Some(max))
            .max_frame_size(Some(max));
        let socket = Moving::new(socket, ReadCharge::new(share));
        let socket = WebSocketStream::from_partially_read(socket, early.to_vec(), role, Some(config)).await;
        let mut ticks = interval_at(Instant::now() + TICK, TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { socket, pulse: Pulse::new(patience), ticks, unflushed: false, written: Vec::new(), heard: 0 }
    }

    /// From now on this share is charged for what the other side sends.
    pub(crate) fn charge_to(&mut self, share: Arc<Share>) {
        self.socket.get_mut().charge_to(share);
    }

    /// Goes on: writes what `source` gives, reads if that `may_read`, and looks after the other side.
    pub(crate) fn poll_step<T: Into<Outgoing>>(
        &mut self,
        cx: &mut Context<'_>,
        may_read: bool,
        source: impl FnMut(&mut Context<'_>) -> Poll<Option<T>>,
    ) -> Poll<SocketEvent> {
        if let Err(ending) = self.look_after(cx, may_read) {
            return Poll::Ready(SocketEvent::Ended(ending));
        }
        let gathered = match self.gather(cx, source) {
            Ok(Gathered::Ended) => return Poll::Ready(SocketEvent::Finished),
            Ok(gathered) => gathered,
            Err(ending) => return Poll::Ready(SocketEvent::Ended(ending)),
        };
        let mut written = gathered == Gathered::Batch;
        if self.unflushed
            && let Poll::Ready(flushed) = Pin::new(&mut self.socket).poll_flush(cx)
        {
            if let Err(error) = flushed {
                return Poll::Ready(SocketEvent::Ended(error.into()));
            }
            self.unflushed = false;
            self.written.clear();
            written = true;
        }
        // Read in the same go: a source that never runs dry must not keep the other side from being heard.
        if may_read && let Poll::Ready(step) = self.read(cx) {
            return Poll::Ready(step);
        }
        if written { Poll::Ready(SocketEvent::Written) } else { Poll::Pending }
    }

    /// Pings a silent other side; fails once it has kept us waiting for too long.
    fn look_after(&mut self, cx: &mut Context<'_>, may_read: bool) -> Result<(), Ending> {
        while self.ticks.poll_tick(cx).is_ready() {
            let socket = self.socket.get_ref();
            // A message that is not read cannot be finished.
            let begun = may_read && socket.reads() != self.heard;
            match self.pulse.beat(socket.moves(), begun) {
                Beat::Moves => {}
                Beat::Ping => {
                    // One that does not read what was written before cannot be asked.
                    if let Poll::Ready(ready) = Pin::new(&mut self.socket).poll_ready(cx) {
                        ready?;
                        Pin::new(&mut self.socket).start_send(Message::Ping(Bytes::new()))?;
                        self.unflushed = true;
                    }
                }
                Beat::Gone => return Err(Ending::Silent),
                Beat::Slow => return Err(Ending::Slow),
            }
        }
        Ok(())
    }

    fn gather<T: Into<Outgoing>>(
        &mut self,
        cx: &mut Context<'_>,
        mut source: impl FnMut(&mut Context<'_>) -> Poll<Option<T>>,
    ) -> Result<Gathered, Ending> {
        for _ in 0..BATCH {
            match Pin::new(&mut self.socket).poll_ready(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => return Ok(Gathered::Blocked),
            }
            match source(cx) {
                Poll::Ready(Some(message)) => {
                    let message = message.into();
                    if message.len() >= WEIGHED {
                        self.written.push(message.clone());
                    }
                    Pin::new(&mut self.socket).start_send(message.into())?;
                    self.unflushed = true;
                }
                Poll::Ready(None) => return Ok(Gathered::Ended),
                Poll::Pending => return Ok(Gathered::All),
            }
        }
        Ok(Gathered::Batch)
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Poll<SocketEvent> {
        loop {
            let heard = std::task::ready!(Pin::new(&mut self.socket).poll_next(cx));
            self.heard = self.socket.get_ref().reads();
            let step = match heard {
                Some(Ok(Message::Text(text))) => SocketEvent::Message(self.socket.get_mut().give(text.into())),
                Some(Ok(Message::Binary(bytes))) => SocketEvent::Message(self.socket.get_mut().give(bytes)),
                // The next reading writes the answer to a ping by itself.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Close(frame))) => SocketEvent::Ended(frame.into()),
                Some(Err(error)) => SocketEvent::Ended(error.into()),
                None => SocketEvent::Ended(None.into()),
            };
            return Poll::Ready(step);
        }
    }

    /// Says why the connection ends and ends it. What was written before is still delivered to a side that reads. The
    /// protocol has room for a reason of 123 bytes.
    pub(crate) async fn close(mut self, code: CloseCode, reason: &'static str) {
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        let closing = async {
            if self.socket.send(Message::Close(Some(frame))).await.is_err() {
                return;
            }
            while let Some(Ok(message)) = self.socket.next().await {
                if message.is_close() {
                    return;
                }
            }
            self.discard().await;
        };
        let _ = timeout(LINGER, closing).await;
    }

    /// Lets a closing by the other side come to its end.
    pub(crate) async fn closed(mut self) {
        let closing = async {
            if self.socket.flush().await.is_ok() {
                while let Some(Ok(_)) = self.socket.next().await {}
            }
        };
        let _ = timeout(LINGER, closing).await;
    }

    /// Reads and forgets what still comes: a socket that is closed with unread bytes takes back what was written to it.
    async fn discard(&mut self) {
        let socket = self.socket.get_mut();
        let mut scrap = vec![0; READ_BUFFER];
        if socket.shutdown().await.is_ok() {
            while matches!(socket.read(&mut scrap).await, Ok(1..)) {}
        }
    }
}

/// How far gathering came.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Gathered {
    /// Nothing more waits.
    All,
    /// More may wait.
    Batch,
    /// The other side takes nothing more for now.
    Blocked,
    /// There will be nothing more.
    Ended,
}
