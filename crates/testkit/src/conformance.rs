//! The public conformance runner, run from a test, and two of its verdicts compared check by check.
//!
//! The runner is the npm package `@modelcontextprotocol/conformance`; it needs Node 22. Nothing of it is kept here: a
//! test gives the path of `node` and of the runner's `dist/index.js`.

mod known;

pub use known::Known;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;

/// How long one run may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// The length of the time that ends the name of a scenario's folder, such as `-2026-07-28T10-20-30-456Z`.
const STAMP: usize = 25;

/// Which checks to run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selection {
    /// Every scenario the runner has without being told a revision: the old wire.
    Default,
    /// Every scenario of one revision of the protocol.
    Revision(String),
    /// The frozen, scored set of one revision, extensions included.
    Requirements(String),
}

impl Selection {
    fn arguments(&self) -> Vec<&str> {
        match self {
            Self::Default => vec!["--suite", "all"],
            Self::Revision(version) => vec!["--suite", "all", "--spec-version", version],
            Self::Requirements(version) => vec!["--requirements", version],
        }
    }
}

/// What the runner says about one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// As it must be.
    Success,
    /// Not as it must be.
    Failure,
    /// Not as it should be.
    Warning,
    /// Not looked at.
    Skipped,
    /// Not a check at all: something the runner notes.
    Info,
}

/// The name of one check within a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckKey {
    /// The scenario it belongs to.
    pub scenario: String,
    /// Its id, which may come several times in a scenario; for checks of a client its name.
    pub id: String,
    /// Which of those times, from 0.
    pub occurrence: usize,
}

impl fmt::Display for CheckKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.scenario, self.id, self.occurrence)
    }
}

/// What the runner said in one run.
#[derive(Clone, Debug, Default)]
pub struct RunnerVerdict {
    /// Every check, in a fixed order.
    pub checks: BTreeMap<CheckKey, Status>,
    /// What the runner said about the checks that it said something about.
    pub messages: BTreeMap<CheckKey, String>,
}

impl RunnerVerdict {
    /// How many checks have this status.
    pub fn count(&self, status: Status) -> usize {
        self.checks.values().filter(|own| **own == status).count()
    }

    /// The checks of this status, each with what was said about it.
    pub fn with_status(&self, status: Status) -> Vec<String> {
        let those = self.checks.iter().filter(|(_, own)| **own == status);
        those
            .map(|(key, _)| match self.messages.get(key) {
                Some(message) => format!("{key}: {message}"),
                None => key.to_string(),
            })
            .collect()
    }

    /// The checks that came out worse here than in another run: a failure or a warning where that has none, or skipped
    /// where that has a success. One that was not made here counts as skipped.
    #[must_use]
    pub fn worse_than(&self, other: &Self) -> Self {
        let rank = |status: Option<&Status>| match status {
            Some(Status::Failure) => 3,
            Some(Status::Warning) => 2,
            Some(Status::Skipped) | None => 1,
            Some(Status::Success | Status::Info) => 0,
        };
        let worse = self.checks.iter().filter(|(key, own)| rank(Some(own)) > rank(other.checks.get(key)));
        let mut checks: BTreeMap<CheckKey, Status> = worse.map(|(key, own)| (key.clone(), *own)).collect();
        let not_made =
            other.checks.iter().filter(|(key, status)| **status == Status::Success && !self.checks.contains_key(key));
        checks.extend(not_made.map(|(key, _)| (key.clone(), Status::Skipped)));
        Self { checks, messages: self.messages.clone() }
    }

    fn add(&mut self, scenario: &str, checks: Vec<Check>) {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for check in checks {
            let count = seen.entry(check.id.clone()).or_default();
            let key = CheckKey { scenario: scenario.to_owned(), id: check.id, occurrence: *count };
            *count += 1;
            if let Some(message) = check.message {
                self.messages.insert(key.clone(), message);
            }
            self.checks.insert(key, check.status);
        }
    }
}

/// A check that came out one way directly and another way through the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which check.
    pub key: CheckKey,
    /// How it came out directly, if it was made.
    pub direct: Option<Status>,
    /// How it came out through the gateway, if it was made.
    pub through: Option<Status>,
    /// What the runner said about it, through the gateway or else directly.
    pub message: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, direct, through) = (&self.key, self.direct, self.through);
        write!(f, "{key}: directly {direct:?}, through {through:?}")?;
        match &self.message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

