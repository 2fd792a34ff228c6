//! `/api/v1/sessions`: open sessions and their clients.

use super::{ApiState, millis, number, ok};
use http::StatusCode;
use serde_json::{Value, json};
use signalbox_engine::SessionKey;
use signalbox_engine::front::{Lifecycle, Mode};
use signalbox_engine::rate::Rate;
use signalbox_runtime::clock::unix_millis;
use signalbox_runtime::{CallInFlight, Session};
use signalbox_transport::router::{HandlerResult, RouteFault, RoutedRequest};
use signalbox_wire::timestamp::rfc3339_millis;
use std::sync::Arc;
use std::time::Instant;

pub(super) async fn list(served: Arc<ApiState>, _: RoutedRequest) -> HandlerResult {
    let all: Vec<Value> = served.app().gateway.sessions.all().iter().map(|session| shown(&served, session)).collect();
    Ok(ok(&all.into()))
}

pub(super) async fn show(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    Ok(ok(&with_calls(&served, &*found(&served, &request)?)))
}

pub(super) async fn end(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let session = found(&served, &request)?;
    tracing::info!(session = %session.key, by = %request.caller, "session ended by a person");
    session.close();
    Ok(ok(&json!({"id": session.key.0, "done": "ended"})))
}

/// Returns the session with the number in the path, or with the id that its client holds.
fn found(served: &ApiState, request: &RoutedRequest) -> Result<Arc<Session>, RouteFault> {
    let (sessions, id) = (&served.app().gateway.sessions, request.segment("id"));
    if let Some(session) = sessions.get(id) {
        return Ok(session);
    }
    let session = sessions.by_key(SessionKey(number(id)?)).filter(|session| !session.is_ended());
    let none = || format!("there is no session {id}; see `signalbox sessions list`");
    session.ok_or_else(|| RouteFault::new(StatusCode::NOT_FOUND, none()))
}

/// Returns when the session ends, in milliseconds since 1970: with its caller's credential, or when it has been idle
/// for the configured time.
fn expiry(served: &ApiState, session: &Session) -> u64 {
    let idle_end = served.app().gateway.settings().session_timeout.saturating_sub(session.idle());
    let idle_end = unix_millis().saturating_add(millis(idle_end));
    let standing = session.caller.identity().standing.as_ref();
    let credential = standing.and_then(|standing| standing.credential.as_ref()?.expires);
    credential.map_or(idle_end, |expires| expires.min(idle_end))
}

/// Returns the trust and permissions of a session's caller (G-11, G-12).
fn permissions(session: &Session) -> Value {
    let identity = session.caller.identity();
    let standing = identity.standing.as_deref().cloned().unwrap_or_default();
    json!({
        "trust_level": identity.trust().word(),
        "roles": standing.roles,
        "groups": standing.groups,
        "scopes": standing.scopes,
        "resources": standing.resources,
    })
}

/// Returns the remaining budget of the caller's own rate limits (G-11).
fn rate_limits(served: &ApiState, session: &Session) -> Value {
    let left = served.app().govern.limits_left(session.caller.principal().as_str());
    let of = |(rate, left): (Rate, u64)| json!({"limit": rate.limit, "per_seconds": rate.per.as_secs(), "left": left});
    left.into_iter().map(of).collect::<Vec<_>>().into()
}

fn shown(served: &ApiState, session: &Session) -> Value {
    let client = session.client();
    let info: Option<Value> =
        client.as_ref().and_then(|client| serde_json::from_slice(client.info.as_deref().unwrap_or(b"{}")).ok());
    let state = match session.state() {
        Lifecycle::Created => "created",
        Lifecycle::Initializing => "initializing",
        Lifecycle::Operational => "operational",
        Lifecycle::Closed => "closed",
    };
    let kind = match session.mode() {
        Mode::Pipe => "pipe",
        Mode::Session => "session",
        Mode::Stateless => "stateless",
    };
    json!({
        "id": session.key.0,
        "pid": std::process::id(),
        "session": &*session.external,
        "principal": session.principal.as_str(),
        "client": info,
        "revision": client.as_ref().map(|client| client.revision.as_str()),
        "kind": kind,
        "state": state,
        "age_ms": millis(session.started.elapsed()),
        "idle_ms": millis(session.idle()),
        "in_flight": session.in_flight(),
        "created_at": rfc3339_millis(unix_millis().saturating_sub(millis(session.started.elapsed()))),
        "expires_at": rfc3339_millis(expiry(served, session)),
        "permissions": permissions(session),
        "rate_limits": rate_limits(served, session),
    })
}

fn with_calls(served: &ApiState, session: &Session) -> Value {
    let now = Instant::now();
    let call = |call: CallInFlight| {
        json!({
            "exchange": call.exchange.0,
            "method": call.method,
            "subject": call.subject,
            "backend": call.backend.as_deref(),
            "age_ms": millis(now.saturating_duration_since(call.since)),
        })
    };
    let mut shown = shown(served, session);
    shown["calls"] = session.calls().into_iter().map(call).collect::<Vec<_>>().into();
    shown
}
