//! Conversations over the pipe of a program, and tapes of them with the notes server.

use crate::process::{Spawned, built};
use crate::scene::{PATIENCE, eventually};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// A client on the pipe of a program.
pub struct Talk {
    process: Spawned,
    id: u64,
}

impl Talk {
    /// Starts the program and shakes hands.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn begin(command: Command) -> anyhow::Result<Self> {
        let mut talk = Self { process: Spawned::start(command)?, id: 0 };
        let client = json!({"name": "t", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        talk.ask("initialize", params).await?;
        talk.process.write_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await?;
        Ok(talk)
    }

    /// Asks, and returns the answer.
    ///
    /// # Errors
    /// When there is none.
    pub async fn ask(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        self.id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        self.process.write_line(&request.to_string()).await?;
        let answer = async || {
            let said = self.process.lines().into_iter().rev();
            let mut answers = said.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
            answers.find(|answer| answer["id"] == json!(self.id) && answer.get("method").is_none())
        };
        eventually("an answer", answer).await
    }

    /// Calls a tool and returns the text of its answer, or the whole answer if it has none.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> anyhow::Result<String> {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await?;
        let said = answer["result"]["content"][0]["text"].as_str();
        Ok(said.map_or_else(|| answer.to_string(), ToOwned::to_owned))
    }

    /// Closes the pipe and waits for the program to end.
    ///
    /// # Errors
    /// When it does not.
    pub async fn end(mut self) -> anyhow::Result<()> {
        self.process.close_input();
        self.process.wait(PATIENCE).await.map(drop)
    }
}

/// The id that the notes server minted, from what it said.
#[must_use]
pub fn note_of(created: &str) -> String {
    created.trim_start_matches("Created ").trim_end_matches('.').to_owned()
}

/// Begins a conversation with the notes server behind `wrap`, which writes a tape.
///
/// # Errors
/// When something is not built, or the server does not answer.
pub async fn recording(folder: &Path) -> anyhow::Result<(Talk, PathBuf)> {
    let tape = folder.join("notes.tape");
    let mut command = Command::new(built("signalbox")?);
    command.args(["wrap", "--tape"]).arg(&tape).arg("--data-dir").arg(folder.join("wrap")).arg("--");
    command.arg(built("notes-server")?).arg(folder.join("recorded-writes"));
    Ok((Talk::begin(command).await?, tape))
}

/// Records a handshake, a list, and a note that is created, read, deleted and looked for again: six requests.
///
/// # Errors
/// When something is not built, or the server does not answer.
pub async fn notes_tape(folder: &Path) -> anyhow::Result<PathBuf> {
    let (mut talk, tape) = recording(folder).await?;
    talk.ask("tools/list", json!({})).await?;
    let note = note_of(&talk.call("create_note", json!({"text": "milk"})).await?);
    for tool in ["read_note", "delete_note", "read_note"] {
        talk.call(tool, json!({"note": note})).await?;
    }
    talk.end().await?;
    Ok(tape)
}