/// The checks that came out differently, apart from those the runner chose to skip on either side and from its notes.
pub fn compare(direct: &RunnerVerdict, through: &RunnerVerdict) -> Vec<Difference> {
    differences(direct, through, |direct, through| {
        let skipped = [direct, through].contains(&Some(Status::Skipped));
        let only_noted = matches!((direct, through), (None, Some(Status::Info)) | (Some(Status::Info), None));
        direct != through && !skipped && !only_noted
    })
}

/// The checks that were made directly and skipped through the gateway: what [`compare`] does not look at.
pub fn lost_to_skips(direct: &RunnerVerdict, through: &RunnerVerdict) -> Vec<Difference> {
    differences(direct, through, |direct, through| {
        through == Some(Status::Skipped) && matches!(direct, Some(Status::Success | Status::Failure | Status::Warning))
    })
}

fn differences(
    direct: &RunnerVerdict,
    through: &RunnerVerdict,
    counts: impl Fn(Option<Status>, Option<Status>) -> bool,
) -> Vec<Difference> {
    let only_through = through.checks.keys().filter(|key| !direct.checks.contains_key(*key));
    let mut keys: Vec<&CheckKey> = direct.checks.keys().chain(only_through).collect();
    keys.sort();
    let difference = |key: &CheckKey| {
        let (one, other) = (direct.checks.get(key).copied(), through.checks.get(key).copied());
        let message = through.messages.get(key).or_else(|| direct.messages.get(key));
        counts(one, other).then(|| Difference {
            key: key.clone(),
            direct: one,
            through: other,
            message: message.cloned(),
        })
    };
    keys.into_iter().filter_map(difference).collect()
}

/// The runner, installed somewhere.
#[derive(Clone, Debug)]
pub struct Runner {
    node: PathBuf,
    script: PathBuf,
}

impl Runner {
    /// A runner by the path of `node` and of the runner's `dist/index.js`.
    pub fn new(node: impl Into<PathBuf>, script: impl Into<PathBuf>) -> Self {
        Self { node: node.into(), script: script.into() }
    }

    /// The runner in a folder of `.deps`; `None` where `script/install-test-deps` did not put it there.
    ///
    /// # Errors
    /// With `CI=true` when it is not there.
    pub fn installed(folder: &str) -> anyhow::Result<Option<Self>> {
        let deps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.deps");
        let node = deps.join("node22/node_modules/node/bin/node");
        let script = deps.join(folder).join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
        if node.exists() && script.exists() {
            return Ok(Some(Self::new(node, script)));
        }
        let missing = format!("{} is not installed: run script/install-test-deps", script.display());
        anyhow::ensure!(std::env::var("CI").as_deref() != Ok("true"), missing);
        eprintln!("SKIP conformance: {missing}");
        Ok(None)
    }

    /// Has the server at this URL judged.
    ///
    /// # Errors
    /// When the runner cannot be run, takes too long or leaves no results. A server that fails is not an error.
    pub async fn judge(&self, url: &str, selection: &Selection) -> anyhow::Result<RunnerVerdict> {
        let results = tempfile::tempdir()?;
        let mut command = self.command();
        command.args(["server", "--url", url]).args(selection.arguments()).arg("-o").arg(results.path());
        let output = self.output(command).await?;
        read(results.path(), false).with_context(|| told(&output))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    async fn output(&self, mut command: Command) -> anyhow::Result<Output> {
        let output = tokio::time::timeout(PATIENCE, command.output()).await;
        output
            .context("the conformance runner takes too long")?
            .with_context(|| format!("cannot run {}", self.node.display()))
    }

    /// Has the server judged by several selections, one after the other.
    ///
    /// # Errors
    /// As [`Self::judge`].
    pub async fn judge_all(
        &self,
        url: &str,
        selections: &[Selection],
    ) -> anyhow::Result<BTreeMap<Selection, RunnerVerdict>> {
        let mut all = BTreeMap::new();
        for selection in selections {
            all.insert(selection.clone(), self.judge(url, selection).await?);
        }
        Ok(all)
    }
}

fn told(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = errors.lines().collect();
    let tail = lines.len().saturating_sub(20);
    format!("the conformance runner ended with {}:\n{}", output.status, lines[tail..].join("\n"))
}

#[derive(Deserialize)]
struct Check {
    id: String,
    #[serde(default)]
    name: String,
    status: Status,
    #[serde(rename = "errorMessage")]
    message: Option<String>,
}

/// Reads the results of one run: a folder for each scenario, with a `checks.json` in it. The checks of a client come in
/// the order in which it did things, which says nothing: those are `named`.
fn read(results: &Path, named: bool) -> anyhow::Result<RunnerVerdict> {
    let mut verdict = RunnerVerdict::default();
    for entry in std::fs::read_dir(results)? {
        let folder = entry?.path();
        let file = folder.join("checks.json");
        if !file.is_file() {
            continue;
        }
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let text = std::fs::read_to_string(&file)?;
        let mut checks: Vec<Check> =
            serde_json::from_str(&text).with_context(|| format!("cannot read {}", file.display()))?;
        for check in checks.iter_mut().filter(|check| named && !check.name.is_empty()) {
            check.id = std::mem::take(&mut check.name);
        }
        verdict.add(scenario(&name), checks);
    }
    if verdict.checks.is_empty() {
        bail!("no results");
    }
    Ok(verdict)
}

/// The scenario a folder is named after: without the word in front and the time behind.
fn scenario(folder: &str) -> &str {
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    let end = name.len().checked_sub(STAMP);
    match end.and_then(|end| name.split_at_checked(end)) {
        Some((scenario, stamp)) if stamp.starts_with('-') && stamp.ends_with('Z') => scenario,
        _ => name,
    }
}

/// What the runner said about a client, and what the client itself says.
#[derive(Clone, Debug, Default)]
pub struct ClientVerdict {
    /// The runner's own checks.
    pub verdict: RunnerVerdict,
    /// What the client and the runner said, where the client did not end well.
    pub complaint: Option<String>,
}

impl Runner {
    /// Has the client judged that this command line starts, in every scenario of a revision but those of authorization.
    /// The runner appends the URL of its server.
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

