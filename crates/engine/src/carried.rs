//! What a transport carried a message in, as far as somebody may want to know it later: the id of its event, the heads of
//! its HTTP request and answer.

/// What a message came in.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Carried {
    /// The id of the SSE event that held it.
    pub event_id: Option<Box<str>>,
    /// The head of the HTTP request or answer that it came with. Never with a credential in it.
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
    /// True where something was taken out of it.
    pub redacted: bool,
}
