//! The front over a pair of pipes: one client, one session, one message per line.
//!
//! ```text
//! input ─► reader task ─► lines, at most 64 ─► session ─► its one stream ─► writer ─► output
//! ```
//! Only the writer touches the output. While the client does not read it, no further input is read.

pub(crate) mod intake;
#[cfg(test)]
mod tests;

use crate::batch;
use crate::line_writer::LineWriter;
use crate::read_charge::ReadCharge;
use crate::unknown_caller;
use bytes::Bytes;
use signalbox_engine::budget::OverBudget;
use signalbox_engine::front::Mode;
use signalbox_engine::{Caller, Fault, FaultKind, Limit};
use signalbox_runtime::counters::Counters;
use signalbox_runtime::outbox::OUTBOX_BOUND;
use signalbox_runtime::{Gateway, OutgoingMessage, Session, StreamReader};
use signalbox_wire::{Envelope, Era, LineDecoder, LineError, single_line};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Maximum number of lines that wait for the session.
pub const QUEUE: usize = 64;
/// Size of a read, which is the capacity of a pipe.
const CHUNK: usize = 64 * 1024;
/// Maximum number of messages joined in one write.
const BATCH: usize = 64;
/// Interval at which a session that ends checks for calls in flight.
const LOOK: Duration = Duration::from_millis(20);
/// Maximum time for a client that closed its input to read what is queued.
const FLUSH: Duration = Duration::from_secs(2);

/// Reasons why a pipe was not served to its end.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// No session could be opened.
    #[error("no session could be opened: {0}")]
    Session(Fault),
    /// The output is closed.
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
    /// The client does not read.
    #[error("the client did not read its answers in time")]
    Stuck,
}

impl StdioError {
    /// Returns `true` if the client is connected but does not read.
    #[must_use]
    pub fn is_slow_reader(&self) -> bool {
        match self {
            Self::Session(_) => false,
            Self::Output(error) => error.kind() == io::ErrorKind::TimedOut,
            Self::Stuck => true,
        }
    }
}

/// Serves one client until its input ends or the session is closed from elsewhere. Calls in flight at the end of the
/// input have `drain` to finish.
///
/// # Errors
/// Returns an error if no session can be opened, or the output closes before everything was written.
pub async fn serve<R, W>(
    input: R,
    output: W,
    gateway: Arc<Gateway>,
    caller: Caller,
    drain: Duration,
) -> Result<(), StdioError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Unpin,
{
    let front = Front::open(gateway, caller).map_err(StdioError::Session)?;
    let (sender, lines) = mpsc::channel(QUEUE);
    let mut reader = JoinSet::new();
    let charge = ReadCharge::new(Some(Arc::clone(front.session.share())));
    reader.spawn(read(input, front.line_limit(), charge, sender));
    let mut writing = std::pin::pin!(front.write(output));
    let outcome = tokio::select! {
        written = &mut writing => written,
        () = front.process(lines, drain) => match timeout(FLUSH, writing).await {
            Ok(written) => written,
            Err(_) => Err(StdioError::Stuck),
        },
    };
    front.session.close();
    outcome
}

/// Splits the input into lines until it ends or the receiver is dropped.
async fn read(
    mut input: impl AsyncRead + Unpin,
    max: usize,
    mut charge: ReadCharge,
    lines: mpsc::Sender<Result<Bytes, NoLine>>,
) {
    let mut decoder = LineDecoder::new(max);
    let mut chunk = vec![0; CHUNK];
    // Set while a line is skipped for lack of room rather than for its length.
    let mut no_room = None;
    loop {
        let ended = match input.read(&mut chunk).await {
            Ok(0) => true,
            Ok(read) => {
                decoder.push(&chunk[..read]);
                false
            }
            Err(error) => {
                let ordinary = matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof
                );
                if ordinary {
                    tracing::debug!(%error, "the client is gone");
                } else {
                    tracing::warn!(%error, "the input cannot be read any more");
                }
                true
            }
        };
        if let Err(error) = charge.cover(decoder.buffered()).await {
            decoder.skip_line();
            no_room = Some(error);
        }
        while let Some(line) = if ended { decoder.finish() } else { decoder.next_line() } {
            let line = match (line, no_room) {
                (Ok(line), _) => Ok(charge.give(line)),
                (Err(_), Some(error)) => Err(NoLine::NoRoom(error)),
                (Err(error), None) => Err(NoLine::TooLong(error)),
            };
            if line.is_err() {
                no_room = None;
            }
            if lines.send(line).await.is_err() {
                return;
            }
        }
        if ended {
            return;
        }
    }
}

