//! A socket that counts the signs of life of the other side, and the bytes of the message that it has begun.

use crate::read_charge::ReadCharge;
use bytes::Bytes;
use signalbox_engine::budget::Share;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The socket. It moves when bytes come, and when bytes are taken that were not taken before: that a write succeeds says
/// nothing as long as the system has room to keep it.
#[derive(Debug)]
pub(super) struct Moving<S> {
    socket: S,
    blocked: bool,
    moves: u64,
    reads: u64,
    /// Bytes that came since the last message was whole.
    begun: usize,
    charge: ReadCharge,
}

impl<S> Moving<S> {
    pub(super) fn new(socket: S, charge: ReadCharge) -> Self {
        Self { socket, blocked: false, moves: 0, reads: 0, begun: 0, charge }
    }

    /// A message is whole, and takes its charge along.
    pub(super) fn give(&mut self, message: Bytes) -> Bytes {
        self.begun = 0;
        self.charge.give(message)
    }

    /// From now on this share is charged for what comes.
    pub(super) fn charge_to(&mut self, share: Arc<Share>) {
        self.charge.charge_to(share);
    }

    /// How often it has moved.
    pub(super) fn moves(&self) -> u64 {
        self.moves
    }

    /// How often something came.
    pub(super) fn reads(&self) -> u64 {
        self.reads
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Moving<S> {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Moving<S> {
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
