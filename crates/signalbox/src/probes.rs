//! The plain routes beside the MCP endpoint: is it alive, is it ready, what is counted.

use crate::assemble::App;
use crate::metrics;
use http::Method;
use signalbox_runtime::Gateway;
use signalbox_runtime::status::BackendStatus;
use signalbox_transport::http_front::{ExtraAnswer, ExtraRoutes};
use std::sync::Arc;

const TEXT: &str = "text/plain; charset=utf-8";

/// `/healthz`, `/readyz` and `/metrics`.
#[must_use]
pub fn routes(app: App) -> ExtraRoutes {
    Arc::new(move |method, path| {
        let answer: fn(&App) -> ExtraAnswer = match path {
            "/healthz" => |_| text(200, "ok\n".to_owned()),
            "/readyz" => |app| readiness(&app.gateway),
            "/metrics" => {
                |app| ExtraAnswer { status: 200, content_type: metrics::CONTENT_TYPE, body: metrics::render(app) }
            }
            _ => return None,
        };
        if *method == Method::GET || *method == Method::HEAD {
            return Some(answer(&app));
        }
        Some(text(405, "only GET is served here\n".to_owned()))
    })
}

/// Ready while something can be served; the backends that cannot be are named either way.
fn readiness(gateway: &Gateway) -> ExtraAnswer {
    let ready = gateway.is_ready() || (gateway.backends().is_empty() && !gateway.is_draining());
    let mut body = if ready { "ready\n" } else { "not ready\n" }.to_owned();
    if gateway.is_draining() {
        body.push_str("the gateway is shutting down\n");
    }
    for backend in gateway.status().backends.iter().filter(|backend| backend.state != "up") {
        body.push_str(&format!("backend `{}` is {}\n", backend.name, backend.state));
    }
    let unwell = |one: &BackendStatus| one.health.as_ref().is_some_and(|health| health.state == "unwell");
    for backend in gateway.status().backends.iter().filter(|backend| backend.state == "up" && unwell(backend)) {
        body.push_str(&format!("backend `{}` does not answer pings\n", backend.name));
    }
    text(if ready { 200 } else { 503 }, body)
}

fn text(status: u16, body: String) -> ExtraAnswer {
    ExtraAnswer { status, content_type: TEXT, body }
}
