//! `/api/v1/sessions`: who is connected.

use super::{millis, number};
use crate::control::{Call, Reply};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use signalbox_engine::SessionKey;
use signalbox_engine::front::{Lifecycle, Mode};
use signalbox_runtime::{CallInFlight, Gateway, Session};
use std::sync::Arc;
use std::time::Instant;

pub(super) fn serve(gateway: &Gateway, call: &Call, rest: &[&str]) -> Option<Reply> {
    Some(match (rest, &call.method) {
        ([], &Method::GET) => {
            let all: Vec<Value> = gateway.sessions.all().iter().map(|session| shown(session)).collect();
            Reply::ok(&all.into())
        }
        ([], _) => Reply::only("GET"),
        ([id], &Method::GET) => found(gateway, id).map_or_else(|reply| reply, |session| Reply::ok(&whole(&session))),
        ([id], &Method::DELETE) => found(gateway, id).map_or_else(
            |reply| reply,
            |session| {
                tracing::info!(session = %session.key, by = call.by, "a session is ended by a person");
                session.close();
                Reply::ok(&json!({"id": session.key.0, "done": "ended"}))
            },
        ),
        ([_], _) => Reply::only("GET or DELETE"),
        _ => return None,
    })
}

/// The session of this number, or with the id that its client holds.
fn found(gateway: &Gateway, id: &str) -> Result<Arc<Session>, Reply> {
    if let Some(session) = gateway.sessions.get(id) {
        return Ok(session);
    }
    let session = gateway.sessions.by_key(SessionKey(number(id)?)).filter(|session| !session.is_ended());
    let none =
        || Reply::error(StatusCode::NOT_FOUND, format!("there is no session {id}; see `signalbox sessions list`"));
    session.ok_or_else(none)
}

fn shown(session: &Session) -> Value {
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
    })
}

fn whole(session: &Session) -> Value {
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
    let mut shown = shown(session);
    shown["calls"] = session.calls().into_iter().map(call).collect::<Vec<_>>().into();
    shown
}
