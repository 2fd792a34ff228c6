//! Routes requests that are not MCP. A route has a method, a path and the listeners on which it is mounted.
//!
//! ```text
//! /api/v1/holds               this path
//! /api/v1/holds/{id}          any one segment, which is not empty
//! /files/{*path}              everything below, which is not nothing
//! ```

mod answer;
mod pattern;
mod query_params;
mod recorded;
mod request;
mod route_fault;

pub use answer::{AnswerBody, AnswerEvent, Broken, Chunks, Events, RoutedAnswer, StreamBody};
pub use pattern::PatternError;
pub use query_params::{MAX_PARAMETERS, QueryError, QueryParams, Undecodable};
pub use recorded::PendingRecords;
pub use request::{RoutedBody, RoutedRequest};
pub use route_fault::{AllowedMethods, RouteFault};

use http::request::Parts;
use http::{Method, StatusCode};
use hyper::body::Incoming;
use pattern::{Captures, Pattern, without_secrets};
use recorded::confirmed;
use signalbox_engine::audit::IntentWrite;
use signalbox_engine::{Caller, Fault, Proof};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Default maximum size of a request body.
pub const MAX_BODY: usize = 64 * 1024;

/// Result of a handler: an answer, or the problem to report instead.
pub type HandlerResult = Result<RoutedAnswer, RouteFault>;

/// Future of a running handler.
type HandlerFuture = Pin<Box<dyn Future<Output = HandlerResult> + Send>>;

/// The listener that a request arrived at.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Listener {
    /// The TCP listener, open to clients.
    Tcp,
    /// The control socket, open to the process's owner.
    Control,
}

/// The listeners on which a route is mounted. On others it does not exist.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Mount {
    /// The TCP listener only.
    Listener,
    /// The control socket only.
    Control,
    Both,
}

impl Mount {
    /// Returns `true` if requests at this listener can reach the route.
    #[must_use]
    pub fn is_at(self, listener: Listener) -> bool {
        match self {
            Self::Listener => listener == Listener::Tcp,
            Self::Control => listener == Listener::Control,
            Self::Both => true,
        }
    }

    fn meets(self, other: Self) -> bool {
        [Listener::Tcp, Listener::Control].into_iter().any(|listener| self.is_at(listener) && other.is_at(listener))
    }
}

/// Callers that may use a route at the TCP listener. At the control socket the owner may use all routes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RouteAccess {
    /// Any caller, authenticated or not.
    Open,
    /// Any caller that may use MCP.
    Caller,
    /// Authenticated callers with this role.
    Role(&'static str),
    /// Authenticated callers with one of these roles. Refusals name the first.
    EitherRole([&'static str; 2]),
}

/// A method and path with their handler.
pub struct HttpRoute {
    method: Method,
    path: &'static str,
    mount: Mount,
    access: RouteAccess,
    max_body: usize,
    audited: Option<&'static str>,
    is_probe: bool,
    is_guarded: bool,
    reports_refusals: bool,
    handler: Box<dyn Fn(RoutedRequest) -> HandlerFuture + Send + Sync>,
}

impl HttpRoute {
    /// Creates a route. The handler must not block. A `GET` route also answers `HEAD`.
    pub fn new<H, F>(method: Method, path: &'static str, mount: Mount, handler: H) -> Self
    where
        H: Fn(RoutedRequest) -> F + Send + Sync + 'static,
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        let handler = Box::new(move |request| -> HandlerFuture { Box::pin(handler(request)) });
        Self {
            method,
            path,
            mount,
            access: RouteAccess::Caller,
            max_body: MAX_BODY,
            audited: None,
            is_probe: false,
            is_guarded: false,
            reports_refusals: false,
            handler,
        }
    }

    /// Restricts the route to these callers.
    #[must_use]
    pub fn access(self, access: RouteAccess) -> Self {
        Self { access, ..self }
    }

    /// Sets the maximum size of a request body.
    #[must_use]
    pub fn max_body(self, max_body: usize) -> Self {
        Self { max_body, ..self }
    }

    /// Reports each use of the route to the observer, under this name.
    #[must_use]
    pub fn audited(self, action: &'static str) -> Self {
        Self { audited: Some(action), ..self }
    }

    /// Serves the route even while all places for connections are taken. Meant for probes of orchestrators: the handler
    /// must answer at once.
    #[must_use]
    pub fn probe(self) -> Self {
        Self { is_probe: true, ..self }
    }

    /// Applies the guard of restricted routes to this one too. Its handler decides about callers without a credential.
    #[must_use]
    pub fn guarded(self) -> Self {
        Self { is_guarded: true, ..self }
    }

    /// Reports requests that are refused before they reach the handler to the observer. The handler records its own.
    #[must_use]
    pub fn reports_refusals(self) -> Self {
        Self { reports_refusals: true, ..self }
    }

    /// Returns `true` if the route may refuse callers or its use is audited. Handlers of [`RouteAccess::Caller`] may
    /// check roles themselves.
    fn is_observed(&self) -> bool {
        self.audited.is_some() || self.access != RouteAccess::Open
    }

    /// Returns the method of the route.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the path pattern as it was given.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Returns the listeners on which the route is mounted.
    #[must_use]
    pub fn mount(&self) -> Mount {
        self.mount
    }

    fn takes(&self, method: &Method) -> bool {
        self.method == *method || (self.method == Method::GET && *method == Method::HEAD)
    }
}

/// Reasons why a list of routes is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RouteError {
    /// A path is not a valid pattern.
    #[error("the route `{path}`: {error}")]
    Pattern {
        /// Path of the route.
        path: &'static str,
        /// Error in the pattern.
        error: PatternError,
    },
    /// Two routes match the same requests.
    #[error("`{method} {first}` and `{method} {second}` are the same route")]
    Twice {
        /// Method of both routes.
        method: Method,
        /// Path of the earlier route.
        first: &'static str,
        /// Path of the later route.
        second: &'static str,
    },
}

/// A use of an audited route, or a refusal of a restricted one.
#[derive(Debug)]
pub struct RouteUse<'a> {
    /// Listener that the request arrived at.
    pub listener: Listener,
    /// Audit name of the route, or its path if it has none.
    pub action: &'static str,
    /// Path and query as sent.
    pub target: &'a str,
    /// Caller of the request.
    pub caller: &'a Caller,
    /// Status of the answer.
    pub status: StatusCode,
    /// Body of the answer, if it is not a stream.
    pub body: Option<&'a [u8]>,
    /// Text of the problem if there was no answer.
    pub problem: Option<&'a str>,
}

