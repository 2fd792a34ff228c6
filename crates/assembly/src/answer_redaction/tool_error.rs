//! Reduces the errors of tools to the detail that their caller is trusted with (G-24).
//! [`signalbox_engine::Fault::told`] does the same for the gateway's own errors.
//!
//! An error is a result with `isError`, a JSON-RPC error, or a failed task. A caller of little trust gets one built
//! anew from the members that the protocol needs, so that nothing else of it passes. For verified callers, paths and
//! addresses are taken out of every string of the message.

use bytes::Bytes;
use signalbox_engine::fault::without_places;
use signalbox_engine::standing::TrustLevel;
use signalbox_wire::{Edits, Envelope, Span, codes, json, meta};
use std::borrow::Cow;
use std::collections::HashSet;

const FAILED: &str = "The tool failed";

/// Part of a message, by what the protocol has there.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Part {
    Message,
    /// Result of a call that became a task.
    NewTask,
    CallResult,
    Error,
    /// `data` of an error that asks the client to open addresses.
    Addresses,
    Task,
    Meta,
    RelatedTask,
    ServerInfo,
    /// A value that the protocol does not describe.
    Value,
}

/// Role of a member in an error.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Role {
    /// The protocol does not work without its value.
    Needed,
    /// Text that people or models read.
    Text,
    Content,
    Within(Part),
    Other,
}

impl Part {
    fn role(self, name: &str, value: &[u8], siblings: &[u8]) -> Role {
        match (self, name) {
            (Self::Message, "jsonrpc" | "id" | "method")
            | (Self::NewTask | Self::CallResult, "resultType")
            | (Self::CallResult, "isError")
            | (Self::Error, "code")
            | (Self::Addresses, "elicitations")
            | (Self::Task, "taskId" | "status" | "createdAt" | "lastUpdatedAt" | "resultType")
            | (Self::Task, "ttl" | "ttlMs" | "pollInterval" | "pollIntervalMs")
            | (Self::RelatedTask, "taskId")
            | (Self::ServerInfo, "name" | "version")
            | (Self::Meta, meta::SUBSCRIPTION_ID) => Role::Needed,
            (Self::Error, "message") | (Self::Task, "statusMessage") => Role::Text,
            (Self::CallResult, "content") => Role::Content,
            (Self::Message, "result" | "params") => Role::Within(Self::of_body(value)),
            (Self::Message | Self::Task, "error") => Role::Within(Self::Error),
            (Self::NewTask, "task") => Role::Within(Self::Task),
            (Self::Task, "result") if is_true(value, "isError") => Role::Within(Self::CallResult),
            (Self::Task, "result") => Role::Needed,
            (Self::NewTask | Self::CallResult | Self::Task, meta::META) => Role::Within(Self::Meta),
            (Self::Meta, meta::RELATED_TASK) => Role::Within(Self::RelatedTask),
            (Self::Meta, meta::SERVER_INFO) => Role::Within(Self::ServerInfo),
            (Self::Error, "data") if asks_for_addresses(siblings) => Role::Within(Self::Addresses),
            _ => Role::Other,
        }
    }

    /// Returns what a result or the params of a notification are.
    fn of_body(body: &[u8]) -> Self {
        if is_true(body, "isError") {
            Self::CallResult
        } else if is_task(body) {
            Self::Task
        } else {
            Self::NewTask
        }
    }
}

/// Returns the answer or notification with the detail for this trust level, or `None` if it is no error or needs no
/// change.
pub(super) fn told(message: &Bytes, trust: TrustLevel) -> Option<Bytes> {
    if trust == TrustLevel::System {
        return None;
    }
    let envelope = Envelope::parse(message.clone()).ok()?;
    let mut edits = Edits::new();
    for (span, part) in errors(&envelope) {
        if trust == TrustLevel::Verified {
            remove_places(message, span, part, &mut edits);
            continue;
        }
        let reduced = reduced(span.of(message), part);
        if reduced != span.of(message) {
            edits.replace(span, reduced);
        }
    }
    (!edits.is_empty()).then(|| edits.apply(message))
}

