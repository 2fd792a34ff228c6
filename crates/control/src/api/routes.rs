//! The one list of routes besides MCP, with where each is mounted.

use super::{Served, breakpoints, holds, mcp, process, replay, sessions};
use http::Method;
pub use signalbox_config::listen::{HEALTH, METRICS, READY};
use signalbox_replay::run::ReplayHandle;
use signalbox_transport::router::{Answered, Mount, Route, RouteError, RoutedRequest, Router};
use std::sync::Arc;

/// The state of the process, as JSON.
pub const STATUS: &str = "/api/v1/status";
/// The version of the program, as JSON.
pub const VERSION: &str = "/api/v1/version";
/// Reads the configuration again.
pub const RELOAD: &str = "/api/v1/reload";
/// Facts, as they happen.
pub const LIVE: &str = "/api/v1/live";
/// Messages that wait for a person.
pub const HOLDS: &str = "/api/v1/holds";
/// Where messages are to be held.
pub const BREAKPOINTS: &str = "/api/v1/breakpoints";
/// Who is connected.
pub const SESSIONS: &str = "/api/v1/sessions";
/// The tools, each with its backend.
pub const TOOLS: &str = "/api/v1/tools";
/// Has the ring of the tape written.
pub const KEEP: &str = "/api/v1/tape/keep";
/// MCP, one message per line.
pub const MCP: &str = "/api/v1/mcp";
/// A run of a tape that somebody controls.
pub const REPLAY: &str = "/api/v1/replay";

/// The largest message that can be sent, or take the place of a held one.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// The router of a process.
///
/// # Errors
/// If the list cannot be served.
pub fn router(served: &Arc<Served>) -> Result<Arc<Router>, RouteError> {
    Router::new(list(served)).map(Arc::new)
}

/// The router of a process that replays a tape under control.
///
/// # Errors
/// If the list cannot be served.
pub fn replay_router(served: &Arc<Served>, run: &Arc<ReplayHandle>) -> Result<Arc<Router>, RouteError> {
    let mut all = list(served);
    all.extend(replay_list(run));
    Router::new(all).map(Arc::new)
}

/// `/api` is never at the listener while nobody has to say there who they are.
#[rustfmt::skip]
fn list(served: &Arc<Served>) -> Vec<Route> {
    use Mount::{Both, Control};
    let to = Bind(served);
    vec![
        to.route(Method::GET, HEALTH, Both, process::alive),
        to.route(Method::GET, READY, Both, process::ready),
        to.route(Method::GET, METRICS, Both, process::counted),

        to.route(Method::GET, STATUS, Control, process::status),
        to.route(Method::GET, VERSION, Control, process::version),
        to.route(Method::POST, RELOAD, Control, process::reload),
        to.route(Method::GET, LIVE, Control, process::live),

        to.route(Method::GET, HOLDS, Control, holds::list),
        to.route(Method::GET, "/api/v1/holds/{id}", Control, holds::show),
        to.route(Method::POST, "/api/v1/holds/{id}/release", Control, holds::release).max_body(MAX_MESSAGE),
        to.route(Method::POST, "/api/v1/holds/{id}/edit", Control, holds::edit).max_body(MAX_MESSAGE),
        to.route(Method::POST, "/api/v1/holds/{id}/answer", Control, holds::answer).max_body(MAX_MESSAGE),
        to.route(Method::POST, "/api/v1/holds/{id}/refuse", Control, holds::refuse).max_body(MAX_MESSAGE),

        to.route(Method::GET, BREAKPOINTS, Control, breakpoints::list),
        to.route(Method::POST, BREAKPOINTS, Control, breakpoints::set),
        to.route(Method::DELETE, BREAKPOINTS, Control, breakpoints::clear_all),
        to.route(Method::DELETE, "/api/v1/breakpoints/{id}", Control, breakpoints::clear),

        to.route(Method::GET, SESSIONS, Control, sessions::list),
        to.route(Method::GET, "/api/v1/sessions/{id}", Control, sessions::show),
        to.route(Method::DELETE, "/api/v1/sessions/{id}", Control, sessions::end),

        to.route(Method::POST, KEEP, Control, process::keep),

        to.route(Method::GET, TOOLS, Control, process::tools),
        to.route(Method::POST, MCP, Control, mcp::speak).max_body(MAX_MESSAGE),
    ]
}

/// What only a process has that replays a tape under control.
#[rustfmt::skip]
fn replay_list(run: &Arc<ReplayHandle>) -> Vec<Route> {
    use Mount::Control;
    let to = Bind(run);
    vec![
        to.route(Method::GET, REPLAY, Control, replay::show),
        to.route(Method::POST, "/api/v1/replay/play", Control, replay::play),
        to.route(Method::POST, "/api/v1/replay/pause", Control, replay::pause),
        to.route(Method::POST, "/api/v1/replay/stop", Control, replay::stop),
        to.route(Method::POST, "/api/v1/replay/step", Control, replay::step),
        to.route(Method::POST, "/api/v1/replay/seek", Control, replay::seek),
        to.route(Method::POST, "/api/v1/replay/speed", Control, replay::speed),
        to.route(Method::POST, "/api/v1/replay/breakpoints", Control, replay::set_breakpoint),
        to.route(Method::DELETE, "/api/v1/replay/breakpoints", Control, replay::clear_breakpoints),
        to.route(Method::DELETE, "/api/v1/replay/breakpoints/{id}", Control, replay::clear_breakpoint),
        to.route(Method::POST, "/api/v1/replay/inject", Control, replay::inject).max_body(MAX_MESSAGE),
        to.route(Method::POST, "/api/v1/replay/modify", Control, replay::modify).max_body(MAX_MESSAGE),
    ]
}

/// Gives handlers what they tell of.
pub(super) struct Bind<'a, S>(pub(super) &'a Arc<S>);

impl<S: Send + Sync + 'static> Bind<'_, S> {
    pub(super) fn route<H, F>(&self, method: Method, path: &'static str, mount: Mount, handler: H) -> Route
    where
        H: Fn(Arc<S>, RoutedRequest) -> F + Send + Sync + 'static,
        F: Future<Output = Answered> + Send + 'static,
    {
        let served = Arc::clone(self.0);
        Route::new(method, path, mount, move |request| handler(Arc::clone(&served), request))
    }
}
