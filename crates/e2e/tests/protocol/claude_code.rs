//! Claude Code as a client. `claude mcp list` connects to each server and asks for its tools, waits 5 s for the answer,
//! and prints "Connected" if it comes. It calls no model, needs no account, and opens connections to the gateway only.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::json;
use signalbox_testkit::clients::run_script;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::{GatewayProcess, stdio_command};
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{backend_status, child, eventually, files_holding, lists_saved};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Time for one run of the program, which gives up connecting after 30 s.
const PATIENCE: Duration = Duration::from_secs(180);

/// An installed Claude Code with settings of its own.
struct ClaudeCode {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl ClaudeCode {
    /// Returns `None` if `script/install-test-deps` has not installed it.
    fn installed() -> Option<Self> {
        let own = run_script().ancestors().nth(3).unwrap().join(".deps");
        let deps = std::env::var_os("MCP_TEST_DEPS").map_or(own, PathBuf::from);
        let program = deps.join("claude-code/node_modules/.bin/claude");
        let found = program.exists();
        assert!(found || std::env::var("CI").as_deref() != Ok("true"), "claude-code is not installed");
        if !found {
            eprintln!("SKIP claude-code: run script/install-test-deps");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "settings", "project", "tmp"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Some(Self { program: program.canonicalize().unwrap(), folder })
    }

    /// Runs `claude mcp` to its end and returns its standard output.
    async fn mcp(&self, arguments: &[&str]) -> String {
        let place = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(&self.program);
        command.arg("mcp").args(arguments).current_dir(place("project")).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", place("home")).env("CLAUDE_CONFIG_DIR", place("settings"));
        command.env("TMPDIR", place("tmp")).env("CLAUDE_CODE_TMPDIR", place("tmp"));
        for switch in [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_TELEMETRY",
        ] {
            command.env(switch, "1");
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, command.output()).await.unwrap().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    async fn add_http(&self, gateway: &GatewayProcess) {
        self.mcp(&["add", "--transport", "http", "http", &gateway.url()]).await;
    }

    async fn add_sse(&self, gateway: &GatewayProcess) {
        let url = format!("http://{}/sse", gateway.address());
        self.mcp(&["add", "--transport", "sse", "sse", &url]).await;
    }

    /// Adds a gateway that Claude Code starts itself, with its files in this folder.
    async fn add_stdio(&self, folder: &Path, config: &str) {
        let program = stdio_command(folder, config).unwrap();
        let mut arguments = vec!["add", "stdio", "--"];
        arguments.extend(program.iter().map(String::as_str));
        self.mcp(&arguments).await;
    }

    /// Asserts that it connects to these servers and is told their tools.
    async fn assert_connected(&self, names: &[&str]) {
        let output = self.mcp(&["list"]).await;
        let statuses: BTreeMap<&str, &str> =
            output.lines().filter_map(|line| Some((line.split_once(": ")?.0, line.rsplit_once(" - ")?.1))).collect();
        let expected: BTreeMap<&str, &str> = names.iter().map(|name| (*name, "✔ Connected")).collect();
        assert_eq!(statuses, expected, "{output}\n{}", self.log());
    }

    /// The log of each connection.
    fn log(&self) -> String {
        let files = files_holding(&self.folder.path().join("home"), "Starting connection").unwrap_or_default();
        files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect()
    }
}

/// The config of a server of both eras that takes so many seconds to start.
fn slow(seconds: u32) -> String {
    let fixture = built("fixture-server").unwrap();
    let script = json!(format!("sleep {seconds}; exec '{}' --stdio --era both", fixture.display()));
    format!("[backends.slow]\ncommand = \"sh\"\nargs = [\"-c\", {script}]\nstart_timeout = 120\n")
}

fn ordinary() -> String {
    child("ordinary", ServedEra::Old, "").unwrap()
}

async fn is_up(gateway: &GatewayProcess, backend: &str) {
    let data_dir = gateway.data_dir();
    let up = async || (backend_status(&data_dir, backend).await.ok()?["state"] == "up").then_some(());
    eventually("the backend is up", up).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_connects_over_http_sse_and_stdio() {
    let Some(claude) = ClaudeCode::installed() else { return };
    let gateway = GatewayProcess::serve(&ordinary()).await.unwrap();
    gateway.ready().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    claude.add_http(&gateway).await;
    claude.add_sse(&gateway).await;
    claude.add_stdio(folder.path(), &ordinary()).await;
    claude.assert_connected(&["http", "sse", "stdio"]).await;
}

/// A process for clients of the old era would take another 20 s.
#[tokio::test(flavor = "multi_thread")]
async fn claude_code_connects_to_a_slow_server_that_has_started() {
    let Some(claude) = ClaudeCode::installed() else { return };
    let gateway = GatewayProcess::serve(&slow(20)).await.unwrap();
    claude.add_http(&gateway).await;
    claude.add_sse(&gateway).await;
    is_up(&gateway, "slow").await;
    claude.assert_connected(&["http", "sse"]).await;
}

/// The lists of the other server are the answer until the slow one has started.
#[tokio::test(flavor = "multi_thread")]
async fn claude_code_connects_while_a_slow_server_starts() {
    let Some(claude) = ClaudeCode::installed() else { return };
    let gateway = GatewayProcess::serve(&(ordinary() + &slow(60))).await.unwrap();
    claude.add_http(&gateway).await;
    claude.add_sse(&gateway).await;
    is_up(&gateway, "ordinary").await;
    claude.assert_connected(&["http", "sse"]).await;
    let state = &backend_status(&gateway.data_dir(), "slow").await.unwrap()["state"];
    assert_ne!(state, "up");
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_connects_over_stdio_while_a_slow_server_starts() {
    let Some(claude) = ClaudeCode::installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    claude.add_stdio(folder.path(), &(ordinary() + &slow(60))).await;
    claude.assert_connected(&["stdio"]).await;
}

/// No lists of the server are known before it has started.
#[tokio::test(flavor = "multi_thread")]
async fn claude_code_connects_over_stdio_to_a_slow_server_at_its_first_start() {
    let Some(claude) = ClaudeCode::installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    claude.add_stdio(folder.path(), &slow(20)).await;
    claude.assert_connected(&["stdio"]).await;
}

/// The lists of the last run are the answer until the server has started again.
#[tokio::test(flavor = "multi_thread")]
async fn claude_code_connects_over_stdio_to_a_slow_server_known_from_before() {
    let Some(claude) = ClaudeCode::installed() else { return };
    let gateway = GatewayProcess::serve(&slow(20)).await.unwrap();
    is_up(&gateway, "slow").await;
    lists_saved(&gateway.data_dir()).await.unwrap();
    let folder = gateway.terminate().await.unwrap();
    claude.add_stdio(folder.path(), &slow(20)).await;
    claude.assert_connected(&["stdio"]).await;
}
