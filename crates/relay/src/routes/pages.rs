//! Pages and scripts that are part of the program.

use crate::assets::{ASSETS, Asset};
use crate::relay::Relay;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, StatusCode};
use signalbox_transport::router::{
    HandlerResult, HttpRoute, Mount, RouteAccess, RouteFault, RoutedAnswer, RoutedRequest,
};
use std::sync::Arc;

/// Folder of pages that CODAP may embed in a frame.
const CODAP: &str = "codap/";

/// Returns the route for everything below `/relay/`.
pub fn routes(relay: &Arc<Relay>) -> Vec<HttpRoute> {
    let relay = Arc::clone(relay);
    let serve = move |asked: RoutedRequest| {
        let relay = Arc::clone(&relay);
        async move { page(&relay, &asked) }
    };
    vec![HttpRoute::new(Method::GET, "/relay/{*path}", Mount::Listener, serve).access(RouteAccess::Open)]
}

fn page(relay: &Relay, asked: &RoutedRequest) -> HandlerResult {
    let path = asked.path.strip_prefix("/relay/").unwrap_or_default();
    let asset = match find(path) {
        Some(asset) => asset,
        // Redirect a folder to its address with a slash: relative links would resolve beside it otherwise.
        None if find(&format!("{path}/")).is_some() => {
            let mut answer = RoutedAnswer::whole(StatusCode::PERMANENT_REDIRECT, "text/plain", "");
            if let Ok(to) = HeaderValue::try_from(format!("/relay/{path}/")) {
                answer.headers.insert(LOCATION, to);
            }
            return Ok(answer);
        }
        None => return Err(RouteFault::NothingHere),
    };
    let tag = asset.tag();
    let known = asked.headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut answer = match known {
        true => RoutedAnswer::whole(StatusCode::NOT_MODIFIED, asset.kind(), ""),
        false => RoutedAnswer::whole(StatusCode::OK, asset.kind(), asset.content),
    };
    let headers = &mut answer.headers;
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    for (name, value) in [(ETAG, tag), (CONTENT_SECURITY_POLICY, policy(path, &relay.settings.origins))] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    Ok(answer)
}

fn find(path: &str) -> Option<&'static Asset> {
    let named = |name: &str| ASSETS.iter().find(|asset| asset.path == name);
    match path.ends_with('/') {
        true => named(&format!("{path}index.html")),
        false => named(path),
    }
}

/// Returns the content security policy of a page: what it may load, and which origins may frame it.
fn policy(path: &str, origins: &[String]) -> String {
    let framed = match path.starts_with(CODAP) {
        true => origins.iter().fold("'self'".to_owned(), |all, origin| format!("{all} {origin}")),
        false => "'none'".to_owned(),
    };
    format!(
        "default-src 'self'; connect-src *; img-src 'self' data:; style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors {framed}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codap_may_show_its_page_in_a_frame() {
        let origins = ["https://codap.concord.org".to_owned()];
        assert!(policy("codap/index.html", &origins).ends_with("frame-ancestors 'self' https://codap.concord.org"));
        assert!(policy("demo/", &origins).ends_with("frame-ancestors 'none'"));
        assert!(find("migrate/").is_some() && find("migrate").is_none() && find("../Cargo.toml").is_none());
    }
}