/// Observer of administrative routes.
pub trait RouteObserver: Send + Sync {
    /// Records that a route was used or its use refused. Must not block. The answer waits for the returned write.
    fn used(&self, used: &RouteUse<'_>) -> Option<IntentWrite>;

    /// Records that a request did not reach the handler of a route that reports this. Must not block.
    fn refused(&self, caller: &Caller, target: &str, problem: &RouteFault) {
        let _ = (caller, target, problem);
    }

    /// Records that an authenticated caller requested a route that does not exist. Must not block.
    fn missed(&self, caller: &Caller, target: &str, problem: &RouteFault) {
        let _ = (caller, target, problem);
    }
}

/// Rules for callers that hold beside the access of a route.
pub trait RouteGuard: Send + Sync {
    /// Returns the fault of a caller that may use no restricted route at present.
    fn refusal(&self, caller: &Caller) -> Option<Fault>;
}

/// All routes. If several match, the first one applies.
#[derive(Default)]
pub struct Router {
    routes: Vec<(Pattern, HttpRoute)>,
    observer: Option<Arc<dyn RouteObserver>>,
    guard: Option<Arc<dyn RouteGuard>>,
}

impl Router {
    /// Creates a router.
    ///
    /// # Errors
    /// Returns an error if a path is invalid or two routes match the same requests.
    pub fn new(list: impl IntoIterator<Item = HttpRoute>) -> Result<Self, RouteError> {
        let mut routes: Vec<(Pattern, HttpRoute)> = Vec::new();
        for route in list {
            let pattern =
                Pattern::parse(route.path).map_err(|error| RouteError::Pattern { path: route.path, error })?;
            let same = |(other, earlier): &&(Pattern, HttpRoute)| {
                earlier.method == route.method && earlier.mount.meets(route.mount) && other.is_like(&pattern)
            };
            if let Some((_, earlier)) = routes.iter().find(same) {
                let (first, second) = (earlier.path, route.path);
                return Err(RouteError::Twice { method: route.method, first, second });
            }
            routes.push((pattern, route));
        }
        Ok(Self { routes, observer: None, guard: None })
    }

    /// Sets the observer of audited routes.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn RouteObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Sets the guard of all routes that are not open.
    #[must_use]
    pub fn guarded_by(self, guard: Arc<dyn RouteGuard>) -> Self {
        Self { guard: Some(guard), ..self }
    }

    /// Returns the routes in their order.
    pub fn routes(&self) -> impl Iterator<Item = &HttpRoute> {
        self.routes.iter().map(|(_, route)| route)
    }

