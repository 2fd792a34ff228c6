//! Short descriptions of messages, callers and refusals for people.

use signalbox_engine::record::{MessageEntry, RefusedEntry, SessionInfo};

/// Returns the unusual properties of a message; most messages have none.
#[must_use]
pub fn of(message: &MessageEntry) -> Vec<String> {
    let mut marks = Vec::new();
    if message.own {
        marks.push("the gateway's own".to_owned());
    }
    if message.number > 0 {
        marks.push(format!("message {}", message.number));
    }
    if let Some(first) = message.again {
        marks.push(format!("sent again (message {first})"));
    }
    if let Some(why) = &message.lost {
        marks.push(format!("not delivered: {why}"));
    }
    if message.redacted {
        marks.push("redacted".to_owned());
    }
    let Some(carried) = &message.carried else { return marks };
    if let Some(id) = &carried.event_id {
        marks.push(format!("event {id}"));
    }
    if let Some(http) = &carried.http {
        if let Some(method) = &http.method {
            marks.push(format!("by {method} {}", http.url.as_deref().unwrap_or_default()));
        }
        if let Some(status) = http.status {
            marks.push(format!("status {status}"));
        }
    }
    marks
}

/// Describes a caller, as far as a tape knows it.
#[must_use]
pub fn caller(info: &SessionInfo) -> String {
    let client = info.client.as_deref().unwrap_or("unnamed client");
    let version = info.client_version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let revision = info.revision.as_deref().unwrap_or("no revision");
    let mut text = format!("{client}{version}, {revision}, over {}", info.transport);
    if let Some(address) = &info.address {
        text.push_str(&format!(" from {address}"));
    }
    if let Some(proof) = info.proof.as_deref().filter(|proof| *proof != "none") {
        text.push_str(&format!(", proved by {proof}"));
    }
    for (name, value) in &info.claims {
        text.push_str(&format!(", {name} {value}"));
    }
    text
}

/// Describes a refusal for people.
#[must_use]
pub fn refused(refused: &RefusedEntry) -> String {
    let status = refused.status.map(|status| format!(" with status {status}")).unwrap_or_default();
    let detail = if refused.detail.is_empty() { String::new() } else { format!(": {}", refused.detail) };
    format!("refused{status}, {}{detail}", refused.reason)
}
