//! What a client of each revision may be answered and asked.

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::answers::Answers;
use super::ears::Wanted;
use crate::revision::Revision;

/// Methods whose results may be kept for a while in the new era.
const CACHED: [&str; 6] =
    ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];
/// Methods whose answer may be a question in the new era.
const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// Judges the answer to a request.
///
/// # Errors
/// What is wrong with it.
pub fn answer(revision: Revision, wanted: &Wanted, message: &Value) -> anyhow::Result<()> {
    let method = &wanted.method;
    if let Some(error) = message.get("error") {
        return self::error(revision, error).with_context(|| format!("{method}: {error}"));
    }
    let result = message.get("result").context("neither a result nor an error")?;
    ensure!(result.is_object(), "{method}: a result that is no object: {result}");
    let judged = if revision.modern() { modern(wanted, result) } else { legacy(revision, wanted, result) };
    judged.and_then(|()| members(revision, method, result)).with_context(|| format!("{method}: {result}"))
}

fn error(revision: Revision, error: &Value) -> anyhow::Result<()> {
    let code = error["code"].as_i64().context("an error without a code")?;
    ensure!(error["message"].is_string(), "an error without a message");
    match code {
        -32099..=-32020 if !revision.modern() && code != -32042 => bail!("an error code of 2026-07-28"),
        -32002 | -32042 if revision.modern() => bail!("an error code that 2026-07-28 retired"),
        -32042 if revision < Revision::R4 => bail!("an error code of 2025-11-25"),
        _ => Ok(()),
    }
}

fn legacy(revision: Revision, wanted: &Wanted, result: &Value) -> anyhow::Result<()> {
    let kind = &result["resultType"];
    ensure!(kind.is_null() || kind == "complete", "resultType {kind} is of 2026-07-28");
    ensure!(result.get("inputRequests").is_none(), "inputRequests is of 2026-07-28");
    ensure!(result.get("requestState").is_none(), "requestState is of 2026-07-28");
    if wanted.method == "initialize" {
        ensure!(result["protocolVersion"] == revision.name(), "another revision");
        ensure!(result["capabilities"].is_object() && result["serverInfo"]["name"].is_string(), "a member is missing");
    }
    Ok(())
}

fn modern(wanted: &Wanted, result: &Value) -> anyhow::Result<()> {
    let method = wanted.method.as_str();
    match result["resultType"].as_str() {
        Some("complete") => {}
        Some("input_required") => {
            ensure!(ASKING.contains(&method), "this method never asks");
            ensure!(result.get("inputRequests").is_some() || result.get("requestState").is_some(), "it asks nothing");
            let requests = result["inputRequests"].as_object().into_iter().flatten();
            for (_, request) in requests {
                ensure!(request.get("id").is_none() && request.get("jsonrpc").is_none(), "a question is no message");
            }
            return Ok(());
        }
        Some("task") => {
            let declared = &wanted.params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
            ensure!(declared["io.modelcontextprotocol/tasks"].is_object(), "a task for a client without tasks");
            return Ok(());
        }
        kind => bail!("resultType {kind:?}"),
    }
    if CACHED.contains(&method) {
        ensure!(result["ttlMs"].is_u64(), "no ttlMs");
        ensure!(matches!(result["cacheScope"].as_str(), Some("public" | "private")), "no cacheScope");
    }
    Ok(())
}

/// The members of a finished result.
fn members(revision: Revision, method: &str, result: &Value) -> anyhow::Result<()> {
    let finished = matches!(result["resultType"].as_str(), None | Some("complete")) && result.get("task").is_none();
    match method {
        "tools/list" => {
            for tool in array(result, "tools")? {
                self::tool(revision, tool).with_context(|| tool.to_string())?;
            }
        }
        "tools/call" if finished => {
            for block in array(result, "content")? {
                content(revision, block)?;
            }
            let structured = result.get("structuredContent");
            let object = structured.is_none_or(Value::is_object);
            ensure!(object || revision.modern(), "structuredContent that is no object");
        }
        "prompts/list" => _ = array(result, "prompts")?,
        "resources/list" => _ = array(result, "resources")?,
        "resources/templates/list" => _ = array(result, "resourceTemplates")?,
        "resources/read" if finished => _ = array(result, "contents")?,
        "prompts/get" if finished => {
            for message in array(result, "messages")? {
                content(revision, &message["content"])?;
            }
        }
        "completion/complete" => _ = array(&result["completion"], "values")?,
        "server/discover" => {
            array(result, "supportedVersions")?;
            ensure!(result["capabilities"].is_object(), "no capabilities");
        }
        _ => {}
    }
    Ok(())
}

fn array<'a>(result: &'a Value, member: &str) -> anyhow::Result<&'a Vec<Value>> {
    result[member].as_array().with_context(|| format!("no {member}"))
}

fn tool(revision: Revision, tool: &Value) -> anyhow::Result<()> {
    ensure!(tool["name"].is_string(), "no name");
    ensure!(tool["inputSchema"]["type"] == "object", "an inputSchema that is not of an object");
    let output = tool.get("outputSchema");
    let object = output.is_none_or(|schema| schema["type"] == "object");
    ensure!(object || revision.modern() || !revision.structures(), "an outputSchema that is not of an object");
    Ok(())
}

fn content(revision: Revision, block: &Value) -> anyhow::Result<()> {
    let since = match block["type"].as_str() {
        Some("text") => {
            ensure!(block["text"].is_string(), "text without text");
            Revision::R1
        }
        Some("image" | "resource") => Revision::R1,
        Some("audio") => Revision::R2,
        Some("resource_link") => Revision::R3,
        kind => bail!("content of the type {kind:?}"),
    };
    ensure!(revision >= since, "content {} is of {since}", block["type"]);
    Ok(())
}

/// Judges a request of the server.
///
/// # Errors
/// What is wrong with it.
pub fn question(revision: Revision, message: &Value) -> anyhow::Result<()> {
    ensure!(!revision.modern(), "a request of the server: {message}");
    ensure!(
        message["id"].is_string() || message["id"].is_i64() || message["id"].is_u64(),
        "an id that is none: {message}"
    );
    let params = &message["params"];
    ensure!(params.is_null() || params.is_object(), "params that are no object: {message}");
    Ok(())
}

/// Judges a question, however it was put.
///
/// # Errors
/// What is wrong with it.
pub fn asked(revision: Revision, answers: &Answers, method: &str, params: &Value) -> anyhow::Result<()> {
    let declared = answers.capabilities(revision);
    let capability = match method {
        "elicitation/create" => {
            ensure!(params["message"].is_string(), "{method} without a message: {params}");
            let mode = params["mode"].as_str().unwrap_or("form");
            ensure!(mode == "form", "{method} in the mode {mode}, which was not declared");
            ensure!(params["requestedSchema"]["type"] == "object", "{method} without a schema: {params}");
            "elicitation"
        }
        "sampling/createMessage" => {
            let whole = params["messages"].is_array() && params["maxTokens"].is_u64();
            ensure!(whole, "{method} without a required member: {params}");
            "sampling"
        }
        "roots/list" => "roots",
        _ => bail!("a question {method} that {revision} does not have"),
    };
    ensure!(declared[capability].is_object(), "{method} without {capability} being declared");
    Ok(())
}
