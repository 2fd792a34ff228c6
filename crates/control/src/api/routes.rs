//! List of all routes besides MCP, and the listeners that they are mounted on.

use super::administration::{Administration, CallerGuard};
use super::authorization::OauthRoutes;
use super::process::Credentials;
use super::sign_in::SignInPages;
use super::{
    ApiState, anchors, approve, audit, authorization, breakpoints, grants, holds, mcp, process, replay, sessions,
    sign_in, switches,
};
use http::Method;
use signalbox_assembly::authentication::Authentication;
use signalbox_assembly::authorization::Authorization;
pub use signalbox_config::listen::{ANCHORS, HEALTH, METRICS, READY};
use signalbox_govern::ProtectedResource;
use signalbox_govern::resource::WELL_KNOWN;
use signalbox_oauth_client::oauth_client_state::CALLBACK;
use signalbox_oauth_server::metadata;
use signalbox_replay::run::ReplayHandle;
use signalbox_transport::router::{HandlerResult, HttpRoute, Mount, RouteAccess, RouteError, RoutedRequest, Router};
use std::sync::Arc;

/// Status of the process as JSON.
pub const STATUS: &str = "/api/v1/status";
/// Version of the program as JSON.
pub const VERSION: &str = "/api/v1/version";
/// Reload of the configuration file.
pub const RELOAD: &str = "/api/v1/reload";
/// Reads changed files of keys, users and grants again.
pub const CREDENTIALS: &str = "/api/v1/credentials/refresh";
/// Drops what a user saw at a backend after the user's token for it is gone.
pub const SIGNED_OUT: &str = "/api/v1/credentials/signed-out";
/// Live feed of facts.
pub const LIVE: &str = "/api/v1/live";
/// Messages that wait for a person.
pub const HOLDS: &str = "/api/v1/holds";
/// Entries and callers that are switched off.
pub const SWITCHES: &str = "/api/v1/switches";
/// Permissions with an expiry.
pub const GRANTS: &str = "/api/v1/grants";
/// Removal of a switch.
pub const LIFT_SWITCH: &str = "/api/v1/switches/lift";
/// Conditions for messages to hold.
pub const BREAKPOINTS: &str = "/api/v1/breakpoints";
/// Open sessions and their clients.
pub const SESSIONS: &str = "/api/v1/sessions";
/// Tools, each with its backend.
pub const TOOLS: &str = "/api/v1/tools";
/// Definitions of tools as their backends sent them.
pub const DEFINITIONS: &str = "/api/v1/tools/definitions";
/// Writes the ring to the tape.
pub const KEEP: &str = "/api/v1/tape/keep";
/// MCP, one message per line.
pub const MCP: &str = "/api/v1/mcp";
/// Records of the audit log.
pub const AUDIT: &str = "/api/v1/audit";
/// Control of a running replay.
pub const REPLAY: &str = "/api/v1/replay";

/// Role that may use the API at the listener.
pub const ADMIN: &str = "admin";

/// Role that may decide about held messages.
pub const APPROVER: &str = "approver";

/// Maximum size in bytes of a message that is sent, or that replaces a held one.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// Creates the router of a process.
///
/// # Errors
/// If two routes conflict.
pub fn router(served: &Arc<ApiState>, authentication: Option<&Arc<Authentication>>) -> Result<Arc<Router>, RouteError> {
    let server = authentication.and_then(|authentication| authentication.server());
    let mut all = list(served);
    all.push(credentials_route(served, authentication));
    all.extend(sign_in_list(served, server));
    all.extend(approve_list(served, server));
    all.extend(authentication.and_then(|authentication| authentication.resource()).into_iter().flat_map(resource_list));
    all.extend(server.into_iter().flat_map(|server| authorization_list(served, server)));
    all.extend(served.app().relay.iter().flat_map(signalbox_relay::routes::routes));
    let router = Router::new(all)?.observed_by(Arc::new(Administration(Arc::clone(served))));
    Ok(Arc::new(router.guarded_by(Arc::new(CallerGuard(Arc::clone(served))))))
}

/// Creates the router of a process that replays a tape under control.
///
/// # Errors
/// If two routes conflict.
pub fn replay_router(served: &Arc<ApiState>, run: &Arc<ReplayHandle>) -> Result<Arc<Router>, RouteError> {
    let mut all = list(served);
    all.extend(sign_in_list(served, None));
    all.extend(replay_list(run));
    Ok(Arc::new(Router::new(all)?.guarded_by(Arc::new(CallerGuard(Arc::clone(served))))))
}

