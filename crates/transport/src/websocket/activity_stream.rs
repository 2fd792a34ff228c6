//! A socket that counts signs of life of the peer, and the bytes of the message being received.

use crate::read_charge::ReadCharge;
use bytes::Bytes;
use signalbox_engine::budget::Share;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A socket with activity counters. Received bytes are a sign of life, and so is a write that succeeds after it was
/// blocked. Other writes prove nothing, since the system may only have buffered them.
#[derive(Debug)]
pub(super) struct ActivityStream<S> {
    socket: S,
    blocked: bool,
    moves: u64,
    reads: u64,
    /// Bytes received since the last complete message.
    begun: usize,
    charge: ReadCharge,
}

impl<S> ActivityStream<S> {
    pub(super) fn new(socket: S, charge: ReadCharge) -> Self {
        Self { socket, blocked: false, moves: 0, reads: 0, begun: 0, charge }
    }

    /// Completes a message, which takes its charge along.
    pub(super) fn give(&mut self, message: Bytes) -> Bytes {
        self.begun = 0;
        self.charge.give(message)
    }

    /// Sets the share to charge for received bytes.
    pub(super) fn charge_to(&mut self, share: Arc<Share>) {
        self.charge.charge_to(share);
    }

    /// Returns the number of signs of life.
    pub(super) fn moves(&self) -> u64 {
        self.moves
    }

    /// Returns the number of reads.
    pub(super) fn reads(&self) -> u64 {
        self.reads
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ActivityStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Err(error) = ready!(this.charge.poll_cover(cx, this.begun)) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::QuotaExceeded, error)));
        }
        let before = into.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(cx, into);
        if read.is_ready() {
            self.begun += into.filled().len() - before;
            self.moves = self.moves.wrapping_add(1);
            self.reads = self.reads.wrapping_add(1);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ActivityStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        if written.is_ready() && self.blocked {
            self.moves = self.moves.wrapping_add(1);
        }
        self.blocked = written.is_pending();
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
