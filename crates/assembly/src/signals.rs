//! Signals that ask the process to stop, or to reload its configuration.

use rustix::process::{Signal as Sent, getpid, kill_process};
use std::io::{self, IsTerminal as _};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receiver of SIGINT and SIGTERM, which no longer end the process once it exists.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Installs handlers for the signals.
    ///
    /// # Errors
    /// If the system refuses a handler.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal and returns its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// Meaning of a SIGHUP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hangup {
    /// A request to read the configuration again.
    Reload,
    /// The terminal that started the process has closed.
    TerminalGone,
}

/// Receiver of SIGHUP, which no longer ends the process once it exists.
#[derive(Debug)]
pub struct Hangups {
    signal: Signal,
    terminal: bool,
}

impl Hangups {
    /// Installs a handler for the signal.
    ///
    /// # Errors
    /// If the system refuses the handler.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { signal: signal(SignalKind::hangup())?, terminal: io::stderr().is_terminal() })
    }

    /// Waits for the next SIGHUP. The system also sends one when the terminal closes; standard error is then no
    /// terminal any more.
    pub async fn next(&mut self) -> Hangup {
        if self.signal.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        if self.terminal && !io::stderr().is_terminal() { Hangup::TerminalGone } else { Hangup::Reload }
    }

    /// Sends this process SIGTERM.
    pub fn end_process() {
        if let Err(error) = kill_process(getpid(), Sent::TERM) {
            tracing::warn!(%error, "the terminal is gone, and the process cannot be ended");
        }
    }
}