/// Returns the general routes. `/api` is also on the listener, for callers with the role [`ADMIN`].
fn list(served: &Arc<ApiState>) -> Vec<HttpRoute> {
    let guarded = api_list(served).into_iter().map(|route| route.access(RouteAccess::Role(ADMIN)));
    let decided = hold_list(served).into_iter().map(|route| route.access(RouteAccess::EitherRole([APPROVER, ADMIN])));
    let to = Bind(served);
    let mut all = vec![
        to.route(Method::GET, HEALTH, Mount::Both, process::alive).access(RouteAccess::Open).probe(),
        to.route(Method::GET, READY, Mount::Both, process::ready).access(RouteAccess::Open).probe(),
        to.route(Method::GET, METRICS, Mount::Both, process::counted),
        // The sender is authenticated by the signature of the body.
        to.route(Method::POST, ANCHORS, Mount::Both, anchors::keep)
            .max_body(anchors::MAX_HEAD)
            .access(RouteAccess::Open),
    ];
    // Auditors need not be administrators, so the handlers check the roles themselves.
    all.extend([
        to.route(Method::GET, AUDIT, Mount::Both, audit::search).access(RouteAccess::Caller).audited(audit::READ),
        to.route(Method::GET, "/api/v1/audit/status", Mount::Both, audit::status).access(RouteAccess::Caller),
    ]);
    all.extend(guarded);
    all.extend(decided);
    all
}

fn credentials_route(served: &Arc<ApiState>, authentication: Option<&Arc<Authentication>>) -> HttpRoute {
    let credentials = Credentials { served: Arc::clone(served), authentication: authentication.cloned() };
    let route =
        Bind(&Arc::new(credentials)).route(Method::POST, CREDENTIALS, Mount::Both, process::refresh_credentials);
    route.access(RouteAccess::Role(ADMIN)).audited("credentials.refresh")
}

/// Returns the pages of sign-ins at backends. A browser proves its identity by a sign-in at the gateway, if that is
/// possible.
fn sign_in_list(served: &Arc<ApiState>, server: Option<&Arc<Authorization>>) -> Vec<HttpRoute> {
    let pages = Arc::new(SignInPages { served: Arc::clone(served), server: server.cloned() });
    let to = Bind(&pages);
    let all = vec![
        to.route(Method::GET, "/auth/connect/{ticket}", Mount::Listener, sign_in::connect),
        to.route(Method::POST, "/auth/connect/{ticket}", Mount::Listener, sign_in::confirm),
        to.route(Method::GET, CALLBACK, Mount::Listener, sign_in::callback),
    ];
    // Most browsers have no credential, so the handlers check access.
    all.into_iter().map(|route| route.access(RouteAccess::Open)).collect()
}

/// Returns the pages on which approvers decide. The link is a secret of its recipients; the handlers check who decides.
fn approve_list(served: &Arc<ApiState>, server: Option<&Arc<Authorization>>) -> Vec<HttpRoute> {
    let pages = Arc::new(SignInPages { served: Arc::clone(served), server: server.cloned() });
    let to = Bind(&pages);
    let all = vec![
        to.route(Method::GET, "/approve/{link}", Mount::Listener, approve::show),
        to.route(Method::POST, "/approve/{link}", Mount::Listener, approve::decide),
        to.route(Method::GET, "/approve/{link}/sign-in", Mount::Listener, approve::sign_in),
    ];
    all.into_iter().map(|route| route.access(RouteAccess::Open).max_body(approve::MAX_FORM)).collect()
}

/// Returns the metadata that tells clients where to get tokens, at the root and at the path of the MCP endpoint.
fn resource_list(resource: &Arc<ProtectedResource>) -> Vec<HttpRoute> {
    let to = Bind(resource);
    let [at_root, at_path] = [WELL_KNOWN, "/.well-known/oauth-protected-resource/{*path}"];
    [at_root, at_path]
        .map(|path| to.route(Method::GET, path, Mount::Listener, process::resource).access(RouteAccess::Open))
        .into()
}

/// Returns the routes of the gateway's own authorization server, which authenticates its clients itself.
#[rustfmt::skip]
fn authorization_list(served: &Arc<ApiState>, server: &Arc<Authorization>) -> Vec<HttpRoute> {
    use Mount::Listener;
    let routes = Arc::new(OauthRoutes { served: Arc::clone(served), server: Arc::clone(server) });
    let to = Bind(&routes);
    let all = vec![
        to.route(Method::GET, metadata::WELL_KNOWN, Listener, authorization::metadata),
        to.route(Method::GET, metadata::JWKS, Listener, authorization::key_set),
        to.route(Method::GET, metadata::AUTHORIZE, Listener, authorization::authorize),
        to.route(Method::POST, metadata::SIGN_IN, Listener, authorization::sign_in),
        to.route(Method::POST, metadata::CONSENT, Listener, authorization::consent),
        to.route(Method::GET, metadata::OPENID, Listener, authorization::openid),
        to.route(Method::POST, metadata::TOKEN, Listener, authorization::token),
        to.route(Method::POST, metadata::REGISTER, Listener, authorization::register),
        to.route(Method::POST, metadata::REVOKE, Listener, authorization::revoke),
    ];
    all.into_iter().map(|route| route.access(RouteAccess::Open).max_body(authorization::MAX_BODY)).collect()
}

