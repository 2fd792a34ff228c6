//! Lines: over standard input and output of a child process, and over TCP.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::sync::mpsc;

use super::ears::Ears;
use super::wire::{ClientWire, QUEUE, TaskGuard};
use crate::wire_log::Tap;

/// Most lines of standard error that are kept.
const MAX_LINES: usize = 1000;

/// A child process; dropping it kills it.
#[derive(Debug)]
pub struct Child {
    process: tokio::process::Child,
    errors: Arc<Mutex<Vec<String>>>,
}

impl Child {
    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// When it fails.
    pub async fn wait(&mut self) -> anyhow::Result<()> {
        let status = self.process.wait().await?;
        ensure!(status.success(), "{status}: {}", self.error_lines().join(" "));
        Ok(())
    }

    /// What it wrote to standard error.
    pub fn error_lines(&self) -> Vec<String> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Starts a child process and speaks with it.
///
/// # Errors
/// When it cannot be started.
pub fn child(command: &[String], ears: Arc<Ears>) -> anyhow::Result<ClientWire> {
    let (program, arguments) = command.split_first().context("an empty command")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().with_context(|| format!("cannot start {program}"))?;
    let (input, output) = (process.stdin.take().context("no stdin")?, process.stdout.take().context("no stdout")?);
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut wire = lines(output, input, ears);
    let reading = process.stderr.take().map(|stream| tokio::spawn(keep(stream, errors.clone())).abort_handle());
    if let ClientWire::Pipe { child, tasks, .. } = &mut wire {
        tasks.extend(reading.map(TaskGuard));
        *child = Some(Child { process, errors });
    }
    Ok(wire)
}

/// Connects to a TCP address.
///
/// # Errors
/// When nothing listens there.
pub async fn tcp(address: &str, ears: Arc<Ears>) -> anyhow::Result<ClientWire> {
    let stream = TcpStream::connect(address).await.with_context(|| address.to_owned())?;
    stream.set_nodelay(true)?;
    let (input, output) = stream.into_split();
    Ok(lines(input, output, ears))
}

fn lines(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    ears: Arc<Ears>,
) -> ClientWire {
    let (out, queue) = mpsc::channel(QUEUE);
    let tap = ears.log.connection();
    let reading = tokio::spawn(read(input, ears, out.clone(), tap.clone())).abort_handle();
    let writing = tokio::spawn(write(output, queue, tap)).abort_handle();
    ClientWire::Pipe { out, tasks: vec![TaskGuard(reading), TaskGuard(writing)], child: None }
}

async fn read(input: impl AsyncRead + Unpin, ears: Arc<Ears>, out: mpsc::Sender<Value>, tap: Tap) {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tap.received(&line);
        match serde_json::from_str(&line) {
            Ok(message) => {
                for reply in ears.hear(message, None) {
                    // Without a writer there is nobody to tell.
                    let _ = out.send(reply).await;
                }
            }
            Err(error) => ears.violation(format!("a line that is no JSON: {error}: {line}")),
        }
    }
    ears.closed("the lines ended");
}

async fn write(mut output: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Value>, tap: Tap) {
    while let Some(message) = queue.recv().await {
        let text = message.to_string();
        tap.sent(&text);
        let written = output.write_all(format!("{text}\n").as_bytes()).await;
        if written.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

async fn keep(stream: impl AsyncRead + Unpin, errors: Arc<Mutex<Vec<String>>>) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let mut errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.len() < MAX_LINES {
            errors.push(line);
        }
    }
}