/// Reasons why a line was discarded.
enum NoLine {
    TooLong(LineError),
    NoRoom(OverBudget),
}

/// State shared by the reader, the session and the writer.
struct Front {
    gateway: Arc<Gateway>,
    session: Arc<Session>,
    stream: StreamReader,
    /// Notified after each write, for waits on room in the outbox or on calls in flight.
    written: Notify,
}

impl Drop for Front {
    /// Closes the session even if serving is cancelled.
    fn drop(&mut self) {
        self.session.close();
    }
}

impl Front {
    fn open(gateway: Arc<Gateway>, caller: Caller) -> Result<Self, Fault> {
        let via = caller.identity().transport;
        let session = gateway.open_session(caller, Mode::Pipe, &Gateway::new_session_id()?, via)?;
        let Some(stream) = session.open_general() else {
            session.close();
            return Err(Fault::new(FaultKind::Overloaded, "the session has no room for a stream"));
        };
        Ok(Self { gateway, session, stream, written: Notify::new() })
    }

    /// Returns the maximum length of a line.
    fn line_limit(&self) -> usize {
        let most = self.gateway.settings().limits.line;
        unknown_caller::limit(&self.gateway, || self.session.caller.clone(), most, false)
    }

    /// Feeds the session. At the end of the input it waits for calls in flight and closes the session.
    async fn process(&self, mut lines: mpsc::Receiver<Result<Bytes, NoLine>>, drain: Duration) {
        while let Some(line) = lines.recv().await {
            if let Some(room) = self.gateway.room(line.as_ref().map_or(0, Bytes::len)) {
                room.await;
            }
            self.take(line).await;
            while self.stream.outbox().len() >= OUTBOX_BOUND {
                self.written.notified().await;
            }
        }
        let deadline = Instant::now() + drain;
        while self.session.in_flight() > 0 && Instant::now() < deadline {
            let _ = timeout(LOOK, self.written.notified()).await;
        }
        self.session.close();
    }

    async fn take(&self, line: Result<Bytes, NoLine>) {
        let taken = match line {
            Ok(bytes) => batch::receive(&self.gateway, &self.session, &self.stream, bytes).await,
            Err(NoLine::TooLong(_)) if self.line_limit() < self.gateway.settings().limits.line => {
                unknown_caller::count(&self.gateway, &self.session.caller);
                Err(intake::too_long(&unknown_caller::words(self.line_limit())))
            }
            Err(NoLine::TooLong(error)) => {
                self.gateway.counters.refused(Limit::MessageSize);
                Err(intake::too_long(&error.to_string()))
            }
            Err(NoLine::NoRoom(error)) => {
                self.gateway.counters.refused(Limit::Memory);
                Err(intake::no_room(error))
            }
        };
        if let Err(unreadable) = taken {
            Counters::add(&self.gateway.counters.malformed);
            tracing::debug!(session = %self.session.key, fault = %unreadable.fault, "a line was refused");
            if let Some((id, fault)) = unreadable.into_refusal() {
                self.session.refuse(&self.stream, id, fault);
            }
        }
    }

    /// Writes the messages of the session until it ends. Flushes whenever the outbox is empty.
    async fn write(&self, output: impl AsyncWrite + Unpin) -> Result<(), StdioError> {
        let mut lines = LineWriter::new(output);
        while let Some(out) = self.stream.next().await {
            let (mut next, mut joined) = (Some(out), 0);
            while let Some(out) = next {
                if let Some(line) = self.line(&out) {
                    lines.add(line).await?;
                }
                joined += 1;
                next = if joined < BATCH { self.stream.outbox().try_next() } else { None };
            }
            lines.flush().await?;
            self.written.notify_one();
        }
        Ok(())
    }

    fn line(&self, out: &OutgoingMessage) -> Option<Bytes> {
        let bytes = out.bytes();
        if out.part {
            // A pipe stays open, so there is no break after which the client reconnects.
            return None;
        }
        match single_line(bytes) {
            Ok(line) => Some(line),
            Err(error) => {
                self.gateway.counters.dropped("not_one_line");
                tracing::warn!(session = %self.session.key, %error, "a message cannot be put on one line");
                let answer = Envelope::parse(bytes.clone()).ok().filter(|message| message.method().is_none())?;
                let fault = Fault::new(FaultKind::BackendGarbage, format!("the answer is not JSON: {error}"));
                Some(fault.reply(Some(&answer.id()?), Era::Legacy))
            }
        }
    }
}
