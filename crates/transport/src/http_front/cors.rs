//! CORS: preflight responses, and the headers that let an allowed page read a response.

use super::FrontAnswer;
use super::answer::plain;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};

/// Headers that pages may send besides those of [`PARAM`].
const SENT: [&str; 15] = [
    "accept",
    "accept-version",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "traceparent",
    "x-session-code",
    "x-client-id",
    "x-worker-id",
    "x-worker-journal",
    "x-worker-token",
];
/// Prefix of the headers that mirror arguments of a tool.
const PARAM: &str = "mcp-param-";
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE");
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, Retry-After, WWW-Authenticate, X-Processing-Time-Ms, X-Server-Version");
/// Time in seconds that a browser may cache a preflight response. Clients of an entry expect a longer one (CO-11).
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
const MAX_AGE_OF_ENTRY: HeaderValue = HeaderValue::from_static("86400");
/// Maximum length of a requested header list.
const MAX_REQUESTED: usize = 4096;

/// Returns the origin of the page that sent a request. The guard has admitted it.
pub fn origin(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(ORIGIN).cloned()
}

/// Answers a preflight request; returns `None` for any other request.
pub fn preflight<B>(request: &Request<B>, of_entry: bool) -> Option<FrontAnswer> {
    let headers = request.headers();
    if request.method() != Method::OPTIONS || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    origin(headers)?;
    let mut answer = plain(StatusCode::NO_CONTENT);
    let out = answer.headers_mut();
    out.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    out.insert(ACCESS_CONTROL_MAX_AGE, if of_entry { MAX_AGE_OF_ENTRY } else { MAX_AGE });
    if let Some(allowed) = allowed(headers) {
        out.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    Some(answer)
}

/// Returns the requested headers that are allowed.
fn allowed(headers: &HeaderMap) -> Option<HeaderValue> {
    let requested = headers
        .get(ACCESS_CONTROL_REQUEST_HEADERS)?
        .to_str()
        .ok()
        .filter(|requested| requested.len() <= MAX_REQUESTED)?;
    let names = requested.split(',').map(|name| name.trim().to_ascii_lowercase());
    let fits = |name: &String| SENT.contains(&name.as_str()) || name.starts_with(PARAM);
    HeaderValue::from_str(&names.filter(fits).collect::<Vec<_>>().join(", ")).ok()
}

/// Lets the page read the response.
pub fn admit(answer: &mut FrontAnswer, origin: HeaderValue) {
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, HeaderValue::from_static("Origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_hears_what_a_page_may_send() {
        let ask = |method: Method, headers: &str| {
            let request = Request::builder()
                .method(method)
                .header(ORIGIN, "https://page.example")
                .header(ACCESS_CONTROL_REQUEST_METHOD, "POST")
                .header(ACCESS_CONTROL_REQUEST_HEADERS, headers);
            preflight(&request.body(()).unwrap(), false)
        };
        let mut answer = ask(Method::OPTIONS, "Content-Type,mcp-protocol-version, Mcp-Param-Region,x-evil").unwrap();
        admit(&mut answer, HeaderValue::from_static("https://page.example"));
        let of = |name| answer.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!(of(ACCESS_CONTROL_ALLOW_HEADERS), "content-type, mcp-protocol-version, mcp-param-region");
        assert_eq!(of(ACCESS_CONTROL_ALLOW_ORIGIN), "https://page.example");
        assert_eq!(of(ACCESS_CONTROL_MAX_AGE), "600");
        assert_eq!((of(VARY), answer.status()), ("Origin", StatusCode::NO_CONTENT));
        assert!(ask(Method::POST, "").is_none());
    }
}
