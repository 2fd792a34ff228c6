//! A workspace for Insomnia, export format 4.

use super::calls::{Call, Calls, ExportTarget, INITIALIZED, Opening, Step, origin};
use super::quoting::without_templates;
use super::{ExportError, Source};
use serde_json::{Value, json};
use std::io::Write;

const WORKSPACE: &str = "wrk_signalbox";

/// Writes the workspace. Session ids come from the answer to the request that opened the session.
///
/// # Errors
/// Returns the error of the source or of the writer.
pub fn write(source: Source<'_>, target: &ExportTarget, mut to: impl Write) -> Result<(), ExportError> {
    let (name, about) = (format!("signalbox tape {}", source.info.id), origin(source.info));
    let workspace =
        json!({"_id": WORKSPACE, "_type": "workspace", "parentId": null, "name": name, "description": about});
    let environment = json!({
        "_id": "env_signalbox", "_type": "environment", "parentId": WORKSPACE, "name": "Base Environment",
        "data": {"url": target.url},
    });
    writeln!(to, "{{\"_type\":\"export\",\"__export_format\":4,\"__export_source\":\"signalbox\",\"resources\":[")?;
    write!(to, "{workspace},\n{environment}")?;
    let mut place = 0;
    for step in Calls::new(source) {
        let requests = match step? {
            Step::Open(opening) => open(&opening),
            Step::Call(call) => vec![call_request(&call)],
            Step::Left { .. } => vec![],
        };
        for mut request in requests {
            place += 1;
            request["metaSortKey"] = json!(place);
            to.write_all(b",\n")?;
            serde_json::to_writer(&mut to, &request)?;
        }
    }
    to.write_all(b"\n]}\n")?;
    Ok(to.flush()?)
}

fn opener(session: u64) -> String {
    format!("req_open_{session}")
}

fn open(opening: &Opening) -> Vec<Value> {
    let (session, revision) = (opening.session, opening.revision.as_str());
    let headers = vec![("MCP-Protocol-Version", revision.to_owned())];
    let opened = format!("session {session} is open");
    vec![
        request(&opener(session), &format!("open session {session}"), &opening.body(), vec![], None),
        request(&format!("req_opened_{session}"), &opened, INITIALIZED, headers, Some(session)),
    ]
}

fn call_request(call: &Call) -> Value {
    request(&format!("req_call_{}", call.number), &call.title, &call.body, call.headers(), call.session)
}

fn request(id: &str, name: &str, body: &str, extra: Vec<(&str, String)>, session: Option<u64>) -> Value {
    let mut headers = vec![
        json!({"name": "Content-Type", "value": "application/json"}),
        json!({"name": "Accept", "value": "application/json, text/event-stream"}),
    ];
    headers.extend(extra.into_iter().map(|(name, value)| json!({"name": name, "value": value})));
    if let Some(session) = session {
        let value = format!("{{% response 'header', '{}', 'mcp-session-id', 'no-history', 60 %}}", opener(session));
        headers.push(json!({"name": "Mcp-Session-Id", "value": value}));
    }
    json!({
        "_id": id,
        "_type": "request",
        "parentId": WORKSPACE,
        "name": name,
        "method": "POST",
        "url": "{{ _.url }}",
        "headers": headers,
        "body": {"mimeType": "application/json", "text": without_templates(body)},
    })
}
