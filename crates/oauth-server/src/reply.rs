//! Replies: JSON for programs, pages and redirects for browsers.

use crate::event::AuthEvent;
use serde_json::{Value, json};
use signalbox_oauth_client::browser_page::{content_policy, guards};

/// HTTP response, with its audit event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    pub status: u16,
    /// Content type of the body.
    pub kind: &'static str,
    /// Headers, with names in lower case.
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    /// Event for the audit log, if any.
    pub event: Option<Box<AuthEvent>>,
}

/// Reason to refuse a request: an OAuth error code, and a sentence for operators of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{code}: {why}")]
pub struct OauthRefusal {
    pub code: &'static str,
    /// Explanation of the error.
    pub why: &'static str,
}

impl OauthRefusal {
    /// Creates a refusal from its code and explanation.
    #[must_use]
    pub const fn new(code: &'static str, why: &'static str) -> Self {
        Self { code, why }
    }
}

impl Reply {
    /// Creates a JSON reply that must not be cached.
    pub(crate) fn json(status: u16, value: &Value) -> Self {
        let headers = vec![("cache-control", "no-store".to_owned())];
        Self { status, kind: "application/json", headers, body: value.to_string(), event: None }
    }

    /// Creates a JSON reply that may be cached.
    pub(crate) fn document(value: &Value) -> Self {
        let headers = vec![("cache-control", "max-age=300".to_owned())];
        Self { status: 200, kind: "application/json", headers, body: value.to_string(), event: None }
    }

    /// Creates an error reply according to RFC 6749.
    #[must_use]
    pub fn refusal(status: u16, refusal: OauthRefusal) -> Self {
        let reply = Self::json(status, &json!({"error": refusal.code, "error_description": refusal.why}));
        reply.with_event(AuthEvent::refused(refusal.to_string()))
    }

    /// Redirects the browser, which follows with GET.
    pub(crate) fn redirect(url: String) -> Self {
        let mut reply = Self {
            status: 303,
            kind: "text/plain; charset=utf-8",
            headers: guarded(),
            body: String::new(),
            event: None,
        };
        reply.headers.push(("location", url));
        reply
    }

    /// Creates a page. `forms` is its `form-action` policy.
    pub(crate) fn page(status: u16, html: String, style: &str, forms: &str) -> Self {
        let mut headers = guarded();
        headers.push(("content-security-policy", content_policy(Some(style), Some(forms))));
        headers.push(("x-frame-options", "DENY".to_owned()));
        Self { status, kind: "text/html; charset=utf-8", headers, body: html, event: None }
    }

    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Returns the value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// Returns the headers of all replies to browsers. Forms carry their origin, so that those of other sites can be
/// rejected.
fn guarded() -> Vec<(&'static str, String)> {
    guards("same-origin").to_vec()
}
