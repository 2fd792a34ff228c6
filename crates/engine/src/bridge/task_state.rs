//! State of a task, read and written in both forms: the core one of 2025-11-25, and the extension
//! `io.modelcontextprotocol/tasks` of 2026-07-28.

use super::object::{Object, is_object, string_of};
use bytes::Bytes;
use signalbox_wire::{Edits, Span, json, meta};

/// Status of a task. Both forms use the same words.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum TaskStatus {
    /// The task is running.
    Working,
    /// The task waits for answers of the client.
    InputRequired,
    /// The task has a result.
    Completed,
    /// The task has an error. In the old form this includes a tool's result with `isError`.
    Failed,
    /// The task was cancelled.
    Cancelled,
}

impl TaskStatus {
    const ALL: [Self; 5] = [Self::Working, Self::InputRequired, Self::Completed, Self::Failed, Self::Cancelled];

    /// Parses a status by its name on the wire.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Returns true if a task with this status never changes again.
#[must_use]
pub const fn is_terminal(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
}

/// Description of a task in either form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskState {
    /// Id given by the server.
    pub id: String,
    /// Current status of the task.
    pub status: TaskStatus,
    /// Poll interval, in milliseconds.
    pub poll: Option<u64>,
    /// Time the task is stored after its creation, in milliseconds; `None` means forever.
    pub ttl: Option<u64>,
    /// Status message for people.
    pub message: Option<String>,
    /// Time of creation, as the JSON string the server wrote.
    pub created: Bytes,
    /// Time of the last change, as the JSON string the server wrote.
    pub updated: Bytes,
}

impl TaskState {
    /// Reads a task in either form: from the result of a call that became one, from the result of `tasks/get` or
    /// `tasks/cancel`, from an entry of `tasks/list` or from the params of a notification. `None` if there is no task,
    /// or if it lacks its id, a known status or its time of creation.
    #[must_use]
    pub fn read(json: &[u8]) -> Option<Self> {
        let task = task_of(json);
        let status = TaskStatus::parse(&string_of(task, "status")?)?;
        let raw_string = |key: &str| {
            let token = json::member(task, key)?.of(task);
            json::string(token).map(|_| Bytes::copy_from_slice(token))
        };
        let created = raw_string("createdAt")?;
        Some(Self {
            id: string_of(task, "taskId")?.into_owned(),
            status,
            poll: milliseconds(task, "pollIntervalMs").or_else(|| milliseconds(task, "pollInterval")),
            ttl: milliseconds(task, "ttlMs").or_else(|| milliseconds(task, "ttl")),
            message: string_of(task, "statusMessage").map(|text| text.into_owned()),
            updated: raw_string("lastUpdatedAt").unwrap_or_else(|| created.clone()),
            created,
        })
    }

    /// Writes the flat task of 2025-11-25: the result of `tasks/get` and `tasks/cancel`, an entry of `tasks/list`, the
    /// params of `notifications/tasks/status`.
    #[must_use]
    pub fn legacy(&self) -> Bytes {
        self.members(Object::new(), self.status, ["ttl", "pollInterval"]).finish().into()
    }

    /// Writes the result of a call that became a task, for 2025-11-25.
    #[must_use]
    pub fn created_legacy(&self) -> Bytes {
        Object::new().raw("task", self.legacy()).finish().into()
    }

    /// Writes the result of a call that became a task, for 2026-07-28.
    #[must_use]
    pub fn created_modern(&self) -> Bytes {
        self.members(Object::new().string("resultType", "task"), self.status, MODERN_NAMES).finish().into()
    }

    /// Writes the result of `tasks/get` for 2026-07-28. The status follows from the payload, see [`Payload::status`].
    #[must_use]
    pub fn modern(&self, payload: Payload<'_>) -> Bytes {
        self.with_payload(Object::new().string("resultType", "complete"), payload)
    }

    /// Writes the params of `notifications/tasks` for 2026-07-28. The caller adds the id of the subscription.
    #[must_use]
    pub fn notice_modern(&self, payload: Payload<'_>) -> Bytes {
        self.with_payload(Object::new(), payload)
    }