/// Returns the parts of a message that are errors of tools: the whole message, or failed tasks in a list.
fn errors(message: &Envelope) -> Vec<(Span, Part)> {
    let bytes = message.bytes();
    let body = message.result_span().or_else(|| message.params_span());
    if message.error_span().is_some() || body.is_some_and(|body| has_failed(body.of(bytes))) {
        return vec![(message.object_span(), Part::Message)];
    }
    let Some((body, list)) = body.and_then(|body| Some((body, json::member(body.of(bytes), "tasks")?))) else {
        return Vec::new();
    };
    let list = list.shift(body.start);
    let tasks = json::elements(list.of(bytes)).map(|task| task.shift(list.start));
    tasks.filter(|task| has_failed(task.of(bytes))).map(|task| (task, Part::Task)).collect()
}

/// Returns true for the result of a call that failed, and for a failed task, also where a call became one.
fn has_failed(body: &[u8]) -> bool {
    let task = json::member(body, "task").map_or(body, |task| task.of(body));
    let member = |name: &str| json::member(task, name).map(|span| span.of(task));
    let is_failed_task = || {
        member("status").is_some_and(|status| json::key_eq(status, "failed"))
            || member("error").is_some()
            || member("result").is_some_and(|result| is_true(result, "isError"))
    };
    is_true(body, "isError") || (is_task(task) && is_failed_task())
}

fn is_task(object: &[u8]) -> bool {
    let is_string = |name: &str| json::member(object, name).is_some_and(|span| span.of(object).starts_with(b"\""));
    is_string("taskId") && is_string("status")
}

fn is_true(object: &[u8], name: &str) -> bool {
    json::member(object, name).is_some_and(|span| span.of(object) == b"true")
}

/// Returns true if an error asks the client to open addresses, which is no failure of the tool.
fn asks_for_addresses(error: &[u8]) -> bool {
    let code = json::member(error, "code").and_then(|span| std::str::from_utf8(span.of(error)).ok()?.parse().ok());
    code == Some(codes::URL_ELICITATION_REQUIRED)
}

