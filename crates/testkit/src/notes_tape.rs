//! A tape of a conversation with the notes server.

use crate::process::{Spawned, built};
use crate::scene::{PATIENCE, eventually};
use anyhow::Context as _;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// Records a handshake, a list, and a note that is created, read, deleted and looked for again: six requests.
///
/// # Errors
/// When something is not built, or the server does not answer.
pub async fn notes_tape(folder: &Path) -> anyhow::Result<PathBuf> {
    let tape = folder.join("notes.tape");
    let mut command = Command::new(built("signalbox")?);
    command.args(["wrap", "--tape"]).arg(&tape).arg("--data-dir").arg(folder.join("wrap")).arg("--");
    command.arg(built("notes-server")?).arg(folder.join("recorded-writes"));
    let mut wrapped = Spawned::start(command)?;
    let mut id = 0;
    let mut ask = async |method: &str, params: Value| -> anyhow::Result<Value> {
        id += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        wrapped.write_line(&request.to_string()).await?;
        let answer = async || {
            let answers = wrapped.lines().into_iter().filter_map(|line| serde_json::from_str::<Value>(&line).ok());
            answers.filter(|answer| answer["id"] == json!(id)).last()
        };
        eventually("an answer", answer).await
    };
    let client = json!({"name": "t", "version": "1"});
    ask("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})).await?;
    ask("tools/list", json!({})).await?;
    let created = ask("tools/call", json!({"name": "create_note", "arguments": {"text": "milk"}})).await?;
    let said = created["result"]["content"][0]["text"].as_str().context("no text")?.to_owned();
    let note = said.trim_start_matches("Created ").trim_end_matches('.').to_owned();
    for tool in ["read_note", "delete_note", "read_note"] {
        ask("tools/call", json!({"name": tool, "arguments": {"note": note}})).await?;
    }
    wrapped.close_input();
    wrapped.wait(PATIENCE).await?;
    Ok(tape)
}
