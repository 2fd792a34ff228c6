//! Standard input and output of this process, unbuffered. Dropping one closes the pipe for its peer.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

/// Standard input. Closed on drop, so that a writer gets a broken pipe.
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

/// Standard output. Closed on drop, so that a reader sees the end of the stream.
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

/// Replaces a closed stream. Otherwise the next file opened would get the stream's number.
const NOTHING: &str = "/dev/null";