    /// Finds the matching route and the path segments it captures.
    fn find<'p>(
        &self,
        listener: Listener,
        method: &Method,
        path: &'p str,
    ) -> Result<(&HttpRoute, Captures<'p>), RouteFault> {
        let mut allowed = AllowedMethods::default();
        for (pattern, route) in self.routes.iter().filter(|(_, route)| route.mount.is_at(listener)) {
            let Some(captured) = pattern.captures(path) else { continue };
            if route.takes(method) {
                return Ok((route, captured));
            }
            allowed.add(&route.method);
        }
        Err(if allowed.is_empty() { RouteFault::NothingHere } else { RouteFault::Method(allowed) })
    }

    /// Returns `true` if the matching route is open to unauthenticated callers.
    #[must_use]
    pub fn is_open(&self, listener: Listener, method: &Method, path: &str) -> bool {
        self.find(listener, method, path).is_ok_and(|(route, _)| route.access == RouteAccess::Open)
    }

    /// Returns `true` if the matching route is served even while all places for connections are taken.
    #[must_use]
    pub fn is_probe(&self, listener: Listener, method: &Method, path: &str) -> bool {
        self.find(listener, method, path).is_ok_and(|(route, _)| route.is_probe)
    }

    /// Answers a request that arrived at this listener. Each read of its body must finish within `within`.
    ///
    /// # Errors
    /// Returns the problem to report instead of an answer.
    pub async fn answer(
        &self,
        listener: Listener,
        request: http::Request<Incoming>,
        caller: Caller,
        within: Duration,
    ) -> HandlerResult {
        let (Parts { method, uri, headers, .. }, body) = request.into_parts();
        let (route, captured) = self.find(listener, &method, uri.path()).inspect_err(|problem| {
            if let (Some(observer), Listener::Tcp) = (&self.observer, listener)
                && caller.identity().proof != Proof::Unproved
            {
                let like = self.routes.iter().find(|(pattern, _)| pattern.captures(uri.path()).is_some());
                let path = like.map_or_else(|| without_secrets(uri.path()), |(_, route)| route.path.into());
                observer.missed(&caller, &format!("{method} {path}"), problem);
            }
        })?;
        let request = RequestParts { method, uri: &uri, headers, captured: &captured, body };
        let is_observed = route.is_observed() || route.reports_refusals;
        let Some(observer) = self.observer.as_deref().filter(|_| is_observed) else {
            self.admit(listener, route, &caller)?;
            return confirmed(serve(route, request, caller, within).await, None).await;
        };
        let observed_caller = caller.clone();
        let verb = request.method.clone();
        let answered = match self.admit(listener, route, &caller) {
            Ok(()) => serve(route, request, caller, within).await,
            Err(problem) => Err(problem),
        };
        let used = match &answered {
            // The pattern of the path, because the path itself may have a secret.
            Err(problem) if route.reports_refusals => {
                observer.refused(&observed_caller, &format!("{verb} {}", route.path), problem);
                None
            }
            _ if route.is_observed() => observe(observer, listener, route, &uri, &observed_caller, &answered),
            _ => None,
        };
        confirmed(answered, used).await
    }

    /// Returns the fault of a caller that may use no restricted route at present.
    #[must_use]
    pub fn refusal_of(&self, caller: &Caller) -> Option<Fault> {
        self.guard.as_deref().and_then(|guard| guard.refusal(caller))
    }

    /// Checks that a caller may use a route. The control socket belongs to the user of this machine, who may use all.
    fn admit(&self, listener: Listener, route: &HttpRoute, caller: &Caller) -> Result<(), RouteFault> {
        if listener == Listener::Control {
            return Ok(());
        }
        admit(route.access, caller)?;
        if route.access == RouteAccess::Open && !route.is_guarded {
            return Ok(());
        }
        match self.refusal_of(caller) {
            Some(fault) => Err(RouteFault::Caller(Box::new(fault))),
            None => Ok(()),
        }
    }
}

/// Parts of a request that a route needs.
struct RequestParts<'a> {
    method: Method,
    uri: &'a http::Uri,
    headers: http::HeaderMap,
    captured: &'a Captures<'a>,
    body: Incoming,
}

async fn serve(route: &HttpRoute, request: RequestParts<'_>, caller: Caller, within: Duration) -> HandlerResult {
    let RequestParts { method, uri, headers, captured, body } = request;
    let body = RoutedBody::new(body, route.max_body, within)?;
    let request = RoutedRequest::new(method, uri, headers, captured, caller, body)?;
    catch_panic(route, request).await
}

