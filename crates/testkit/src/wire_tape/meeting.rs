//! What a client and a server do in a meeting: everything their revisions have, and what no side should do.

use std::future::Future;
use std::time::Duration;

use serde_json::{Value, json};

use super::scene::MeetingCell;
use crate::matrix::{self, BackTransport, CellVerdict, Journal};
use crate::revision::Revision;
use crate::revision_client::{Client, Reply};

/// How long a server may take to hear of a call that was cancelled, where it need not hear of it.
const UNTOLD: Duration = Duration::from_secs(5);
/// The resource that is read twice.
const STATIC: &str = "test://static";

/// Lets them meet; returns what did not go as it should, step by step.
pub async fn meet(cell: &MeetingCell, client: &Client, journal: &Journal, patience: Duration) -> Vec<(String, String)> {
    let tried = matrix::MatrixCell {
        client,
        journal,
        client_revision: cell.client,
        server_revision: cell.server,
        name: cell.name(),
        patience,
    };
    let mut troubles = Vec::new();
    for (feature, verdict) in matrix::try_all(&tried).await {
        if let CellVerdict::Fails(why) = verdict {
            troubles.push((feature.name().to_owned(), why));
        }
    }
    let steps = Steps { cell, tried: &tried, client };
    steps.lists(&mut troubles).await;
    steps.reads(&mut troubles).await;
    steps.unknown(&mut troubles).await;
    steps.odd_servers(&mut troubles).await;
    steps.odd_clients(&mut troubles).await;
    steps.batches(&mut troubles).await;
    steps.tasks(&mut troubles).await;
    if !cell.client.modern() {
        note(&mut troubles, "ping", client.request("ping", json!({})).await.and_then(Reply::result));
        let params = json!({"uri": "test://watched"});
        let left = client.request("resources/unsubscribe", params).await.and_then(Reply::result);
        note(&mut troubles, "resources/unsubscribe", left);
    }
    troubles
}

fn note<T>(troubles: &mut Vec<(String, String)>, step: &str, outcome: anyhow::Result<T>) {
    if let Err(error) = outcome {
        troubles.push((step.to_owned(), format!("{error:#}")));
    }
}

struct Steps<'a> {
    cell: &'a MeetingCell,
    tried: &'a matrix::MatrixCell<'a>,
    client: &'a Client,
}

