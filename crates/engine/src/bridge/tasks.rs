//! Translation of tasks between the core of 2025-11-25 and the extension `io.modelcontextprotocol/tasks` of 2026-07-28.
//!
//! Fields that neither form names stay in place. The new form has the result, error and questions inside the task; the
//! old one returns them by `tasks/result`, so the caller fetches them and passes them as a [`Payload`].

use super::object::{Object, declared, is_object, says};
use super::task_state::{inline_result, milliseconds, task_of};
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Span, json, meta};

pub use super::task_state::{Payload, TaskState, TaskStatus, is_terminal};

/// Result of `tasks/update` and `tasks/cancel` of 2026-07-28.
pub const ACKNOWLEDGED: &[u8] = br#"{"resultType":"complete"}"#;

/// Fields by their old and their new name.
const NAMES: [(&str, &str); 2] = [("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs")];

/// Translates the result of a call that became a task of an old server, for a client of 2026-07-28. `None` if it is not
/// a task.
#[must_use]
pub fn create_to_modern(result: &[u8]) -> Option<Bytes> {
    TaskState::read(result)?;
    let base = Bytes::copy_from_slice(task_of(result));
    let mut edits = Edits::new();
    let whole = rename_fields(&base, Era::New, &mut edits);
    edits.set_member(&base, whole, "resultType", b"\"task\"");
    if let Some(own) = json::member(result, meta::META).filter(|_| json::member(&base, meta::META).is_none()) {
        edits.set_member(&base, whole, meta::META, own.of(result));
    }
    Some(edits.apply(&base))
}

/// Translates the result of a call that became a task of a server of 2026-07-28, for a client of 2025-11-25. `None` if
/// it is not a task.
#[must_use]
pub fn create_to_legacy(result: &[u8]) -> Option<Bytes> {
    TaskState::read(result).filter(|_| says(result, "resultType", "task"))?;
    let base = Bytes::copy_from_slice(result);
    let mut edits = Edits::new();
    let whole = rename_fields(&base, Era::Old, &mut edits);
    edits.remove_member(&base, whole, meta::META);
    let task = edits.apply(&base);
    let own = json::member(result, meta::META).map(|span| span.of(result));
    Some(Object::new().raw("task", task).maybe(meta::META, own).finish().into())
}

/// Translates the result of an old server's `tasks/get`, with the payload that the caller got by `tasks/result`, for a
/// client of 2026-07-28. `None` if it is not a task.
#[must_use]
pub fn get_to_modern(result: &[u8], payload: Payload<'_>) -> Option<Bytes> {
    with_payload(result, payload, true)
}

/// Translates the params of an old server's `notifications/tasks/status`, with the payload that the caller got by
/// `tasks/result`, to those of `notifications/tasks`. The caller adds the id of the subscription. `None` if it is not a
/// task.
#[must_use]
pub fn notice_to_modern(params: &[u8], payload: Payload<'_>) -> Option<Bytes> {
    with_payload(params, payload, false)
}

/// Translates the result of `tasks/get` of 2026-07-28 for a client of 2025-11-25, where it also answers `tasks/cancel`.
/// `None` if it is not a task.
#[must_use]
pub fn get_to_legacy(result: &[u8]) -> Option<Bytes> {
    let state = TaskState::read(result)?;
    let base = Bytes::copy_from_slice(result);
    let mut edits = Edits::new();
    let whole = rename_fields(&base, Era::Old, &mut edits);
    // In the old form a call has failed if its result says that the tool failed.
    let failed = state.status == TaskStatus::Completed
        && json::path(result, &["result", "isError"]).is_some_and(|span| span.of(result) == b"true");
    if failed {
        edits.set_member(&base, whole, "status", b"\"failed\"");
    }
    if let Some(own) = json::member(&base, meta::META) {
        edits.remove_member(&base, own, meta::SERVER_INFO);
        edits.remove_member(&base, own, meta::SUBSCRIPTION_ID);
    }
    Some(edits.apply(&base))
}

