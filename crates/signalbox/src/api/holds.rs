//! `/api/v1/holds`: the messages that wait for a person.

use super::{millis, number, who};
use crate::assemble::App;
use crate::control::{Call, Reply};
use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use signalbox_engine::chain::{Answer, edited};
use signalbox_runtime::{HeldMessage, HoldError};
use signalbox_wire::{Edits, Envelope, Kind, Limits, builder, single_line};
use std::time::Instant;

/// The longest message that the list shows whole; a longer one is shown by its number.
const MAX_LISTED: usize = 16 * 1024;
/// The longest reason of a refusal.
const MAX_REASON: usize = 4 * 1024;

/// What a person decided. Messages are kept as they were written: numbers keep their digits.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Decided {
    by: Option<String>,
    message: Option<Box<RawValue>>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    reason: Option<String>,
}

pub(super) fn serve(app: &App, call: &Call, rest: &[&str]) -> Option<Reply> {
    Some(match (rest, &call.method) {
        ([], &Method::GET) => list(app),
        ([_], &Method::GET) => {
            one(app, rest[0]).map_or_else(|reply| reply, |held| Reply::ok(&shown(&held, usize::MAX)))
        }
        ([] | [_], _) => Reply::only("GET"),
        ([id, "release" | "edit" | "answer" | "refuse"], &Method::POST) => {
            settle(app, call, id, rest[1]).unwrap_or_else(|refusal| refusal)
        }
        ([_, "release" | "edit" | "answer" | "refuse"], _) => Reply::only("POST"),
        _ => return None,
    })
}

fn list(app: &App) -> Reply {
    let all: Vec<Value> = app.gateway.holds.list().iter().map(|held| shown(held, MAX_LISTED)).collect();
    Reply::ok(&all.into())
}

fn one(app: &App, id: &str) -> Result<HeldMessage, Reply> {
    app.gateway.holds.get(number(id)?).map_err(|error| gone(&error))
}

fn gone(error: &HoldError) -> Reply {
    Reply::error(StatusCode::NOT_FOUND, error)
}

fn settle(app: &App, call: &Call, id: &str, what: &str) -> Result<Reply, Reply> {
    let held = one(app, id)?;
    let decided: Decided = call.json()?;
    let by = Some(who(call, decided.by.clone()));
    let answer = match what {
        "release" => Answer::GoOn { by },
        "edit" => Answer::Edited { by, message: edit(&held, &decided, app.breakpoints.limits())? },
        "answer" => {
            let Some(result) = decided.result.filter(|result| result.get().starts_with('{')) else {
                return Err(bad(r#"an answer needs {"result":{…}}"#));
            };
            Answer::Result { by, result: line(result.get())? }
        }
        _ => {
            let reason = decided.reason.unwrap_or_else(|| "refused by a person".to_owned());
            if reason.len() > MAX_REASON {
                return Err(bad("the reason is too long"));
            }
            Answer::Refused { by, reason }
        }
    };
    app.gateway.holds.settle(held.id, answer).map_err(|error| gone(&error))?;
    Ok(Reply::ok(&json!({"id": held.id, "done": what, "method": held.held.method, "subject": held.held.subject})))
}

/// The message as the person wants it, whole and found to be in order.
fn edit(held: &HeldMessage, decided: &Decided, limits: &Limits) -> Result<Bytes, Reply> {
    let before = Envelope::parse(held.held.message.clone())
        .map_err(|error| Reply::error(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    let message = match (&decided.message, &decided.params, &decided.result) {
        (Some(message), None, None) => line(message.get())?,
        (None, Some(params), None) if before.kind() == Kind::Request => {
            let mut edits = Edits::new();
            edits.set_member(before.bytes(), before.object_span(), "params", &line(params.get())?);
            edits.apply(before.bytes())
        }
        (None, None, Some(result)) if before.kind() != Kind::Request => {
            builder::response(&before.id().unwrap_or_else(signalbox_wire::RawId::null), &line(result.get())?)
        }
        (None, Some(_), None) => return Err(bad("an answer has no params; send {\"result\":…} or {\"message\":…}")),
        (None, None, Some(_)) => return Err(bad("a request has no result; `answer` sends one in its place")),
        _ => return Err(bad(r#"an edit needs one of {"message":…}, {"params":…}, {"result":…}"#)),
    };
    edited(&before, message, limits).map(Envelope::into_bytes).map_err(|error| bad(&error.to_string()))
}

fn line(text: &str) -> Result<Bytes, Reply> {
    single_line(&Bytes::copy_from_slice(text.as_bytes())).map_err(|error| bad(&error.to_string()))
}

fn bad(why: &str) -> Reply {
    Reply::error(StatusCode::BAD_REQUEST, why)
}

fn shown(message: &HeldMessage, most: usize) -> Value {
    let (held, now) = (&message.held, Instant::now());
    let whole = held.message.len() <= most;
    json!({
        "id": message.id,
        "pid": std::process::id(),
        "session": message.session_key.0,
        "exchange": message.exchange.0,
        "phase": held.phase.word(),
        "method": held.method,
        "subject": held.subject,
        "backend": held.backend.as_deref(),
        "principal": held.caller.principal().as_str(),
        "reason": &*message.reason,
        "held_ms": millis(now.saturating_duration_since(held.since)),
        "left_ms": millis(message.until.saturating_duration_since(now)),
        "gives_progress": held.gives_progress,
        "length": held.message.len(),
        "message": whole.then(|| serde_json::from_slice::<Value>(&held.message).ok()),
        "text": whole.then(|| String::from_utf8_lossy(&held.message)),
    })
}
