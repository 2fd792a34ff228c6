//! Tasks: the core feature of 2025-11-25 and the extension of 2026-07-28, over the same work.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::call::ServedCall;
use super::fault::RpcFault;
use super::methods::{TASKS, complete};
use super::question::ServerQuestion;
use super::talk::Talk;
use super::tools::{failed, text};
use crate::revision::Revision;

/// The longest that a task's result is promised to stay.
const TTL_MS: u64 = 60_000;
/// How often a client may ask.
const POLL_MS: u64 = 50;
/// What a message belongs to.
const RELATED: &str = "io.modelcontextprotocol/related-task";
/// Members of a task, and what 2026-07-28 calls them.
const RENAMED: [(&str, &str); 2] = [("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs")];

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Working,
    InputRequired,
    Completed,
    Cancelled,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
        }
    }

    fn ended(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }
}

/// A task.
#[derive(Debug)]
pub struct Task {
    /// Its id.
    pub id: String,
    created: String,
    status: watch::Sender<Status>,
    answer: Mutex<Option<oneshot::Sender<String>>>,
    said: Mutex<String>,
}

impl Task {
    fn start(call: &ServedCall) -> Arc<Self> {
        let shared = &call.talk.shared;
        let id = format!("task-{}", shared.number());
        let (sender, receiver) = oneshot::channel();
        let task = Arc::new(Self {
            id,
            created: now(),
            status: watch::Sender::new(Status::Working),
            answer: Mutex::new(Some(sender)),
            said: Mutex::default(),
        });
        shared.keep(task.clone());
        let arguments = &call.params["arguments"];
        tokio::spawn(task.clone().report(call.talk.clone()));
        tokio::spawn(task.clone().work(pause(arguments), arguments["ask"] == true, receiver));
        task
    }

    /// Tells of every change until the end: its own client, or whoever listens for it.
    async fn report(self: Arc<Self>, talk: Arc<Talk>) {
        let mut changes = self.status.subscribe();
        while changes.changed().await.is_ok() {
            let ended = changes.borrow_and_update().ended();
            let revision = talk.shared.revision;
            match revision.modern() {
                true => talk.shared.task_changed(&self.id, self.told(revision)),
                false => {
                    let note = json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": self.told(revision)});
                    talk.tell(note);
                }
            }
            if ended {
                return;
            }
        }
    }

    async fn work(self: Arc<Self>, pause: Duration, asks: bool, answer: oneshot::Receiver<String>) {
        tokio::time::sleep(pause).await;
        let mut said = "task done".to_owned();
        if asks {
            self.step(Status::InputRequired);
            if let Ok(answer) = answer.await {
                said = format!("task done, {answer}");
            }
        }
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = said;
        self.step(Status::Completed);
    }

    /// Goes to another status, but never away from an end.
    fn step(&self, next: Status) {
        self.status.send_if_modified(|status| {
            let goes = !status.ended();
            if goes {
                *status = next;
            }
            goes
        });
    }

