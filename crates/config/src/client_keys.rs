//! Translates the keys that clients use for settings of ours: those of Windsurf, Zed, Codex and Gemini CLI beside the
//! usual ones.

use super::error::Note;
use super::keys::FOREIGN_KEYS;
use super::raw::{Node, RawEntry, Value};

/// Translates the keys of a server entry. Calls `warn` for each key that is not taken over.
pub(super) fn own_keys(entries: &[RawEntry], mut warn: impl FnMut(&RawEntry, Note)) -> Vec<RawEntry> {
    let mut own = Vec::new();
    for entry in entries.iter().filter(|entry| entry.node.value != Value::Null) {
        match (entry.key.as_str(), &entry.node.value) {
            // The caller reads these, or they have no effect.
            ("type" | "enabled" | "source", _) => {}
            ("serverUrl" | "httpUrl", _) => own.push(renamed(entry, "url")),
            // Older versions of Zed have the program and its arguments in one table.
            ("command", Value::Table(inner)) => {
                own.extend(
                    inner.iter().map(|part| if part.key == "path" { renamed(part, "command") } else { part.clone() }),
                );
            }
            ("env_vars", _) => own.push(renamed(entry, "env_pass")),
            ("startup_timeout_sec", _) => own.push(renamed(entry, "start_timeout")),
            ("tool_timeout_sec", _) => own.push(renamed(entry, "timeout")),
            ("timeout", _) => warn(entry, Note::ClientTimeout),
            ("enabled_tools" | "includeTools", _) => insert(&mut own, "tools", renamed(entry, "include")),
            ("disabled_tools" | "excludeTools", _) => insert(&mut own, "tools", renamed(entry, "exclude")),
            ("headers" | "http_headers", Value::Table(headers)) => {
                headers.iter().for_each(|header| insert(&mut own, "headers", header.clone()));
            }
            ("env_http_headers", Value::Table(headers)) => {
                headers.iter().for_each(|header| insert(&mut own, "headers", of_variable(header, "")));
            }
            ("bearer_token_env_var", _) => {
                insert(&mut own, "headers", of_variable(&renamed(entry, "Authorization"), "Bearer "));
            }
            (key, _) if FOREIGN_KEYS.contains(&key) => own.push(entry.clone()),
            _ => warn(entry, Note::IgnoredKey),
        }
    }
    own
}

fn renamed(entry: &RawEntry, key: &str) -> RawEntry {
    RawEntry { key: key.to_owned(), ..entry.clone() }
}

/// Replaces the name of a variable by a reference to it, with `before` in front.
fn of_variable(entry: &RawEntry, before: &str) -> RawEntry {
    let value = match &entry.node.value {
        Value::Text(name) => Value::Text(format!("{before}${{{name}}}")),
        other => other.clone(),
    };
    RawEntry { node: Node { value, at: entry.node.at }, ..entry.clone() }
}

/// Puts an entry into one of our tables, which is created if missing.
fn insert(own: &mut Vec<RawEntry>, table: &str, entry: RawEntry) {
    if let Some(Value::Table(inner)) = own.iter_mut().find(|one| one.key == table).map(|one| &mut one.node.value) {
        inner.push(entry);
        return;
    }
    let (key_at, at) = (entry.key_at, entry.node.at);
    own.push(RawEntry { key: table.to_owned(), key_at, node: Node { value: Value::Table(vec![entry]), at } });
}
