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

/// Room that is made for reading, in bytes.
const ROOM: usize = 8 * 1024;
/// The buffer is enlarged before a read when less room than this is left, in bytes, so that one read brings a small response.
const LEAST_ROOM: usize = 1024;
/// Most room that is made because the last response was large or a `Content-Length` announces one, in bytes.
const MAX_ROOM: usize = 1024 * 1024;
/// Most room that is made for the next piece of a body of unknown length, in bytes.
const MAX_STRIDE: usize = 256 * 1024;
/// Extra room for a read, so that a buffer that is not full shows that nothing more is there.
const SLACK: usize = 64;
/// Largest buffer that is kept with an idle connection, in bytes.
const MAX_KEPT: usize = 16 * 1024;
/// Most heads that may come before the one of the response.
const MAX_INTERIM: u32 = 16;

/// How much earlier than the server an idle connection is given up, so that no call meets the closing.
const KEEP_ALIVE_MARGIN: Duration = Duration::from_secs(1);

/// Why there is no response, or not all of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("the connection ended before the message did")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Malformed(#[from] MalformedBody),
}

/// Why a request got no response.
pub(crate) enum SendError {
    /// The connection ended before any of it was written, with this error where it was one.
    Unsent(HttpRequest, Option<io::Error>),
    /// It may have been processed.
    Failed(HttpError),
}

/// A connection. Dropping it closes the socket.
pub(crate) struct Conn {
    stream: MaybeTlsStream,
    /// The request that is not written yet.
    out: Option<HttpRequest>,
    /// The buffer of the last request's head.
    room: Vec<u8>,
    came: BytesMut,
    /// This many of the bytes that came were searched, and hold no whole head.
    seen: usize,
    /// What is left of the response's body.
    body: Framing,
    /// Another request may follow.
    kept: bool,
    /// How long the server keeps it idle, where it says so.
    keep: Option<Duration>,
    /// How large the last response was.
    usual: usize,
    /// Room for the next piece of a body of unknown length: it grows while reads fill it.
    stride: usize,
    /// The most of it with this response.
    widest: usize,
    /// The place of the caller whose request it carries, if it was opened for that.
    place: Option<CallerPlace>,
}

impl Conn {
    /// Connects. No byte is sent yet.
    pub(crate) async fn open(target: &HttpTarget, timeout: Duration) -> Result<Box<Self>, ConnectError> {
        Ok(Self::over(target.connect(timeout).await?))
    }

    /// A connection over a stream that is open.
    pub(crate) fn over(stream: MaybeTlsStream) -> Box<Self> {
        Box::new(Self {
            stream,
            out: None,
            room: Vec::new(),
            came: BytesMut::new(),
            seen: 0,
            body: Framing::Done,
            kept: true,
            keep: None,
            usual: 0,
            stride: ROOM,
            widest: ROOM,
            place: None,
        })
    }

    /// Holds the place of a caller until the connection is idle or ends.
    pub(crate) fn occupy(&mut self, place: Option<CallerPlace>) {
        self.place = place;
    }

