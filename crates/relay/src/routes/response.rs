//! `POST /api/response`: a page answers a request or reports progress.

use super::legacy_request::{
    RouteRefusal, address, code_outside, is_tokened, peer, read, session, shows_worker, small_value, token, whole,
};
use super::record_refusal;
use crate::counters::RelayCounters;
use crate::json_text::JsonText;
use crate::refusal::LegacyRefusal;
use crate::relay::Relay;
use crate::shares::holder;
use crate::store::{AnswerOutcome, RelayEvent};
use crate::stream_roles::StreamRole;
use crate::tool_request::{ToolAnswer, WorkerError};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use signalbox_runtime::clock::unix_millis;
use signalbox_transport::router::{RoutedAnswer, RoutedRequest};
use std::sync::Arc;

/// Maximum number of answers in a batch.
const MAX_BATCH: usize = 10;
/// Maximum length of a request id, in bytes.
const MAX_ID: usize = 1024;
/// Maximum size of a progress message, in bytes.
pub const MAX_PROGRESS: usize = 4 * 1024;
/// Maximum size of an error, in bytes.
pub const MAX_ERROR: usize = 64 * 1024;
/// Error kinds that pages use.
const KINDS: [&str; 5] = ["execution_error", "tool_not_found", "invalid_args", "codap_error", "outcome_unknown"];

#[derive(Deserialize)]
struct AnswerMessage<'a> {
    #[serde(rename = "sessionCode")]
    session_code: Option<String>,
    code: Option<String>,
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    progress: Option<&'a RawValue>,
    #[serde(rename = "workerToken")]
    worker_token: Option<String>,
}

/// Deserializes any value, including `null`, which is a valid result.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Parts of the request besides its body.
struct RequestContext {
    address: String,
    peer: String,
    code: Option<String>,
    headers: HeaderMap,
}

/// Accepts an answer, or a batch of them.
pub async fn take(relay: Arc<Relay>, asked: RoutedRequest) -> Result<RoutedAnswer, RouteRefusal> {
    let context = RequestContext {
        address: address(&asked),
        peer: peer(&asked),
        code: code_outside(&asked),
        headers: asked.headers.clone(),
    };
    let caller = asked.caller;
    let bytes = whole(&relay, &holder(&caller), asked.body).await?;
    if bytes.trim_ascii_start().first() != Some(&b'[') {
        let (status, body) = answer(&relay, &context, &bytes, read(&bytes)?).await?;
        return Ok(RoutedAnswer::json(status, body.to_string()));
    }
    let all: Vec<AnswerMessage<'_>> = read(&bytes)?;
    if all.is_empty() || all.len() > MAX_BATCH {
        let why = format!("1 to {MAX_BATCH} answers can be sent at once");
        return Err(RouteRefusal::of(LegacyRefusal::Validation(why)));
    }
    let mut told = Vec::with_capacity(all.len());
    for one in all {
        told.push(match answer(&relay, &context, &bytes, one).await {
            Ok((_, body)) => body,
            Err(refused) => {
                record_refusal(&relay, &caller, refused.answer().status, &refused);
                refused.body()
            }
        });
    }
    Ok(RoutedAnswer::json(StatusCode::OK, Value::from(told).to_string()))
}

