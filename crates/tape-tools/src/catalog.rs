//! Definitions of the tools.

use crate::{diff, question, search};
use serde_json::{Value, json};
use signalbox_embedded::arguments::MAX_SAFE;
use signalbox_embedded::read_only;

const TIME: &str = "as 2026-11-15, 2026-11-15T09:05:00Z, or how long ago: 90s, 30m, 2h, 7d";

/// Returns the definitions of all tools in list order.
pub(crate) fn tools() -> Vec<Value> {
    vec![diff_tool(), search_tool(), show_tool(), stats_tool()]
}

fn search_tool() -> Value {
    json!({
        "name": "tapes_search",
        "title": "Search recorded calls",
        "description": "Finds your own recorded calls, the newest first. With `text`, calls one of whose messages holds all \
            its words; a phrase goes into double quotes. Without `text`, calls that have ended. All other arguments narrow \
            the search.",
        "inputSchema": input(&[], json!({
            "text": text("Words that a message must hold, as you sent or got it."),
            "tape": text("Only calls of this tape; by default of all."),
            "method": text("Only calls of this method, such as `tools/call`; a trailing `*` stands for any rest."),
            "tool": text("Only calls of this tool, prompt or URI, named as you call it."),
            "backend": text("Only calls through this backend."),
            "outcome": text("Only calls that ended so: `success`, `tool_error`, `error`, `cancelled`, `timeout`, …"),
            "since": text(&format!("Only calls from then on, {TIME}.")),
            "until": text(&format!("Only calls before then, {TIME}.")),
            "slower_than_ms": whole("Only calls that took at least this many milliseconds.", 0, MAX_SAFE),
            "limit": {
                "type": "integer",
                "description": "Most calls of a page.",
                "minimum": search::LIMIT.start(),
                "maximum": search::LIMIT.end(),
                "default": search::DEFAULT_LIMIT,
            },
            "cursor": text("The `next_cursor` of the page before, with otherwise the same arguments."),
        })),
        "outputSchema": output(json!({
            "calls": list(call(json!({"excerpt": {"type": "string"}}))),
            "next_cursor": {"type": "string", "description": "Where to go on; there is no more without it."},
        }), &["calls"]),
        "annotations": read_only("Search recorded calls"),
    })
}

fn show_tool() -> Value {
    let body = json!({
        "type": ["object", "null"],
        "properties": {
            "bytes": {"type": "integer"},
            "redacted": {"type": "boolean"},
            "text": {"type": ["string", "null"], "description": "Null if the body was not recorded."},
        },
    });
    let decision = json!({
        "type": "object",
        "properties": {
            "by": {"type": "string"},
            "rule": {"type": ["string", "null"]},
            "phase": {"type": "string"},
            "verdict": {"type": "string"},
        },
    });
    let mut members = call_members();
    members["request"] = body.clone();
    members["answer"] = body;
    members["decisions"] = list(decision);
    members["explanation"] = json!({"type": "string"});
    json!({
        "name": "tapes_show",
        "title": "Show a recorded call",
        "description": "Shows one of your recorded calls: its request as you sent it, its answer as you got it, what the gateway \
            decided about it, and how long it took.",
        "inputSchema": input(&["tape", "exchange"], call_names()),
        "outputSchema": output(members, &["tape", "exchange", "request", "answer", "decisions", "explanation"]),
        "annotations": read_only("Show a recorded call"),
    })
}

fn stats_tool() -> Value {
    json!({
        "name": "tapes_stats",
        "title": "Count recorded calls",
        "description": "Counts your recorded calls: how many there were, how many failed and how long they took, in all, by \
            method, by tool and by tape.",
        "inputSchema": input(&[], json!({
            "tape": text("Only this tape; by default all, each with its own line."),
            "method": text("Only this method; a trailing `*` stands for any rest."),
            "tool": text("Only this tool, prompt or URI."),
            "backend": text("Only calls through this backend."),
            "since": text(&format!("Only calls from then on, {TIME}.")),
            "until": text(&format!("Only calls before then, {TIME}.")),
        })),
        "outputSchema": output(json!({
            "total": numbers(),
            "methods": list(numbers()),
            "tools": list(numbers()),
            "tapes": list(numbers()),
            "complete": {"type": "boolean", "description": "False if there were too many calls to count all."},
        }), &["total", "methods", "tools", "tapes", "complete"]),
        "annotations": read_only("Count recorded calls"),
    })
}

