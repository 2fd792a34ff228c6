use super::framing::{BodyPiece, Framing, MalformedBody};
use super::head::{self, Head};
use super::request::HttpRequest;
use super::target::{ConnectError, HttpTarget};
use crate::tls::MaybeTlsStream;
use bytes::{Bytes, BytesMut};
use signalbox_runtime::caller_places::CallerPlace;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWrite as _};

/// Usual space reserved for a read, in bytes.
const ROOM: usize = 8 * 1024;
/// Minimum free space before a read, in bytes, so that one read receives a small response.
const LEAST_ROOM: usize = 1024;
/// Maximum space reserved because the last response was large or a `Content-Length` announces a large one, in bytes.
const MAX_ROOM: usize = 1024 * 1024;
/// Maximum space reserved for the next piece of a body of unknown length, in bytes.
const MAX_STRIDE: usize = 256 * 1024;
/// Extra space for a read: a buffer that is not full after it shows that no more bytes are waiting.
const SLACK: usize = 64;
/// Maximum buffer size that an idle connection keeps, in bytes.
const MAX_KEPT: usize = 16 * 1024;
/// Maximum number of interim heads before the one of the response.
const MAX_INTERIM: u32 = 16;

/// Time before the server's keep-alive timeout at which an idle connection is closed, so that no call races with the
/// server.
const KEEP_ALIVE_MARGIN: Duration = Duration::from_secs(1);

/// Reason why a response is missing or incomplete.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("the connection ended before the message did")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Malformed(#[from] MalformedBody),
}

/// Reason why a request got no response.
pub(crate) enum SendError {
    /// The connection ended before any of the request was written. Holds the error, if there was one.
    Unsent(HttpRequest, Option<io::Error>),
    /// The request may have been processed.
    Failed(HttpError),
}

/// A client connection. Dropping it closes the socket.
pub(crate) struct Conn {
    stream: MaybeTlsStream,
    /// Request that is not fully written yet.
    out: Option<HttpRequest>,
    /// Buffer of the last request's head, for reuse.
    room: Vec<u8>,
    received: BytesMut,
    /// Number of received bytes that were searched and hold no complete head.
    seen: usize,
    /// Rest of the response's body.
    body: Framing,
    /// Set while the connection can be reused.
    reusable: bool,
    /// Keep-alive timeout of the server, if it sent one.
    idle_timeout: Option<Duration>,
    /// Size of the last response.
    usual: usize,
    /// Space reserved for the next piece of a body of unknown length. It grows while reads fill it.
    stride: usize,
    /// Largest `stride` during this response.
    widest: usize,
    /// Place of the caller for whose request the connection was opened, if any.
    place: Option<CallerPlace>,
}

impl Conn {
    /// Connects. Sends no request yet.
    pub(crate) async fn open(target: &HttpTarget, timeout: Duration) -> Result<Box<Self>, ConnectError> {
        Ok(Self::over(target.connect(timeout).await?))
    }

    /// Creates a connection over an open stream.
    pub(crate) fn over(stream: MaybeTlsStream) -> Box<Self> {
        Box::new(Self {
            stream,
            out: None,
            room: Vec::new(),
            received: BytesMut::new(),
            seen: 0,
            body: Framing::Done,
            reusable: true,
            idle_timeout: None,
            usual: 0,
            stride: ROOM,
            widest: ROOM,
            place: None,
        })
    }

    /// Holds the caller's place until the connection is idle or ends.
    pub(crate) fn occupy(&mut self, place: Option<CallerPlace>) {
        self.place = place;
    }

