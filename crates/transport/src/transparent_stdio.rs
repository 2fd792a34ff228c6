//! A transparent proxy around one server on standard input and output.
//!
//! Bytes are forwarded in both directions unchanged and immediately: nothing waits for the end of a line, and nothing
//! is parsed on the way. Two threads copy, so that a side that does not read blocks only its peer. Every chunk is put
//! into a [`Feed`] before it is written, and analysed elsewhere. When one side closes its end, the other side's end is
//! closed too, as if both were joined by one pipe.

mod copying;
#[cfg(test)]
mod tests;

use crate::child::group::Group;
use crate::tap::{Chunk, Feed, TapSide};
use copying::{CopyProgress, copy};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Default time for a server to exit after its client has left.
pub const GRACE: Duration = Duration::from_secs(30);
/// Time for a server to exit after SIGTERM.
pub const KILL_AFTER: Duration = Duration::from_secs(5);
/// Maximum silence on the output of a server that has exited while another process holds that output open.
pub const DRAIN: Duration = Duration::from_secs(5);
/// Interval at which the output of a server that has exited is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Capacity of the event channel: each thread sends at most two events.
const MAX_EVENTS: usize = 8;

/// The command to run, with its options.
#[derive(Clone, Debug)]
pub struct WrapSpec {
    pub program: OsString,
    /// Arguments of the program.
    pub args: Vec<OsString>,
    /// Time for the server to exit after its client has left.
    pub grace: Duration,
}

/// Exit status of a server.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ServerEnd {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl ServerEnd {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }

    /// Returns the exit code that shells report for it.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Code(code) => u8::try_from(code & 0xff).unwrap_or(1),
            Self::Signal(signal) => u8::try_from(128 + (signal & 0x7f)).unwrap_or(1),
        }
    }
}

/// Event from one of the threads.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum ServerEvent {
    /// The client's input has ended, or it no longer reads.
    ClientGone,
    /// The server no longer reads its input.
    InputClosed,
    /// The server's output has ended.
    OutputEnded,
    /// The server has exited.
    ServerEnded,
}

/// Runs a server between `input` and `output` until it exits. Forwards the signals to it, and returns how it ended.
///
/// # Errors
/// Returns an error if the server cannot be started or waited for.
pub async fn run<R, W>(
    spec: &WrapSpec,
    input: R,
    output: W,
    feed: Option<Feed<Chunk>>,
    mut signals: mpsc::Receiver<Signal>,
) -> Result<ServerEnd, WrapError>
where
    R: Read + Send + 'static,
    W: Write + Send + 'static,
{
    let mut child = start(spec)?;
    let (to_server, from_server) = (child.stdin.take(), child.stdout.take());
    let (tell, mut events) = mpsc::channel(MAX_EVENTS);
    let progress = Arc::new(CopyProgress::default());
    if let Some(to_server) = to_server {
        let (feed, tell) = (feed.clone(), tell.clone());
        thread("to-server", move || {
            let end = copy(input, to_server, TapSide::Client, feed.as_ref(), &CopyProgress::default());
            let _ =
                tell.blocking_send(if end.is_reader() { ServerEvent::ClientGone } else { ServerEvent::InputClosed });
        })?;
    }
    if let Some(from_server) = from_server {
        let (progress, tell) = (Arc::clone(&progress), tell.clone());
        thread("to-client", move || {
            let end = copy(from_server, output, TapSide::Server, feed.as_ref(), &progress);
            if !end.is_reader() {
                let _ = tell.blocking_send(ServerEvent::ClientGone);
            }
            let _ = tell.blocking_send(ServerEvent::OutputEnded);
        })?;
    }
    let group = Group::led_by(child.id());
    watch(child.id(), tell)?;
    let drained = until_ended(spec.grace, group.as_ref(), &mut events, &mut signals).await;
    if !drained {
        drain(&progress, &mut events, &mut signals).await;
    }
    reap(&mut child, group.as_ref())
}