/// Translates the params of `notifications/tasks` to those of `notifications/tasks/status`. `None` if it is not a task.
#[must_use]
pub fn notice_to_legacy(params: &[u8]) -> Option<Bytes> {
    get_to_legacy(params)
}

/// Adds the reference to its task to a result, as 2025-11-25 requires for `tasks/result`.
#[must_use]
pub fn with_related_task(result: &[u8], task: &str) -> Bytes {
    let base = Bytes::copy_from_slice(result);
    let whole = Span::new(0, base.len());
    let related = Object::new().string("taskId", task).finish();
    let mut edits = Edits::new();
    match json::member(&base, meta::META).filter(|own| is_object(own.of(&base))) {
        Some(own) => edits.set_member(&base, own, meta::RELATED_TASK, &related),
        None => {
            let own = Object::new().raw(meta::RELATED_TASK, related).finish();
            edits.set_member(&base, whole, meta::META, &own);
        }
    }
    edits.apply(&base)
}

/// Request of a client to run its call as a task.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TaskWish {
    /// Time the task is to be stored, in milliseconds.
    pub ttl: Option<u64>,
}

/// Reads the task request of a client of 2025-11-25 in the params of its call.
#[must_use]
pub fn wish(params: &[u8]) -> Option<TaskWish> {
    let task = json::member(params, "task")?.of(params);
    is_object(task).then(|| TaskWish { ttl: milliseconds(task, "ttl") })
}

/// Asks an old server to run a call as a task.
pub fn add_wish(message: &Envelope, wish: TaskWish, edits: &mut Edits) {
    let Some(params) = message.params_span() else { return };
    let task = Object::new().maybe("ttl", wish.ttl.map(|ttl| ttl.to_string())).finish();
    edits.set_member(message.bytes(), params, "task", &task);
}

/// Removes a client's task request: a server of 2026-07-28 decides for itself.
pub fn remove_wish(message: &Envelope, edits: &mut Edits) {
    let Some(params) = message.params_span() else { return };
    if json::member(params.of(message.bytes()), "task").is_some() {
        edits.remove_member(message.bytes(), params, "task");
    }
}

/// Task support of a tool of 2025-11-25.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TaskSupport {
    /// The tool never runs as a task.
    Forbidden,
    /// The tool runs as a task on request.
    Optional,
    /// The tool runs only as a task.
    Required,
}

/// Reads the task support of an entry of `tools/list` of 2025-11-25.
#[must_use]
pub fn support(tool: &[u8]) -> TaskSupport {
    let execution = json::member(tool, "execution").map_or(&b""[..], |span| span.of(tool));
    match json::member(execution, "taskSupport").map(|span| span.of(execution)) {
        Some(word) if json::key_eq(word, "optional") => TaskSupport::Optional,
        Some(word) if json::key_eq(word, "required") => TaskSupport::Required,
        _ => TaskSupport::Forbidden,
    }
}

/// Returns true if a server of 2025-11-25 with these capabilities runs tool calls as tasks.
#[must_use]
pub fn offered(capabilities: &[u8]) -> bool {
    let below = |object, key| declared(object, key);
    below(capabilities, "tasks")
        .and_then(|tasks| below(tasks, "requests"))
        .and_then(|requests| below(requests, "tools"))
        .is_some_and(|tools| below(tools, "call").is_some())
}

/// Era whose form a task gets.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Era {
    Old,
    New,
}

