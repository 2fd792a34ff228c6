//! Writes results to standard output, and everything else to standard error.

use crate::failure::Failure;
use signalbox_wire::printable;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};

/// Writes a result. A reader that has seen enough (`| head`) is not a failure.
///
/// # Errors
/// If it cannot be written.
pub fn result(text: &str) -> Result<(), Failure> {
    frame(text).map(drop)
}

/// Writes a result that more of the same will follow. False if its reader has gone.
///
/// # Errors
/// If it cannot be written for another reason.
pub fn frame(text: &str) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Output(error)),
    }
}

/// Says something to the person at the terminal. If nobody can hear it, that cannot be said either.
pub fn say(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says why a command failed. What others said in it does not speak to the terminal.
pub fn complain(why: impl Display) {
    say(format_args!("signalbox: {}", printable::lines(&why.to_string())));
}
