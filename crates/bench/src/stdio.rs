//! The echo server over newline-delimited stdin and stdout.

use std::io::{self, BufRead, BufReader, Write};

use crate::answer::Echo;

/// Room for one large message, so that most are read with one call.
const BUFFER: usize = 128 * 1024;

/// Answers lines until stdin ends.
pub fn run(server: &Echo) -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER, io::stdin().lock());
    let mut output = io::stdout().lock();
    let mut line = Vec::new();
    let mut replies = Vec::with_capacity(BUFFER);
    while input.read_until(b'\n', &mut line)? > 0 {
        let reply = server.answer(&line, None).body;
        if !reply.is_empty() {
            replies.extend_from_slice(&reply);
            replies.push(b'\n');
        }
        line.clear();
        // Answers to lines that arrived together leave together.
        if input.buffer().is_empty() || replies.len() >= BUFFER {
            output.write_all(&replies)?;
            output.flush()?;
            replies.clear();
        }
    }
    output.write_all(&replies)?;
    output.flush()
}