impl Steps<'_> {
    async fn lists(&self, troubles: &mut Vec<(String, String)>) {
        for (method, member) in [
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ] {
            note(troubles, method, self.client.list(method, member).await);
        }
    }

    async fn reads(&self, troubles: &mut Vec<(String, String)>) {
        // Twice, so that the second may come from what was kept.
        for uri in [STATIC, STATIC, "test://item/7"] {
            let read = self.client.request("resources/read", json!({"uri": uri})).await.and_then(Reply::result);
            note(troubles, "resources/read", read);
        }
        let params = json!({"name": "prompt_1", "arguments": {"name": "alice"}});
        note(troubles, "prompts/get", self.client.request("prompts/get", params).await.and_then(Reply::result));
    }

    /// What is not there.
    async fn unknown(&self, troubles: &mut Vec<(String, String)>) {
        let asked = [
            ("test/unknown", json!({})),
            ("tools/call", json!({"name": "no_such_tool", "arguments": {}})),
            ("prompts/get", json!({"name": "no_such_prompt"})),
            ("resources/read", json!({"uri": "test://nowhere"})),
        ];
        for (method, params) in asked {
            let outcome = match self.client.request(method, params).await {
                Ok(Reply::Error(_)) => Ok(()),
                Ok(Reply::Result(result)) if result["isError"] == true => Ok(()),
                Ok(Reply::Result(result)) => Err(anyhow::anyhow!("it is there: {result}")),
                Err(error) => Err(error),
            };
            note(troubles, &format!("unknown {method}"), outcome);
        }
    }

    /// A server that answers nobody, twice or late, asks and does not want to know, or sends what nobody knows.
    async fn odd_servers(&self, troubles: &mut Vec<(String, String)>) {
        let mut tools = vec!["orphan", "rumour"];
        // In the new era over HTTP a stream ends with its answer: whoever has that need not read a second one.
        if !(self.cell.server.modern() && self.cell.back == BackTransport::Http) {
            tools.push("twice");
        }
        if !self.cell.server.modern() {
            tools.extend(["ping_client", "withdraw"]);
        }
        if self.cell.server == Revision::R2 {
            tools.push("batch");
        }
        for tool in tools {
            note(troubles, tool, self.tried.call(tool, json!({})).await.and_then(Reply::text));
        }
        note(troubles, "late", self.late().await);
    }

    async fn late(&self) -> anyhow::Result<()> {
        let (params, tag) = self.tried.params("late", json!({}), None);
        let begun = self.client.begin("tools/call", params).await?;
        self.tried.journal.wait("started", &tag, self.tried.patience).await?;
        self.client.cancel(begun).await?;
        // A server of the new era over HTTP learns only that the stream is gone.
        let patience = if self.cell.server.modern() { UNTOLD } else { self.tried.patience };
        let told = self.tried.journal.wait("cancelled", &tag, patience).await;
        if self.cell.server.modern() { Ok(()) } else { told }
    }

    /// A client that answers nobody, and notifies of what nobody knows.
    async fn odd_clients(&self, troubles: &mut Vec<(String, String)>) {
        let rumour = self.client.notify("notifications/rumour", Some(json!({"of": self.tried.name})));
        tolerated(rumour).await;
        if !self.cell.client.modern() {
            tolerated(self.client.say(json!({"jsonrpc": "2.0", "id": "nobody asked", "result": {}}))).await;
            note(troubles, "roots", self.client.notify("notifications/roots/list_changed", None).await);
        }
    }

    async fn batches(&self, troubles: &mut Vec<(String, String)>) {
        if self.cell.client != Revision::R2 {
            return;
        }
        let (call, _) = self.tried.params("echo", json!({"text": "in a batch"}), None);
        let batch = [("tools/call", call), ("tools/list", json!({})), ("test/unknown", json!({}))];
        note(troubles, "batch", self.client.batch(&batch).await);
        let note_one = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
        tolerated(self.client.say(json!([note_one]))).await;
    }

    /// Tasks, where both sides have them: one that ends, one that asks, one that is cancelled.
    async fn tasks(&self, troubles: &mut Vec<(String, String)>) {
        if self.cell.server < Revision::R4 || self.cell.client < Revision::R4 {
            return;
        }
        for (ask, cancel) in [(false, false), (true, false), (false, true)] {
            let done = if self.cell.client.modern() {
                self.modern_task(ask, cancel).await
            } else {
                self.legacy_task(ask, cancel).await
            };
            note(troubles, &format!("task ask={ask} cancel={cancel}"), done);
        }
        if !self.cell.client.modern() {
            note(troubles, "tasks/list", self.client.request("tasks/list", json!({})).await.and_then(Reply::result));
        }
    }

    fn task(&self, ask: bool, cancel: bool) -> Value {
        let ms = if cancel { 60_000 } else { 50 };
        let mut params = json!({"name": "task", "arguments": {"ms": ms, "ask": ask}});
        if !self.cell.client.modern() {
            params["task"] = json!({"ttl": 60_000});
        }
        params
    }

    async fn legacy_task(&self, ask: bool, cancel: bool) -> anyhow::Result<()> {
        let made = self.client.request("tools/call", self.task(ask, cancel)).await?.result()?;
        let id = json!({"taskId": made["task"]["taskId"]});
        self.client.request("tasks/get", id.clone()).await?.result()?;
        let last = if cancel { "tasks/cancel" } else { "tasks/result" };
        self.client.request(last, id).await?.result().map(drop)
    }

    async fn modern_task(&self, ask: bool, cancel: bool) -> anyhow::Result<()> {
        let made = self.client.request("tools/call", self.task(ask, cancel)).await?.result()?;
        let id = json!({"taskId": made["taskId"]});
        if cancel {
            return self.client.request("tasks/cancel", id).await?.result().map(drop);
        }
        let following = async {
            loop {
                let task = self.client.request("tasks/get", id.clone()).await?.result()?;
                match task["status"].as_str() {
                    Some("completed") => return Ok(()),
                    Some("input_required") => {
                        let requests = task["inputRequests"].as_object().cloned().unwrap_or_default();
                        let mut params = id.clone();
                        params["inputResponses"] = self.client.answered(&requests)?;
                        self.client.request("tasks/update", params).await?.result()?;
                    }
                    Some("working") => {}
                    _ => anyhow::bail!("the task is {task}"),
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(self.tried.patience, following).await?
    }
}

/// Does what may be refused by the transport: it is on the wire all the same.
async fn tolerated(step: impl Future<Output = anyhow::Result<()>>) {
    if let Err(error) = step.await {
        eprintln!("refused: {error:#}");
    }
}