/// Builds an object anew from the members that the protocol needs.
fn reduced(object: &[u8], part: Part) -> Vec<u8> {
    let content = format!(r#"[{{"type":"text","text":{}}}]"#, json::quote(FAILED));
    let mut out = vec![b'{'];
    if part == Part::CallResult && json::member(object, "content").is_none() {
        out.extend_from_slice(format!(r#""content":{content}"#).as_bytes());
    }
    for member in json::members(object) {
        let (key, value) = (member.key.of(object), member.value.of(object));
        let name = json::string(key).unwrap_or_default();
        let value: Cow<'_, [u8]> = match part.role(&name, value, object) {
            Role::Needed => value.into(),
            Role::Text => json::quote(FAILED).into_bytes().into(),
            Role::Content => content.as_bytes().into(),
            Role::Within(part) => match reduced(value, part) {
                // Nothing in it was of the protocol.
                empty if empty == b"{}" && matches!(part, Part::Meta | Part::Addresses) => continue,
                reduced => reduced.into(),
            },
            Role::Other => continue,
        };
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(key);
        out.push(b':');
        out.extend_from_slice(&value);
    }
    out.push(b'}');
    out
}

/// Takes paths and addresses out of the strings of an object or array, and out of the names of members that the
/// protocol does not describe.
fn remove_places(message: &Bytes, value: Span, part: Part, edits: &mut Edits) {
    let inside = value.of(message);
    match inside.first() {
        Some(b'"') => remove_from(message, value, edits),
        Some(b'[') => {
            for element in json::elements(inside) {
                remove_places(message, element.shift(value.start), part, edits);
            }
        }
        Some(b'{') => {
            rename(message, value, edits);
            for member in json::members(inside) {
                let name = json::string(member.key.of(inside)).unwrap_or_default();
                let own = member.value.of(inside);
                let part = match part.role(&name, own, inside) {
                    Role::Needed => continue,
                    _ if is_picture(&name, own) => continue,
                    Role::Within(part) => part,
                    Role::Text | Role::Content | Role::Other => Part::Value,
                };
                remove_places(message, member.value.shift(value.start), part, edits);
            }
        }
        _ => {}
    }
}

/// Takes paths and addresses out of a string.
fn remove_from(message: &Bytes, string: Span, edits: &mut Edits) {
    match json::string(string.of(message)).as_deref().map(without_places) {
        Some(Cow::Borrowed(_)) => {}
        Some(Cow::Owned(filtered)) => edits.replace(string, json::quote(&filtered)),
        None => edits.replace(string, json::quote("[path]")),
    }
}

/// Takes paths and addresses out of the names of an object's members. Names stay different from each other.
fn rename(message: &Bytes, object: Span, edits: &mut Edits) {
    let inside = object.of(message);
    let names =
        || json::members(inside).map(|member| (member.key, json::string(member.key.of(inside)).unwrap_or_default()));
    let has_place = |name: &str| matches!(without_places(name), Cow::Owned(_));
    if !names().any(|(_, name)| has_place(&name)) {
        return;
    }
    let mut used: HashSet<Cow<'_, str>> = names().map(|(_, name)| name).filter(|name| !has_place(name)).collect();
    let mut number = 1;
    for (key, name) in names().filter(|(_, name)| has_place(name)) {
        let filtered = without_places(&name).into_owned();
        let mut unique = filtered.clone();
        while used.contains(unique.as_str()) {
            number += 1;
            unique = format!("{filtered} {number}");
        }
        edits.replace(key.shift(object.start), json::quote(&unique));
        used.insert(unique.into());
    }
}

/// Returns true for a JPEG picture in Base64, which begins like a path.
fn is_picture(name: &str, value: &[u8]) -> bool {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let Some(text) = json::string(value).filter(|_| matches!(name, "data" | "blob")) else { return false };
    text.starts_with("/9j/") && text.len() % 4 == 0 && text.as_bytes().iter().all(is_base64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(message: &Value, trust: TrustLevel) -> Option<Value> {
        told(&message.to_string().into(), trust).map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    const LITTLE: [TrustLevel; 2] = [TrustLevel::Community, TrustLevel::Untrusted];

    /// Proves G-24.
    #[test]
    fn errors_of_tools_tell_as_much_as_the_caller_is_trusted() {
        let failed = json!({"jsonrpc": "2.0", "id": 1, "result": {
            "content": [{"type": "text", "text": "no file /srv/x here"}], "isError": true, "structuredContent": {"at": "/srv"}}});
        assert_eq!(of(&failed, TrustLevel::System), None);
        let filtered = of(&failed, TrustLevel::Verified).unwrap();
        assert_eq!(filtered["result"]["content"][0]["text"], "no file [path] here");
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "at http://10.0.0.1:99/x", "data": {"a": 1}}});
        assert_eq!(of(&error, TrustLevel::Verified).unwrap()["error"]["message"], "at [address]");
        for trust in LITTLE {
            let content = json!([{"type": "text", "text": "The tool failed"}]);
            assert_eq!(of(&failed, trust).unwrap()["result"], json!({"content": content, "isError": true}));
            assert_eq!(of(&error, trust).unwrap()["error"], json!({"code": -32000, "message": "The tool failed"}));
            let bare = json!({"jsonrpc": "2.0", "id": 1, "result": {"isError": true}});
            assert_eq!(of(&bare, trust).unwrap()["result"]["content"], content);
        }
        let good = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "/srv/x"}]}});
        assert_eq!(of(&good, TrustLevel::Untrusted), None);
    }

    /// A value with words, paths and addresses in strings and in names of members.
    fn telling() -> Value {
        json!({"word": "secret", "/srv/secret/a": {"/srv/secret/b": ["/srv/secret/c", "http://10.0.0.1/secret"]}, "/srv/secret/d": 1})
    }

    /// Every member of an error in which a tool may say something.
    fn failed_messages() -> Vec<Value> {
        let meta = || {
            let mut meta = telling();
            meta["signalbox/error"] =
                json!({"error_message": "/srv/secret", "details": {"requested_path": "/srv/secret"}});
            meta[meta::RELATED_TASK] = json!({"taskId": "t", "x": "/srv/secret"});
            meta[meta::SERVER_INFO] = json!({"name": "n", "version": "1", "title": "/srv/secret"});
            meta
        };
        let result = json!({"isError": true, "resultType": "complete", "structuredContent": telling(), "_meta": meta(),
            "other": telling(), "content": [{"type": "text", "text": "/srv/secret", "_meta": telling()},
                {"type": "resource_link", "uri": "file:///secret", "name": "/srv/secret"}]});
        let error = json!({"code": -32000, "message": "/srv/secret", "data": telling(), "other": telling()});
        let task = |status: &str| {
            json!({"taskId": "t", "status": status, "createdAt": "2026-07-28T14:03:00", "ttl": 60000,
                "statusMessage": "at /srv/secret", "_meta": meta(), "other": telling()})
        };
        let with = |mut task: Value, name: &str, value: &Value| {
            task[name] = value.clone();
            task
        };
        let mut all = vec![json!({"error": error})];
        for result in [
            result.clone(),
            task("failed"),
            json!({"task": task("failed"), "_meta": meta(), "other": telling()}),
            with(task("failed"), "error", &error),
            with(task("completed"), "result", &result),
            json!({"tasks": [task("failed"), with(task("completed"), "result", &result)], "nextCursor": "/c"}),
        ] {
            all.push(json!({ "result": result }));
        }
        let notice = |method: &str, task: Value| json!({"method": method, "params": task});
        all.push(notice("notifications/tasks/status", task("failed")));
        all.push(notice("notifications/tasks", with(task("failed"), "error", &error)));
        all.push(notice("notifications/tasks", with(task("completed"), "result", &result)));
        for message in &mut all {
            message["jsonrpc"] = json!("2.0");
            if message["method"].is_null() {
                message.as_object_mut().unwrap().remove("method");
                message["id"] = json!("/srv/id");
            }
        }
        let tasks = all[6].clone();
        all.iter_mut().for_each(|message| message["other"] = telling());
        // A list is no error, so only its failed tasks are reduced.
        all[6] = tasks;
        all
    }

    /// Proves G-24.
    #[test]
    fn nothing_in_any_position_of_an_error_tells_more_than_the_caller_is_trusted_with() {
        for message in failed_messages() {
            assert_eq!(of(&message, TrustLevel::System), None);
            for trust in LITTLE {
                let told = of(&message, trust).unwrap_or_else(|| panic!("{trust:?} {message}"));
                let text = told.to_string();
                assert!(!text.contains("secret") && !text.contains("10.0.0.1"), "{trust:?} {text}");
                assert_eq!(of(&told, trust), None, "once is enough: {text}");
            }
            let told = of(&message, TrustLevel::Verified).unwrap_or_else(|| panic!("{message}"));
            let text = told.to_string();
            assert!(!text.contains("/secret") && !text.contains("/srv/secret"), "{text}");
            assert_eq!(
                text.matches(r#""word":"secret""#).count(),
                message.to_string().matches(r#""word":"secret""#).count()
            );
        }
    }

    /// Proves G-24.
    #[test]
    fn what_the_protocol_needs_stays() {
        let picture = "/9j/4AAQSkZJRgAB";
        for message in failed_messages() {
            for trust in [TrustLevel::Verified, TrustLevel::Untrusted] {
                let told = of(&message, trust).unwrap();
                assert_eq!(told["id"], message["id"]);
                for place in [
                    "/result/taskId",
                    "/result/createdAt",
                    "/result/ttl",
                    "/result/status",
                    "/result/nextCursor",
                    "/result/task/taskId",
                    "/result/resultType",
                    "/result/isError",
                    "/error/code",
                    "/params/taskId",
                    "/result/tasks/1/taskId",
                    "/result/_meta/io.modelcontextprotocol~1related-task/taskId",
                    "/result/_meta/io.modelcontextprotocol~1serverInfo/name",
                    "/result/result/isError",
                ] {
                    assert_eq!(told.pointer(place), message.pointer(place), "{trust:?} {place} {message}");
                }
            }
        }
        let names = of(&failed_messages()[0], TrustLevel::Verified).unwrap()["error"]["data"].take();
        assert_eq!(names, json!({"word": "secret", "[path]": {"[path]": ["[path]", "[address]"]}, "[path] 2": 1}));
        let asks = json!({"elicitations": [{"mode": "url", "url": "https://x.example/a", "message": "m"}]});
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32042, "message": "/m", "data": asks}});
        let shown = json!({"jsonrpc": "2.0", "id": 1, "result": {"isError": true, "content": [
            {"type": "text", "text": "/m"}, {"type": "image", "mimeType": "image/jpeg", "data": picture}]}});
        for trust in [TrustLevel::Verified, TrustLevel::Untrusted] {
            assert_eq!(of(&error, trust).unwrap()["error"]["data"], asks, "{trust:?}");
        }
        assert_eq!(of(&shown, TrustLevel::Verified).unwrap()["result"]["content"][1]["data"], picture);
    }
}