    /// Takes the answer that the task waits for.
    fn give(&self, answer: String) {
        let waiting = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waiting) = waiting {
            // The task may be cancelled by now.
            let _ = waiting.send(answer);
            self.step(Status::Working);
        }
    }

    fn asked(&self) -> bool {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn result(&self) -> Value {
        text(&self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn told(&self, revision: Revision) -> Value {
        let status = *self.status.borrow();
        let mut task = json!({
            "taskId": self.id,
            "status": status.name(),
            "createdAt": self.created,
            "lastUpdatedAt": now(),
            "ttl": TTL_MS,
            "pollInterval": POLL_MS,
        });
        if revision.modern() {
            for (old, new) in RENAMED {
                task[new] = task[old].take();
                if let Some(members) = task.as_object_mut() {
                    members.remove(old);
                }
            }
            if status == Status::Completed {
                task["result"] = complete(self.result(), revision);
            }
            if status == Status::InputRequired {
                let question = ServerQuestion::Elicit;
                let request = json!({"method": question.method(), "params": question.params(revision)});
                task["inputRequests"] = json!({question.capability(): request});
            }
        }
        task
    }
}

fn pause(arguments: &Value) -> Duration {
    Duration::from_millis(arguments["ms"].as_u64().unwrap_or(50))
}

/// Calls the tool `task`.
///
/// # Errors
/// When the call is not as its revision wants it.
pub async fn call(call: &ServedCall) -> Result<Value, RpcFault> {
    let revision = call.revision();
    let extended = call.capabilities()["extensions"][TASKS].is_object();
    if revision == Revision::R4 && call.params["task"].is_object() {
        return Ok(json!({"task": Task::start(call).told(revision)}));
    }
    if revision.modern() && extended {
        let mut result = complete(Task::start(call).told(revision), revision);
        result["resultType"] = json!("task");
        return Ok(result);
    }
    if call.params["arguments"]["ask"] == true {
        return Ok(complete(failed("only a task may ask"), revision));
    }
    tokio::time::sleep(pause(&call.params["arguments"])).await;
    Ok(complete(text("task done"), revision))
}

/// Answers what is asked of tasks.
///
/// # Errors
/// When there is no such task, or no such method.
pub async fn answer(call: &ServedCall) -> Result<Value, RpcFault> {
    let revision = call.revision();
    if revision.modern() && !call.capabilities()["extensions"][TASKS].is_object() {
        let required = json!({"requiredCapabilities": {"extensions": {TASKS: {}}}});
        return Err(RpcFault::new(-32021, format!("the client did not declare {TASKS}")).with(required));
    }
    let shared = &call.talk.shared;
    if call.method == "tasks/list" {
        let tasks: Vec<Value> = shared.tasks().iter().map(|task| task.told(revision)).collect();
        return Ok(json!({"tasks": tasks}));
    }
    let id = call.params["taskId"].as_str().unwrap_or_default();
    let task = shared.task(id).ok_or_else(|| RpcFault::params(format!("Unknown task: {id}")))?;
    match call.method.as_str() {
        "tasks/get" => Ok(complete(task.told(revision), revision)),
        "tasks/cancel" if revision.modern() => {
            task.step(Status::Cancelled);
            Ok(complete(json!({}), revision))
        }
        "tasks/cancel" if task.status.borrow().ended() => Err(RpcFault::params("the task is at its end")),
        "tasks/cancel" => {
            task.step(Status::Cancelled);
            Ok(task.told(revision))
        }
        "tasks/update" => update(call, &task),
        "tasks/result" => result(call, &task).await,
        method => Err(RpcFault::method(method)),
    }
}

fn update(call: &ServedCall, task: &Task) -> Result<Value, RpcFault> {
    let answers = &call.params["inputResponses"];
    let refuse = |what: String| {
        call.talk.shared.violation(&format!("tasks/update: {what}"));
        RpcFault::params(what)
    };
    let answer =
        answers.get(ServerQuestion::Elicit.capability()).ok_or_else(|| refuse(format!("no answer in {answers}")))?;
    let said = ServerQuestion::Elicit.read(answer, call.revision()).map_err(|error| refuse(format!("{error:#}")))?;
    task.give(said);
    Ok(complete(json!({}), call.revision()))
}

/// Waits for the end of a task; what the task asks meanwhile goes out on the stream of this request.
async fn result(call: &ServedCall, task: &Task) -> Result<Value, RpcFault> {
    let mut status = task.status.subscribe();
    loop {
        let now = *status.borrow_and_update();
        match now {
            Status::Completed => {
                let mut result = task.result();
                result["_meta"][RELATED] = json!({"taskId": task.id});
                return Ok(result);
            }
            Status::Cancelled => return Err(RpcFault::new(-32603, "the task was cancelled")),
            Status::InputRequired if !task.asked() => {
                let mut params = ServerQuestion::Elicit.params(call.revision());
                params["_meta"][RELATED] = json!({"taskId": task.id});
                let answer = call.ask(ServerQuestion::Elicit, params).await;
                let said = answer.and_then(|answer| ServerQuestion::Elicit.read(&answer, call.revision()));
                task.give(said.unwrap_or_else(|error| format!("{error:#}")));
            }
            _ => status.changed().await.map_err(|error| RpcFault::new(-32603, error.to_string()))?,
        }
    }
}

/// The time as ISO 8601.
fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut days, rest) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", month + 1, days + 1)
}
