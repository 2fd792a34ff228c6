//! A raw capture: `raw-tee PREFIX COMMAND ARGS…` runs the command and writes what passes to `PREFIX.in` and
//! `PREFIX.out`.
//!
//! It shares no code with what it is compared to.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::thread;

fn main() -> anyhow::Result<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let prefix = words.next().unwrap_or_default().to_string_lossy().into_owned();
    let program = words.next().unwrap_or_default();
    let mut child = Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (to_child, from_child) = (child.stdin.take(), child.stdout.take());
    let (seen_in, seen_out) = (File::create(format!("{prefix}.in"))?, File::create(format!("{prefix}.out"))?);
    // Left behind when the child ends: nothing can wake it while the client keeps its end open.
    thread::spawn(move || to_child.map(|to| tee(io::stdin(), to, seen_in)));
    let back = thread::spawn(move || from_child.map(|from| tee(from, io::stdout(), seen_out)));
    let _ = back.join();
    let status = child.wait()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn tee(mut from: impl Read, mut to: impl Write, mut seen: File) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        seen.write_all(&buffer[..read])?;
        to.write_all(&buffer[..read])?;
        to.flush()?;
    }
}
