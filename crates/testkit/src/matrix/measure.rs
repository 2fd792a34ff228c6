//! How each feature is tried.

use super::cell::{MatrixCell, TrialResult};
use super::feature::Feature;
use crate::revision::Revision;
use crate::revision_client::Reply;
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

/// The resource that is followed.
const WATCHED: &str = "test://watched";
/// How long the call takes that is cancelled, longer than anyone waits for it.
const SLOW_MS: u64 = 60_000;

/// Tries one feature.
///
/// # Errors
/// When something else comes of it than working or being refused.
pub async fn measure(cell: &MatrixCell<'_>, feature: Feature) -> anyhow::Result<TrialResult> {
    match feature {
        Feature::List => list(cell).await,
        Feature::Call => call(cell).await,
        Feature::Structured => structured(cell).await,
        Feature::Content => content(cell).await,
        Feature::Error => error(cell).await,
        Feature::Progress => progress(cell).await,
        Feature::Cancel => cancel(cell).await,
        Feature::Log => log(cell).await,
        Feature::ListChanged => list_changed(cell).await,
        Feature::ResourceUpdate => resource_update(cell).await,
        Feature::Elicitation => elicitation(cell).await,
        Feature::Sampling => sampling(cell).await,
        Feature::Roots => roots(cell).await,
        Feature::Completion => completion(cell).await,
        Feature::Paging => paging(cell).await,
    }
}

async fn list(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    let tools = cell.client.list("tools/list", "tools").await?;
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let mut wanted = vec!["echo", "structured", "fail", "progress", "slow", "log", "change_tools", "touch"];
    wanted.extend(["ask_sampling", "ask_roots", "counts"]);
    if cell.server_revision >= Revision::R3 {
        wanted.extend(["link", "ask_elicitation"]);
    }
    for tool in wanted {
        let times = names.iter().filter(|name| **name == tool).count();
        ensure!(times == 1, "{tool} is listed {times} times among {names:?}");
    }
    Ok(TrialResult::Works)
}

async fn call(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    let said = format!("grüße \"{}\"\n\u{1f600}", cell.name);
    let text = cell.call("echo", json!({"text": said})).await?.text()?;
    ensure!(text == said, "echo answers {text:?}");
    Ok(TrialResult::Works)
}

async fn structured(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    let result = cell.call("structured", json!({})).await?.result()?;
    let text = result["content"][0]["text"].as_str().with_context(|| format!("no text: {result}"))?;
    let said: Value = serde_json::from_str(text).with_context(|| format!("no JSON in {text:?}"))?;
    ensure!(said == json!({"sum": 3}), "the text is {text}");
    if !cell.client_revision.structures() {
        // Such a client reads the text; a member it does not know is nothing to it.
        return Ok(TrialResult::Text);
    }
    match result.get("structuredContent") {
        Some(sum) if *sum == said => Ok(TrialResult::Works),
        Some(other) => anyhow::bail!("structuredContent is {other}"),
        None => Ok(TrialResult::Text),
    }
}

/// The client itself judges whether its revision has the content; here only that there is some.
async fn content(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    let since = [("audio", Revision::R2), ("link", Revision::R3), ("number", Revision::R5)];
    for (tool, _) in since.into_iter().filter(|(_, since)| cell.server_revision >= *since) {
        let result = cell.call(tool, json!({})).await?.result()?;
        ensure!(result["isError"] != true, "{tool} fails: {result}");
        ensure!(result["content"].as_array().is_some_and(|blocks| !blocks.is_empty()), "{tool} is empty: {result}");
        let kind = result["content"][0]["type"].as_str().unwrap_or_default();
        let kept = match tool {
            "audio" => cell.client_revision < Revision::R2 || kind == "audio",
            "link" => cell.client_revision < Revision::R3 || kind == "resource_link",
            _ => result["content"][0]["text"] == "42",
        };
        ensure!(kept, "{tool} is not what it was: {result}");
    }
    Ok(TrialResult::Works)
}

async fn error(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    let result = cell.call("fail", json!({})).await?.result()?;
    ensure!(result["isError"] == true, "not told as failed: {result}");
    ensure!(result["content"][0]["text"] == "failed on purpose", "other words: {result}");
    Ok(TrialResult::Works)
}

async fn progress(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    let mark = cell.client.mark();
    let token = format!("token {}", cell.name);
    let text = cell.call_with("progress", json!({"steps": 3}), Some(&token)).await?.text()?;
    ensure!(text == "3 steps", "the answer is {text}");
    let notes = cell.client.notifications().split_off(mark);
    let steps = notes.iter().filter(|note| note["method"] == "notifications/progress");
    let steps: Vec<f64> = steps.filter_map(|note| note["params"]["progress"].as_f64()).collect();
    ensure!(steps == [1.0, 2.0, 3.0], "the steps are {steps:?}");
    Ok(TrialResult::Works)
}