    /// Takes the reusable buffer for the head of the next request.
    pub(crate) fn room(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.room)
    }

    /// Writes the request and waits for the head of its response.
    ///
    /// # Errors
    /// Returns the request if the connection ended before any of it was written.
    pub(crate) async fn send(&mut self, request: HttpRequest) -> Result<Head, SendError> {
        if !self.is_idle() {
            return Err(SendError::Unsent(request, None));
        }
        self.out = Some(request);
        let mut interim = 0;
        poll_fn(|cx| self.poll_head(cx, &mut interim)).await
    }

    fn poll_head(&mut self, cx: &mut Context<'_>, interim: &mut u32) -> Poll<Result<Head, SendError>> {
        let begins = self.out.as_ref().is_some_and(HttpRequest::is_untouched);
        // A server that has closed the connection, or sends bytes unasked, will not process the request.
        let ended =
            if begins { self.poll_fill(cx, self.expected(), ROOM).map(|read| read.err()) } else { Poll::Pending };
        let ended = match ended {
            Poll::Pending => self.poll_write(cx).map(Result::err),
            Poll::Ready(why) => Poll::Ready(why.or_else(|| Some(io::ErrorKind::UnexpectedEof.into()))),
        };
        if let Poll::Ready(Some(why)) = ended {
            if let Some(unsent) = self.out.take_if(|out| out.is_untouched()) {
                return Poll::Ready(Err(SendError::Unsent(unsent, Some(why))));
            }
            self.give_up_writing();
        } else if begins {
            // The read above was pending, so the task will be woken by the first byte.
            return Poll::Pending;
        }
        loop {
            match self.take_head(interim) {
                Ok(Some(head)) => {
                    // A server that answers before it has read the whole request may take the rest for another request.
                    self.reusable &= self.out.is_none();
                    return Poll::Ready(Ok(head));
                }
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(SendError::Failed(error.into()))),
            }
            if let Err(error) = ready!(self.poll_more(cx, self.expected(), ROOM)) {
                return Poll::Ready(Err(SendError::Failed(error)));
            }
        }
    }

    /// Takes the head of the response, if it has arrived. Skips interim heads.
    fn take_head(&mut self, interim: &mut u32) -> Result<Option<Head>, MalformedBody> {
        loop {
            // Parse again only once the bytes may contain the end of a head.
            if self.received.is_empty() || self.seen > 0 && !head::may_end(&self.received, self.seen) {
                self.seen = self.received.len();
                if self.seen > head::MAX_HEAD {
                    return Err(MalformedBody("a head that is too large"));
                }
                return Ok(None);
            }
            let length = self.received.len();
            let Some((head, handling)) = head::take(&mut self.received)? else {
                self.seen = length;
                return Ok(None);
            };
            self.seen = 0;
            if head.status.is_informational() && head.status.as_u16() != 101 {
                *interim += 1;
                // An interim head has no say over reuse, but it may announce a body.
                self.reusable &= handling.reusable;
                if *interim > MAX_INTERIM {
                    return Err(MalformedBody("too many heads before the one of the response"));
                }
                continue;
            }
            self.usual = length - self.received.len();
            if let Framing::Length(length) = handling.framing {
                self.usual += usize::try_from(length).unwrap_or(MAX_ROOM).min(MAX_ROOM);
            }
            self.body = handling.framing;
            (self.stride, self.widest) = (ROOM, ROOM);
            self.reusable &= handling.reusable;
            self.idle_timeout = handling.idle_timeout.or(self.idle_timeout);
            return Ok(Some(head));
        }
    }

    /// Returns the number of remaining body bytes, if it is known.
    pub(crate) fn remaining_length(&self) -> Option<u64> {
        match self.body {
            Framing::Done => Some(0),
            Framing::Length(left) => Some(left),
            Framing::Chunked(_) | Framing::UntilClose => None,
        }
    }

    /// Reads the next piece of the response's body; `None` at its end.
    pub(crate) async fn frame(&mut self) -> Option<Result<Bytes, HttpError>> {
        poll_fn(|cx| self.poll_frame(cx)).await
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, HttpError>>> {
        self.poll_rest(cx);
        loop {
            match self.body.next(&mut self.received) {
                Ok(BodyPiece::Data(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Ok(BodyPiece::End) => return Poll::Ready(None),
                Ok(BodyPiece::More) => {}
                Err(error) => return self.fail(error.into()),
            }
            match ready!(self.poll_more(cx, LEAST_ROOM, self.stride)) {
                Ok(()) if self.received.len() == self.received.capacity() => {
                    self.stride = (self.stride * 2).min(MAX_STRIDE);
                    self.widest = self.widest.max(self.stride);
                }
                // A slow stream needs only the usual space.
                Ok(()) => self.stride = ROOM,
                Err(HttpError::Closed) if self.body == Framing::UntilClose => {
                    self.body = Framing::Done;
                    return Poll::Ready(None);
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Waits until this many bytes of a body of known length have arrived, so that they are contiguous and need no
    /// copy.
    ///
    /// # Errors
    /// Returns an error if the connection ends first.
    pub(crate) async fn gather(&mut self, length: usize) -> Result<(), HttpError> {
        if self.received.len() < length {
            self.make_room(missing(length, &self.received).min(MAX_ROOM));
        }
        while self.received.len() < length {
            poll_fn(|cx| {
                self.poll_rest(cx);
                let missing = missing(length, &self.received);
                // Beyond MAX_ROOM the buffer grows only as fast as bytes arrive, whatever length was announced.
                self.poll_more(cx, missing.min(LEAST_ROOM), missing.min(MAX_ROOM.max(self.received.len())))
            })
            .await?;
        }
        Ok(())
    }

    fn fail(&mut self, error: HttpError) -> Poll<Option<Result<Bytes, HttpError>>> {
        self.reusable = false;
        Poll::Ready(Some(Err(error)))
    }

    /// Returns `true` if another request can be sent, as far as is known without reading from the socket.
    pub(crate) fn is_idle(&self) -> bool {
        self.reusable && self.out.is_none() && self.body == Framing::Done && self.received.is_empty()
    }

    /// Frees large buffers and the caller's place before the connection becomes idle.
    pub(crate) fn prepare_idle(&mut self) {
        self.place = None;
        // Even a short remaining slice keeps the whole allocation alive, together with the response that was in it.
        if self.received.capacity() > MAX_KEPT || self.usual > MAX_KEPT || self.widest > MAX_KEPT {
            self.received = BytesMut::new();
        }
    }

    /// Returns the time for which the connection may stay idle, at most `most`.
    pub(crate) fn idle_time(&self, most: Duration) -> Duration {
        match self.idle_timeout {
            Some(keep) => most.min(keep.saturating_sub(KEEP_ALIVE_MARGIN).max(keep / 2)),
            None => most,
        }
    }

    /// Continues to write the request while its response is read.
    fn poll_rest(&mut self, cx: &mut Context<'_>) {
        if self.out.is_some() && matches!(self.poll_write(cx), Poll::Ready(Err(_))) {
            self.give_up_writing();
        }
    }

    /// Stops writing. A server may refuse a request before it has read all of it.
    fn give_up_writing(&mut self) {
        self.out = None;
        self.reusable = false;
    }

    /// Writes as much of the request as the socket accepts.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(out) = &mut self.out else { return Poll::Ready(Ok(())) };
        let mut stream = Pin::new(&mut self.stream);
        while !out.is_written() {
            let count = ready!(stream.as_mut().poll_write_vectored(cx, &out.left()))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            out.wrote(count);
        }
        ready!(stream.poll_flush(cx))?;
        if let Some(written) = self.out.take() {
            self.room = written.into_room();
        }
        Poll::Ready(Ok(()))
    }

    /// Returns the space to reserve for a response like the last one, or for the rest of a head.
    fn expected(&self) -> usize {
        if self.received.is_empty() { (self.usual + SLACK).clamp(LEAST_ROOM, MAX_ROOM) } else { LEAST_ROOM }
    }

    /// Reads more bytes. An end of the stream is an error.
    fn poll_more(&mut self, cx: &mut Context<'_>, least: usize, room: usize) -> Poll<Result<(), HttpError>> {
        Poll::Ready(match ready!(self.poll_fill(cx, least, room)) {
            Ok(0) => {
                self.reusable = false;
                Err(HttpError::Closed)
            }
            Ok(_) => Ok(()),
            Err(error) => {
                self.reusable = false;
                Err(error.into())
            }
        })
    }

    /// Reads available bytes. If less than `least` bytes are free, `room` bytes are reserved first.
    fn poll_fill(&mut self, cx: &mut Context<'_>, least: usize, room: usize) -> Poll<io::Result<usize>> {
        if self.received.capacity() - self.received.len() < least {
            self.make_room(room.max(least));
        }
        pin!(self.stream.read_buf(&mut self.received)).poll(cx)
    }

    /// Allocates a new buffer instead of growing this one, because others may hold slices of it.
    fn make_room(&mut self, room: usize) {
        if self.received.capacity() - self.received.len() < room {
            let mut larger = BytesMut::with_capacity(self.received.len() + room);
            larger.extend_from_slice(&self.received);
            self.received = larger;
        }
    }
}

/// Returns the space that the rest of a body of this length needs.
fn missing(length: usize, received: &BytesMut) -> usize {
    length.saturating_sub(received.len()).saturating_add(SLACK)
}
