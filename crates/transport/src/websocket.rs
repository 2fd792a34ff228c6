//! A WebSocket as a duplex of messages, for clients and backends.
//!
//! One task drives each socket: it reads, writes, answers pings and sends its own. It never waits for the peer to read
//! while there is something to read from it.

mod activity_stream;
mod ending;
mod liveness;
#[cfg(test)]
mod tests;

pub(crate) use ending::Ending;
pub(crate) use liveness::Patience;
pub(crate) use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
pub(crate) use tokio_tungstenite::tungstenite::protocol::Role;
pub(crate) use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
pub(crate) use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::read_charge::ReadCharge;
use activity_stream::ActivityStream;
use bytes::Bytes;
use futures_util::{Sink as _, SinkExt as _, Stream as _, StreamExt as _};
use liveness::{Liveness, LivenessCheck};
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

/// Subprotocol name of MCP.
pub(crate) const SUBPROTOCOL: &str = "mcp";
/// Interval at which the peer is checked. A silent peer is pinged.
pub(crate) const TICK: Duration = Duration::from_secs(15);
/// Maximum time for the peer to answer a close frame, or to stop sending.
const LINGER: Duration = Duration::from_secs(2);
/// Size of the read buffer, which every open connection holds.
const READ_BUFFER: usize = 16 * 1024;
/// Size of the write buffer at which it is written early. It is always written once no message waits.
const WRITE_BUFFER: usize = 64 * 1024;
/// Maximum number of messages gathered at once.
const BATCH: usize = 64;

/// Result of driving the socket.
#[derive(Debug)]
pub(crate) enum SocketEvent {
    Message(Bytes),
    /// Some or all pending messages were written.
    Written,
    /// The source of messages has ended.
    Finished,
    /// The connection has ended, or must be closed.
    Ended(Ending),
}

/// A message to write, by the kind of its frame.
#[derive(Clone, Debug)]
pub(crate) enum Outgoing {
    /// A text frame with JSON.
    Text(Utf8Bytes),
    /// A binary frame with protobuf.
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
    socket: WebSocketStream<ActivityStream<S>>,
    liveness: Liveness,
    ticks: Interval,
    unflushed: bool,
    /// Large messages that the socket may not have written yet. They stay charged until it has.
    written: Vec<Outgoing>,
    /// Read count at the end of the last complete message.
    reads_at_last_message: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Duplex<S> {
    /// Takes over a socket. `early` was read with the handshake, `max` is the maximum message size. Incoming messages
    /// are charged to `share`.
    pub(crate) async fn new(
        socket: S,
        early: &[u8],
        role: Role,
        max: usize,
        share: Option<Arc<Share>>,
        patience: Patience,
    ) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(WRITE_BUFFER)
            .max_message_size(Some(max))
            .max_frame_size(Some(max));
        let socket = ActivityStream::new(socket, ReadCharge::new(share));
        let socket = WebSocketStream::from_partially_read(socket, early.to_vec(), role, Some(config)).await;
        let mut ticks = interval_at(Instant::now() + TICK, TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            socket,
            liveness: Liveness::new(patience),
            ticks,
            unflushed: false,
            written: Vec::new(),
            reads_at_last_message: 0,
        }
    }

    /// Sets the share to charge for incoming messages.
    pub(crate) fn charge_to(&mut self, share: Arc<Share>) {
        self.socket.get_mut().charge_to(share);
    }

