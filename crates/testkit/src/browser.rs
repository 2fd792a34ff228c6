//! A real Chromium, as `tests/clients/run relay-browser` drives it.

use crate::clients::run_script;
use crate::process::Spawned;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;

/// How long anything in the browser may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a page may take to become what is waited for, in seconds.
const WAIT_SECONDS: u64 = 90;

/// A browser with tabs, which are called by names. Dropping it ends it.
#[derive(Debug)]
pub struct Browser {
    process: Spawned,
    last_id: u64,
}

impl Browser {
    /// Starts a browser; `None` where there is none.
    ///
    /// # Errors
    /// When it does not start; with `CI=true` also when there is none.
    pub async fn start() -> anyhow::Result<Option<Self>> {
        let mut command = Command::new(run_script());
        command.arg("relay-browser");
        let process = Spawned::start(command)?;
        match process.wait_line("{\"ok\":true", PATIENCE).await {
            Ok(_) => Ok(Some(Self { process, last_id: 0 })),
            Err(_) if process.error_lines().iter().any(|line| line.starts_with("not installed")) => {
                anyhow::ensure!(std::env::var("CI").as_deref() != Ok("true"), "Chromium is not installed");
                eprintln!("SKIP Chromium: run script/install-test-deps");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Has a tab do something, and returns what came of it.
    ///
    /// # Errors
    /// When the browser says that it cannot be done.
    pub async fn tell(&mut self, what: &str, tab: &str, mut more: Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        more["id"] = json!(id);
        more["do"] = json!(what);
        more["tab"] = json!(tab);
        self.process.write_line(&more.to_string()).await?;
        let line = self.process.wait_line(&format!("{{\"id\":{id},"), PATIENCE).await?;
        let answer: Value = serde_json::from_str(&line)?;
        anyhow::ensure!(answer.get("ok").is_some(), "{what} in {tab}: {}", answer["error"]);
        Ok(answer["ok"].clone())
    }

    /// Opens an address in a new tab.
    ///
    /// # Errors
    /// When the page does not load.
    pub async fn open(&mut self, tab: &str, url: &str) -> anyhow::Result<()> {
        self.tell("open", tab, json!({"url": url})).await.map(|_| ())
    }

    /// What an expression is in the page.
    ///
    /// # Errors
    /// When it throws.
    pub async fn look(&mut self, tab: &str, expression: &str) -> anyhow::Result<Value> {
        self.tell("look", tab, json!({"expression": expression})).await
    }

    /// Waits until an expression is true in the page.
    ///
    /// # Errors
    /// When it does not become true.
    pub async fn wait(&mut self, tab: &str, expression: &str) -> anyhow::Result<()> {
        self.tell("wait", tab, json!({"expression": expression, "seconds": WAIT_SECONDS})).await.map(|_| ())
    }

    /// Waits until the page of the relay shows a state of its connection.
    ///
    /// # Errors
    /// When it does not come to it.
    pub async fn wait_state(&mut self, tab: &str, state: &str, standby: bool) -> anyhow::Result<()> {
        let shown = "document.getElementById('state').dataset";
        self.wait(tab, &format!("{shown}.state === '{state}' && {shown}.standby === '{standby}'")).await
    }

    /// Takes a picture of a whole page.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub async fn picture(&mut self, tab: &str, file: &Path) -> anyhow::Result<()> {
        let file = file.to_str().context("the path is no text")?;
        self.tell("screenshot", tab, json!({"file": file})).await.map(|_| ())
    }

    /// Ends the browser, and waits until it is gone.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.process.close_input();
        self.process.wait(PATIENCE).await.map(|_| ())
    }
}
