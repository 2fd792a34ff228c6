//! Writes results to standard output, and everything else to standard error.
//!
//! Every byte that a command prints passes here, so this is where text of others is kept from speaking to the terminal:
//! words are cleaned, JSON keeps its meaning, and exact text is exact for programs only.

use crate::failure::Failure;
use signalbox_wire::printable;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

/// Writes a result in words. A reader that has seen enough (`| head`) is not a failure.
///
/// # Errors
/// If it cannot be written.
pub fn result(text: &str) -> Result<(), Failure> {
    styled(&printable::lines(text))
}

/// Writes a result as one line of JSON. Characters that a terminal would act on are written as escapes
/// of the same value.
///
/// # Errors
/// If it cannot be written.
pub fn json(value: &impl Display) -> Result<(), Failure> {
    styled(&printable::json(&format!("{value}\n")))
}

/// Writes a result that was made as JSON if `json` is set, and in words otherwise.
///
/// # Errors
/// If it cannot be written.
pub fn in_form(json: bool, text: &str) -> Result<(), Failure> {
    more(json, text).map(drop)
}

/// Writes a result that more of the same will follow. False if its reader has gone.
///
/// # Errors
/// If it cannot be written for another reason.
pub fn more(json: bool, text: &str) -> Result<bool, Failure> {
    frame(&if json { printable::json(text) } else { printable::lines(text) })
}

/// Writes text whose bytes are the result: exactly for a program, cleaned on a terminal.
///
/// # Errors
/// If it cannot be written.
pub fn exact(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() { result(text) } else { styled(text) }
}

/// Writes text with colours of our own, whose parts were cleaned where they were put together.
///
/// # Errors
/// If it cannot be written.
pub fn styled(text: &str) -> Result<(), Failure> {
    frame(text).map(drop)
}

/// Writes what a terminal is meant to obey. False if its reader has gone.
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

/// Says something to the person at the terminal, cleaned. If nobody can hear it, that cannot be said either.
pub fn say(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{}", printable::lines(&text.to_string()));
}

/// Says why a command failed.
pub fn complain(why: impl Display) {
    say(format_args!("signalbox: {why}"));
}

/// A number of things in words: `1 call`, `2 calls`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
