//! Writes results to standard output, and everything else to standard error.
//!
//! All output of commands passes through here. This module must never let foreign text control the terminal: text is
//! cleaned, JSON is escaped to an equal value, and bytes are exact only if standard output is not a terminal.

use crate::failure::Failure;
use signalbox_wire::printable;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// Writes a result as text. A reader that closes the pipe early (`| head`) is not an error.
///
/// # Errors
/// If it cannot be written.
pub fn result(text: &str) -> Result<(), Failure> {
    styled(&printable::lines(text))
}

/// Writes a result as one line of JSON. Characters that control a terminal are escaped, which keeps the value.
///
/// # Errors
/// If it cannot be written.
pub fn json(value: &impl Display) -> Result<(), Failure> {
    styled(&printable::json(&format!("{value}\n")))
}

/// Writes a result: as JSON if `json` is set, otherwise as text.
///
/// # Errors
/// If it cannot be written.
pub fn in_form(json: bool, text: &str) -> Result<(), Failure> {
    more(json, text).map(drop)
}

/// Writes part of a result that more will follow. Returns `false` if the reader has closed the pipe.
///
/// # Errors
/// If it cannot be written for another reason.
pub fn more(json: bool, text: &str) -> Result<bool, Failure> {
    frame(&if json { printable::json(text) } else { printable::lines(text) })
}

/// Writes text whose bytes are the result: unchanged to a pipe or file, cleaned on a terminal.
///
/// # Errors
/// If it cannot be written.
pub fn exact(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() { result(text) } else { styled(text) }
}

/// Returns the file to write to, or `None` for standard output, which `-` stands for too.
pub fn file(output: Option<&PathBuf>) -> Option<&Path> {
    output.map(PathBuf::as_path).filter(|path| *path != Path::new("-"))
}

/// Writes text with our own colour codes. The caller has cleaned its foreign parts.
///
/// # Errors
/// If it cannot be written.
pub fn styled(text: &str) -> Result<(), Failure> {
    frame(text).map(drop)
}

/// Writes bytes that control the terminal. Returns `false` if the reader has closed the pipe.
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

/// Prints a message to standard error, cleaned. A failed write is ignored: there is no other place to report it.
pub fn say(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{}", printable::lines(&text.to_string()));
}

/// Prints the reason that a command failed.
pub fn complain(why: impl Display) {
    say(format_args!("signalbox: {why}"));
}

/// Formats a count with its noun: `1 call`, `2 calls`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