#[rustfmt::skip]
fn api_list(served: &Arc<ApiState>) -> Vec<HttpRoute> {
    use Mount::{Both, Control};
    let to = Bind(served);
    vec![

        to.route(Method::GET, STATUS, Both, process::status),
        to.route(Method::GET, VERSION, Both, process::version),
        to.route(Method::POST, RELOAD, Both, process::reload).audited("config.reload"),
        to.route(Method::POST, SIGNED_OUT, Control, process::signed_out),
        to.route(Method::GET, LIVE, Both, process::live).audited("live.read"),

        to.route(Method::GET, SWITCHES, Both, switches::list),
        to.route(Method::POST, SWITCHES, Both, switches::set).audited("switch.set"),
        to.route(Method::POST, LIFT_SWITCH, Both, switches::lift).audited("switch.lift"),

        to.route(Method::GET, BREAKPOINTS, Both, breakpoints::list),
        to.route(Method::POST, BREAKPOINTS, Both, breakpoints::set).audited("breakpoint.set"),
        to.route(Method::DELETE, BREAKPOINTS, Both, breakpoints::clear_all).audited("breakpoint.clear"),
        to.route(Method::DELETE, "/api/v1/breakpoints/{id}", Both, breakpoints::clear).audited("breakpoint.clear"),

        to.route(Method::GET, SESSIONS, Both, sessions::list),
        to.route(Method::GET, "/api/v1/sessions/{id}", Both, sessions::show),
        to.route(Method::DELETE, "/api/v1/sessions/{id}", Both, sessions::end).audited("session.end"),

        to.route(Method::POST, KEEP, Both, process::keep).audited("tape.keep"),

        to.route(Method::GET, TOOLS, Both, process::tools),
        to.route(Method::GET, DEFINITIONS, Both, process::definitions),
        to.route(Method::POST, MCP, Control, mcp::speak).max_body(MAX_MESSAGE),
    ]
}

/// Returns the routes of held messages and grants, for approvers and administrators.
#[rustfmt::skip]
fn hold_list(served: &Arc<ApiState>) -> Vec<HttpRoute> {
    use Mount::Both;
    let to = Bind(served);
    vec![
        to.route(Method::GET, GRANTS, Both, grants::list),
        to.route(Method::POST, GRANTS, Both, grants::add).audited("grant.add"),
        to.route(Method::DELETE, "/api/v1/grants/{id}", Both, grants::revoke).audited("grant.revoke"),

        to.route(Method::GET, HOLDS, Both, holds::list),
        to.route(Method::GET, "/api/v1/holds/{id}", Both, holds::show).audited("hold.read"),
        to.route(Method::POST, "/api/v1/holds/{id}/release", Both, holds::release).max_body(MAX_MESSAGE).audited("hold.release"),
        to.route(Method::POST, "/api/v1/holds/{id}/edit", Both, holds::edit).max_body(MAX_MESSAGE).audited("hold.edit"),
        to.route(Method::POST, "/api/v1/holds/{id}/answer", Both, holds::answer).max_body(MAX_MESSAGE).audited("hold.answer"),
        to.route(Method::POST, "/api/v1/holds/{id}/refuse", Both, holds::refuse).max_body(MAX_MESSAGE).audited("hold.refuse"),
    ]
}

/// Returns the routes that only a process with a controlled replay has.
#[rustfmt::skip]
fn replay_list(run: &Arc<ReplayHandle>) -> Vec<HttpRoute> {
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

/// Binds handlers to their shared state.
pub(super) struct Bind<'a, S>(pub(super) &'a Arc<S>);

impl<S: Send + Sync + 'static> Bind<'_, S> {
    pub(super) fn route<H, F>(&self, method: Method, path: &'static str, mount: Mount, handler: H) -> HttpRoute
    where
        H: Fn(Arc<S>, RoutedRequest) -> F + Send + Sync + 'static,
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        let served = Arc::clone(self.0);
        HttpRoute::new(method, path, mount, move |request| handler(Arc::clone(&served), request))
    }
}
