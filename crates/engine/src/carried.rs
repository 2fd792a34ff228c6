//! What a transport carried a message in: the id of its SSE event, the heads of its HTTP request and response.

/// The transport's data about a message.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Carried {
    /// The id of the SSE event that held it.
    pub event_id: Option<Box<str>>,
    /// The head of its HTTP request or response, without credentials.
    pub http: Option<HttpHead>,
}

/// The head of an HTTP request or answer.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HttpHead {
    /// The method of the request.
    pub method: Option<String>,
    /// Path and query of the request.
    pub url: Option<String>,
    /// The status of the answer.
    pub status: Option<u16>,
    /// The headers, in their order. Credentials are replaced.
    pub headers: Vec<(String, String)>,
    /// True if something was redacted.
    pub redacted: bool,
}