    /// Drives the socket: writes messages from `source`, reads if `may_read`, and checks the peer.
    pub(crate) fn poll_step<T: Into<Outgoing>>(
        &mut self,
        cx: &mut Context<'_>,
        may_read: bool,
        source: impl FnMut(&mut Context<'_>) -> Poll<Option<T>>,
    ) -> Poll<SocketEvent> {
        if let Err(ending) = self.check_peer(cx, may_read) {
            return Poll::Ready(SocketEvent::Ended(ending));
        }
        let gathered = match self.gather(cx, source) {
            Ok(GatherOutcome::Ended) => return Poll::Ready(SocketEvent::Finished),
            Ok(gathered) => gathered,
            Err(ending) => return Poll::Ready(SocketEvent::Ended(ending)),
        };
        let mut written = gathered == GatherOutcome::Batch;
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
        // Read in the same pass: a source that never runs dry must not block reading.
        if may_read && let Poll::Ready(step) = self.read(cx) {
            return Poll::Ready(step);
        }
        if written { Poll::Ready(SocketEvent::Written) } else { Poll::Pending }
    }

    /// Pings a silent peer. Fails once it has been silent, or unfinished, for too long.
    fn check_peer(&mut self, cx: &mut Context<'_>, may_read: bool) -> Result<(), Ending> {
        while self.ticks.poll_tick(cx).is_ready() {
            let socket = self.socket.get_ref();
            // While reading is paused, a message cannot be finished.
            let begun = may_read && socket.reads() != self.reads_at_last_message;
            match self.liveness.check(socket.moves(), begun) {
                LivenessCheck::Alive => {}
                LivenessCheck::Ping => {
                    // A peer that does not read what was written cannot be pinged.
                    if let Poll::Ready(ready) = Pin::new(&mut self.socket).poll_ready(cx) {
                        ready?;
                        Pin::new(&mut self.socket).start_send(Message::Ping(Bytes::new()))?;
                        self.unflushed = true;
                    }
                }
                LivenessCheck::Gone => return Err(Ending::Silent),
                LivenessCheck::Slow => return Err(Ending::Slow),
            }
        }
        Ok(())
    }

    fn gather<T: Into<Outgoing>>(
        &mut self,
        cx: &mut Context<'_>,
        mut source: impl FnMut(&mut Context<'_>) -> Poll<Option<T>>,
    ) -> Result<GatherOutcome, Ending> {
        for _ in 0..BATCH {
            match Pin::new(&mut self.socket).poll_ready(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => return Ok(GatherOutcome::Blocked),
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
                Poll::Ready(None) => return Ok(GatherOutcome::Ended),
                Poll::Pending => return Ok(GatherOutcome::All),
            }
        }
        Ok(GatherOutcome::Batch)
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Poll<SocketEvent> {
        loop {
            let next_message = std::task::ready!(Pin::new(&mut self.socket).poll_next(cx));
            self.reads_at_last_message = self.socket.get_ref().reads();
            let step = match next_message {
                Some(Ok(Message::Text(text))) => SocketEvent::Message(self.socket.get_mut().give(text.into())),
                Some(Ok(Message::Binary(bytes))) => SocketEvent::Message(self.socket.get_mut().give(bytes)),
                // tungstenite writes the pong during the next read.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Close(frame))) => SocketEvent::Ended(frame.into()),
                Some(Err(error)) => SocketEvent::Ended(error.into()),
                None => SocketEvent::Ended(None.into()),
            };
            return Poll::Ready(step);
        }
    }

    /// Sends a close frame and ends the connection. A peer that reads still receives what was written before. The
    /// protocol limits a reason to 123 bytes.
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

    /// Completes a close that the peer began.
    pub(crate) async fn closed(mut self) {
        let closing = async {
            if self.socket.flush().await.is_ok() {
                while let Some(Ok(_)) = self.socket.next().await {}
            }
        };
        let _ = timeout(LINGER, closing).await;
    }

    /// Reads and discards remaining bytes: closing a socket with unread bytes would discard what was written.
    async fn discard(&mut self) {
        let socket = self.socket.get_mut();
        let mut scrap = vec![0; READ_BUFFER];
        if socket.shutdown().await.is_ok() {
            while matches!(socket.read(&mut scrap).await, Ok(1..)) {}
        }
    }
}

/// Outcome of gathering messages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum GatherOutcome {
    /// No further message waits.
    All,
    /// More messages may wait.
    Batch,
    /// The socket accepts no more for now.
    Blocked,
    /// The source has ended.
    Ended,
}
