//! The signals that ask the process to stop, or to reload its configuration.

use rustix::process::{Signal as Sent, getpid, kill_process};
use std::io::{self, IsTerminal as _};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM, from the moment this exists.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes the signals over from the system, which would end us at once.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next one and gives its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// What a SIGHUP means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hangup {
    /// Somebody wants the configuration to be read again.
    Reload,
    /// The terminal that we were started from is gone.
    TerminalGone,
}

/// SIGHUP, from the moment this exists.
#[derive(Debug)]
pub struct Hangups {
    signal: Signal,
    terminal: bool,
}

impl Hangups {
    /// Takes the signal over from the system, which would end us at once.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { signal: signal(SignalKind::hangup())?, terminal: io::stderr().is_terminal() })
    }

    /// Waits for the next one. The system sends one, too, when a terminal is closed, and the terminal is none any more then.
    pub async fn next(&mut self) -> Hangup {
        if self.signal.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        if self.terminal && !io::stderr().is_terminal() { Hangup::TerminalGone } else { Hangup::Reload }
    }

    /// Ends this process as if it had been asked to.
    pub fn end_process() {
        if let Err(error) = kill_process(getpid(), Sent::TERM) {
            tracing::warn!(%error, "the terminal is gone, and the process cannot be ended");
        }
    }
}
