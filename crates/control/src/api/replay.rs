//! `/api/v1/replay`: controls a running replay of a tape.

use super::{bad, id, json as read, ok};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use signalbox_replay::run::control::{ControlError, ReplayBreakpoint, State, When};
use signalbox_replay::run::{ReplayControl, ReplayHandle};
use signalbox_transport::router::{HandlerResult, RouteFault, RoutedRequest};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Maximum wait of a request for the call or the injected request that it started.
const WAIT: Duration = Duration::from_secs(4);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeekRequest {
    to: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpeedRequest {
    speed: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BreakpointRequest {
    call: Option<usize>,
    method: Option<String>,
    tool: Option<String>,
    difference: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RequestEdit {
    request: Option<Value>,
    params: Option<Value>,
}

pub(super) async fn show(run: Arc<ReplayHandle>, _: RoutedRequest) -> HandlerResult {
    Ok(ok(&run.look(state)))
}

pub(super) async fn play(run: Arc<ReplayHandle>, _: RoutedRequest) -> HandlerResult {
    act(&run, ReplayControl::play)
}

pub(super) async fn pause(run: Arc<ReplayHandle>, _: RoutedRequest) -> HandlerResult {
    act(&run, ReplayControl::pause)
}

pub(super) async fn stop(run: Arc<ReplayHandle>, _: RoutedRequest) -> HandlerResult {
    act(&run, |control| {
        control.stop();
        Ok(())
    })
}

/// Steps to the next call and answers when it has ended, or after [`WAIT`].
pub(super) async fn step(run: Arc<ReplayHandle>, _: RoutedRequest) -> HandlerResult {
    run.act(ReplayControl::step).map_err(|error| refusal(&error))?;
    run.until(WAIT, |control| control.state() != State::Stepping && control.wants_preview().is_none()).await;
    Ok(ok(&run.look(state)))
}

pub(super) async fn seek(run: Arc<ReplayHandle>, request: RoutedRequest) -> HandlerResult {
    let SeekRequest { to } = read(request.body).await?;
    act(&run, |control| control.seek(to))
}

pub(super) async fn speed(run: Arc<ReplayHandle>, request: RoutedRequest) -> HandlerResult {
    let SpeedRequest { speed } = read(request.body).await?;
    let speed = match (speed.as_str(), speed.as_f64()) {
        (Some("max"), _) => None,
        (_, Some(speed)) => Some(speed),
        _ => return Err(refusal(&ControlError::Speed)),
    };
    act(&run, |control| control.set_speed(speed))
}

pub(super) async fn set_breakpoint(run: Arc<ReplayHandle>, request: RoutedRequest) -> HandlerResult {
    let when = match read::<BreakpointRequest>(request.body).await? {
        BreakpointRequest { call: Some(call), method: None, tool: None, difference: false } => When::Call(call),
        BreakpointRequest { call: None, method: Some(pattern), tool: None, difference: false } => When::Method(pattern),
        BreakpointRequest { call: None, method: None, tool: Some(pattern), difference: false } => When::Tool(pattern),
        BreakpointRequest { call: None, method: None, tool: None, difference: true } => When::Difference,
        _ => {
            let forms = r#"{"call":3}, {"method":"pattern"}, {"tool":"pattern"} or {"difference":true}"#;
            return Err(bad(format_args!("specify where to stop: {forms}")));
        }
    };
    act(&run, |control| control.set_breakpoint(when).map(drop))
}

pub(super) async fn clear_breakpoint(run: Arc<ReplayHandle>, request: RoutedRequest) -> HandlerResult {
    let id = id(&request)?;
    act(&run, |control| control.clear_breakpoint(id))
}

pub(super) async fn clear_breakpoints(run: Arc<ReplayHandle>, _: RoutedRequest) -> HandlerResult {
    act(&run, |control| {
        control.clear_breakpoints();
        Ok(())
    })
}

/// Injects a request and answers when the server has answered, or after [`WAIT`].
pub(super) async fn inject(run: Arc<ReplayHandle>, request: RoutedRequest) -> HandlerResult {
    let RequestEdit { request: Some(injected), params: None } = read(request.body).await? else {
        return Err(bad(r#"specify what to send: {"request":{"method":"…","params":{…}}}"#));
    };
    let id = run.act(|control| control.inject(injected)).map_err(|error| refusal(&error))?;
    run.until(WAIT, |control| control.injected().all(|one| one.id != id || one.over)).await;
    Ok(ok(&run.look(state)))
}

pub(super) async fn modify(run: Arc<ReplayHandle>, request: RoutedRequest) -> HandlerResult {
    let edited = match read(request.body).await? {
        RequestEdit { request: Some(request), params: None } => request,
        RequestEdit { request: None, params: Some(params) } => {
            let next =
                run.look(next_request).ok_or_else(|| bad(r#"the next request is not known; send {"request":…}"#));
            let mut next = next?;
            next["params"] = params;
            next
        }
        _ => return Err(bad(r#"an edit needs one of {"request":{…}}, {"params":{…}}"#)),
    };
    act(&run, |control| control.modify_next(edited))
}

/// Changes the run and answers with its new state.
fn act(run: &ReplayHandle, act: impl FnOnce(&mut ReplayControl) -> Result<(), ControlError>) -> HandlerResult {
    run.act(act).map_err(|error| refusal(&error))?;
    Ok(ok(&run.look(state)))
}

fn refusal(error: &ControlError) -> RouteFault {
    let status = match error {
        ControlError::Over | ControlError::AtEnd | ControlError::Handshake(_) => StatusCode::CONFLICT,
        ControlError::NoCall { .. } | ControlError::NoBreakpoint(_) => StatusCode::NOT_FOUND,
        ControlError::TooManyBreakpoints | ControlError::TooManyInjections => StatusCode::TOO_MANY_REQUESTS,
        ControlError::Speed | ControlError::NoRequest => StatusCode::BAD_REQUEST,
    };
    RouteFault::new(status, error)
}

/// Returns the request that would be sent next.
fn next_request(control: &ReplayControl) -> Option<Value> {
    control.edit().cloned().or_else(|| control.preview()?.request.clone())
}

/// Returns the state of the run as JSON.
fn state(control: &ReplayControl) -> Value {
    let mut verdicts: BTreeMap<&str, u64> = BTreeMap::new();
    for report in control.calls().iter().filter_map(|call| call.report.as_ref()) {
        *verdicts.entry(report.verdict.word()).or_default() += 1;
    }
    let injected = control
        .injected()
        .map(|one| json!({"id": one.id, "request": one.request, "over": one.over, "answer": one.answer}));
    json!({
        "pid": std::process::id(),
        "state": control.state().word(),
        "why": control.why(),
        "position": control.position() + 1,
        "count": control.calls().len(),
        "speed": control.speed().map_or_else(|| json!("max"), |speed| json!(speed)),
        "breakpoints": control.breakpoints().iter().map(breakpoint).collect::<Vec<_>>(),
        "in_flight": control.in_flight().map(|index| index + 1),
        "current": current(control),
        "last": last(control),
        "injected": injected.collect::<Vec<_>>(),
        "verdicts": verdicts,
    })
}

fn breakpoint(set: &ReplayBreakpoint) -> Value {
    json!({"id": set.id, "words": set.when.words(), "hits": set.hits})
}

/// Returns the call at the current position, with its request as it would be sent now.
fn current(control: &ReplayControl) -> Option<Value> {
    let call = control.calls().get(control.position())?;
    let not_sent = control.preview().and_then(|preview| preview.not_sent.as_ref()).filter(|_| control.edit().is_none());
    Some(json!({
        "place": control.position() + 1,
        "call": call.recorded.number,
        "session": call.recorded.session,
        "method": &*call.recorded.method,
        "subject": call.recorded.subject.as_deref(),
        "request": next_request(control),
        "edited": control.edit().is_some(),
        "not_sent": not_sent.map(|verdict| verdict.word()),
    }))
}

/// Returns the last finished call, with its verdict and its answer.
fn last(control: &ReplayControl) -> Option<Value> {
    let index = control.last()?;
    let mut told = control.calls().get(index)?.report.as_ref()?.to_json();
    told["place"] = (index + 1).into();
    if let Some(heard) = control.heard(index) {
        told["request"] = heard.request.clone();
        told["answer"] = heard.answer.clone().unwrap_or_default();
    }
    Some(told)
}
