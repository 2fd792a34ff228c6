//! Problems that are reported instead of an answer: a status, and JSON with the reason.

use super::answer::RoutedAnswer;
use super::query_params::{QueryError, Undecodable};
use crate::read_body::BodyError;
use http::header::{ALLOW, CONNECTION, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, StatusCode};
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::json::quote;
use std::fmt;

/// Reason why a request has no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RouteFault {
    /// No route has this path.
    #[error("there is nothing here")]
    NothingHere,
    /// The path has routes, but for other methods only.
    #[error("only {0} is served here")]
    Method(AllowedMethods),
    /// The route needs an authenticated caller.
    #[error("this needs a credential, such as `Authorization: Bearer KEY`; `signalbox keys new` makes a key")]
    Unauthenticated,
    /// The caller lacks this role.
    #[error("this needs the role `{0}`")]
    Role(&'static str),
    /// The caller may use nothing at present.
    #[error("{}", .0.message)]
    Caller(Box<Fault>),
    /// The path cannot be decoded.
    #[error("the path: {0}")]
    Path(Undecodable),
    /// The query cannot be decoded.
    #[error("the query: {0}")]
    Query(QueryError),
    /// The body was not read.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The handler panicked; the log has the details.
    #[error("this failed because of a fault in the gateway; its log says more")]
    Failed,
    /// The request was carried out, and its audit record cannot be written although a sink is required.
    #[error("this was done, but it is not in the audit log, which a required sink keeps from taking records")]
    NotRecorded,
    /// The handler refused the request.
    #[error("{why}")]
    Refused {
        /// Status of the refusal.
        status: StatusCode,
        /// Text of the refusal.
        why: String,
    },
}

impl RouteFault {
    /// Creates the refusal of a handler.
    pub fn new(status: StatusCode, why: impl fmt::Display) -> Self {
        Self::Refused { status, why: why.to_string() }
    }

    /// Returns the HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NothingHere => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Role(_) | Self::Caller(_) => StatusCode::FORBIDDEN,
            Self::Path(_) | Self::Query(_) => StatusCode::BAD_REQUEST,
            Self::Body(error) => error.status(),
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotRecorded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Refused { status, .. } => *status,
        }
    }

    /// Returns the fault to record for a refusal of this request to `target`.
    #[must_use]
    pub fn fault(&self, target: &str) -> Fault {
        let kind = match self {
            Self::Caller(fault) => fault.kind,
            Self::Unauthenticated => FaultKind::Unauthenticated,
            Self::Role(_) => FaultKind::Denied,
            Self::Failed => FaultKind::Internal,
            Self::NotRecorded => FaultKind::NotRecorded,
            Self::Body(error) if error.status() == StatusCode::SERVICE_UNAVAILABLE => FaultKind::Overloaded,
            _ => FaultKind::InvalidRequest,
        };
        Fault::new(kind, format!("{target}: {self}"))
    }

    /// Builds the error answer, `{"error": "…"}`.
    #[must_use]
    pub fn answer(&self) -> RoutedAnswer {
        let mut answer = RoutedAnswer::json(self.status(), format!(r#"{{"error":{}}}"#, quote(&self.to_string())));
        match self {
            Self::Method(allowed) => {
                answer.headers.insert(ALLOW, allowed.header());
            }
            Self::Unauthenticated => {
                answer.headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            // The rest of the body stays unread, so the connection cannot be reused.
            Self::Body(_) => {
                answer.headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        answer
    }
}

/// Methods for which a path has routes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AllowedMethods(Vec<Method>);

impl AllowedMethods {
    pub(super) fn add(&mut self, method: &Method) {
        if !self.0.contains(method) {
            self.0.push(method.clone());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn header(&self) -> HeaderValue {
        let mut names: Vec<&str> = self.0.iter().map(Method::as_str).collect();
        if let Some(get) = names.iter().position(|name| *name == "GET") {
            names.insert(get + 1, "HEAD");
        }
        HeaderValue::try_from(names.join(", ")).unwrap_or(HeaderValue::from_static(""))
    }
}

impl fmt::Display for AllowedMethods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, method) in self.0.iter().enumerate() {
            let before = match index {
                0 => "",
                _ if index + 1 == self.0.len() => " or ",
                _ => ", ",
            };
            write!(f, "{before}{method}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_methods_are_told_to_people_and_to_programs() {
        let mut allowed = AllowedMethods::default();
        for method in [Method::GET, Method::POST, Method::GET, Method::DELETE] {
            allowed.add(&method);
        }
        assert_eq!(allowed.to_string(), "GET, POST or DELETE");
        assert_eq!(allowed.header(), "GET, HEAD, POST, DELETE");
    }
}
