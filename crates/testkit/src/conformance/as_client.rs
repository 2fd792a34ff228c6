//! The client half of the runner: it starts a server of its own, and judges what a client does to it.

use super::{Runner, Verdict, read, told};
use anyhow::Context as _;

/// What the runner said about a client, and what the client itself says.
#[derive(Clone, Debug, Default)]
pub struct ClientVerdict {
    /// The runner's own checks.
    pub verdict: Verdict,
    /// What the client and the runner said, where the client did not end well.
    pub complaint: Option<String>,
}

impl Runner {
    /// Has the client judged that this command line starts, in every scenario of a revision but those of authorization. The
    /// runner appends the URL of its server.
    ///
    /// # Errors
    /// When the runner cannot be run, takes too long or leaves no results. A client that fails is not an error.
    pub async fn judge_client(&self, client: &str, revision: &str) -> anyhow::Result<ClientVerdict> {
        let results = tempfile::tempdir()?;
        let mut command = self.command();
        command.args(["client", "--command", client, "--suite", "all", "--spec-version", revision]);
        command.arg("-o").arg(results.path());
        let output = self.output(command).await?;
        // The folders of authorization lie one deeper and are not read.
        let verdict = read(results.path(), true).with_context(|| told(&output))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let ended_badly = said.contains("Client exited with code") || said.contains("Client timed out");
        Ok(ClientVerdict { verdict, complaint: ended_badly.then_some(said) })
    }
}