    fn with_payload(&self, object: Object, payload: Payload<'_>) -> Bytes {
        let object = self.members(object, payload.status(self.status), MODERN_NAMES);
        match payload.member() {
            Some(("result", value)) => object.raw("result", inline_result(value)).finish().into(),
            Some((key, value)) => object.raw(key, value).finish().into(),
            None => object.finish().into(),
        }
    }

    fn members(&self, object: Object, status: TaskStatus, [ttl, poll]: [&str; 2]) -> Object {
        object
            .string("taskId", &self.id)
            .string("status", status.as_str())
            .maybe("statusMessage", self.message.as_deref().map(json::quote))
            .raw("createdAt", &self.created)
            .raw("lastUpdatedAt", &self.updated)
            .raw(ttl, self.ttl.map_or_else(|| String::from("null"), |ttl| ttl.to_string()))
            .maybe(poll, self.poll.map(|poll| poll.to_string()))
    }
}

const MODERN_NAMES: [&str; 2] = ["ttlMs", "pollIntervalMs"];

/// Payload inside a task of 2026-07-28. The old form returns it by `tasks/result` instead.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Payload<'a> {
    /// No payload, or none known yet.
    Nothing,
    /// The result of the call, raw.
    Result(&'a [u8]),
    /// The JSON-RPC error object of the call, raw.
    Error(&'a [u8]),
    /// The open questions: the raw `inputRequests` object.
    Questions(&'a [u8]),
}

impl<'a> Payload<'a> {
    /// Reads the payload of a `tasks/get` result or of the params of `notifications/tasks`.
    #[must_use]
    pub fn read(json: &'a [u8]) -> Self {
        let object = |key: &str| json::member(json, key).map(|span| span.of(json)).filter(|value| is_object(value));
        match string_of(json, "status").and_then(|status| TaskStatus::parse(&status)) {
            Some(TaskStatus::Completed) => object("result").map_or(Self::Nothing, Self::Result),
            Some(TaskStatus::Failed) => object("error").map_or(Self::Nothing, Self::Error),
            Some(TaskStatus::InputRequired) => object("inputRequests").map_or(Self::Nothing, Self::Questions),
            _ => Self::Nothing,
        }
    }

    /// Returns the status of a task of 2026-07-28 with this payload. A status that promises a payload is shown only
    /// with the payload; until then the client keeps polling.
    #[must_use]
    pub fn status(&self, told: TaskStatus) -> TaskStatus {
        match self {
            Self::Result(_) => TaskStatus::Completed,
            Self::Error(_) => TaskStatus::Failed,
            Self::Questions(_) => TaskStatus::InputRequired,
            Self::Nothing if told == TaskStatus::Cancelled => told,
            Self::Nothing => TaskStatus::Working,
        }
    }

    /// Returns the member that holds the payload.
    pub(crate) fn member(&self) -> Option<(&'static str, &'a [u8])> {
        match *self {
            Self::Nothing => None,
            Self::Result(value) => Some(("result", value)),
            Self::Error(value) => Some(("error", value)),
            Self::Questions(value) => Some(("inputRequests", value)),
        }
    }
}

/// Adapts the result of `tasks/result` for embedding in a task: complete, and without the reference to the task.
pub(crate) fn inline_result(result: &[u8]) -> Bytes {
    let base = Bytes::copy_from_slice(result);
    let whole = Span::new(0, base.len());
    let mut edits = Edits::new();
    if json::member(&base, "resultType").is_none() {
        edits.set_member(&base, whole, "resultType", b"\"complete\"");
    }
    if let Some(own) = json::member(&base, meta::META) {
        let bytes = own.of(&base);
        let mut keys = json::members(bytes).map(|member| json::key_eq(member.key.of(bytes), meta::RELATED_TASK));
        match (keys.next(), keys.next()) {
            (Some(true), None) => edits.remove_member(&base, whole, meta::META),
            _ => edits.remove_member(&base, own, meta::RELATED_TASK),
        }
    }
    edits.apply(&base)
}

/// Returns the object with the members of the task. The old result of a call that became a task nests it.
pub(crate) fn task_of(json: &[u8]) -> &[u8] {
    if json::member(json, "taskId").is_some() {
        return json;
    }
    json::member(json, "task").map_or(json, |span| span.of(json))
}

pub(crate) fn milliseconds(object: &[u8], key: &str) -> Option<u64> {
    let text = std::str::from_utf8(json::member(object, key)?.of(object)).ok()?;
    // `5000.0` and `5e3` are integers too. The cast saturates, which is long enough for any wait.
    text.parse().ok().or_else(|| text.parse::<f64>().ok().filter(|value| *value >= 0.0).map(|value| value as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = r#"{"taskId":"t \"1\"","status":"working","statusMessage":"half","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:01Z","ttl":60000,"pollInterval":5000}"#;

    fn state() -> TaskState {
        TaskState::read(OLD.as_bytes()).unwrap()
    }

    #[test]
    fn a_task_is_read_from_either_shape_and_written_in_either() {
        let read = state();
        assert_eq!((read.id.as_str(), read.status), ("t \"1\"", TaskStatus::Working));
        assert_eq!((read.poll, read.ttl, read.message.as_deref()), (Some(5000), Some(60000), Some("half")));
        assert_eq!(read.legacy(), OLD);
        for shape in [read.created_legacy(), read.created_modern(), read.modern(Payload::Nothing)] {
            assert_eq!(TaskState::read(&shape).unwrap(), read, "{shape:?}");
        }
        assert_eq!(
            read.created_modern(),
            r#"{"resultType":"task","taskId":"t \"1\"","status":"working","statusMessage":"half","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:01Z","ttlMs":60000,"pollIntervalMs":5000}"#
        );
    }

    #[test]
    fn a_task_without_end_says_so() {
        let read = TaskState::read(br#"{"task":{"taskId":"t","status":"failed","createdAt":"c","ttl":null}}"#).unwrap();
        assert_eq!((read.ttl, read.poll, &read.updated), (None, None, &read.created));
        assert_eq!(read.legacy(), r#"{"taskId":"t","status":"failed","createdAt":"c","lastUpdatedAt":"c","ttl":null}"#);
    }

    #[test]
    fn what_is_no_task_is_not_taken_for_one() {
        for json in [
            r#"{"content":[]}"#,
            r#"{"task":7}"#,
            r#"{"taskId":"t","status":"paused","createdAt":"c"}"#,
            r#"{"taskId":1,"status":"working","createdAt":"c"}"#,
            r#"{"taskId":"t","status":"working"}"#,
            "[]",
            "",
        ] {
            assert_eq!(TaskState::read(json.as_bytes()), None, "{json}");
        }
        assert_eq!(milliseconds(br#"{"a":5e3}"#, "a"), Some(5000));
        assert_eq!(milliseconds(br#"{"a":-1}"#, "a"), None);
        assert_eq!(milliseconds(br#"{"a":"5"}"#, "a"), None);
    }

    #[test]
    fn the_status_never_promises_what_is_not_there() {
        use TaskStatus as S;
        let told = |payload: Payload<'_>| S::ALL.map(|status| payload.status(status));
        assert_eq!(told(Payload::Nothing), [S::Working, S::Working, S::Working, S::Working, S::Cancelled]);
        assert_eq!(told(Payload::Result(b"{}")), [S::Completed; 5]);
        assert_eq!(told(Payload::Error(b"{}")), [S::Failed; 5]);
        assert_eq!(told(Payload::Questions(b"{}")), [S::InputRequired; 5]);
        assert_eq!(S::ALL.map(is_terminal), [false, false, true, true, true]);
    }

    #[test]
    fn payloads_are_read_back() {
        for payload in [
            Payload::Nothing,
            Payload::Result(br#"{"content":[],"resultType":"complete"}"#),
            Payload::Error(br#"{"code":1}"#),
            Payload::Questions(br#"{"k":{"method":"roots/list"}}"#),
        ] {
            assert_eq!(Payload::read(&state().modern(payload)), payload);
            assert_eq!(Payload::read(&state().notice_modern(payload)), payload);
        }
        assert_eq!(Payload::read(br#"{"status":"completed","result":7}"#), Payload::Nothing);
    }
}
