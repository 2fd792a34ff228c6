//! Real clients and real servers from npm and PyPI, as `tests/clients/run` starts them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use tokio::process::Command;

/// How long one client may take.
const PATIENCE: Duration = Duration::from_secs(180);
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
    let mut command = Command::new(run_script());
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.context("the client takes too long")??;
    if output.status.code() == Some(NOT_INSTALLED) {
        anyhow::ensure!(std::env::var("CI").as_deref() != Ok("true"), "{arguments:?} is not installed");
        return Ok(None);
    }
    let errors = || String::from_utf8_lossy(&output.stderr).into_owned();
    let document: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{arguments:?} printed no document ({}):\n{}", output.status, errors()))?;
    Ok(Some(document))
}
