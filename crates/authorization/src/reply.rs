//! What is answered: JSON for programs, pages and redirects for browsers.

use crate::event::AuthEvent;
use serde_json::{Value, json};

/// An answer by HTTP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The type of the body.
    pub kind: &'static str,
    /// Headers, by names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
    /// What it means for an audit log, if anything.
    pub event: Option<Box<AuthEvent>>,
}

/// Why a request is refused, in a word of OAuth and a sentence for people who look after clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{code}: {why}")]
pub struct Refusal {
    /// The error code.
    pub code: &'static str,
    /// The sentence.
    pub why: &'static str,
}

impl Refusal {
    /// A refusal.
    #[must_use]
    pub const fn new(code: &'static str, why: &'static str) -> Self {
        Self { code, why }
    }
}

impl Reply {
    /// JSON that is not kept anywhere on its way.
    pub(crate) fn json(status: u16, value: &Value) -> Self {
        let headers = vec![("cache-control", "no-store".to_owned())];
        Self { status, kind: "application/json", headers, body: value.to_string(), event: None }
    }

    /// JSON that does not change.
    pub(crate) fn document(value: &Value) -> Self {
        let headers = vec![("cache-control", "max-age=300".to_owned())];
        Self { status: 200, kind: "application/json", headers, body: value.to_string(), event: None }
    }

    /// A refusal, as RFC 6749 has it.
    #[must_use]
    pub fn refusal(status: u16, refusal: Refusal) -> Self {
        let reply = Self::json(status, &json!({"error": refusal.code, "error_description": refusal.why}));
        reply.with_event(AuthEvent::refused(refusal.to_string()))
    }

    /// Sends the browser elsewhere by GET, whatever it came with.
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

    /// A page whose forms may lead to these places, written as a policy has them.
    pub(crate) fn page(status: u16, html: String, style: &str, forms: &str) -> Self {
        let policy = format!(
            "default-src 'none'; style-src {style}; form-action {forms}; base-uri 'none'; frame-ancestors 'none'"
        );
        let mut headers = guarded();
        headers.push(("content-security-policy", policy));
        headers.push(("x-frame-options", "DENY".to_owned()));
        Self { status, kind: "text/html; charset=utf-8", headers, body: html, event: None }
    }

    /// The same with one more header.
    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// Nothing of a page is kept, guessed at, or told to other sites. A browser must still say where a form comes from, so that it
/// can be told from one of another site: `no-referrer` would take that away too.
fn guarded() -> Vec<(&'static str, String)> {
    [("cache-control", "no-store"), ("referrer-policy", "same-origin"), ("x-content-type-options", "nosniff")]
        .map(|(name, value)| (name, value.to_owned()))
        .to_vec()
}
