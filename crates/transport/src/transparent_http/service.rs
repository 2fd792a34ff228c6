//! Forwards one request and its answer.

use super::Proxy;
use super::forwarded_body::{BodyObserver, ForwardedBody};
use crate::tap::{HttpEvent, HttpStep, ObservedRequest, ObservedResponse, TapSide, http_heads};
use http::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Hop-by-hop headers, besides those named in `Connection`.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    PROXY_CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Forwards a request and returns its answer.
pub(super) async fn pass(proxy: Proxy, request: Request<Incoming>) -> Result<Response<ForwardedBody>, Infallible> {
    let shared = &proxy.0;
    if !shared.admission.admits(request.headers(), request.headers().contains_key(http::header::ORIGIN)) {
        let text = "this Host or Origin is not allowed here: the proxy is for programs on this machine\n";
        return Ok(own(StatusCode::FORBIDDEN, text.to_owned()));
    }
    let call = shared.calls.fetch_add(1, Ordering::Relaxed);
    let is_taped = shared.feed.is_some();
    let tell = |step| {
        if let Some(feed) = &shared.feed {
            feed.push(Instant::now(), HttpEvent { call, step });
        }
    };
    let watch = |side| shared.feed.clone().map(|feed| BodyObserver { feed, call, side });
    let target = shared.upstream.target();
    let (mut head, body) = request.into_parts();
    let place = place(&head.uri, &target.uri);
    tell(HttpStep::Request(ObservedRequest {
        session: session(&head.headers),
        place: place.as_str().into(),
        endpoint: place.path() == target.uri.path(),
        closes: head.method == Method::DELETE,
        head: is_taped.then(|| http_heads::of_request(head.method.as_str(), place.as_str(), &head.headers).into()),
    }));
    strip(&mut head.headers);
    head.headers.insert(HOST, target.authority.clone());
    head.uri = Uri::from(place);
    head.version = Version::HTTP_11;
    let request = Request::from_parts(head, ForwardedBody::stream(body, watch(TapSide::Client), None));
    match shared.upstream.send(request).await {
        Ok((answer, sender)) => {
            let (mut head, body) = answer.into_parts();
            tell(HttpStep::Response(ObservedResponse {
                session: session(&head.headers),
                status: head.status.as_u16(),
                events: is_events(&head.headers),
                head: is_taped.then(|| http_heads::of_answer(head.status.as_u16(), &head.headers).into()),
            }));
            strip(&mut head.headers);
            let connection = Some((Arc::clone(&shared.upstream), sender));
            Ok(Response::from_parts(head, ForwardedBody::stream(body, watch(TapSide::Server), connection)))
        }
        Err(error) => {
            tell(HttpStep::Failed);
            tracing::warn!(server = %target, %error, "the server gave no answer");
            Ok(own(StatusCode::BAD_GATEWAY, format!("signalbox proxy: {target} gave no answer: {error}\n")))
        }
    }
}

/// Returns path and query of the forwarded request. The endpoint's own query is added if the client sent none, because
/// it may contain a credential.
fn place(asked: &Uri, endpoint: &Uri) -> PathAndQuery {
    let root = || PathAndQuery::from_static("/");
    if asked.query().is_none() && asked.path() == endpoint.path() {
        return endpoint.path_and_query().cloned().unwrap_or_else(root);
    }
    asked.path_and_query().cloned().unwrap_or_else(root)
}

/// Removes hop-by-hop headers, including those named in `Connection`.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

fn session(headers: &HeaderMap) -> Option<Box<str>> {
    headers.get(SESSION_ID).and_then(|value| value.to_str().ok()).map(Into::into)
}

fn is_events(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}

fn own(status: StatusCode, text: String) -> Response<ForwardedBody> {
    let mut answer = Response::new(ForwardedBody::own(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}
