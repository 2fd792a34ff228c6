//! A collection for Postman, version 2.1.

use super::calls::{Call, Calls, ExportTarget, INITIALIZED, Opening, Step, origin};
use super::quoting::without_templates;
use super::{ExportError, Source};
use serde_json::{Value, json};
use std::io::Write;

const SCHEMA: &str = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";

/// Writes the collection: the requests in order, to be run one after the other. Session ids are passed in variables.
///
/// # Errors
/// Returns the error of the source or of the writer.
pub fn write(source: Source<'_>, target: &ExportTarget, mut to: impl Write) -> Result<(), ExportError> {
    let about = origin(source.info);
    let info = json!({"name": format!("signalbox tape {}", source.info.id), "description": about, "schema": SCHEMA});
    write!(to, "{{\"info\":{info},\"item\":[")?;
    let (mut first, mut sessions) = (true, Vec::new());
    for step in Calls::new(source) {
        let items = match step? {
            Step::Open(opening) => {
                sessions.push(json!({"key": variable(opening.session), "value": ""}));
                open(&opening)
            }
            Step::Call(call) => vec![call_item(&call)],
            Step::Left { .. } => vec![],
        };
        for item in items {
            to.write_all(if first { b"\n" } else { b",\n" })?;
            first = false;
            serde_json::to_writer(&mut to, &item)?;
        }
    }
    sessions.insert(0, json!({"key": "url", "value": target.url}));
    writeln!(to, "\n],\"variable\":{}}}", Value::from(sessions))?;
    Ok(to.flush()?)
}

fn variable(session: u64) -> String {
    format!("session_{session}")
}

fn open(opening: &Opening) -> Vec<Value> {
    let (session, revision) = (opening.session, opening.revision.as_str());
    let keep = format!(
        "pm.collectionVariables.set(\"{}\", pm.response.headers.get(\"Mcp-Session-Id\") || \"\");",
        variable(session)
    );
    let mut first = item(&format!("open session {session}"), &opening.body(), vec![], None);
    first["event"] = json!([{"listen": "test", "script": {"type": "text/javascript", "exec": [keep]}}]);
    let headers = vec![("MCP-Protocol-Version", revision.to_owned())];
    vec![first, item(&format!("session {session} is open"), INITIALIZED, headers, Some(session))]
}

fn call_item(call: &Call) -> Value {
    item(&call.title, &call.body, call.headers(), call.session)
}

fn item(name: &str, body: &str, extra: Vec<(&str, String)>, session: Option<u64>) -> Value {
    let mut headers = vec![
        json!({"key": "Content-Type", "value": "application/json"}),
        json!({"key": "Accept", "value": "application/json, text/event-stream"}),
    ];
    headers.extend(extra.into_iter().map(|(name, value)| json!({"key": name, "value": value})));
    if let Some(session) = session {
        headers.push(json!({"key": "Mcp-Session-Id", "value": format!("{{{{{}}}}}", variable(session))}));
    }
    json!({
        "name": name,
        "request": {
            "method": "POST",
            "header": headers,
            "url": "{{url}}",
            "body": {"mode": "raw", "raw": without_templates(body), "options": {"raw": {"language": "json"}}},
        },
        "response": [],
    })
}
