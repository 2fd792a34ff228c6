//! The signals that ask us to end.

use std::io;
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
