//! `/healthz`, `/readyz` and `/metrics`: is it alive, is it ready, what is counted.

use super::Served;
use crate::metrics;
use http::StatusCode;
use signalbox_runtime::Gateway;
use signalbox_runtime::status::BackendStatus;
use signalbox_transport::router::{Answer, Answered, Request};
use std::sync::Arc;

const TEXT: &str = "text/plain; charset=utf-8";

pub(super) async fn alive<S>(_: Arc<S>, _: Request) -> Answered {
    Ok(text(StatusCode::OK, "ok\n".to_owned()))
}

pub(super) async fn ready(served: Arc<Served>, _: Request) -> Answered {
    let app = served.app();
    let recording = app.recording.as_ref().filter(|recording| recording.is_required());
    let failing = recording.and_then(|recording| recording.stats().failing);
    Ok(readiness(&app.gateway, failing))
}

pub(super) async fn counted(served: Arc<Served>, _: Request) -> Answered {
    Ok(Answer::whole(StatusCode::OK, metrics::CONTENT_TYPE, metrics::render(served.app())))
}

/// Ready while something can be served, and recorded if that is asked for; the backends that are not up are named either
/// way. None is started for it.
fn readiness(gateway: &Gateway, not_recording: Option<String>) -> Answer {
    let serves = gateway.is_ready() || (gateway.backends().is_empty() && !gateway.is_draining());
    let ready = serves && not_recording.is_none();
    let mut body = if ready { "ready\n" } else { "not ready\n" }.to_owned();
    if gateway.is_draining() {
        body.push_str("the gateway is shutting down\n");
    }
    if let Some(why) = not_recording {
        body.push_str(&format!("calls cannot be recorded: {why}\n"));
    }
    for backend in gateway.status().backends.iter().filter(|backend| backend.state != "up") {
        let more = if backend.state == "asleep" { ": it is stopped, and its next use starts it" } else { "" };
        body.push_str(&format!("backend `{}` is {}{more}\n", backend.name, backend.state));
    }
    let unwell = |one: &BackendStatus| one.health.as_ref().is_some_and(|health| health.state == "unwell");
    for backend in gateway.status().backends.iter().filter(|backend| backend.state == "up" && unwell(backend)) {
        body.push_str(&format!("backend `{}` does not answer pings\n", backend.name));
    }
    text(if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, body)
}

fn text(status: StatusCode, body: String) -> Answer {
    Answer::whole(status, TEXT, body)
}
