//! Refusals in the form that legacy clients know: `{error, message, code, sessionCode?}`.

use http::header::{ALLOW, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::json;
use signalbox_engine::budget::OverBudget;
use signalbox_transport::router::RoutedAnswer;
use std::time::Duration;

/// Version of the legacy routes and of the tool manifest.
pub(crate) const VERSION: &str = "1.0.0";

/// Reason to refuse a legacy request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LegacyRefusal {
    /// The route serves another method.
    #[error("only {0} is served here")]
    MethodNotAllowed(&'static str),
    /// The request has no code.
    #[error("a session code is needed: sessionCode or code, or the header X-Session-Code")]
    MissingSessionCode,
    /// The code has the wrong form.
    #[error("a session code has 8 characters of A-Z and 0-9")]
    InvalidSessionCode,
    /// No session has this code, or its session has ended.
    #[error("no session has this code; it may have expired")]
    SessionNotFound,
    /// The session has ended.
    #[error("Session expired")]
    SessionExpired,
    /// The store holds an unreadable record under this code.
    #[error("the session of this code cannot be verified; open another")]
    SessionValidationFailed,
    /// The client accepts no version that is served.
    #[error("version {0} is not served; API-Version and Supported-Versions say which are")]
    VersionNotAcceptable(String),
    /// A rate limit is exceeded.
    #[error("too many requests: {what}; try again in {} s", whole_seconds(*.wait))]
    RateLimited {
        /// Kind of request that is limited.
        what: &'static str,
        /// Time until the next request is allowed.
        wait: Duration,
    },
    /// The body is invalid.
    #[error("{0}")]
    Validation(String),
    /// The body of a new session is not empty.
    #[error("the body must be empty or {{}}")]
    InvalidRequest,
    /// The body is not JSON.
    #[error("the body is not JSON: {0}")]
    InvalidJson(String),
    /// An answer names no request.
    #[error("requestId is needed")]
    MissingRequestId,
    /// An answer has neither a result nor an error.
    #[error("result or error is needed")]
    MissingResultOrError,
    /// The request was already answered.
    #[error("this request was answered already")]
    DuplicateResponse,
    /// No such request is waiting.
    #[error("no such request waits for an answer: it was never made, was withdrawn, or its time is over")]
    RequestNotFound,
    /// The worker token is missing or wrong.
    #[error("the worker's token of this session is needed: header X-Worker-Token or member workerToken")]
    WorkerTokenNeeded,
    /// The caller must authenticate.
    #[error("this needs a credential, such as `Authorization: Bearer KEY`, besides the session code")]
    Unauthenticated,
    /// The maximum number of sessions is open.
    #[error("as many sessions are open as may be; try again later")]
    Full,
    /// The memory budget is exhausted.
    #[error("{0}; try again later")]
    NoRoom(OverBudget),
    /// The legacy routes have been removed.
    #[error("this route is gone; use MCP at {0}/api/mcp, see {0}/relay/migrate")]
    Gone(String),
    /// The relay itself fails.
    #[error("the relay cannot do that now")]
    Internal,
}

impl LegacyRefusal {
    /// Name of a refusal for lack of memory.
    pub const NO_ROOM: &'static str = "overloaded";

    /// Returns the name that clients know the refusal by, and its status.
    #[must_use]
    pub fn name(&self) -> (&'static str, StatusCode) {
        match self {
            Self::MethodNotAllowed(_) => ("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED),
            Self::MissingSessionCode => ("missing_session_code", StatusCode::BAD_REQUEST),
            Self::InvalidSessionCode => ("invalid_session_code", StatusCode::BAD_REQUEST),
            Self::SessionNotFound => ("session_not_found", StatusCode::NOT_FOUND),
            Self::SessionExpired => ("session_expired", StatusCode::GONE),
            Self::SessionValidationFailed => ("session_validation_failed", StatusCode::NOT_FOUND),
            Self::VersionNotAcceptable(_) => ("version_not_acceptable", StatusCode::NOT_ACCEPTABLE),
            Self::RateLimited { .. } => ("rate_limit_exceeded", StatusCode::TOO_MANY_REQUESTS),
            Self::Validation(_) => ("validation_error", StatusCode::BAD_REQUEST),
            Self::InvalidRequest => ("invalid_request", StatusCode::BAD_REQUEST),
            Self::InvalidJson(_) => ("invalid_json", StatusCode::BAD_REQUEST),
            Self::MissingRequestId => ("missing_request_id", StatusCode::BAD_REQUEST),
            Self::MissingResultOrError => ("missing_result_or_error", StatusCode::BAD_REQUEST),
            Self::DuplicateResponse => ("duplicate_response", StatusCode::CONFLICT),
            Self::RequestNotFound => ("request_not_found", StatusCode::NOT_FOUND),
            Self::WorkerTokenNeeded => ("worker_token_required", StatusCode::FORBIDDEN),
            Self::Unauthenticated => ("unauthenticated", StatusCode::UNAUTHORIZED),
            Self::Full => ("too_many_sessions", StatusCode::SERVICE_UNAVAILABLE),
            Self::NoRoom(_) => (Self::NO_ROOM, StatusCode::SERVICE_UNAVAILABLE),
            Self::Gone(_) => ("legacy_api_removed", StatusCode::GONE),
            Self::Internal => ("internal_server_error", StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    /// Returns the body of the response. It repeats the session code only to the client that sent it.
    #[must_use]
    pub fn body(&self, code: Option<&str>) -> serde_json::Value {
        let (name, _) = self.name();
        let mut body = json!({"error": name, "message": self.to_string(), "code": name.to_ascii_uppercase()});
        if let Some(code) = code {
            body["sessionCode"] = code.into();
        }
        body
    }

    /// Returns the complete response.
    #[must_use]
    pub fn answer(&self, code: Option<&str>) -> RoutedAnswer {
        let mut answer = RoutedAnswer::json(self.name().1, self.body(code).to_string());
        match self {
            Self::MethodNotAllowed(methods) => {
                answer.headers.insert(ALLOW, HeaderValue::from_static(methods));
            }
            Self::VersionNotAcceptable(_) => name_versions(&mut answer.headers),
            Self::RateLimited { wait, .. } => {
                answer.headers.insert(RETRY_AFTER, retry_after(*wait));
            }
            Self::NoRoom(_) => {
                answer.headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
            }
            Self::Full => {
                answer.headers.insert(RETRY_AFTER, HeaderValue::from_static("60"));
            }
            _ => {}
        }
        answer
    }
}

/// Sets the headers that announce the served versions, on responses and on the refusal of another version.
pub(crate) fn name_versions(headers: &mut HeaderMap) {
    for name in ["api-version", "tool-manifest-version", "supported-versions"] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(VERSION));
    }
}

/// Formats `Retry-After`, rounded up so that a client that obeys it does not retry too early.
pub(crate) fn retry_after(wait: Duration) -> HeaderValue {
    HeaderValue::from(whole_seconds(wait))
}

fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CO-3 and CO-4.
    #[test]
    fn refusals_have_the_names_that_clients_know() {
        let answer = LegacyRefusal::SessionExpired.answer(Some("ABC123XY"));
        assert_eq!(answer.status, StatusCode::GONE);
        let body = LegacyRefusal::SessionExpired.body(Some("ABC123XY")).to_string();
        let expected = r#"{"error":"session_expired","message":"Session expired","code":"SESSION_EXPIRED","sessionCode":"ABC123XY"}"#;
        assert_eq!(body, expected);
        let limited =
            LegacyRefusal::RateLimited { what: "new sessions", wait: Duration::from_millis(1_500) }.answer(None);
        assert_eq!(limited.headers[RETRY_AFTER], "2", "not before it is over");
        let other = LegacyRefusal::VersionNotAcceptable("2.0.0".to_owned()).answer(None);
        assert_eq!(
            (other.status, &other.headers["supported-versions"]),
            (StatusCode::NOT_ACCEPTABLE, &VERSION.parse().unwrap()),
            "CO-4"
        );
    }
}
