//! Closed-loop load on a stdio server: a number of concurrent calls on one pipe.

use std::io;
use std::process::Stdio;
use std::time::Instant;

use memchr::{memchr, memmem};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

use crate::load::{ERRORS_MAX, LoadPhase, echo_tool, is_answer};
use crate::outcome::LoadTally;
use crate::plan::{ID_FIRST, ID_SPAN, Plan};
use crate::request::{ID_DIGITS, LoadEra, PreparedCall};

/// Size of the read buffer.
const BUFFER: usize = 256 * 1024;
/// Maximum length of a line.
const LINE_LIMIT: usize = 8 * 1024 * 1024;

/// Stdio server that is ready for calls, with the slots that make them.
pub struct PipeServer {
    // Dropping it ends the server.
    _child: Child,
    pid: u32,
    input: ChildStdin,
    output: Lines,
    slots: Vec<Slot>,
}

/// Slot for one concurrent call.
struct Slot {
    call: PreparedCall,
    next_id: u64,
    calls_left: u64,
    started: Instant,
}

impl PipeServer {
    /// Starts the server and performs the handshake.
    pub async fn open(plan: &Plan) -> io::Result<Self> {
        let (program, arguments) = plan.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(input), Some(output), Some(pid)) = (child.stdin.take(), child.stdout.take(), child.id()) else {
            return Err(io::Error::other("the server has no pipes"));
        };
        let mut pipe = Self { _child: child, pid, input, output: Lines::new(output), slots: Vec::new() };
        if plan.target.era == LoadEra::Old {
            pipe.exchange(&plan.target.initialize()).await?;
            pipe.input.write_all(&plan.target.initialized(None)).await?;
        }
        let tool = match plan.tool.clone() {
            Some(tool) => tool,
            None => {
                let list = pipe.exchange(&plan.target.list(None)).await?;
                echo_tool(&list).ok_or_else(|| io::Error::other("the server has no tool called echo"))?
            }
        };
        for index in 0..plan.connections {
            let call = plan.target.call(None, &tool, plan.payload);
            let next_id = ID_FIRST + index * ID_SPAN;
            pipe.slots.push(Slot { call, next_id, calls_left: plan.calls_each, started: Instant::now() });
        }
        Ok(pipe)
    }

    /// Returns the size of a call's body, in bytes.
    pub fn body_bytes(&self) -> usize {
        self.slots.first().map_or(0, |slot| slot.call.body_bytes)
    }

    /// Returns the process id of the server.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    async fn exchange(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.input.write_all(request).await?;
        loop {
            if let Some(line) = self.output.next() {
                return Ok(line.to_vec());
            }
            self.output.fill().await?;
        }
    }

    /// Makes calls until the run is over.
    pub async fn run(mut self, phase: LoadPhase) -> LoadTally {
        let mut tally = LoadTally::default();
        // A separate task writes: the server may wait for us to read before it reads on. The queue has room for a batch
        // per concurrent call, so that reading never waits for writing.
        let (sender, receiver) = mpsc::channel(self.slots.len() + 1);
        let writer = tokio::spawn(write(self.input, receiver));
        let mut batch = Vec::new();
        let mut under_way = 0;
        for slot in &mut self.slots {
            under_way += usize::from(slot.send(&mut batch));
        }
        while under_way > 0 && tally.errors < ERRORS_MAX {
            if !batch.is_empty() && sender.send(std::mem::take(&mut batch)).await.is_err() {
                tally.fail(1, "the server reads no more");
                break;
            }
            if let Err(error) = self.output.fill().await {
                tally.fail(under_way as u64, &error.to_string());
                break;
            }
            while let Some(line) = self.output.next() {
                let Some(slot) = slot_of(line).and_then(|index| self.slots.get_mut(index)) else { continue };
                let outcome = if is_answer(line, &slot.call) {
                    Ok(())
                } else {
                    let start = String::from_utf8_lossy(&line[..line.len().min(300)]);
                    Err(io::Error::other(format!("tools/call was answered {start}")))
                };
                phase.note(&mut tally, slot.started.elapsed(), outcome);
                if phase.is_over() || !slot.send(&mut batch) {
                    under_way -= 1;
                }
            }
        }
        writer.abort();
        tally
    }
}

impl Slot {
    /// Adds the next call to the batch. Returns false if none is left.
    fn send(&mut self, batch: &mut Vec<u8>) -> bool {
        if self.calls_left == 0 {
            return false;
        }
        self.calls_left -= 1;
        self.next_id += 1;
        batch.extend_from_slice(self.call.with_id(self.next_id));
        self.started = Instant::now();
        true
    }
}

async fn write(mut input: ChildStdin, mut batches: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(batch) = batches.recv().await {
        input.write_all(&batch).await?;
    }
    Ok(())
}

/// Returns the slot whose call a line answers.
fn slot_of(line: &[u8]) -> Option<usize> {
    const KEY: &[u8] = br#""id":"#;
    let digits = line.get(memmem::find(line, KEY)? + KEY.len()..)?.get(..ID_DIGITS)?;
    let id: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    usize::try_from(id.checked_sub(ID_FIRST)? / ID_SPAN).ok()
}

/// Line reader for the server's output.
struct Lines {
    output: ChildStdout,
    unread: Vec<u8>,
    /// Start of the line after the last one taken.
    at: usize,
}

impl Lines {
    fn new(output: ChildStdout) -> Self {
        Self { output, unread: Vec::with_capacity(BUFFER), at: 0 }
    }

    /// Returns the next complete line.
    fn next(&mut self) -> Option<&[u8]> {
        let start = self.at;
        let length = memchr(b'\n', &self.unread[start..])?;
        self.at = start + length + 1;
        Some(&self.unread[start..start + length])
    }

    /// Reads more output of the server.
    async fn fill(&mut self) -> io::Result<()> {
        self.unread.drain(..self.at);
        self.at = 0;
        if self.unread.len() > LINE_LIMIT {
            return Err(io::Error::other("the server's line is too long"));
        }
        self.unread.reserve(BUFFER);
        match self.output.read_buf(&mut self.unread).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::slot_of;

    #[test]
    fn an_answer_finds_its_slot() {
        assert_eq!(slot_of(br#"{"jsonrpc":"2.0","id":100000000001,"result":{}}"#), Some(0));
        assert_eq!(slot_of(br#"{"jsonrpc":"2.0","id":102000000009,"result":{}}"#), Some(2));
        assert_eq!(slot_of(br#"{"jsonrpc":"2.0","method":"notifications/message"}"#), None);
        assert_eq!(slot_of(br#"{"id":7}"#), None);
    }
}
