use std::time::Duration;

use serde_json::{Value, json};

use super::call::ServedCall;
use super::catalog::WATCHED;
use super::fault::RpcFault;
use super::methods::complete;
use super::{asking, oddities, rules_modern, tasks};
use crate::revision::Revision;

/// The levels of log messages, quietest concern first.
pub const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// A few bytes that a player would take for a sound.
const SOUND: &str = "UklGRiQAAABXQVZF";

/// A result of one text.
pub fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A result that tells the model of a failure.
pub fn failed(what: &str) -> Value {
    let mut result = text(what);
    result["isError"] = json!(true);
    result
}

/// Calls a tool.
///
/// # Errors
/// When there is no such tool, or the call is not as its revision wants it.
pub async fn call(call: &ServedCall) -> Result<Value, RpcFault> {
    let revision = call.revision();
    let shared = &call.talk.shared;
    let name = call.params["name"].as_str().ok_or_else(|| RpcFault::params("no name"))?;
    let listed = shared.tools();
    if !listed["tools"].as_array().into_iter().flatten().any(|tool| tool["name"] == name) {
        return Err(RpcFault::params(format!("Unknown tool: {name}")));
    }
    let retried = call.params.get("requestState").is_some() || call.params.get("inputResponses").is_some();
    if retried {
        shared.round();
    } else {
        shared.ran(name, call.tag());
    }
    if !asking::rounds(name).is_empty() {
        return asking::run(call, name).await;
    }
    if name == "task" {
        return tasks::call(call).await;
    }
    if call.params.get("task").is_some() {
        return Err(RpcFault::new(-32601, format!("{name} is not for tasks")));
    }
    if oddities::has(name) {
        return oddities::run(call, name).await;
    }
    Ok(complete(plain(call, name).await, revision))
}

/// The tools that ask nothing.
async fn plain(call: &ServedCall, name: &str) -> Value {
    let shared = &call.talk.shared;
    let arguments = &call.params["arguments"];
    match name {
        "echo" => text(arguments["text"].as_str().unwrap_or_default()),
        "structured" => structured(call.revision()),
        "fail" => failed("failed on purpose"),
        "progress" => progress(call, arguments["steps"].as_u64().unwrap_or(3)).await,
        "slow" => slow(call, arguments["ms"].as_u64().unwrap_or(100)).await,
        "log" => log(call).await,
        "change_tools" => {
            shared.change_tools();
            text("changed")
        }
        "touch" => {
            shared.touch(arguments["uri"].as_str().unwrap_or(WATCHED));
            text("touched")
        }
        "audio" => json!({"content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]}),
        "link" => json!({"content": [{"type": "resource_link", "uri": "test://static", "name": "static"}]}),
        "number" => {
            let mut result = text("42");
            result["structuredContent"] = json!(42);
            result
        }
        "counts" => {
            let mut counts = shared.counts();
            counts["declared"] = call.capabilities();
            text(&counts.to_string())
        }
        other => text(other),
    }
}

fn structured(revision: Revision) -> Value {
    let sum = json!({"sum": 3});
    let mut result = text(&sum.to_string());
    if revision.structures() {
        result["structuredContent"] = sum;
    }
    result
}

async fn progress(call: &ServedCall, steps: u64) -> Value {
    let token = call.meta("progressToken");
    if !token.is_null() {
        for step in 1..=steps {
            let mut params = json!({"progressToken": token, "progress": step, "total": steps});
            if call.revision() >= Revision::R2 {
                params["message"] = json!(format!("step {step}"));
            }
            call.notify("notifications/progress", params).await;
        }
    }
    text(&format!("{steps} steps"))
}

async fn log(call: &ServedCall) -> Value {
    let threshold = match call.revision() {
        Revision::R5 => {
            let level = call.meta(rules_modern::LOG_LEVEL);
            LEVELS.iter().position(|known| level == known)
        }
        _ => Some(call.talk.level()),
    };
    for level in ["debug", "info", "error"] {
        let place = LEVELS.iter().position(|known| *known == level);
        if threshold.is_some_and(|threshold| place >= Some(threshold)) {
            let params = json!({"level": level, "logger": "log", "data": {"level": level, "tag": call.tag()}});
            call.notify("notifications/message", params).await;
        }
    }
    text("logged")
}

/// Counts how a slow call ended, also when it was dropped on the way.
struct Slow<'a> {
    call: &'a ServedCall,
    finished: bool,
}

impl Drop for Slow<'_> {
    fn drop(&mut self) {
        let what = if self.finished { "finished" } else { "cancelled" };
        self.call.talk.shared.slow(what, self.call.tag());
    }
}

async fn slow(call: &ServedCall, ms: u64) -> Value {
    let mut slow = Slow { call, finished: false };
    call.talk.shared.slow("started", call.tag());
    tokio::time::sleep(Duration::from_millis(ms)).await;
    slow.finished = true;
    text(&format!("slept {ms} ms"))
}
