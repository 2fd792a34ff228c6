//! What the misbehaving server says to a message, step by step.

use std::time::Duration;

use serde_json::{Value, json};

use crate::chaos::mode::ChaosMode;

/// How long a slow answer takes.
const SLOW: Duration = Duration::from_millis(1200);
/// How long an answer takes that nobody waits for any more.
const LATE: Duration = Duration::from_millis(4500);
/// How many log messages a flood has.
const FLOOD: u64 = 500;
/// An id that is never given out.
const NO_ID: u64 = 9_007_199_254_000_000;
/// A text that must reach nobody.
pub const WRONG: &str = "WRONG";

/// One thing that the server does.
#[derive(Debug, Clone, PartialEq)]
pub enum SpeechStep {
    /// Sends a message.
    Say(Value),
    /// Waits.
    Wait(Duration),
    /// Sends what is no message.
    Garbage,
    /// Sends the first half of a message and ends the connection.
    Half(Value),
    /// Ends the connection as if nothing were wrong.
    End,
    /// Resets the connection.
    Reset,
    /// Refuses by the means of the transport, or else with this error.
    Refuse(Value),
}

/// The name of the one tool of the server of this name.
pub fn tool(name: &str) -> String {
    format!("{name}_work")
}

/// What is done about a message.
pub fn steps(name: &str, modern: bool, mode: ChaosMode, message: &Value) -> Vec<SpeechStep> {
    let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else { return Vec::new() };
    match mode {
        ChaosMode::Mute => return Vec::new(),
        ChaosMode::Refuse => return vec![SpeechStep::Refuse(error(id, -32050, "refused on purpose"))],
        _ => {}
    }
    if method == "tools/call" {
        return call(name, modern, mode, id, &message["params"]);
    }
    let result = match method {
        "initialize" if !modern => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "logging": {}},
            "serverInfo": {"name": name, "version": "1"}})
        }
        "server/discover" if modern => {
            whole(json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "logging": {}}}))
        }
        "ping" | "logging/setLevel" => json!({}),
        "tools/list" => {
            let schema =
                json!({"type": "object", "properties": {"tag": {"type": "string"}, "ms": {"type": "integer"}}});
            let list = json!({"tools": [{"name": tool(name), "description": "works", "inputSchema": schema}]});
            if modern { whole(list) } else { list }
        }
        _ => return vec![SpeechStep::Say(error(id, -32601, "no such method"))],
    };
    vec![SpeechStep::Say(answer(id, result))]
}

fn call(name: &str, modern: bool, mode: ChaosMode, id: &Value, params: &Value) -> Vec<SpeechStep> {
    let text = |text: String| {
        let result = json!({"content": [{"type": "text", "text": text}]});
        if modern { complete(result) } else { result }
    };
    let tag = params["arguments"]["tag"].as_str().unwrap_or_default();
    let right = answer(id, text(format!("{name}:{tag}")));
    let wrong = |id: &Value| SpeechStep::Say(answer(id, text(format!("{WRONG} {name}:{tag}"))));
    let mut steps = Vec::new();
    let token = &params["_meta"]["progressToken"];
    if !token.is_null() {
        steps.push(SpeechStep::Say(note("progress", json!({"progressToken": token, "progress": 1, "message": tag}))));
    }
    let takes = params["arguments"]["ms"].as_u64().unwrap_or(0);
    if takes > 0 {
        steps.push(SpeechStep::Wait(Duration::from_millis(takes)));
    }
    match mode {
        ChaosMode::Fine | ChaosMode::Mute | ChaosMode::Refuse => steps.push(SpeechStep::Say(right)),
        ChaosMode::Slow => steps.extend([SpeechStep::Wait(SLOW), SpeechStep::Say(right)]),
        ChaosMode::Late => steps.extend([SpeechStep::Wait(LATE), SpeechStep::Say(right)]),
        ChaosMode::Hang => {}
        ChaosMode::Garbage => steps.extend([SpeechStep::Garbage, SpeechStep::Say(right)]),
        ChaosMode::Half => steps.push(SpeechStep::Half(right)),
        ChaosMode::Reset => steps.push(SpeechStep::Reset),
        ChaosMode::Twice => steps.extend([SpeechStep::Say(right), wrong(id)]),
        ChaosMode::WrongId => steps.extend([wrong(&json!(NO_ID)), wrong(&json!("no-id")), wrong(&Value::Null)]),
        ChaosMode::Cut => steps.push(SpeechStep::End),
        ChaosMode::Error => steps.push(SpeechStep::Say(error(id, -32055, "failed on purpose"))),
        ChaosMode::Flood => {
            let log = |line: u64| note("message", json!({"level": "error", "data": format!("line {line}")}));
            steps.extend((0..FLOOD).map(|line| SpeechStep::Say(log(line))));
            steps.push(SpeechStep::Say(right));
        }
    }
    steps
}

fn answer(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn error(id: &Value, code: i64, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
}

fn note(kind: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": format!("notifications/{kind}"), "params": params})
}

/// A result of the new era.
fn complete(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result
}

/// The same, for what may be kept for a while.
fn whole(mut result: Value) -> Value {
    result["ttlMs"] = json!(1000);
    result["cacheScope"] = json!("private");
    complete(result)
}
