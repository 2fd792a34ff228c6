//! What a client of each revision may be notified of.

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::ears::EarsState;
use crate::revision::Revision;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Judges a notification; `stream` is the id of the request on whose HTTP stream it came.
///
/// # Errors
/// What is wrong with it.
pub fn notification(
    revision: Revision,
    state: &mut EarsState,
    message: &Value,
    stream: Option<&Value>,
) -> anyhow::Result<()> {
    let params = &message["params"];
    ensure!(params.is_null() || params.is_object(), "params that are no object: {message}");
    let judged = match message["method"].as_str().unwrap_or_default() {
        "notifications/progress" => progress(revision, state, params, stream),
        "notifications/message" => log(revision, state, params, stream),
        "notifications/tools/list_changed" => change(revision, state, params, stream, "toolsListChanged"),
        "notifications/prompts/list_changed" => change(revision, state, params, stream, "promptsListChanged"),
        "notifications/resources/list_changed" => change(revision, state, params, stream, "resourcesListChanged"),
        "notifications/resources/updated" => {
            change(revision, state, params, stream, "resourceSubscriptions").and_then(|()| {
                ensure!(params["uri"].is_string(), "no uri");
                Ok(())
            })
        }
        "notifications/subscriptions/acknowledged" if revision.modern() => acknowledged(state, params, stream),
        "notifications/cancelled" if revision.modern() => listening(state, &params["requestId"]).map(drop),
        "notifications/cancelled" => Ok(()),
        "notifications/tasks/status" | "notifications/elicitation/complete" if revision == Revision::R4 => Ok(()),
        "notifications/tasks" if revision.modern() => Ok(()),
        method => Err(anyhow::anyhow!("{revision} has no {method}")),
    };
    judged.with_context(|| message.to_string())?;
    foreign_meta(revision, params).with_context(|| message.to_string())
}

/// Keys of the reserved prefix that an old revision does not have.
fn foreign_meta(revision: Revision, params: &Value) -> anyhow::Result<()> {
    if revision.modern() {
        return Ok(());
    }
    for (key, _) in params["_meta"].as_object().into_iter().flatten() {
        let known = revision == Revision::R4 && key == RELATED_TASK;
        ensure!(known || !key.starts_with("io.modelcontextprotocol/"), "_meta key {key} is of another revision");
    }
    Ok(())
}

fn progress(revision: Revision, state: &mut EarsState, params: &Value, stream: Option<&Value>) -> anyhow::Result<()> {
    let token = &params["progressToken"];
    let told = params["progress"].as_f64().context("no progress")?;
    let mut pending = state.pending.iter_mut();
    let wanted = pending.find(|(_, pending)| pending.wanted.params["_meta"]["progressToken"] == *token);
    let (id, pending) = wanted.context("progress for a token of no request")?;
    ensure!(!token.is_null(), "no token");
    ensure!(pending.progress.is_none_or(|before| before < told), "progress that does not increase");
    pending.progress = Some(told);
    let elsewhere = stream.map(Value::to_string).is_some_and(|stream| stream != *id);
    ensure!(!(revision.modern() && elsewhere), "progress on the stream of another request");
    Ok(())
}

fn log(revision: Revision, state: &EarsState, params: &Value, stream: Option<&Value>) -> anyhow::Result<()> {
    let place = |level: &Value| LEVELS.iter().position(|known| level == known);
    let level = place(&params["level"]).context("no level")?;
    ensure!(params.get("data").is_some(), "no data");
    if !revision.modern() {
        return Ok(());
    }
    // Over a pipe a message may belong to any request that is on its way.
    let stream = stream.map(Value::to_string);
    let belongs = |id: &String| stream.as_ref().is_none_or(|stream| stream == id);
    let mut pending = state.pending.iter().filter(|(id, _)| belongs(id)).map(|(_, pending)| pending);
    let wants =
        pending.any(|pending| place(&pending.wanted.params["_meta"][LOG_LEVEL]).is_some_and(|from| from <= level));
    ensure!(wants, "a log message that no request wanted");
    Ok(())
}

fn change(
    revision: Revision,
    state: &EarsState,
    params: &Value,
    stream: Option<&Value>,
    kind: &str,
) -> anyhow::Result<()> {
    if !revision.modern() {
        return Ok(());
    }
    let subscription = &params["_meta"][SUBSCRIPTION];
    let (filter, acknowledged) = listening(state, subscription)?;
    ensure!(acknowledged, "a change before the acknowledgement");
    ensure!(stream.is_none_or(|stream| stream == subscription), "a change on the stream of another request");
    match &filter[kind] {
        Value::Bool(true) => Ok(()),
        Value::Array(uris) => {
            ensure!(uris.contains(&params["uri"]), "a resource that was not asked for");
            Ok(())
        }
        _ => bail!("a change that was not asked for"),
    }
}

/// What a request listens to, and whether that was acknowledged.
fn listening<'a>(state: &'a EarsState, id: &Value) -> anyhow::Result<(&'a Value, bool)> {
    let pending = state.pending.get(&id.to_string()).with_context(|| format!("{id} is no request on its way"))?;
    ensure!(pending.wanted.method == "subscriptions/listen", "{id} does not listen");
    Ok((&pending.wanted.params["notifications"], pending.acknowledged))
}

fn acknowledged(state: &mut EarsState, params: &Value, stream: Option<&Value>) -> anyhow::Result<()> {
    let id = &params["_meta"][SUBSCRIPTION];
    let (filter, before) = listening(state, id)?;
    ensure!(!before, "a second acknowledgement");
    ensure!(stream.is_none_or(|stream| stream == id), "an acknowledgement on the stream of another request");
    let granted = params["notifications"].as_object().context("no notifications")?;
    for (kind, _) in granted {
        ensure!(filter.get(kind).is_some(), "{kind} was not asked for");
    }
    if let Some(pending) = state.pending.get_mut(&id.to_string()) {
        pending.acknowledged = true;
    }
    Ok(())
}