/// Reports a request to an audited route, and any request refused for its caller, to the observer.
fn observe(
    observer: &dyn RouteObserver,
    listener: Listener,
    route: &HttpRoute,
    uri: &http::Uri,
    caller: &Caller,
    answered: &HandlerResult,
) -> Option<IntentWrite> {
    let problem = answered.as_ref().err().map(ToString::to_string);
    let (status, body) = match answered {
        Ok(RoutedAnswer { status, content: AnswerBody::Whole(bytes), .. }) => (*status, Some(&bytes[..])),
        Ok(RoutedAnswer { status, .. }) => (*status, None),
        Err(problem) => (problem.status(), None),
    };
    let refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if route.audited.is_none() && !refused {
        return None;
    }
    observer.used(&RouteUse {
        listener,
        action: route.audited.unwrap_or(route.path),
        target: uri.path_and_query().map_or("/", |target| target.as_str()),
        caller,
        status,
        body,
        problem: problem.as_deref(),
    })
}

fn admit(access: RouteAccess, caller: &Caller) -> Result<(), RouteFault> {
    match access {
        RouteAccess::Role(_) | RouteAccess::EitherRole(_) if caller.identity().proof == Proof::Unproved => {
            Err(RouteFault::Unauthenticated)
        }
        RouteAccess::EitherRole(roles) if !roles.iter().any(|role| caller.identity().has_role(role)) => {
            Err(RouteFault::Role(roles[0]))
        }
        RouteAccess::Role(role) if !caller.identity().has_role(role) => Err(RouteFault::Role(role)),
        _ => Ok(()),
    }
}

/// Runs a handler. A panic in it fails this request only.
async fn catch_panic(route: &HttpRoute, request: RoutedRequest) -> HandlerResult {
    let failed = |what: &str| {
        tracing::error!(method = %route.method, path = route.path, "a handler panicked while it {what}");
        Err(RouteFault::Failed)
    };
    let Ok(mut doing) = catch_unwind(AssertUnwindSafe(|| (route.handler)(request))) else {
        return failed("began");
    };
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| doing.as_mut().poll(cx))) {
        Ok(poll) => poll,
        Err(_) => Poll::Ready(failed("was at work")),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: Method, path: &'static str, mount: Mount) -> HttpRoute {
        HttpRoute::new(method, path, mount, async |_| Err(RouteFault::NothingHere))
    }

    fn found(router: &Router, listener: Listener, method: Method, path: &str) -> Result<&'static str, RouteFault> {
        router.find(listener, &method, path).map(|(route, _)| route.path)
    }

    #[test]
    fn the_first_route_that_fits_is_meant() {
        let routes = [
            route(Method::GET, "/a/first", Mount::Both),
            route(Method::GET, "/a/{name}", Mount::Listener),
            route(Method::GET, "/a/{other}", Mount::Control),
            route(Method::DELETE, "/a/{name}", Mount::Control),
            route(Method::PUT, "/{*rest}", Mount::Control),
        ];
        let router = Router::new(routes).unwrap();
        let found = |listener, method, path| found(&router, listener, method, path);
        let methods = |listener, path| match found(listener, Method::PATCH, path) {
            Err(RouteFault::Method(allowed)) => allowed.to_string(),
            other => format!("{other:?}"),
        };
        for listener in [Listener::Tcp, Listener::Control] {
            assert_eq!(found(listener, Method::GET, "/a/first"), Ok("/a/first"));
            assert_eq!(found(listener, Method::HEAD, "/a/first"), Ok("/a/first"));
        }
        assert_eq!(found(Listener::Tcp, Method::GET, "/a/x"), Ok("/a/{name}"));
        assert_eq!(found(Listener::Control, Method::GET, "/a/x"), Ok("/a/{other}"));
        assert_eq!(found(Listener::Control, Method::PUT, "/a/x"), Ok("/{*rest}"));
        assert_eq!(found(Listener::Tcp, Method::PUT, "/b"), Err(RouteFault::NothingHere));
        assert_eq!(methods(Listener::Tcp, "/a/x"), "GET");
        assert_eq!(methods(Listener::Control, "/a/x"), "GET, DELETE or PUT");
    }

    #[test]
    fn a_route_that_could_never_be_reached_is_refused() {
        let list = |first, second, mount| {
            Router::new([route(Method::GET, first, Mount::Both), route(Method::GET, second, mount)]).map(|_| ())
        };
        let twice = RouteError::Twice { method: Method::GET, first: "/{a}", second: "/{b}" };
        assert_eq!(list("/{a}", "/{b}", Mount::Control), Err(twice.clone()));
        assert_eq!(twice.to_string(), "`GET /{a}` and `GET /{b}` are the same route");
        assert!(list("/a", "/b", Mount::Both).is_ok());
        let bad = RouteError::Pattern { path: "b", error: PatternError::NoRoot };
        assert_eq!(list("/a", "b", Mount::Both), Err(bad));
    }
}
