//! The server over standard input and output, and over TCP: one message per line.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Options;
use super::call::{OUTLET, Out};
use super::fault::RpcFault;
use super::shared::ServerShared;
use super::talk::{Talk, TalkKind};

/// Serves standard input and output until the input ends.
///
/// # Errors
/// When the journal cannot be written.
pub async fn stdio(options: &Options) -> anyhow::Result<()> {
    let shared = ServerShared::new(options)?;
    lines(BufReader::new(tokio::io::stdin()), tokio::io::stdout(), shared).await;
    Ok(())
}

/// Serves connections until the future is dropped.
pub async fn accept(listener: TcpListener, shared: Arc<ServerShared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        while connections.try_join_next().is_some() {}
        let (input, output) = stream.into_split();
        connections.spawn(lines(BufReader::new(input), output, shared.clone()));
    }
}

async fn lines(input: impl AsyncBufRead + Unpin, mut output: impl AsyncWrite + Unpin, shared: Arc<ServerShared>) {
    let (out, mut queue) = mpsc::channel::<Out>(OUTLET);
    let talk = Talk::new(shared.clone(), TalkKind::Pipe, Some(out.clone()));
    let tap = shared.tap();
    let mut lines = input.lines();
    loop {
        tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) => {
                    tap.received(&line);
                    match serde_json::from_str(&line) {
                        Ok(message) => talk.receive(message, &out),
                        Err(error) => {
                            shared.violation(&format!("a line that is no JSON: {error}"));
                            let _ = out.try_send(Out::fault(&talk, &RpcFault::new(-32700, "Parse error"), &Value::Null));
                        }
                    }
                }
                _ => break,
            },
            message = queue.recv() => {
                let Some(message) = message else { break };
                let text = message.message.to_string();
                let line = format!("{text}\n");
                if output.write_all(line.as_bytes()).await.is_err() || output.flush().await.is_err() {
                    break;
                }
                tap.sent(&text);
            }
        }
    }
    talk.end();
}