async fn answer(
    relay: &Arc<Relay>,
    context: &RequestContext,
    body: &Bytes,
    told: AnswerMessage<'_>,
) -> Result<(StatusCode, Value), RouteRefusal> {
    // The form of the earliest system: `code` and `id`.
    let old = told.request_id.is_none() && told.code.is_some() && told.id.is_some();
    let given = context.code.clone().or(told.session_code).or(told.code);
    let record = session(relay, given, &context.address).await?;
    is_tokened(relay, &record, token(&context.headers, told.worker_token.as_deref())).await?;
    if told.worker_token.is_none() && !shows_worker(&context.headers) {
        relay.roles.note(&record.mark, &context.peer, StreamRole::Worker);
    }
    let about = |refusal| RouteRefusal::about(refusal, &record.code);
    let id = told.request_id.or(told.id).map(|id| small_value(id, MAX_ID));
    let id = match id {
        Some(Value::String(id)) if !id.is_empty() => id,
        Some(Value::Number(id)) => id.to_string(),
        _ => return Err(about(LegacyRefusal::MissingRequestId)),
    };
    let now = unix_millis();
    if let Some(progress) = told.progress.filter(|_| told.result.is_none() && told.error.is_none()) {
        too_long("progress", progress, MAX_PROGRESS).map_err(about)?;
        let waits = relay.store.unanswered(&record.code, now).await.map_err(|error| about(relay.failed(&error)))?;
        if !waits.iter().any(|request| *request.id == *id) {
            return Err(about(LegacyRefusal::RequestNotFound));
        }
        let event = RelayEvent::Progressed { id: id.as_str().into(), progress: JsonText::within(body, progress) };
        relay.store.publish(&record.code, event).await.map_err(|error| about(relay.failed(&error)))?;
        return Ok((StatusCode::ACCEPTED, json!({"success": true, "requestId": id, "timestamp": now})));
    }
    let failure = told.error.filter(|raw| raw.get() != "null");
    let answer = match (failure, told.result) {
        (Some(error), _) => {
            too_long("error", error, MAX_ERROR).map_err(about)?;
            ToolAnswer::Error(read_error(error))
        }
        (None, Some(result)) => ToolAnswer::Result(JsonText::within(body, result)),
        (None, None) => return Err(about(LegacyRefusal::MissingResultOrError)),
    };
    let answered = relay.store.answer(&record.code, &id, answer, now).await;
    match answered.map_err(|error| about(relay.failed(&error)))? {
        AnswerOutcome::Taken => RelayCounters::add(&relay.counts.answered),
        AnswerOutcome::Duplicate => {
            RelayCounters::add(&relay.counts.duplicate_answers);
            return Err(about(LegacyRefusal::DuplicateResponse));
        }
        AnswerOutcome::Unknown => {
            RelayCounters::add(&relay.counts.unknown_answers);
            return Err(about(LegacyRefusal::RequestNotFound));
        }
    }
    Ok(match old {
        true => (StatusCode::ACCEPTED, json!({"id": id, "status": "stored", "message": "Response stored"})),
        false => {
            let message = "Response received";
            (StatusCode::OK, json!({"success": true, "message": message, "requestId": id, "timestamp": now}))
        }
    })
}

/// Refuses a value that is too long to be copied for every subscriber.
fn too_long(what: &str, value: &RawValue, most: usize) -> Result<(), LegacyRefusal> {
    match value.get().len() > most {
        true => Err(LegacyRefusal::Validation(format!("{what} may take up {most} bytes"))),
        false => Ok(()),
    }
}

/// Parses an error from a page: a text, or `{type, message, details}`.
fn read_error(raw: &RawValue) -> WorkerError {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let message = value.as_str().or_else(|| value["message"].as_str()).unwrap_or("the page reports an error");
    let kind = value["type"].as_str().filter(|kind| KINDS.contains(kind)).unwrap_or(KINDS[0]);
    let details = value.get("details").and_then(|details| RawValue::from_string(details.to_string()).ok());
    WorkerError { kind: kind.into(), message: message.into(), details }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CO-6.
    #[test]
    fn falsy_results_are_results() {
        for falsy in ["null", "false", "0", "\"\""] {
            let text = format!(r#"{{"requestId":"1","result":{falsy}}}"#);
            let told: AnswerMessage<'_> = serde_json::from_str(&text).unwrap();
            assert_eq!(told.result.unwrap().get(), falsy);
            assert!(told.error.is_none());
        }
        let error = |text: &str| read_error(&RawValue::from_string(text.to_owned()).unwrap());
        assert_eq!(&*error(r#""went wrong""#).message, "went wrong");
        let told = error(r#"{"type":"codap_error","message":"m","details":{"a":1}}"#);
        assert_eq!((&*told.kind, told.details.unwrap().get()), ("codap_error", r#"{"a":1}"#));
        assert_eq!(&*error(r#"{"type":"invented"}"#).kind, "execution_error");
    }

    #[test]
    fn progress_and_errors_have_a_bound() {
        for most in [MAX_PROGRESS, MAX_ERROR] {
            let text = |length: usize| RawValue::from_string(format!("\"{}\"", "x".repeat(length - 2))).unwrap();
            assert!(too_long("error", &text(most), most).is_ok());
            let Err(LegacyRefusal::Validation(why)) = too_long("error", &text(most + 1), most) else {
                panic!("{most}")
            };
            assert_eq!(why, format!("error may take up {most} bytes"));
        }
    }
}
