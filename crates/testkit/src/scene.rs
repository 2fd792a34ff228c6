//! What end-to-end scenes are made of: backends as config, and what can be seen of a running gateway from outside.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::fixture::ServedEra;
use crate::http_client::HttpClient;
use crate::process::{Spawned, built};

/// How long a condition may take to come true.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The config of a backend that is a child process of the fixture, with more lines for it.
///
/// # Errors
/// When the fixture is not built.
pub fn child(name: &str, era: ServedEra, more: &str) -> anyhow::Result<String> {
    let program = json!(built("fixture-server")?.to_str().context("a path that is no text")?);
    let era = json!(era_name(era));
    Ok(format!(
        "[backends.{name}]\ncommand = {program}\nargs = [\"--stdio\", \"--era\", {era}, \"--name\", \"{name}\"]\n{more}\n"
    ))
}

/// The config of a backend reached over HTTP, with more lines for it.
pub fn remote(name: &str, address: &str, more: &str) -> String {
    format!("[backends.{name}]\nurl = \"http://{address}/mcp\"\n{more}\n")
}

/// Starts the fixture on this address (port 0 takes any); returns it with the address it took.
///
/// # Errors
/// When it does not start.
pub async fn web_fixture(address: &str, era: ServedEra) -> anyhow::Result<(Spawned, String)> {
    let mut command = Command::new(built("fixture-server")?);
    command.args(["--http", address, "--era", era_name(era)]);
    let process = Spawned::start(command)?;
    let line = process.wait_line("listening ", PATIENCE).await?;
    let address = line.trim_start_matches("listening http://").trim_end_matches("/mcp").to_owned();
    Ok((process, address))
}

fn era_name(era: ServedEra) -> &'static str {
    match era {
        ServedEra::Both => "both",
        ServedEra::Old => "old",
        ServedEra::New => "new",
    }
}

/// Adds a local user of the gateway's authorization server.
///
/// # Errors
/// If the command fails.
pub async fn add_user(data_dir: &Path, name: &str, password: &str) -> anyhow::Result<()> {
    let mut command = Command::new(built("signalbox")?);
    command.args(["users", "add", name, "--data-dir"]).arg(data_dir).current_dir(data_dir);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn()?;
    let mut input = child.stdin.take().context("no standard input")?;
    input.write_all(format!("{password}\n").as_bytes()).await?;
    drop(input);
    let ended = child.wait_with_output().await?;
    anyhow::ensure!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    Ok(())
}

/// What `signalbox status --json` tells of the one process that uses this data folder.
///
/// # Errors
/// When none runs there.
pub async fn status(data_dir: &Path) -> anyhow::Result<Value> {
    let mut command = Command::new(built("signalbox")?);
    command.args(["status", "--json", "--data-dir"]).arg(data_dir).current_dir(data_dir);
    let output = command.kill_on_drop(true).output().await?;
    let errors = || String::from_utf8_lossy(&output.stderr).into_owned();
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).with_context(errors)?;
    all.into_iter().next().with_context(errors)
}

/// Returns the output of `signalbox ARGS` about this data folder. Retries until it succeeds: a tape begins a moment
/// after its first events.
///
/// # Errors
/// When it never succeeds.
pub async fn signalbox(data_dir: &Path, args: &[&str]) -> anyhow::Result<String> {
    let program = built("signalbox")?;
    let run = async || {
        let mut command = Command::new(&program);
        command.args(args).arg("--data-dir").arg(data_dir).current_dir(data_dir);
        let output = command.kill_on_drop(true).output().await.ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
    };
    eventually(&format!("{args:?} succeeds"), run).await
}

/// What that says about one backend.
///
/// # Errors
/// When there is no such backend.
pub async fn backend_status(data_dir: &Path, name: &str) -> anyhow::Result<Value> {
    let status = status(data_dir).await?;
    let mut backends = status["backends"].as_array().into_iter().flatten();
    backends.find(|backend| backend["name"] == name).cloned().with_context(|| format!("no {name} in {status}"))
}

/// Waits until the lists of every backend lie in the data folder.
///
/// # Errors
/// When they do not in time.
pub async fn lists_saved(data_dir: &Path) -> anyhow::Result<()> {
    let file = data_dir.join("catalog.json");
    let look = async || {
        let saved: Value = serde_json::from_slice(&std::fs::read(&file).ok()?).ok()?;
        let known = |backend: &Value| backend["views"].as_array().is_some_and(|views| !views.is_empty());
        saved["backends"].as_array()?.iter().all(known).then_some(())
    };
    eventually("the lists are saved", look).await
}

/// The process ids that a backend's status tells.
pub fn pids(backend: &Value) -> Vec<u32> {
    let pids = backend["pids"].as_array().into_iter().flatten();
    pids.filter_map(|pid| u32::try_from(pid.as_u64()?).ok()).collect()
}

/// Looks until there is something to see.
///
/// # Errors
/// When there is not in time.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> anyhow::Result<T> {
    let looking = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.with_context(|| format!("not in time: {what}"))
}

/// Whether a process runs; a zombie does not.
pub fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Sends a signal to one process.
///
/// # Errors
/// When there is no such process.
pub async fn signal(pid: u32, signal: &str) -> anyhow::Result<()> {
    let status = Command::new("kill").args(["-s", signal, &pid.to_string()]).status().await?;
    anyhow::ensure!(status.success(), "no process {pid}");
    Ok(())
}

/// The files below a folder that hold this text.
///
/// # Errors
/// When the folder cannot be read.
pub fn files_holding(folder: &Path, text: &str) -> anyhow::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read(&path)
                .unwrap_or_default()
                .windows(text.len().max(1))
                .any(|part| part.starts_with(text.as_bytes()))
            {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// A call of a tool, as a message.
pub fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// Calls a tool and returns the text it answers with.
///
/// # Errors
/// When it answers otherwise.
pub async fn ask(client: &HttpClient, tool: &str, arguments: Value) -> anyhow::Result<String> {
    let answer = client.request(1, "tools/call", json!({"name": tool, "arguments": arguments})).await?;
    text(&answer).with_context(|| format!("{tool}: {answer}"))
}

/// The first text of a tool's result.
pub fn text(answer: &Value) -> Option<String> {
    answer["result"]["content"][0]["text"].as_str().map(str::to_owned)
}

/// The process that answers `whoami`.
///
/// # Errors
/// When none does.
pub async fn process_of(client: &HttpClient, tool: &str) -> anyhow::Result<u32> {
    let answer: Value = serde_json::from_str(&ask(client, tool, json!({})).await?)?;
    Ok(u32::try_from(answer["process"].as_u64().context("no process")?)?)
}

/// The names of all tools that a client sees.
///
/// # Errors
/// When the list does not come.
pub async fn tool_names(client: &HttpClient) -> anyhow::Result<Vec<String>> {
    let answer = client.request(1, "tools/list", json!({})).await?;
    let tools = answer["result"]["tools"].as_array().with_context(|| answer.to_string())?;
    Ok(tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect())
}
