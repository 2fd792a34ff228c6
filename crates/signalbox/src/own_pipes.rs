//! Our own standard input and output, unbuffered, and closed for their other side when they are dropped.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

/// Standard input. Dropped, it is closed: whoever writes there learns that nobody reads.
#[derive(Debug)]
pub struct OwnInput;

impl Read for OwnInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(io::stdin(), buffer)?)
    }
}

impl Drop for OwnInput {
    fn drop(&mut self) {
        if let Ok(nothing) = File::open(NOTHING) {
            let _ = rustix::stdio::dup2_stdin(&nothing);
        }
    }
}

/// Standard output. Dropped, it is closed: whoever reads there sees its end.
#[derive(Debug)]
pub struct OwnOutput;

impl Write for OwnOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(io::stdout(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for OwnOutput {
    fn drop(&mut self) {
        if let Ok(nothing) = OpenOptions::new().write(true).open(NOTHING) {
            let _ = rustix::stdio::dup2_stdout(&nothing);
        }
    }
}

/// What takes the place of a closed stream, so that its number does not become that of something else.
const NOTHING: &str = "/dev/null";