async fn cancel(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    let (params, tag) = cell.params("slow", json!({"ms": SLOW_MS}), None);
    let begun = cell.client.begin("tools/call", params).await?;
    cell.journal.wait("started", &tag, cell.patience).await?;
    cell.client.cancel(begun).await?;
    cell.journal.wait("cancelled", &tag, cell.patience).await?;
    Ok(TrialResult::Works)
}

async fn log(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    cell.client.set_level("info").await?;
    let mark = cell.client.mark();
    let (_, tag) = cell.params("log", json!({}), None);
    cell.call("log", json!({})).await?.text()?;
    let told = |note: &Value, level: &str| {
        let data = &note["params"]["data"];
        note["method"] == "notifications/message" && data["tag"] == tag && data["level"] == level
    };
    for level in ["info", "error"] {
        cell.client.heard(mark, |note| told(note, level)).await.with_context(|| format!("no {level} message"))?;
    }
    let quiet = cell.client.notifications().iter().skip(mark).all(|note| !told(note, "debug"));
    ensure!(quiet, "a message below the level");
    Ok(TrialResult::Works)
}

async fn list_changed(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    // In the new era one request listens to both kinds of change.
    cell.client.follow(WATCHED).await?;
    let mark = cell.client.mark();
    cell.call("change_tools", json!({})).await?.text()?;
    cell.client.heard(mark, |note| note["method"] == "notifications/tools/list_changed").await?;
    Ok(TrialResult::Works)
}

async fn resource_update(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    let mark = cell.client.mark();
    cell.call("touch", json!({})).await?.text()?;
    let updated =
        |note: &Value| note["method"] == "notifications/resources/updated" && note["params"]["uri"] == WATCHED;
    cell.client.heard(mark, updated).await?;
    Ok(TrialResult::Works)
}

async fn completion(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    let params =
        json!({"ref": {"type": "ref/prompt", "name": "prompt_1"}, "argument": {"name": "name", "value": "al"}});
    let result = match cell.client.request("completion/complete", params).await? {
        Reply::Result(result) => result,
        Reply::Error(error) => return Ok(TrialResult::Refused(error.to_string())),
    };
    ensure!(result["completion"]["values"] == json!(["alice", "albert"]), "{result}");
    Ok(TrialResult::Works)
}

async fn paging(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    let prompts = cell.client.list("prompts/list", "prompts").await?;
    let names: Vec<&str> = prompts.iter().filter_map(|prompt| prompt["name"].as_str()).collect();
    ensure!(names == ["prompt_1", "prompt_2", "prompt_3", "prompt_4", "prompt_5"], "the pages hold {names:?}");
    Ok(TrialResult::Works)
}

/// A tool asks the user: alone, before another question, and beside one.
///
/// # Errors
/// When something else comes of it than working or being refused.
pub async fn elicitation(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    let hello = format!("hello {}", cell.name);
    let both = format!("{hello}, word for {}", cell.name);
    let (user, model) = ("elicitation/create", "sampling/createMessage");
    let tools =
        [("ask_elicitation", &hello, &[user][..]), ("ask_twice", &both, &[user, model]), ("ask_both", &both, &[])];
    for (tool, wanted, order) in tools {
        let before = cell.client.asked().len();
        match ask(cell, tool, wanted).await? {
            TrialResult::Works => {}
            other => return Ok(other),
        }
        let asked = cell.client.asked().split_off(before);
        ensure!(order.is_empty() || asked == *order, "{tool} asked {asked:?}");
        ensure!(!order.is_empty() || asked.len() == 2, "{tool} asked {asked:?}");
    }
    Ok(TrialResult::Works)
}

/// A tool asks the model.
///
/// # Errors
/// When something else comes of it than working or being refused.
pub async fn sampling(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    ask(cell, "ask_sampling", &format!("word for {}", cell.name)).await
}

/// A tool asks for the roots.
///
/// # Errors
/// When something else comes of it than working or being refused.
pub async fn roots(cell: &MatrixCell<'_>) -> anyhow::Result<TrialResult> {
    ask(cell, "ask_roots", &format!("file:///{}", cell.name)).await
}

async fn ask(cell: &MatrixCell<'_>, tool: &str, wanted: &str) -> anyhow::Result<TrialResult> {
    let result = match cell.call(tool, json!({})).await? {
        Reply::Error(error) => return Ok(TrialResult::Refused(error.to_string())),
        Reply::Result(result) if result["isError"] == true => return Ok(TrialResult::Refused(result.to_string())),
        Reply::Result(result) => result,
    };
    ensure!(result["content"][0]["text"] == wanted, "{tool} answers {result} instead of {wanted}");
    Ok(TrialResult::Works)
}
