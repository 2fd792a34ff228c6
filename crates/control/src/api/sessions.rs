//! `/api/v1/sessions`: who is connected.

use super::{Served, millis, number, ok};
use http::StatusCode;
use serde_json::{Value, json};
use signalbox_engine::SessionKey;
use signalbox_engine::front::{Lifecycle, Mode};
use signalbox_runtime::{CallInFlight, Session};
use signalbox_transport::router::{Answered, Problem, RoutedRequest};
use std::sync::Arc;
use std::time::Instant;

pub(super) async fn list(served: Arc<Served>, _: RoutedRequest) -> Answered {
    let all: Vec<Value> = served.app().gateway.sessions.all().iter().map(|session| shown(session)).collect();
    Ok(ok(&all.into()))
}

pub(super) async fn show(served: Arc<Served>, request: RoutedRequest) -> Answered {
    Ok(ok(&whole(&*found(&served, &request)?)))
}

pub(super) async fn end(served: Arc<Served>, request: RoutedRequest) -> Answered {
    let session = found(&served, &request)?;
    tracing::info!(session = %session.key, by = %request.caller, "session ended by a person");
    session.close();
    Ok(ok(&json!({"id": session.key.0, "done": "ended"})))
}

/// The session of the number in the path, or with the id that its client holds.
fn found(served: &Served, request: &RoutedRequest) -> Result<Arc<Session>, Problem> {
    let (sessions, id) = (&served.app().gateway.sessions, request.segment("id"));
    if let Some(session) = sessions.get(id) {
        return Ok(session);
    }
    let session = sessions.by_key(SessionKey(number(id)?)).filter(|session| !session.is_ended());
    let none = || format!("there is no session {id}; see `signalbox sessions list`");
    session.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, none()))
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
