//! API of `wrap` and `proxy`: their status and the live feed. Messages cannot be held or changed, because they are
//! forwarded before they are shown; requests to do so are refused with the reason.

use super::routes::{BREAKPOINTS, Bind, HEALTH, HOLDS, KEEP, LIVE, RELOAD, SESSIONS, STATUS, TOOLS, VERSION};
use super::{ok, process};
use crate::status::PassageOverview;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use signalbox_assembly::live_feed::LiveFeed;
use signalbox_transport::router::{HandlerResult, Mount, RouteError, RouteFault, RoutedRequest, Router};
use std::sync::Arc;

/// API state of a process that forwards bytes.
pub struct TransparentApi {
    overview: PassageOverview,
    live: Arc<LiveFeed>,
}

impl TransparentApi {
    /// Creates the state from the status and the live feed of the process.
    #[must_use]
    pub fn new(overview: PassageOverview, live: &Arc<LiveFeed>) -> Arc<Self> {
        Arc::new(Self { overview, live: Arc::clone(live) })
    }

    fn why_nothing_is_held(&self) -> String {
        let command = self.overview.command();
        format!("`{command}` passes every byte on as it comes and can hold nothing; with --rules FILE it can")
    }
}

/// Creates the router of a process that forwards bytes.
///
/// # Errors
/// If two routes conflict.
#[rustfmt::skip]
pub fn router(passing: &Arc<TransparentApi>) -> Result<Arc<Router>, RouteError> {
    let to = Bind(passing);
    let list = vec![
        to.route(Method::GET, HEALTH, Mount::Control, process::alive),
        to.route(Method::GET, VERSION, Mount::Control, process::version),
        to.route(Method::GET, STATUS, Mount::Control, status),
        to.route(Method::GET, LIVE, Mount::Control, live),
        to.route(Method::POST, RELOAD, Mount::Control, reload),

        // A client that asks every process for its holds gets an answer from this one too.
        to.route(Method::GET, HOLDS, Mount::Control, empty_list),
        to.route(Method::GET, BREAKPOINTS, Mount::Control, empty_list),
        to.route(Method::DELETE, BREAKPOINTS, Mount::Control, none_cleared),
        to.route(Method::POST, BREAKPOINTS, Mount::Control, cannot_hold),
        to.route(Method::GET, "/api/v1/holds/{id}", Mount::Control, holds_none),
        to.route(Method::GET, SESSIONS, Mount::Control, empty_list),
        to.route(Method::GET, "/api/v1/sessions/{id}", Mount::Control, no_sessions),
        to.route(Method::GET, TOOLS, Mount::Control, no_tools),
        to.route(Method::POST, KEEP, Mount::Control, no_ring),
    ];
    Router::new(list).map(Arc::new)
}

async fn status(passing: Arc<TransparentApi>, _: RoutedRequest) -> HandlerResult {
    process::status_answer(passing.overview.json())
}

async fn live(passing: Arc<TransparentApi>, request: RoutedRequest) -> HandlerResult {
    process::watch(&passing.live, &request, None)
}

async fn reload(passing: Arc<TransparentApi>, _: RoutedRequest) -> HandlerResult {
    let (command, pid) = (passing.overview.command(), std::process::id());
    Ok(ok(&json!({"command": command, "pid": pid, "ok": true, "text": "it has no configuration to reload"})))
}

async fn empty_list(_: Arc<TransparentApi>, _: RoutedRequest) -> HandlerResult {
    Ok(ok(&Value::Array(Vec::new())))
}

async fn none_cleared(_: Arc<TransparentApi>, _: RoutedRequest) -> HandlerResult {
    Ok(ok(&json!({"cleared": 0})))
}

async fn cannot_hold(passing: Arc<TransparentApi>, _: RoutedRequest) -> HandlerResult {
    Err(RouteFault::new(StatusCode::CONFLICT, passing.why_nothing_is_held()))
}

async fn holds_none(passing: Arc<TransparentApi>, _: RoutedRequest) -> HandlerResult {
    Err(RouteFault::new(StatusCode::NOT_FOUND, passing.why_nothing_is_held()))
}

async fn no_sessions(passing: Arc<TransparentApi>, _: RoutedRequest) -> HandlerResult {
    let command = passing.overview.command();
    let why = format!("`{command}` passes bytes on and keeps no sessions; `signalbox watch` shows what passes");
    Err(RouteFault::new(StatusCode::NOT_FOUND, why))
}

async fn no_ring(passing: Arc<TransparentApi>, _: RoutedRequest) -> HandlerResult {
    let why = format!("`{}` holds nothing back: all that it records is on the tape", passing.overview.command());
    Err(RouteFault::new(StatusCode::CONFLICT, why))
}

async fn no_tools(passing: Arc<TransparentApi>, _: RoutedRequest) -> HandlerResult {
    let command = passing.overview.command();
    let why = format!("`{command}` passes bytes on and asks the server nothing itself; its client knows the tools");
    Err(RouteFault::new(StatusCode::CONFLICT, why))
}
