use super::conversation::Side;
use super::feed::Weigh;
use bytes::Bytes;
use signalbox_engine::fact::HttpHead;

/// One step of one HTTP request and its answer.
#[derive(Clone, Debug)]
pub struct HttpSeen {
    /// The number of the request.
    pub call: u64,
    /// What happened.
    pub step: HttpStep,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum HttpStep {
    /// A request came.
    Asked(Asked),
    /// Its answer began.
    Answered(Answered),
    /// A part of a body passed.
    Body(Side, Bytes),
    /// A body ended, or was cut off.
    BodyEnd {
        /// Whose.
        side: Side,
        /// False where it was cut off.
        complete: bool,
    },
    /// The server could not be reached, or ended the connection without an answer.
    Failed,
}

/// The head of a request.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The session it names.
    pub session: Option<Box<str>>,
    /// Path and query.
    pub place: Box<str>,
    /// True where this is the MCP endpoint: everything there belongs to the conversation.
    pub endpoint: bool,
    /// True where it ends its session.
    pub closes: bool,
    /// What may be told of its head.
    pub head: Option<Box<HttpHead>>,
}

/// The head of an answer.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The session it names.
    pub session: Option<Box<str>>,
    /// The status.
    pub status: u16,
    /// True where its body is a stream of events.
    pub events: bool,
    /// What may be told of its head.
    pub head: Option<Box<HttpHead>>,
}

impl Weigh for HttpSeen {
    fn weight(&self) -> usize {
        match &self.step {
            HttpStep::Body(_, bytes) => bytes.len(),
            HttpStep::Asked(asked) => {
                asked.place.len()
                    + asked.session.as_ref().map_or(0, |name| name.len())
                    + head_weight(asked.head.as_deref())
            }
            HttpStep::Answered(answered) => head_weight(answered.head.as_deref()),
            _ => 0,
        }
    }
}

fn head_weight(head: Option<&HttpHead>) -> usize {
    head.map_or(0, |head| head.headers.iter().map(|(name, value)| name.len() + value.len()).sum())
}