/// Renames the fields of a flat task for the other form, and removes those that only 2026-07-28 has.
fn rename_fields(base: &[u8], to: Era, edits: &mut Edits) -> Span {
    let whole = Span::new(0, base.len());
    for (old, new) in NAMES {
        let (from, into) = if to == Era::New { (old, new) } else { (new, old) };
        let key = json::members(base).find(|member| json::key_eq(member.key.of(base), from)).map(|member| member.key);
        match (key, json::member(base, into)) {
            (Some(key), None) => edits.replace(key, json::quote(into)),
            (Some(_), Some(_)) => edits.remove_member(base, whole, from),
            // The storage time must be stated in both forms, even if it is unlimited.
            (None, None) if old == "ttl" => edits.set_member(base, whole, into, b"null"),
            (None, _) => {}
        }
    }
    if to == Era::Old {
        for key in ["resultType", "result", "error", "inputRequests"] {
            edits.remove_member(base, whole, key);
        }
    }
    whole
}

fn with_payload(task: &[u8], payload: Payload<'_>, is_result: bool) -> Option<Bytes> {
    let state = TaskState::read(task)?;
    let base = Bytes::copy_from_slice(task_of(task));
    let mut edits = Edits::new();
    let whole = rename_fields(&base, Era::New, &mut edits);
    let status = payload.status(state.status);
    if status != state.status {
        edits.set_member(&base, whole, "status", json::quote(status.as_str()).as_bytes());
    }
    if is_result {
        edits.set_member(&base, whole, "resultType", b"\"complete\"");
    }
    match payload.member() {
        Some(("result", value)) => edits.set_member(&base, whole, "result", &inline_result(value)),
        Some((key, value)) => edits.set_member(&base, whole, key, value),
        None => {}
    }
    Some(edits.apply(&base))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Option<Bytes>) -> String {
        String::from_utf8(bytes.unwrap().to_vec()).unwrap()
    }

    #[test]
    fn a_call_that_became_a_task_is_told_in_the_other_shape() {
        let old = r#"{"task":{"taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"u","ttl":60000,"pollInterval":5000,"x":1},"_meta":{"a/b":1}}"#;
        let new = r#"{"taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"u","ttlMs":60000,"pollIntervalMs":5000,"x":1,"resultType":"task","_meta":{"a/b":1}}"#;
        assert_eq!(text(create_to_modern(old.as_bytes())), new);
        assert_eq!(text(create_to_legacy(new.as_bytes())), old);
        let endless = r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"u"}"#;
        assert_eq!(
            text(create_to_legacy(endless.as_bytes())),
            r#"{"task":{"taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"u","ttl":null}}"#
        );
    }

    #[test]
    fn plain_results_are_no_tasks() {
        assert_eq!(create_to_modern(br#"{"content":[]}"#), None);
        assert_eq!(
            create_to_legacy(br#"{"resultType":"complete","taskId":"t","status":"working","createdAt":"c"}"#),
            None
        );
        assert_eq!(get_to_modern(b"{}", Payload::Nothing), None);
        assert_eq!(get_to_legacy(b"[]"), None);
    }

    const OLD: &str = r#"{"taskId":"t","status":"STATUS","createdAt":"c","lastUpdatedAt":"u","ttl":null}"#;

    fn got(status: &str, payload: Payload<'_>) -> String {
        text(get_to_modern(OLD.replace("STATUS", status).as_bytes(), payload))
    }

    #[test]
    fn a_new_client_finds_everything_in_the_task() {
        let head = r#"{"taskId":"t","status":"STATUS","createdAt":"c","lastUpdatedAt":"u","ttlMs":null,"resultType":"complete""#;
        let expected = |status: &str, rest: &str| format!("{}{rest}}}", head.replace("STATUS", status));
        assert_eq!(got("working", Payload::Nothing), expected("working", ""));
        assert_eq!(got("cancelled", Payload::Nothing), expected("cancelled", ""));
        let result = br#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#;
        assert_eq!(
            got("completed", Payload::Result(result)),
            expected("completed", r#","result":{"content":[],"resultType":"complete"}"#)
        );
        assert_eq!(
            got("failed", Payload::Error(br#"{"code":1,"message":"m"}"#)),
            expected("failed", r#","error":{"code":1,"message":"m"}"#)
        );
        assert_eq!(
            got("input_required", Payload::Questions(br#"{"7":{"method":"roots/list"}}"#)),
            expected("input_required", r#","inputRequests":{"7":{"method":"roots/list"}}"#)
        );
        assert_eq!(got("input_required", Payload::Nothing), expected("working", ""));
    }

    #[test]
    fn a_tool_that_failed_is_a_completed_call_in_the_new_era() {
        let failed = got("failed", Payload::Result(br#"{"content":[],"isError":true}"#));
        assert!(failed.contains(r#""status":"completed""#), "{failed}");
        assert_eq!(text(get_to_legacy(failed.as_bytes())), OLD.replace("STATUS", "failed"));
        let worked = got("completed", Payload::Result(br#"{"content":[],"isError":false}"#));
        assert_eq!(text(get_to_legacy(worked.as_bytes())), OLD.replace("STATUS", "completed"));
    }

    #[test]
    fn notices_of_change_are_told_in_the_other_shape() {
        let new = text(notice_to_modern(OLD.replace("STATUS", "working").as_bytes(), Payload::Nothing));
        assert_eq!(new, r#"{"taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"u","ttlMs":null}"#);
        let tagged = new.replacen('{', r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":1,"a/b":2},"#, 1);
        assert_eq!(
            text(notice_to_legacy(tagged.as_bytes())),
            OLD.replace("STATUS", "working").replacen('{', r#"{"_meta":{"a/b":2},"#, 1)
        );
    }

    #[test]
    fn the_result_of_a_task_names_it() {
        let related = r#""io.modelcontextprotocol/related-task":{"taskId":"t\"1"}"#;
        assert_eq!(with_related_task(b"{}", "t\"1"), format!(r#"{{"_meta":{{{related}}}}}"#));
        assert_eq!(
            with_related_task(br#"{"_meta":{"a":1},"content":[]}"#, "t\"1"),
            format!(r#"{{"_meta":{{"a":1,{related}}},"content":[]}}"#)
        );
    }

    #[test]
    fn wishes_are_read_added_and_taken_away() {
        let call = |params: &str| {
            Envelope::parse(Bytes::from(format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#
            )))
            .unwrap()
        };
        let params = |message: &Envelope, edits: &Edits| {
            let out = Envelope::parse(edits.apply(message.bytes())).unwrap();
            String::from_utf8(out.params().unwrap().to_vec()).unwrap()
        };
        let wanted = call(r#"{"name":"t","task":{"ttl":5}}"#);
        assert_eq!(wish(wanted.params().unwrap()), Some(TaskWish { ttl: Some(5) }));
        let mut edits = Edits::new();
        remove_wish(&wanted, &mut edits);
        assert_eq!(params(&wanted, &edits), r#"{"name":"t"}"#);

        let plain = call(r#"{"name":"t"}"#);
        assert_eq!(wish(plain.params().unwrap()), None);
        let mut edits = Edits::new();
        remove_wish(&plain, &mut edits);
        assert!(edits.is_empty());
        add_wish(&plain, TaskWish { ttl: None }, &mut edits);
        assert_eq!(params(&plain, &edits), r#"{"name":"t","task":{}}"#);
    }

    #[test]
    fn servers_and_tools_say_whether_they_run_tasks() {
        assert!(offered(br#"{"tasks":{"requests":{"tools":{"call":{}}}}}"#));
        for json in [r#"{}"#, r#"{"tasks":{}}"#, r#"{"tasks":{"requests":{"tools":{}}}}"#] {
            assert!(!offered(json.as_bytes()), "{json}");
        }
        let of = |word: &str| support(format!(r#"{{"name":"t","execution":{{"taskSupport":"{word}"}}}}"#).as_bytes());
        assert_eq!(
            [of("required"), of("optional"), of("forbidden"), support(b"{}")],
            [TaskSupport::Required, TaskSupport::Optional, TaskSupport::Forbidden, TaskSupport::Forbidden]
        );
    }
}