/// Waits until the server has exited. Returns `true` if its output ended before.
async fn until_ended(
    grace: Duration,
    group: Option<&Group>,
    events: &mut mpsc::Receiver<ServerEvent>,
    signals: &mut mpsc::Receiver<Signal>,
) -> bool {
    let send = |signal| {
        if let Some(group) = group {
            group.signal(signal);
        }
    };
    let (mut silent, mut terminated) = (false, false);
    let mut deadline: Option<Instant> = None;
    loop {
        tokio::select! {
            what = events.recv() => match what {
                Some(ServerEvent::ServerEnded) | None => return silent,
                Some(ServerEvent::OutputEnded) => silent = true,
                Some(ServerEvent::ClientGone) => deadline = deadline.or(Some(Instant::now() + grace)),
                Some(ServerEvent::InputClosed) => {}
            },
            Some(signal) = signals.recv() => send(signal),
            () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                send(if terminated { Signal::KILL } else { Signal::TERM });
                tracing::warn!(
                    killed = terminated,
                    "the client is gone and the server did not end by itself, so it is ended"
                );
                terminated = true;
                deadline = Some(Instant::now() + KILL_AFTER);
            }
        }
    }
}

/// Waits until the output of a server that has exited is written. Another process may hold that output open; it is not
/// awaited once no output arrives. A client that reads slowly is.
async fn drain(
    progress: &CopyProgress,
    events: &mut mpsc::Receiver<ServerEvent>,
    signals: &mut mpsc::Receiver<Signal>,
) {
    let mut last = (progress.moved(), Instant::now());
    loop {
        tokio::select! {
            what = events.recv() => if matches!(what, Some(ServerEvent::OutputEnded) | None) { return },
            // A signal now means that the user does not want the rest.
            Some(_) = signals.recv() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        let moved = progress.moved();
        if moved != last.0 || progress.is_writing() {
            last = (moved, Instant::now());
        } else if last.1.elapsed() >= DRAIN {
            return;
        }
    }
}

/// Reaps the server. Until then, its process id cannot be reused.
fn reap(child: &mut Child, group: Option<&Group>) -> Result<ServerEnd, WrapError> {
    if let Some(group) = group {
        group.forget();
    }
    child.wait().map(ServerEnd::of).map_err(WrapError::Wait)
}

/// Reports when the process has exited, without reaping it.
fn watch(pid: u32, tell: mpsc::Sender<ServerEvent>) -> Result<(), WrapError> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Err(WrapError::Wait(io::ErrorKind::InvalidData.into()));
    };
    thread("server", move || {
        let ended = || rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        while ended().err() == Some(rustix::io::Errno::INTR) {}
        let _ = tell.blocking_send(ServerEvent::ServerEnded);
    })
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), WrapError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop).map_err(WrapError::Thread)
}

/// Reason why a server could not be run.
#[derive(Debug, thiserror::Error)]
pub enum WrapError {
    /// The program does not exist.
    #[error("there is no program `{0}`; give the path of a program, or the name of one on PATH")]
    Missing(String),
    /// The program is not executable.
    #[error("`{0}` may not be run; make it executable (chmod +x), or name the program that runs it, as in `node {0}`")]
    Permission(String),
    /// The system could not start the program.
    #[error("`{program}` could not be started: {error}")]
    Start {
        /// Name of the program.
        program: String,
        /// Error of the system.
        error: io::Error,
    },
    /// A thread could not be started.
    #[error("no thread could be started: {0}")]
    Thread(io::Error),
    /// The exit status could not be read.
    #[error("the end of the server could not be waited for: {0}")]
    Wait(io::Error),
}

impl WrapError {
    /// Returns the exit code that shells and `env` use for it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Missing(_) => 127,
            Self::Permission(_) | Self::Start { .. } => 126,
            Self::Thread(_) | Self::Wait(_) => 1,
        }
    }
}

/// Starts the server with our environment, working directory and standard error. It leads its own process group, so
/// that a Ctrl-C in a terminal reaches it once, from us, and so that its descendants can be killed with it.
fn start(spec: &WrapSpec) -> Result<Child, WrapError> {
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).process_group(0);
    command.spawn().map_err(|error| {
        let program = spec.program.to_string_lossy().into_owned();
        match error.kind() {
            io::ErrorKind::NotFound => WrapError::Missing(program),
            io::ErrorKind::PermissionDenied => WrapError::Permission(program),
            _ => WrapError::Start { program, error },
        }
    })
}
