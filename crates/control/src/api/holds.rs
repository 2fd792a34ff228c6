//! `/api/v1/holds`: messages that wait for a person.

use super::{ApiState, bad, grants, id, json as read, millis, ok, who};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use signalbox_engine::Proof;
use signalbox_engine::chain::{self, HoldAnswer};
use signalbox_runtime::{HeldMessage, HoldError};
use signalbox_seal::{hex, sha256};
use signalbox_transport::router::{HandlerResult, RouteFault, RoutedRequest};
use signalbox_wire::{Edits, Envelope, Kind, Limits, builder, single_line};
use std::sync::Arc;
use std::time::Instant;

/// Maximum size of a message that the list includes. The list omits longer ones.
const MAX_LISTED: usize = 16 * 1024;
/// Maximum length of the reason for a refusal, in bytes.
const MAX_REASON: usize = 4 * 1024;

/// Body of a decision. Messages are kept verbatim, so that numbers keep their digits.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HoldDecision {
    by: Option<String>,
    message: Option<Box<RawValue>>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    reason: Option<String>,
    /// Time for which the caller may use the same entry without another consent, such as `1h`.
    #[serde(rename = "for")]
    lasting: Option<String>,
}

pub(super) async fn list(served: Arc<ApiState>, _: RoutedRequest) -> HandlerResult {
    let all: Vec<Value> = served.app().gateway.holds.list().iter().map(|held| shown(held, MAX_LISTED)).collect();
    Ok(ok(&all.into()))
}

pub(super) async fn show(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    Ok(ok(&shown(&held(&served, &request)?, usize::MAX)))
}

pub(super) async fn release(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    settle(&served, request, "release", |by, _, _| Ok(HoldAnswer::GoOn { by })).await
}

pub(super) async fn edit(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let limits = served.app().breakpoints.limits();
    let edit =
        |by, held: &HeldMessage, decided| Ok(HoldAnswer::Edited { by, message: edited(held, &decided, limits)? });
    settle(&served, request, "edit", edit).await
}

pub(super) async fn answer(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let answer = |by, _: &HeldMessage, decided: HoldDecision| {
        let Some(result) = decided.result.filter(|result| result.get().starts_with('{')) else {
            return Err(bad(r#"an answer needs {"result":{…}}"#));
        };
        Ok(HoldAnswer::Result { by, result: line(result.get())? })
    };
    settle(&served, request, "answer", answer).await
}

pub(super) async fn refuse(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let refuse = |by, _: &HeldMessage, decided: HoldDecision| {
        let reason = decided.reason.unwrap_or_else(|| "refused by a person".to_owned());
        if reason.len() > MAX_REASON {
            return Err(bad("the reason is too long"));
        }
        Ok(HoldAnswer::Refused { by, reason })
    };
    settle(&served, request, "refuse", refuse).await
}

/// Returns the held message with the number in the path.
fn held(served: &ApiState, request: &RoutedRequest) -> Result<HeldMessage, RouteFault> {
    served.app().gateway.holds.get(id(request)?).map_err(|error| not_held(&error))
}

fn not_held(error: &HoldError) -> RouteFault {
    RouteFault::new(StatusCode::NOT_FOUND, error)
}

/// Settles a hold according to the decision of a person.
async fn settle(
    served: &ApiState,
    request: RoutedRequest,
    what: &str,
    answer: impl FnOnce(Option<String>, &HeldMessage, HoldDecision) -> Result<HoldAnswer, RouteFault>,
) -> HandlerResult {
    let held = held(served, &request)?;
    let caller = request.caller.clone();
    let by = caller.identity();
    if by.proof != Proof::LocalUser && !may_decide(served, by.principal.as_str(), &held) {
        return Err(RouteFault::new(StatusCode::FORBIDDEN, OWN_CALL));
    }
    let mut decided: HoldDecision = read(request.body).await?;
    let by = Some(who(caller.principal().as_str(), decided.by.take()));
    let grant = match decided.lasting.take() {
        Some(_) if what != "release" => return Err(bad("only a release can be `for` a while")),
        Some(lasting) => Some(grants::of_hold(&held, &lasting, by.as_deref().unwrap_or_default())?),
        None => None,
    };
    let answer = answer(by.clone(), &held, decided)?;
    let changed = match &answer {
        HoldAnswer::Edited { message, .. } => json!({"before": digest(&held.held.message), "after": digest(message)}),
        HoldAnswer::Result { result, .. } => json!({"after": digest(result)}),
        _ => Value::Null,
    };
    served.app().gateway.holds.settle(held.id, answer).map_err(|error| not_held(&error))?;
    let granted = match grant {
        Some(grant) => grants::put_of_hold(served, grant, None, &caller)?,
        None => None,
    };
    let answer = ok(&json!({
        "id": held.id,
        "done": what,
        "method": held.held.method,
        "subject": held.held.subject,
        "backend": held.held.backend.as_deref(),
        "principal": held.held.caller.principal().as_str(),
        "by": by,
        "changed": changed,
    }));
    Ok(answer.once_recorded(granted))
}

/// Returns the size and hash of a message, which identify it where the message itself is not stored.
fn digest(message: &[u8]) -> Value {
    json!({"bytes": message.len(), "sha256": hex(&sha256(message))})
}

/// Reason why callers cannot decide about their own messages.
pub(super) const OWN_CALL: &str = "callers cannot decide about their own calls; `permissions.approve_own` allows that";

/// Returns false for the caller of the message itself, unless callers may decide about their own calls. At the control
/// socket, the owner of the process decides what an agent may do in the owner's name.
pub(super) fn may_decide(served: &ApiState, principal: &str, held: &HeldMessage) -> bool {
    principal != held.held.caller.principal().as_str() || served.reloader.current().permissions.approve_own
}

/// Returns the edited message, complete and validated.
fn edited(held: &HeldMessage, decided: &HoldDecision, limits: &Limits) -> Result<Bytes, RouteFault> {
    let before = Envelope::parse(held.held.message.clone())
        .map_err(|error| RouteFault::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
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
    chain::edited(&before, message, limits).map(Envelope::into_bytes).map_err(bad)
}

fn line(text: &str) -> Result<Bytes, RouteFault> {
    single_line(&Bytes::copy_from_slice(text.as_bytes())).map_err(bad)
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
        "policy": message.consent.as_ref().and_then(|consent| consent.policy.as_deref()),
        "held_ms": millis(now.saturating_duration_since(held.since)),
        "left_ms": millis(message.until.saturating_duration_since(now)),
        "gives_progress": held.gives_progress,
        "length": held.message.len(),
        "message": whole.then(|| serde_json::from_slice::<Value>(&held.message).ok()),
        "text": whole.then(|| String::from_utf8_lossy(&held.message)),
    })
}
