//! `signalbox stdio` as a child whose input takes any bytes and whose output is read line by line.

use anyhow::Context as _;
use serde_json::Value;
use signalbox_testkit::gateway::stdio_command;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);
/// Most lines that wait for the test.
const ROOM: usize = 100_000;

/// The running program.
pub struct Pipe {
    child: Child,
    input: ChildStdin,
    lines: mpsc::Receiver<Vec<u8>>,
    errors: Arc<Mutex<Vec<u8>>>,
    synced: u64,
    _folder: tempfile::TempDir,
}

impl Pipe {
    /// Starts it and shakes hands.
    pub async fn start(config: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let argv = stdio_command(folder.path(), config)?;
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (sender, lines) = mpsc::channel(ROOM);
        tokio::spawn(read_lines(child.stdout.take().context("no output")?, sender));
        let errors = Arc::<Mutex<Vec<u8>>>::default();
        let (mut stream, kept) = (child.stderr.take().context("no errors")?, Arc::clone(&errors));
        tokio::spawn(async move {
            let mut chunk = vec![0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut chunk).await {
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&chunk[..read]);
            }
        });
        let input = child.stdin.take().context("no input")?;
        let mut pipe = Self { child, input, lines, errors, synced: 0, _folder: folder };
        pipe.line(
            br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        )
        .await?;
        pipe.next().await?;
        pipe.line(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await?;
        Ok(pipe)
    }

    /// Writes one line.
    pub async fn line(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let whole = [bytes, b"\n"].concat();
        Ok(timeout(PATIENCE, self.input.write_all(&whole)).await.context("the input is not read")??)
    }

    /// The next line of output, which must be JSON.
    pub async fn next(&mut self) -> anyhow::Result<Value> {
        let line = timeout(PATIENCE, self.lines.recv()).await.with_context(|| self.errors())?;
        let line = line.with_context(|| format!("the output ended\n{}", self.errors()))?;
        serde_json::from_slice(&line).with_context(|| format!("not JSON: {}", String::from_utf8_lossy(&line)))
    }

    /// Sends a request that must be answered, and returns what came before its answer.
    pub async fn sync(&mut self) -> anyhow::Result<Vec<Value>> {
        self.synced += 1;
        let id = format!("sync-{}", self.synced);
        self.line(format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}"#).as_bytes()).await?;
        let mut before = Vec::new();
        loop {
            let message = self.next().await?;
            if message["id"] == id.as_str() {
                anyhow::ensure!(message["result"].is_object(), "{message}");
                return Ok(before);
            }
            before.push(message);
        }
    }

    /// The number of the process; none once it has ended.
    pub fn pid(&mut self) -> Option<u32> {
        if matches!(self.child.try_wait(), Ok(None)) { self.child.id() } else { None }
    }

    /// Standard error so far.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.errors.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

async fn read_lines(output: ChildStdout, lines: mpsc::Sender<Vec<u8>>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while let Ok(1..) = output.read_until(b'\n', &mut line).await {
        line.pop();
        if lines.send(std::mem::take(&mut line)).await.is_err() {
            return;
        }
    }
}