    /// A buffer for the head of the next request.
    pub(crate) fn room(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.room)
    }

    /// Writes the request and waits for the head of its response.
    ///
    /// # Errors
    /// Holds the request if the connection ended before any of it was written.
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
        // A server that has closed the connection, or speaks without being asked, will not see the request.
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
            // Nothing had come, and what comes after that wakes the task.
            return Poll::Pending;
        }
        loop {
            match self.take_head(interim) {
                Ok(Some(head)) => {
                    // A server that answers before it has read the whole request may take the rest for another request.
                    self.kept &= self.out.is_none();
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

    /// The head of the response, if it has come. Those that only say that it will come are passed over.
    fn take_head(&mut self, interim: &mut u32) -> Result<Option<Head>, MalformedBody> {
        loop {
            // The bytes are parsed again only once they may hold the end of a head.
            if self.came.is_empty() || self.seen > 0 && !head::may_end(&self.came, self.seen) {
                self.seen = self.came.len();
                if self.seen > head::MAX_HEAD {
                    return Err(MalformedBody("a head that is too large"));
                }
                return Ok(None);
            }
            let length = self.came.len();
            let Some((head, manner)) = head::take(&mut self.came)? else {
                self.seen = length;
                return Ok(None);
            };
            self.seen = 0;
            if head.status.is_informational() && head.status.as_u16() != 101 {
                *interim += 1;
                // An interim head says nothing of its own about the connection, but it may announce a body.
                self.kept &= manner.kept;
                if *interim > MAX_INTERIM {
                    return Err(MalformedBody("too many heads before the one of the response"));
                }
                continue;
            }
            self.usual = length - self.came.len();
            if let Framing::Length(length) = manner.framing {
                self.usual += usize::try_from(length).unwrap_or(MAX_ROOM).min(MAX_ROOM);
            }
            self.body = manner.framing;
            (self.stride, self.widest) = (ROOM, ROOM);
            self.kept &= manner.kept;
            self.keep = manner.keep.or(self.keep);
            return Ok(Some(head));
        }
    }

    /// How many bytes are left of the body, where that was said.
    pub(crate) fn announced(&self) -> Option<u64> {
        match self.body {
            Framing::Done => Some(0),
            Framing::Length(left) => Some(left),
            Framing::Chunked(_) | Framing::UntilClose => None,
        }
    }

    /// The next piece of the response's body; none at its end.
    pub(crate) async fn frame(&mut self) -> Option<Result<Bytes, HttpError>> {
        poll_fn(|cx| self.poll_frame(cx)).await
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, HttpError>>> {
        self.poll_rest(cx);
        loop {
            match self.body.next(&mut self.came) {
                Ok(BodyPiece::Data(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Ok(BodyPiece::End) => return Poll::Ready(None),
                Ok(BodyPiece::More) => {}
                Err(error) => return self.broken(error.into()),
            }
            match ready!(self.poll_more(cx, LEAST_ROOM, self.stride)) {
                Ok(()) if self.came.len() == self.came.capacity() => {
                    self.stride = (self.stride * 2).min(MAX_STRIDE);
                    self.widest = self.widest.max(self.stride);
                }
                // A trickle needs no more room than any other.
                Ok(()) => self.stride = ROOM,
                Err(HttpError::Closed) if self.body == Framing::UntilClose => {
                    self.body = Framing::Done;
                    return Poll::Ready(None);
                }
                Err(error) => return self.broken(error),
            }
        }
    }

    /// Waits until this many bytes of a body of known length have come, so that they are one piece and need no copying.
    ///
    /// # Errors
    /// When the connection ends before.
    pub(crate) async fn gather(&mut self, length: usize) -> Result<(), HttpError> {
        if self.came.len() < length {
            self.make_room(missing(length, &self.came).min(MAX_ROOM));
        }
        while self.came.len() < length {
            poll_fn(|cx| {
                self.poll_rest(cx);
                let missing = missing(length, &self.came);
                // Room beyond MAX_ROOM grows only as fast as bytes really come, whatever length was announced.
                self.poll_more(cx, missing.min(LEAST_ROOM), missing.min(MAX_ROOM.max(self.came.len())))
            })
            .await?;
        }
        Ok(())
    }

    fn broken(&mut self, error: HttpError) -> Poll<Option<Result<Bytes, HttpError>>> {
        self.kept = false;
        Poll::Ready(Some(Err(error)))
    }

    /// Whether another request can be sent, as far as is known without asking the socket.
    pub(crate) fn is_idle(&self) -> bool {
        self.kept && self.out.is_none() && self.body == Framing::Done && self.came.is_empty()
    }

    /// Frees large buffers and the caller's place before the connection becomes idle.
    pub(crate) fn rest(&mut self) {
        self.place = None;
        // Even a nearly empty rest of a buffer keeps the whole allocation alive, with the response that was in it.
        if self.came.capacity() > MAX_KEPT || self.usual > MAX_KEPT || self.widest > MAX_KEPT {
            self.came = BytesMut::new();
        }
    }

    /// How long it may be idle, if `most` is allowed.
    pub(crate) fn idle_time(&self, most: Duration) -> Duration {
        match self.keep {
            Some(keep) => most.min(keep.saturating_sub(KEEP_ALIVE_MARGIN).max(keep / 2)),
            None => most,
        }
    }

    /// Writes what is left of the request while its response is read.
    fn poll_rest(&mut self, cx: &mut Context<'_>) {
        if self.out.is_some() && matches!(self.poll_write(cx), Poll::Ready(Err(_))) {
            self.give_up_writing();
        }
    }

    /// A server may refuse a request, and say so, before it has read all of it.
    fn give_up_writing(&mut self) {
        self.out = None;
        self.kept = false;
    }

    /// Writes what can be written of the request.
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

    /// Room for a response like the last one, or for the rest of a head.
    fn expected(&self) -> usize {
        if self.came.is_empty() { (self.usual + SLACK).clamp(LEAST_ROOM, MAX_ROOM) } else { LEAST_ROOM }
    }

    /// Reads more, which must come.
    fn poll_more(&mut self, cx: &mut Context<'_>, least: usize, room: usize) -> Poll<Result<(), HttpError>> {
        Poll::Ready(match ready!(self.poll_fill(cx, least, room)) {
            Ok(0) => {
                self.kept = false;
                Err(HttpError::Closed)
            }
            Ok(_) => Ok(()),
            Err(error) => {
                self.kept = false;
                Err(error.into())
            }
        })
    }

    /// Reads what there is. Where less than `least` bytes of room are left, `room` is made.
    fn poll_fill(&mut self, cx: &mut Context<'_>, least: usize, room: usize) -> Poll<io::Result<usize>> {
        if self.came.capacity() - self.came.len() < least {
            self.make_room(room.max(least));
        }
        pin!(self.stream.read_buf(&mut self.came)).poll(cx)
    }

    /// Allocates a new buffer rather than growing this one, since others may hold pieces of it.
    fn make_room(&mut self, room: usize) {
        if self.came.capacity() - self.came.len() < room {
            let mut larger = BytesMut::with_capacity(self.came.len() + room);
            larger.extend_from_slice(&self.came);
            self.came = larger;
        }
    }
}

/// How much room the rest of a body of this length needs.
fn missing(length: usize, came: &BytesMut) -> usize {
    length.saturating_sub(came.len()).saturating_add(SLACK)
}
