//! What is asked of a process on its control socket, and what it answers.

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::task::{Context, Poll};

/// A request.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The path, without a query.
    pub path: String,
    /// The body, which is empty for most.
    pub body: Bytes,
    /// Who asks, as the system tells.
    pub by: String,
}

impl Call {
    /// The body as JSON; an empty one stands for `{}`.
    ///
    /// # Errors
    /// The answer to a body that is something else.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Reply> {
        let body: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        serde_json::from_slice(body)
            .map_err(|error| Reply::error(StatusCode::BAD_REQUEST, format!("the body: {error}")))
    }
}

/// Lines that come as they happen.
pub trait Lines: Send {
    /// The next ones, each with its line break; none once there will be no more.
    fn poll_lines(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

/// An answer.
pub enum Reply {
    /// JSON, at once.
    Json(StatusCode, String),
    /// Lines of JSON, as they come.
    Lines(Box<dyn Lines>),
}

impl Reply {
    /// What was asked for.
    #[must_use]
    pub fn ok(value: &Value) -> Self {
        Self::Json(StatusCode::OK, value.to_string())
    }

    /// Why not.
    #[must_use]
    pub fn error(status: StatusCode, why: impl std::fmt::Display) -> Self {
        Self::Json(status, json!({"error": why.to_string()}).to_string())
    }

    /// There is something here, but not for this method.
    #[must_use]
    pub fn only(methods: &str) -> Self {
        Self::error(StatusCode::METHOD_NOT_ALLOWED, format_args!("only {methods} is served here"))
    }
}

/// Answers what it knows; none where there is no such path.
pub type Api = Arc<dyn Fn(&Call) -> Option<Reply> + Send + Sync>;