fn diff_tool() -> Value {
    let named = || {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["tape", "exchange"],
            "properties": call_names(),
        })
    };
    json!({
        "name": "tapes_diff",
        "title": "Compare two recorded calls",
        "description": "Compares the requests and the answers of two of your recorded calls, field by field. Give `first` and \
            `second`, or `tool` with `first_tape` and `second_tape` for the latest calls of a tool with equal arguments. Ids, \
            `_meta`, the order of members and the spelling of numbers do not count.",
        "inputSchema": input(&[], json!({
            "first": named(),
            "second": named(),
            "tool": text("A tool whose latest calls on both tapes are compared."),
            "first_tape": text("The tape of the first call, with `tool`."),
            "second_tape": text("The tape of the second call, with `tool`."),
            "ignore": {
                "type": "array",
                "description": "Paths that do not count, such as `/result/structuredContent/time`; `*` is any one member, \
                    `**` any number of them.",
                "items": {"type": "string", "maxLength": question::MAX_TEXT},
                "maxItems": diff::MAX_IGNORED,
            },
        })),
        "outputSchema": output(json!({
            "first": call(json!({})),
            "second": call(json!({})),
            "request": differences(),
            "answer": differences(),
        }), &["first", "second", "request", "answer"]),
        "annotations": read_only("Compare two recorded calls"),
    })
}

fn call_names() -> Value {
    json!({
        "tape": text("The tape of the call, as tapes_search shows it."),
        "exchange": whole("The number of the call on its tape.", 0, MAX_SAFE),
    })
}

fn call_members() -> Value {
    json!({
        "tape": {"type": "string"},
        "exchange": {"type": ["integer", "null"]},
        "began": {"type": "string"},
        "method": {"type": "string"},
        "subject": {"type": "string", "description": "The tool, prompt or URI."},
        "backend": {"type": "string"},
        "outcome": {"type": "string"},
        "took_ms": {"type": "number"},
    })
}

/// Builds the schema of a call with additional members.
fn call(besides: Value) -> Value {
    let mut members = call_members();
    if let (Value::Object(members), Value::Object(besides)) = (&mut members, besides) {
        members.extend(besides);
    }
    json!({"type": "object", "properties": members, "required": ["tape", "exchange", "method", "outcome"]})
}

fn differences() -> Value {
    json!({
        "type": "object",
        "properties": {
            "same": {"type": "boolean"},
            "worst": {"type": ["string", "null"], "description": "`compatible`, `changed` or `breaking`."},
            "differences": list(json!({
                "type": "object",
                "properties": {
                    "pointer": {"type": "string"},
                    "kind": {"type": "string"},
                    "tier": {"type": "string"},
                    "first": {"type": "string"},
                    "second": {"type": "string"},
                },
            })),
            "more": {"type": "integer", "description": "How many more differences there are."},
            "masked": {"type": "integer", "description": "Places that were redacted, and so could not be compared."},
        },
    })
}

fn numbers() -> Value {
    let number = || json!({"type": "number"});
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "calls": {"type": "integer"},
            "errors": {"type": "integer"},
            "mean_ms": number(),
            "p50_ms": number(),
            "p95_ms": number(),
            "p99_ms": number(),
            "bytes_in": {"type": "integer"},
            "bytes_out": {"type": "integer"},
            "began": {"type": "string"},
        },
        "required": ["name", "calls", "errors"],
    })
}

fn input(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
}

fn output(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description, "maxLength": question::MAX_TEXT})
}

fn whole(description: &str, least: u64, most: u64) -> Value {
    json!({"type": "integer", "description": description, "minimum": least, "maximum": most})
}
