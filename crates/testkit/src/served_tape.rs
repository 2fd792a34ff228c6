//! Sessions of real clients that are recorded, and the tapes of them that answer in place of the server.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;
use tokio::process::Command;

use crate::clients::run;
use crate::process::{Spawned, built};
use crate::scene::{eventually, signalbox};

/// A path of a test as the text of an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

/// What a client was told, without what differs from run to run.
pub fn told(document: &Value) -> Value {
    let mut steps = document["steps"].clone();
    for call in steps["call"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        // How much progress a client counts depends on what it reads together with the answer.
        call.retain(|name, _| name != "ms" && name != "progress");
    }
    steps
}

/// Runs a client's steps against a server that it starts; `None` where the client is not installed.
///
/// # Errors
/// When the client cannot be run.
pub async fn talk(client: &[&str], steps: &[&str], server: &[&str]) -> anyhow::Result<Option<Value>> {
    run(&[client, steps, &["--stdio"], server].concat()).await
}

/// Records a client's steps with one backend behind the gateway, and gives what the client was told and the tape.
///
/// # Errors
/// When a file cannot be written, or a process cannot be run.
pub async fn record(
    client: &[&str],
    steps: &[&str],
    backend: &str,
    folder: &Path,
) -> anyhow::Result<Option<(Value, PathBuf)>> {
    let (config, data) = (folder.join("live.toml"), tempfile::tempdir_in(folder)?.keep());
    let tape = data.join("talk.tape");
    std::fs::write(&config, backend)?;
    let program = built("signalbox")?;
    let server = [text(&program), "stdio", "-c", text(&config), "--data-dir", text(&data)];
    let Some(live) = talk(client, steps, &server).await? else { return Ok(None) };
    let export = async || signalbox(&data, &["tape", "export", "last", "-o", text(&tape)]).await.ok().map(drop);
    eventually("the tape can be exported", export).await?;
    std::fs::remove_file(&config)?;
    Ok(Some((live, tape)))
}

/// A tape that `replay serve` plays over HTTP.
pub struct ServedTape {
    /// Where clients reach it.
    pub url: String,
    _process: Spawned,
}

impl ServedTape {
    /// Starts to serve a tape, and waits until it listens.
    ///
    /// # Errors
    /// When the process cannot be started, or says no address in time.
    pub async fn start(folder: &Path, tape: &Path, more: &[&str]) -> anyhow::Result<Self> {
        let data = tempfile::tempdir_in(folder)?.keep();
        let mut command = Command::new(built("signalbox")?);
        command.args(["replay", "serve", text(tape), "--listen", "127.0.0.1:0", "--data-dir", text(&data)]).args(more);
        let process = Spawned::start(command)?;
        let url = eventually("the gateway says where it listens", async || {
            let lines = [process.lines(), process.error_lines()].concat();
            lines.iter().find_map(|line| {
                let at = line.find("http://127.0.0.1:")?;
                let url = line[at..].split(|c: char| c.is_whitespace() || c == '"').next()?;
                url.ends_with("/mcp").then(|| url.to_owned())
            })
        });
        let url = url.await.context("replay serve")?;
        Ok(Self { url, _process: process })
    }
}