    /// Has the client judged in one scenario, at this revision if the scenario belongs to revisions.
    ///
    /// # Errors
    /// As [`Self::judge_client`].
    pub async fn judge_scenario(&self, client: &str, scenario: &str, revision: &str) -> anyhow::Result<ClientVerdict> {
        let results = tempfile::tempdir()?;
        let mut command = self.command();
        command.args(["client", "--command", client, "--scenario", scenario]).arg("-o").arg(results.path());
        if !revision.is_empty() {
            command.args(["--spec-version", revision]);
        }
        let output = self.output(command).await?;
        // A name with a slash makes a folder of its own.
        let folder = scenario.split_once('/').map_or_else(String::new, |(folder, _)| folder.to_owned());
        let verdict = read(&results.path().join(folder), true).with_context(|| told(&output))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(ClientVerdict { verdict, complaint: (!output.status.success()).then_some(said) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(checks: &[(&str, Status)]) -> RunnerVerdict {
        let mut verdict = RunnerVerdict::default();
        let checks = checks.iter().map(|(id, status)| Check {
            id: (*id).to_owned(),
            name: String::new(),
            status: *status,
            message: None,
        });
        verdict.add("s", checks.collect());
        verdict
    }

    #[test]
    fn a_folder_is_named_after_its_scenario() {
        assert_eq!(scenario("server-server-initialize-2026-11-15T03-24-08-992Z"), "server-initialize");
        assert_eq!(scenario("server-ping"), "ping");
    }

    #[test]
    fn checks_of_one_id_are_told_apart() {
        let all = verdict(&[("a", Status::Success), ("a", Status::Failure)]);
        let keys: Vec<String> = all.checks.keys().map(ToString::to_string).collect();
        assert_eq!(keys, ["s/a#0", "s/a#1"]);
        assert_eq!(all.count(Status::Failure), 1);
    }

    #[test]
    fn what_came_out_worse_is_found_and_what_fails_in_both_is_not() {
        let direct = verdict(&[("both", Status::Failure), ("a", Status::Success), ("b", Status::Success)]);
        let through = verdict(&[("both", Status::Failure), ("a", Status::Warning), ("c", Status::Success)]);
        let worse = through.worse_than(&direct);
        let found: Vec<_> = worse.checks.iter().map(|(key, status)| (key.id.as_str(), *status)).collect();
        assert_eq!(found, [("a", Status::Warning), ("b", Status::Skipped)]);
    }

    #[test]
    fn what_differs_is_found_and_what_was_skipped_or_noted_is_not() {
        let direct = verdict(&[
            ("same", Status::Success),
            ("worse", Status::Success),
            ("gone", Status::Success),
            ("skipped", Status::Success),
            ("noted", Status::Info),
        ]);
        let through = verdict(&[("same", Status::Success), ("worse", Status::Failure), ("skipped", Status::Skipped)]);
        let found = compare(&direct, &through);
        let ids: Vec<&str> = found.iter().map(|one| one.key.id.as_str()).collect();
        assert_eq!(ids, ["gone", "worse"]);
        assert_eq!(
            lost_to_skips(&direct, &through)[0].to_string(),
            "s/skipped#0: directly Some(Success), through Some(Skipped)"
        );
    }
}
