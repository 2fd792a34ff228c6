//! `POST /api/request`: a legacy client calls a tool. The call goes through the gateway like one over MCP, and its
//! result goes to the client's event stream.

use super::legacy_request::{
    RouteRefusal, address, caller, code_outside, owner, peer, proved, read, session, small_value, user_agent, whole,
};
use crate::counters::{RelayCounters, family};
use crate::link::REST;
use crate::mcp_result::{self, CallFailure};
use crate::random;
use crate::refusal::LegacyRefusal;
use crate::relay::Relay;
use crate::result_owner::ResultOwner;
use crate::session::SessionRecord;
use crate::shares::holder;
use crate::stream_roles::StreamRole;
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use signalbox_engine::front::Mode;
use signalbox_engine::{Caller, Fault, FaultKind, Principal};
use signalbox_runtime::clock::unix_millis;
use signalbox_transport::router::{RoutedAnswer, RoutedRequest};
use signalbox_wire::{Envelope, Revision, meta};
use std::sync::Arc;
use std::time::Instant;

/// Maximum length of a client's request id, in bytes.
const MAX_ID: usize = 128;

#[derive(Deserialize)]
struct RequestBody<'a> {
    #[serde(rename = "sessionCode")]
    session_code: Option<String>,
    code: Option<String>,
    tool: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

/// Accepted call, with the recipient of its result.
struct TakenCall {
    caller: Caller,
    /// Principal that the message and the result are charged to.
    holder: Principal,
    record: SessionRecord,
    tool: String,
    /// Owner of the result.
    owner: ResultOwner,
    /// Client's id of the call.
    id: String,
    message: Bytes,
}

/// Accepts a call. Its result is sent later, on the client's stream.
pub async fn take(relay: Arc<Relay>, asked: RoutedRequest) -> Result<RoutedAnswer, RouteRefusal> {
    proved(&relay, &asked)?;
    let (address, caller, outside) = (address(&asked), caller(&asked), code_outside(&asked));
    let (peer, client) = (peer(&asked), family(user_agent(&asked)));
    let (holder, owner) = (holder(&asked.caller), owner(&relay, &asked));
    let bytes = whole(&relay, &holder, asked.body).await?;
    let body: RequestBody<'_> = read(&bytes)?;
    let record = session(&relay, outside.or(body.session_code).or(body.code), &address).await?;
    relay.roles.note(&record.mark, &peer, StreamRole::Client);
    if let Err(wait) = relay.request_rate.take(&format!("{address} {}", record.mark), Instant::now()) {
        RelayCounters::add(&relay.counts.rate_limited);
        return Err(RouteRefusal::about(LegacyRefusal::RateLimited { what: "requests", wait }, &record.code));
    }
    let bad = |why: &str| RouteRefusal::about(LegacyRefusal::Validation(why.to_owned()), &record.code);
    let tool = body.tool.filter(|tool| !tool.is_empty()).ok_or_else(|| bad("tool must be a string"))?;
    let arguments = body.arguments.or(body.args);
    if arguments.is_some_and(|arguments| !arguments.get().starts_with('{')) {
        return Err(bad("arguments must be an object"));
    }
    let id = body.id.filter(|id| id.get() != "null").map(|id| small_value(id, 6 * MAX_ID + 2));
    let id = match id {
        None => random::request_id().map_err(|_| RouteRefusal::of(LegacyRefusal::Internal))?,
        Some(Value::String(id)) if !id.is_empty() && id.len() <= MAX_ID => id,
        Some(Value::Number(id)) => id.to_string(),
        Some(_) => return Err(bad("id must be a string of up to 128 characters")),
    };
    let call = Bytes::from(call(client, &tool, arguments));
    drop(bytes);
    let held = relay.shares.hold(&record.mark, &holder, call);
    let held = held.map_err(|refused| RouteRefusal::about(relay.no_room(refused), &record.code))?;
    let message = json!({"id": id, "status": "queued", "message": "Request queued; its result comes on /api/stream"});
    tokio::spawn(run(relay, TakenCall { caller, holder, record, tool, owner, id, message: held }));
    Ok(RoutedAnswer::json(StatusCode::ACCEPTED, message.to_string()))
}

/// Executes a call and stores its result for the client.
async fn run(relay: Arc<Relay>, call: TakenCall) {
    let TakenCall { caller, holder, record, tool, owner, id, message } = call;
    let told = carry_out(&relay, caller, &record, message).await;
    let held = relay.shares.hold(&record.mark, &holder, legacy_result(&tool, &id, told).into());
    let data = held.unwrap_or_else(|refused| {
        let failure = CallFailure::Told(relay.no_room(refused).to_string());
        legacy_result(&tool, &id, Err(failure)).into()
    });
    let most = relay.settings.limits.queue;
    if let Err(error) = relay.store.push_result(&record.code, &owner, data, most, unix_millis()).await {
        relay.failed(&error);
    }
}

/// Builds the event for the client's stream: `{tool, result, requestId}` or `{tool, error, requestId}`, in this order.
fn legacy_result(tool: &str, id: &str, told: Result<String, CallFailure>) -> String {
    let (tool, id) = (Value::from(tool), Value::from(id));
    match told {
        Ok(result) => format!(r#"{{"tool":{tool},"result":{result},"requestId":{id}}}"#),
        Err(error) => format!(r#"{{"tool":{tool},"error":{},"requestId":{id}}}"#, Value::from(error.to_string())),
    }
}

/// Calls the tool through the gateway on behalf of the caller.
async fn carry_out(
    relay: &Arc<Relay>,
    caller: Caller,
    record: &SessionRecord,
    message: Bytes,
) -> Result<String, CallFailure> {
    let told = |fault: Fault| CallFailure::Told(fault.message);
    let gateway = relay.gateway().ok_or(CallFailure::ShuttingDown)?;
    let principal = relay.code_target(&caller, record);
    let session = gateway.open_session_for(caller, principal, Mode::Stateless, "", "http").map_err(told)?;
    let message = Envelope::read(message, &gateway.settings().limits);
    let message = message.map_err(|refusal| CallFailure::BadRequest(refusal.to_string()))?;
    let reader = session.open_stream().ok_or_else(|| told(Fault::new(FaultKind::Overloaded, "too many streams")))?;
    session.receive(&reader, message);
    while let Some(out) = reader.next().await {
        if out.last {
            return mcp_result::to_legacy(out.bytes());
        }
    }
    Err(CallFailure::NoAnswer)
}

/// Builds the call as a self-contained message of a stateless revision.
fn call(client: &str, tool: &str, arguments: Option<&RawValue>) -> String {
    let arguments = arguments.map_or("{}", RawValue::get);
    let about = json!({
        meta::PROTOCOL_VERSION: Revision::LATEST.as_str(),
        meta::CLIENT_INFO: {"name": format!("legacy-{client}"), "version": "1.0.0"},
        meta::CLIENT_CAPABILITIES: {},
        REST: true,
    });
    let tool = Value::from(tool);
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{tool},"arguments":{arguments},"_meta":{about}}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves C-7.
    #[test]
    fn the_members_of_a_result_come_in_the_specified_order() {
        let result =
            legacy_result("createDataContext", "7", Ok(r#"{"success":true,"dataContextId":"dc123"}"#.to_owned()));
        let expected =
            r#"{"tool":"createDataContext","result":{"success":true,"dataContextId":"dc123"},"requestId":"7"}"#;
        assert_eq!(result, expected);
        assert_eq!(
            legacy_result("t", "7", Err(CallFailure::Told("no".to_owned()))),
            r#"{"tool":"t","error":"no","requestId":"7"}"#
        );
    }
}
