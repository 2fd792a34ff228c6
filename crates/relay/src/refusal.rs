//! Refusals as legacy clients are told them: `{error, message, code, sessionCode?}` with the names they know (CO-3).

use http::header::{ALLOW, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::json;
use signalbox_engine::budget::OverBudget;
use signalbox_transport::router::RoutedAnswer;
use std::time::Duration;

/// The version of the legacy routes and of the list of tools.
pub(crate) const VERSION: &str = "1.0.0";

/// Why a legacy request is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Another method is served here.
    #[error("only {0} is served here")]
    MethodNotAllowed(&'static str),
    /// No code was given.
    #[error("a session code is needed: sessionCode or code, or the header X-Session-Code")]
    MissingSessionCode,
    /// Something else was given as a code.
    #[error("a session code has 8 characters of A-Z and 0-9")]
    InvalidSessionCode,
    /// Nothing has this code, or not any more.
    #[error("no session has this code; it may have expired")]
    SessionNotFound,
    /// The session is over.
    #[error("Session expired")]
    SessionExpired,
    /// The store holds something for this code that is no session.
    #[error("the session of this code cannot be verified; open another")]
    SessionValidationFailed,
    /// The version that the client accepts is not served.
    #[error("version {0} is not served; API-Version and Supported-Versions say which are")]
    VersionNotAcceptable(String),
    /// Too many requests.
    #[error("too many requests: {what}; try again in {} s", whole_seconds(*.wait))]
    RateLimited {
        /// Of which kind.
        what: &'static str,
        /// For how long.
        wait: Duration,
    },
    /// The body is not what it must be.
    #[error("{0}")]
    Validation(String),
    /// A new session takes no settings.
    #[error("the body must be empty or {{}}")]
    InvalidRequest,
    /// The body is not JSON.
    #[error("the body is not JSON: {0}")]
    InvalidJson(String),
    /// An answer says not to what.
    #[error("requestId is needed")]
    MissingRequestId,
    /// An answer says nothing.
    #[error("result or error is needed")]
    MissingResultOrError,
    /// There was an answer already.
    #[error("this request was answered already")]
    DuplicateResponse,
    /// No such request waits.
    #[error("no such request waits for an answer: it was never made, was withdrawn, or its time is over")]
    RequestNotFound,
    /// The worker's token is needed, or is not this one.
    #[error("the worker's token of this session is needed: header X-Worker-Token or member workerToken")]
    WorkerTokenNeeded,
    /// Callers have to prove who they are.
    #[error("this needs a credential, such as `Authorization: Bearer KEY`, besides the session code")]
    Unauthenticated,
    /// There are as many sessions as may be.
    #[error("as many sessions are open as may be; try again later")]
    Full,
    /// There is no room for what would have to be kept.
    #[error("{0}; try again later")]
    NoRoom(OverBudget),
    /// The legacy routes are gone.
    #[error("this route is gone; use MCP at {0}/api/mcp, see {0}/relay/migrate")]
    Gone(String),
    /// Something failed inside.
    #[error("the relay cannot do that now")]
    Internal,
}

impl Refusal {
    /// The name of refusals for want of memory.
    pub const NO_ROOM: &'static str = "overloaded";

    /// The name that clients know it by, and its status.
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

    /// The body. The code of the session is told to who sent it.
    #[must_use]
    pub fn body(&self, code: Option<&str>) -> serde_json::Value {
        let (name, _) = self.name();
        let mut body = json!({"error": name, "message": self.to_string(), "code": name.to_ascii_uppercase()});
        if let Some(code) = code {
            body["sessionCode"] = code.into();
        }
        body
    }

    /// The answer.
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

/// Names the versions that are served, in answers and in the refusal of another one (CO-4).
pub(crate) fn name_versions(headers: &mut HeaderMap) {
    for name in ["api-version", "tool-manifest-version", "supported-versions"] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(VERSION));
    }
}

/// Value of `Retry-After`: a client that keeps to it does not come too early.
pub(crate) fn retry_after(wait: Duration) -> HeaderValue {
    HeaderValue::from(whole_seconds(wait))
}

fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn co_3_refusals_have_the_names_that_clients_know() {
        let answer = Refusal::SessionExpired.answer(Some("ABC123XY"));
        assert_eq!(answer.status, StatusCode::GONE);
        let body = Refusal::SessionExpired.body(Some("ABC123XY")).to_string();
        let expected = r#"{"error":"session_expired","message":"Session expired","code":"SESSION_EXPIRED","sessionCode":"ABC123XY"}"#;
        assert_eq!(body, expected);
        let limited = Refusal::RateLimited { what: "new sessions", wait: Duration::from_millis(1_500) }.answer(None);
        assert_eq!(limited.headers[RETRY_AFTER], "2", "not before it is over");
        let other = Refusal::VersionNotAcceptable("2.0.0".to_owned()).answer(None);
        assert_eq!(
            (other.status, &other.headers["supported-versions"]),
            (StatusCode::NOT_ACCEPTABLE, &VERSION.parse().unwrap()),
            "CO-4"
        );
    }
}
