use super::conversation::TapSide;
use super::feed::Weigh;
use bytes::Bytes;
use signalbox_engine::fact::HttpHead;

/// A step of an HTTP request or its answer.
#[derive(Clone, Debug)]
pub struct HttpEvent {
    /// Number of the request.
    pub call: u64,
    pub step: HttpStep,
}

/// Kind of a step.
#[derive(Clone, Debug)]
pub enum HttpStep {
    /// The head of a request arrived.
    Request(ObservedRequest),
    /// The head of the answer arrived.
    Response(ObservedResponse),
    /// A part of a body passed.
    Body(TapSide, Bytes),
    /// A body ended or was cut off.
    BodyEnd {
        /// Side that sent the body.
        side: TapSide,
        /// Set unless the body was cut off.
        complete: bool,
    },
    /// The server was unreachable, or closed the connection without an answer.
    Failed,
}

/// The head of a request.
#[derive(Clone, Debug, Default)]
pub struct ObservedRequest {
    /// Session named in the head.
    pub session: Option<Box<str>>,
    /// Path and query of the request.
    pub place: Box<str>,
    /// Set for the MCP endpoint, where everything belongs to the conversation.
    pub endpoint: bool,
    /// Set if the request ends its session.
    pub closes: bool,
    /// Recordable part of the head.
    pub head: Option<Box<HttpHead>>,
}

/// The head of an answer.
#[derive(Clone, Debug)]
pub struct ObservedResponse {
    /// Session named in the head.
    pub session: Option<Box<str>>,
    pub status: u16,
    /// Set if the body is a stream of events.
    pub events: bool,
    /// Recordable part of the head.
    pub head: Option<Box<HttpHead>>,
}

impl Weigh for HttpEvent {
    fn weight(&self) -> usize {
        match &self.step {
            HttpStep::Body(_, bytes) => bytes.len(),
            HttpStep::Request(asked) => {
                asked.place.len()
                    + asked.session.as_ref().map_or(0, |name| name.len())
                    + head_weight(asked.head.as_deref())
            }
            HttpStep::Response(answered) => head_weight(answered.head.as_deref()),
            _ => 0,
        }
    }
}

fn head_weight(head: Option<&HttpHead>) -> usize {
    head.map_or(0, |head| head.headers.iter().map(|(name, value)| name.len() + value.len()).sum())
}
