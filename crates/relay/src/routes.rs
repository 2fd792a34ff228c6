//! Legacy routes, pages and metadata: everything of the relay that is not MCP.

mod legacy_request;
mod metadata;
mod pages;
mod polling;
mod request;
mod response;
mod sessions;
mod stream;
mod tools;
mod well_known;

use crate::counters::family;
use crate::refusal::LegacyRefusal;
use crate::relay::Relay;
use crate::settings::MigrationPhase;
use crate::when;
use http::header::{CACHE_CONTROL, LINK, REFERRER_POLICY, WARNING};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use legacy_request::{RouteRefusal, user_agent};
pub use response::{MAX_ERROR, MAX_PROGRESS};
use signalbox_engine::{Caller, Fault, FaultKind};
use signalbox_transport::router::{HttpRoute, Mount, RouteAccess, RoutedAnswer, RoutedRequest};
use std::pin::Pin;
use std::sync::Arc;

/// Methods that are routed; others are not found.
const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH];
/// Path of the relay's metrics.
pub const METRICS: &str = "/api/mcp/metrics";
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Future of a running handler.
type HandlerFuture = Pin<Box<dyn Future<Output = Result<RoutedAnswer, RouteRefusal>> + Send>>;
type Handler = fn(Arc<Relay>, RoutedRequest) -> HandlerFuture;

/// A legacy route with its handler.
#[derive(Copy, Clone)]
struct Legacy {
    path: &'static str,
    /// Name under which its uses are counted.
    name: &'static str,
    method: &'static str,
    handler: Handler,
}

const LEGACY: [Legacy; 7] = [
    Legacy {
        path: "/api/sessions",
        name: "sessions",
        method: "POST",
        handler: |r, q| Box::pin(sessions::create(r, q)),
    },
    Legacy { path: "/api/metadata", name: "metadata", method: "GET", handler: |r, q| Box::pin(metadata::list(r, q)) },
    Legacy { path: "/api/request", name: "request", method: "POST", handler: |r, q| Box::pin(request::take(r, q)) },
    Legacy {
        path: "/api/request/{code}",
        name: "request",
        method: "GET",
        handler: |r, q| Box::pin(polling::poll(r, q)),
    },
    Legacy { path: "/api/response", name: "response", method: "POST", handler: |r, q| Box::pin(response::take(r, q)) },
    Legacy { path: "/api/stream", name: "stream", method: "GET", handler: |r, q| Box::pin(stream::open(r, q)) },
    Legacy { path: "/api/tools", name: "tools", method: "PUT", handler: |r, q| Box::pin(tools::put(r, q)) },
];

/// Returns true for the path of a legacy route or of the relay's description.
#[must_use]
pub fn is_legacy(path: &str) -> bool {
    let below = path.strip_prefix("/api/request/").is_some_and(|code| !code.is_empty() && !code.contains('/'));
    below || path == well_known::PATH || LEGACY.iter().any(|route| route.path == path)
}

/// Returns all routes of a relay.
#[must_use]
pub fn routes(relay: &Arc<Relay>) -> Vec<HttpRoute> {
    let mut all = Vec::new();
    for legacy in LEGACY {
        for method in METHODS {
            let (relay, limit) = (Arc::clone(relay), relay.settings.limits.body);
            // Other methods become calls, which are refused and recorded as such.
            let is_read = method == Method::GET;
            let route = HttpRoute::new(method, legacy.path, Mount::Listener, move |asked: RoutedRequest| {
                let relay = Arc::clone(&relay);
                async move { Ok(serve(relay, legacy, asked).await) }
            });
            let route = route.access(RouteAccess::Open).max_body(limit).reports_refusals();
            all.push(if is_read { route.guarded() } else { route });
        }
    }
    all.extend(pages::routes(relay));
    all.push(well_known::route(relay));
    all.push(metrics(relay));
    all
}

/// Returns the route of the relay's metrics, for callers that may use MCP. `/metrics` includes them too.
fn metrics(relay: &Arc<Relay>) -> HttpRoute {
    let relay = Arc::clone(relay);
    HttpRoute::new(Method::GET, METRICS, Mount::Listener, move |_| {
        let mut page = relay.counts.page(relay.settings.phase, relay.store.counts());
        page.push_str(&relay.store.metrics());
        async move { Ok(RoutedAnswer::whole(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", page)) }
    })
    .access(RouteAccess::Caller)
    .reports_refusals()
}

/// Serves a legacy request according to the migration phase.
async fn serve(relay: Arc<Relay>, legacy: Legacy, asked: RoutedRequest) -> RoutedAnswer {
    let client = family(user_agent(&asked));
    relay.counts.used(legacy.name, client);
    // Pages need some of the routes in every phase: stream, answers, tools and sessions.
    let for_pages = !matches!(legacy.path, "/api/metadata" | "/api/request");
    let gone = relay.settings.phase == MigrationPhase::McpOnly && !(for_pages && legacy_request::is_page(&asked));
    let caller = asked.caller.clone();
    let answered = match asked.method.as_str() {
        _ if gone => Err(RouteRefusal::of(LegacyRefusal::Gone(relay.base().to_owned()))),
        method if method == legacy.method || (method == "HEAD" && legacy.method == "GET") => {
            (legacy.handler)(Arc::clone(&relay), asked).await
        }
        _ => Err(RouteRefusal::of(LegacyRefusal::MethodNotAllowed(legacy.method))),
    };
    let mut answer = answered.unwrap_or_else(|refused| {
        let answer = refused.answer();
        record_refusal(&relay, &caller, answer.status, &refused);
        answer
    });
    answer.headers.entry(CACHE_CONTROL).or_insert(NO_STORE);
    answer.headers.insert(REFERRER_POLICY, NO_REFERRER);
    if relay.settings.phase != MigrationPhase::Dual
        && !(for_pages && !gone && relay.settings.phase == MigrationPhase::McpOnly)
    {
        deprecate(&relay, &mut answer, client);
    }
    answer
}

/// Records a refusal like those of MCP requests.
fn record_refusal(relay: &Relay, caller: &Caller, status: StatusCode, refused: &RouteRefusal) {
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS => FaultKind::RateLimited,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => FaultKind::Unauthenticated,
        StatusCode::GONE => FaultKind::SessionClosed,
        _ => FaultKind::InvalidRequest,
    };
    if let Some(gateway) = relay.gateway() {
        gateway.refused(caller, Some(status.as_u16()), &Fault::new(kind, refused.words()), None);
    }
}

/// Adds headers that announce the removal of the legacy routes.
fn deprecate(relay: &Relay, answer: &mut RoutedAnswer, client: &'static str) {
    let base = relay.base();
    let mut set = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            answer.headers.insert(name, value);
        }
    };
    set(HeaderName::from_static("deprecation"), format!("@{}", relay.started / 1_000));
    if let Some(sunset) = relay.settings.sunset.as_deref().and_then(when::http_date) {
        set(HeaderName::from_static("sunset"), sunset);
    }
    let links = format!(
        "<{base}/relay/migrate>; rel=\"deprecation\"; type=\"text/html\", <{base}/api/mcp>; rel=\"successor-version\""
    );
    set(LINK, links);
    set(WARNING, "299 - \"this API is deprecated; use MCP at /api/mcp, see /relay/migrate\"".to_owned());
    if relay.warn_once(client) {
        tracing::warn!(client, "a client uses the relay's legacy routes, which are deprecated; see /relay/migrate");
    }
}
