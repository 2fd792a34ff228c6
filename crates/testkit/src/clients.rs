//! Real clients and real servers from npm and PyPI, as `tests/clients/run` starts them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::ports::free_address;
use crate::process::Spawned;
use anyhow::Context as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::process::Command;

/// How long one client may take, unless its calls are held for longer.
const PATIENCE: Duration = Duration::from_secs(180);

fn patience() -> Duration {
    let held = std::env::var("MCP_TEST_HOLD_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
    PATIENCE + Duration::from_secs(held)
}

/// How long to wait before looking again.
const LOOK: Duration = Duration::from_millis(50);
/// The exit code of something that is not installed.
const NOT_INSTALLED: i32 = 77;

/// The script that starts each of them.
pub fn run_script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/run").canonicalize().unwrap_or_default()
}

/// Runs a client to its end and returns the document it printed; `None` where it is not installed.
///
/// # Errors
/// When the client cannot be run or prints no document; with `CI=true` also when it is not installed.
pub async fn run(arguments: &[&str]) -> anyhow::Result<Option<Value>> {
    run_with(arguments, &[]).await
}

/// The same with more variables in the client's environment.
///
/// # Errors
/// When the client cannot be run or prints no document; with `CI=true` also when it is not installed.
pub async fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Option<Value>> {
    let mut command = Command::new(run_script());
    command.envs(variables.iter().copied());
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(patience(), command.output()).await.context("the client takes too long")??;
    if output.status.code() == Some(NOT_INSTALLED) {
        anyhow::ensure!(std::env::var("CI").as_deref() != Ok("true"), "{arguments:?} is not installed");
        eprintln!("SKIP {arguments:?}: run script/install-test-deps");
        return Ok(None);
    }
    let errors = || String::from_utf8_lossy(&output.stderr).into_owned();
    let document: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{arguments:?} printed no document ({}):\n{}", output.status, errors()))?;
    Ok(Some(document))
}

/// A program on loopback that takes whatever a browser brings back from a sign-in, and returns where.
///
/// # Errors
/// When there is no port for it.
pub async fn listening_back() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let back = format!("http://{}/callback", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nback").await;
        }
    });
    Ok(back)
}

/// Starts `server-everything` in one of its modes that listen, and waits until it does; `None` where it is not
/// installed.
///
/// # Errors
/// When it does not listen in time; with `CI=true` also when it is not installed.
pub async fn everything(mode: &str) -> anyhow::Result<Option<(Spawned, SocketAddr)>> {
    let address = free_address()?;
    let mut command = Command::new(run_script());
    command.args(["everything", mode]).env("PORT", address.port().to_string());
    let mut server = Spawned::start(command)?;
    let listening = async {
        while tokio::net::TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(LOOK).await;
        }
    };
    let ended = tokio::select! {
        ended = server.wait(PATIENCE) => Some(ended.context("server-everything does not listen")?),
        () = listening => None,
    };
    match ended {
        None => Ok(Some((server, address))),
        Some(status) if status.code() == Some(NOT_INSTALLED) => {
            anyhow::ensure!(std::env::var("CI").as_deref() != Ok("true"), "server-everything is not installed");
            eprintln!("SKIP server-everything: run script/install-test-deps");
            Ok(None)
        }
        Some(status) => anyhow::bail!("server-everything ended with {status}:\n{}", server.error_lines().join("\n")),
    }
}
