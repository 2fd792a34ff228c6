//! One cell: a client, a server, and what came of everything tried between them.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::feature::{Expected, Feature, expected};
use super::journal::Journal;
use super::measure;
use crate::revision::Revision;
use crate::revision_client::{Client, Reply};

/// A cell that is being tried.
#[derive(Debug)]
pub struct MatrixCell<'a> {
    /// The client.
    pub client: &'a Client,
    /// What the servers wrote down.
    pub journal: &'a Journal,
    /// The client's revision.
    pub client_revision: Revision,
    /// The server's revision.
    pub server_revision: Revision,
    /// What tells this cell from all others; also the name that the user gives.
    pub name: String,
    /// How long anything may take.
    pub patience: Duration,
}

/// What was seen of something tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialResult {
    /// It worked.
    Works,
    /// It came as text.
    Text,
    /// It was refused with these words.
    Refused(String),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellVerdict {
    /// What had to come.
    Fits(Expected),
    /// Something else.
    Fails(String),
}

impl fmt::Display for CellVerdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits(Expected::Works) => out.write_str("works"),
            Self::Fits(Expected::Text(why)) => write!(out, "as text: {why}"),
            Self::Fits(Expected::Refused(why)) => write!(out, "refused: {why}"),
            Self::Fails(why) => write!(out, "FAILS({why})"),
        }
    }
}

impl MatrixCell<'_> {
    /// Calls a tool under a tag of its own.
    ///
    /// # Errors
    /// When no answer comes, or the tool did not run exactly once.
    pub async fn call(&self, tool: &str, arguments: Value) -> anyhow::Result<Reply> {
        self.call_with(tool, arguments, None).await
    }

    /// The same, asking for progress under this token.
    ///
    /// # Errors
    /// When no answer comes, or the tool did not run exactly once.
    pub async fn call_with(&self, tool: &str, arguments: Value, token: Option<&str>) -> anyhow::Result<Reply> {
        let (params, tag) = self.params(tool, arguments, token);
        let reply = self.client.call_with(params).await?;
        let runs = self.journal.count("run", &tag);
        let answered = matches!(&reply, Reply::Result(result) if result["isError"] != true);
        anyhow::ensure!(runs <= 1, "{tool} ran {runs} times");
        anyhow::ensure!(!answered || runs == 1, "{tool} was answered without having run");
        Ok(reply)
    }

    /// The parameters of a call, and the tag of its runs.
    pub fn params(&self, tool: &str, mut arguments: Value, token: Option<&str>) -> (Value, String) {
        let tag = format!("{} {tool}", self.name);
        arguments["tag"] = json!(tag);
        let mut params = json!({"name": tool, "arguments": arguments});
        if let Some(token) = token {
            params["_meta"]["progressToken"] = json!(token);
        }
        (params, tag)
    }

    /// Tries one feature; what either side calls a violation meanwhile is a failure too.
    async fn verdict(&self, feature: Feature) -> CellVerdict {
        let seen = measure::measure(self, feature).await;
        let mut violations: Vec<String> = Vec::new();
        violations.extend(self.client.violations().iter().map(|what| format!("the client says: {what}")));
        violations.extend(self.journal.violations().iter().map(|what| format!("the server says: {what}")));
        let expected = expected(feature, self.client_revision, self.server_revision);
        let fits = match (&seen, expected) {
            (Ok(TrialResult::Works), Expected::Works) | (Ok(TrialResult::Text), Expected::Text(_)) => Ok(()),
            (Ok(TrialResult::Refused(words)), Expected::Refused(_)) if names(feature, words) => Ok(()),
            (Ok(TrialResult::Refused(words)), _) => Err(format!("refused: {words}")),
            (Ok(seen), expected) => Err(format!("{seen:?} instead of {expected:?}")),
            (Err(error), _) => Err(format!("{error:#}")),
        };
        match fits {
            Ok(()) if violations.is_empty() => CellVerdict::Fits(expected),
            Ok(()) => CellVerdict::Fails(violations.join("; ")),
            Err(why) => {
                violations.insert(0, why);
                CellVerdict::Fails(violations.join("; "))
            }
        }
    }
}

/// Whether a refusal names the feature.
fn names(feature: Feature, words: &str) -> bool {
    words.to_lowercase().contains(feature.name())
}

/// Tries everything.
pub async fn try_all(cell: &MatrixCell<'_>) -> Vec<(Feature, CellVerdict)> {
    let mut verdicts = Vec::new();
    for feature in Feature::ALL {
        verdicts.push((feature, cell.verdict(feature).await));
    }
    verdicts
}
