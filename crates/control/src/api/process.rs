//! Routes for the process as a whole: probes and metrics, `/api/v1/status`, `version`, `reload`, `live`, `tools` and
//! `tape/keep`.

use super::{ApiState, ok};
use crate::definition_list::DefinitionList;
use crate::in_process_session::InProcessSession;
use crate::metrics::{self, VisibleNames};
use crate::tool_list::ToolList;
use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use signalbox_assembly::authentication::Authentication;
use signalbox_assembly::live_feed::{LiveFeed, Watching};
use signalbox_assembly::recording::KeepError;
use signalbox_assembly::reload::{ReloadError, ReloadTrigger};
use signalbox_engine::Principal;
use signalbox_govern::resource::WELL_KNOWN;
use signalbox_govern::{Permissions, ProtectedResource};
use signalbox_runtime::Gateway;
use signalbox_runtime::clock::unix_millis;
use signalbox_runtime::status::BackendStatus;
use signalbox_transport::router::{
    AnswerEvent, Chunks as _, Events, HandlerResult, RouteFault, RoutedAnswer, RoutedRequest,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Content type of the live feed: one line of JSON per fact.
const LINES: &str = "application/x-ndjson";

pub(super) async fn status(served: Arc<ApiState>, _: RoutedRequest) -> HandlerResult {
    status_answer(served.overview.json())
}

/// Answers with the status of a process, if it could be serialised.
pub(super) fn status_answer(state: serde_json::Result<String>) -> HandlerResult {
    state
        .map(|text| RoutedAnswer::json(StatusCode::OK, text))
        .map_err(|error| RouteFault::new(StatusCode::INTERNAL_SERVER_ERROR, format_args!("the status: {error}")))
}

pub(super) async fn version<S>(_: Arc<S>, _: RoutedRequest) -> HandlerResult {
    Ok(ok(&json!({"name": "signalbox", "version": env!("CARGO_PKG_VERSION")})))
}

/// Answers with the metadata of the MCP endpoint as a protected resource, at the address that the client used.
pub(super) async fn resource(resource: Arc<ProtectedResource>, request: RoutedRequest) -> HandlerResult {
    let path = request.path.strip_prefix(WELL_KNOWN).unwrap_or_default();
    let host = request.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
    match resource.address.of_metadata(host, path) {
        Some(own) => Ok(RoutedAnswer::json(StatusCode::OK, resource.metadata(&own))),
        None => Err(RouteFault::NothingHere),
    }
}

pub(super) async fn reload(served: Arc<ApiState>, _: RoutedRequest) -> HandlerResult {
    let done = served.reloader.reload(ReloadTrigger::Command).await;
    let mut answer = json!({"command": served.overview.command(), "pid": std::process::id(), "ok": done.is_ok()});
    match done {
        Ok(summary) => {
            answer["text"] = json!(summary.to_string());
            answer["summary"] = json!(summary);
        }
        Err(error) => {
            answer["error"] = json!(error.to_string());
            if let ReloadError::Partly { summary, .. } = &error {
                (answer["partly"], answer["summary"]) = (json!(true), json!(summary));
            }
        }
    }
    Ok(ok(&answer))
}

/// Credentials of callers, and the sessions that end with them.
pub(super) struct Credentials {
    pub served: Arc<ApiState>,
    /// `None` where callers are not authenticated, such as on a pipe.
    pub authentication: Option<Arc<Authentication>>,
}

/// Reads changed files of keys, users, grants and switches now, so that the command which changed them can report that
/// the change is in force.
pub(super) async fn refresh_credentials(credentials: Arc<Credentials>, _: RoutedRequest) -> HandlerResult {
    // A removed user loses its grants before anything of it ends.
    let reloader = Arc::clone(&credentials.served.reloader);
    let _ = tokio::task::spawn_blocking(move || reloader.follow_govern_files()).await;
    let ended = match &credentials.authentication {
        Some(authentication) => authentication.follow_files(&credentials.served.app().gateway).await,
        // Callers may still be authenticated by signatures.
        None => credentials.served.app().gateway.end_lapsed(unix_millis()),
    };
    // Keys that were valid only for a moment are audited too.
    let reloader = Arc::clone(&credentials.served.reloader);
    let _ = tokio::task::spawn_blocking(move || reloader.tell_of_admin_files()).await;
    Ok(ok(
        &json!({"command": credentials.served.overview.command(), "pid": std::process::id(), "sessions_ended": ended}),
    ))
}

/// Closes the connections of the user `user` to the backend `backend`, whose token for it is gone, and drops the lists
/// that the user saw there. The token itself is read from the store at each request.
pub(super) async fn signed_out(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let [name, user] = ["backend", "user"].map(|name| request.query.get(name).unwrap_or_default());
    let backends = served.app().gateway.backends();
    let backend = backends.get(name).ok_or(RouteFault::NothingHere)?;
    backend.signed_out(&Principal::named(user));
    Ok(ok(&json!({"backend": name, "user": user})))
}

pub(super) async fn live(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    watch(&served.app().live, &request, Some(Arc::clone(&served.app().govern.permissions)))
}

/// Streams facts as they happen: as lines, or as events for a client that prefers them, such as a browser.
pub(super) fn watch(
    live: &Arc<LiveFeed>,
    request: &RoutedRequest,
    switches: Option<Arc<Permissions>>,
) -> HandlerResult {
    match live.watch(request.caller.clone(), switches) {
        Ok(watching) if request.wants_events() => {
            Ok(RoutedAnswer::events(FactEvents { watching, waiting: VecDeque::new() }))
        }
        Ok(watching) => Ok(RoutedAnswer::live(LINES, watching)),
        Err(error) => Err(RouteFault::new(StatusCode::SERVICE_UNAVAILABLE, error)),
    }
}

/// Live feed with one event per line.
struct FactEvents {
    watching: Watching,
    /// Lines that are not sent yet.
    waiting: VecDeque<Bytes>,
}

impl Events for FactEvents {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<AnswerEvent>> {
        loop {
            if let Some(data) = self.waiting.pop_front() {
                return Poll::Ready(Some(AnswerEvent { data, ..AnswerEvent::default() }));
            }
            let Some(Ok(lines)) = ready!(self.watching.poll_chunk(cx)) else { return Poll::Ready(None) };
            let whole = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            self.waiting.extend(whole.map(|line| lines.slice_ref(line)));
        }
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

pub(super) async fn alive<S>(_: Arc<S>, _: RoutedRequest) -> HandlerResult {
    Ok(text(StatusCode::OK, "ok\n".to_owned()))
}

pub(super) async fn ready(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let app = served.app();
    let recording = app.recording.as_ref().filter(|recording| recording.is_required());
    let failing = recording.and_then(|recording| recording.stats().failing);
    Ok(readiness(&app.gateway, failing, &served.visible_names(&request.caller, false)))
}

pub(super) async fn counted(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let mut page = metrics::render(served.app(), served.visible_names(&request.caller, served.metrics_have_secret));
    if let Some(relay) = &served.app().relay {
        page.push_str(&relay.counts.page(relay.settings.phase, relay.store.counts()));
        page.push_str(&relay.store.metrics());
    }
    Ok(RoutedAnswer::whole(StatusCode::OK, metrics::CONTENT_TYPE, page))
}

/// Answers 200 while the gateway can serve a call, and record it if recording is required. Names the backends that are
/// not up in either case, if the caller may know of them. Does not start any backend.
fn readiness(gateway: &Gateway, not_recording: Option<String>, names: &VisibleNames) -> RoutedAnswer {
    let serves = gateway.is_ready() || (gateway.backends().is_empty() && !gateway.is_draining());
    let ready = serves && not_recording.is_none();
    let mut body = if ready { "ready\n" } else { "not ready\n" }.to_owned();
    if gateway.is_draining() {
        body.push_str("the gateway is shutting down\n");
    }
    if let Some(why) = not_recording {
        body.push_str(&format!("calls cannot be recorded: {why}\n"));
    }
    let mut backends = gateway.status().backends;
    backends.retain(|backend| names.shows_backend(&backend.name));
    for backend in backends.iter().filter(|backend| backend.state != "up") {
        let more = match backend.state {
            "asleep" => ": it is stopped, and its next use starts it",
            "waiting" => ": the credential of its next caller opens it",
            _ => "",
        };
        body.push_str(&format!("backend `{}` is {}{more}\n", backend.name, backend.state));
    }
    let unwell = |one: &BackendStatus| one.health.as_ref().is_some_and(|health| health.state == "unwell");
    for backend in backends.iter().filter(|backend| backend.state == "up" && unwell(backend)) {
        body.push_str(&format!("backend `{}` does not answer pings\n", backend.name));
    }
    text(if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, body)
}

fn text(status: StatusCode, body: String) -> RoutedAnswer {
    RoutedAnswer::whole(status, TEXT, body)
}

/// Writes the contents of the ring to the tape.
pub(super) async fn keep(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let app = served.app();
    let none = || RouteFault::new(StatusCode::CONFLICT, "nothing is recorded: `record.enabled` is false");
    let recording = app.recording.as_ref().ok_or_else(none)?;
    // Facts up to now belong to the ring.
    app.gateway.settle();
    let kept = recording.keep().await.map_err(|error| {
        let status = match error {
            KeepError::NoRing(_) => StatusCode::CONFLICT,
            KeepError::NotWritten(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        RouteFault::new(status, error)
    })?;
    let (tape, entries) = (&kept.tape.id, kept.entries);
    tracing::info!(entries, %tape, by = %request.caller, "a person had the ring written to the tape");
    Ok(ok(&json!({"tape": tape, "entries": entries})))
}

pub(super) async fn tools(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let failed = |error| RouteFault::new(StatusCode::SERVICE_UNAVAILABLE, error);
    let gateway = &served.app().gateway;
    let mut pipe = InProcessSession::open(gateway, request.caller.clone()).await.map_err(failed)?;
    let tools = ToolList::ask(&mut pipe, gateway, &served.reloader.current()).await.map_err(failed)?;
    Ok(ok(&tools.to_json()))
}

/// Answers with the definitions of all tools, once the backends whose lists are awaited have sent them.
pub(super) async fn definitions(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let failed = |error| RouteFault::new(StatusCode::SERVICE_UNAVAILABLE, error);
    let app = served.app();
    let mut pipe = InProcessSession::open(&app.gateway, request.caller.clone()).await.map_err(failed)?;
    pipe.request("tools/list", json!({}), |_| ()).await.map_err(failed)?;
    let quarantine = app.govern.permissions.quarantine();
    Ok(ok(&json!(DefinitionList::of(&app.gateway, &quarantine.tools()))))
}
