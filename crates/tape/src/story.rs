//! Summary of one exchange of a tape: its caller, request, decisions and outcome.

use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, DecisionEntry, Entry, FinishedEntry, MessageEntry, MessageKind};

/// Summary of the entries of one exchange.
#[derive(Debug)]
pub struct Story<'a> {
    pub entries: &'a [Entry],
    /// Number of the exchange on the tape.
    pub number: u64,
    /// Session, if the exchange has one.
    pub session: Option<u64>,
    pub principal: &'a str,
    /// Method; `unknown` if it is not on the tape.
    pub method: &'a str,
    /// Tool, prompt or URI, under the name that the client uses.
    pub subject: Option<&'a str>,
    /// Backend that the exchange went to.
    pub backend: Option<&'a str>,
    /// Begin in nanoseconds since 1970.
    pub began: u64,
    /// Duration of the exchange, in nanoseconds.
    pub took: u64,
    /// Outcome; `open` if it is not on the tape.
    pub outcome: &'a str,
    /// Entry of the end.
    pub finished: Option<&'a FinishedEntry>,
}

impl<'a> Story<'a> {
    /// Summarizes the entries of one exchange. Returns `None` if there are none.
    #[must_use]
    pub fn new(entries: &'a [Entry]) -> Option<Self> {
        let first = entries.first()?;
        let last = entries.last()?;
        let finished = entries.iter().find_map(|entry| match &entry.content {
            Content::Finished(finished) => Some(finished),
            _ => None,
        });
        let mut story = Self {
            entries,
            number: first.exchange.unwrap_or_default(),
            session: first.session,
            principal: &first.principal,
            method: finished.map_or("", |finished| &finished.method),
            subject: finished.and_then(|finished| finished.subject.as_deref()),
            backend: finished.and_then(|finished| finished.backend.as_deref()),
            began: first.at,
            took: finished.map_or(last.at.saturating_sub(first.at), |finished| finished.took),
            outcome: finished.map_or("open", |finished| &finished.outcome),
            finished,
        };
        for message in story.messages().map(|(_, message)| message) {
            if story.method.is_empty() {
                story.method = message.method.as_deref().unwrap_or_default();
            }
            story.subject = story.subject.or(message.subject.as_deref());
            story.backend = story.backend.or(message.backend.as_deref());
        }
        if story.method.is_empty() {
            story.method = "unknown";
        }
        Some(story)
    }

    /// Iterates over the messages in order, with their times.
    pub fn messages(&self) -> impl Iterator<Item = (u64, &'a MessageEntry)> + use<'a> {
        self.entries.iter().filter_map(|entry| match &entry.content {
            Content::Message(message) => Some((entry.at, message)),
            _ => None,
        })
    }

    /// Iterates over the decisions in order, with their times.
    pub fn decisions(&self) -> impl Iterator<Item = (u64, &'a DecisionEntry)> + use<'a> {
        self.entries.iter().flat_map(|entry| {
            let list = match &entry.content {
                Content::Decisions(list) => &**list,
                _ => &[],
            };
            list.iter().map(|decision| (entry.at, &**decision))
        })
    }

    /// Returns the request as the client sent it.
    #[must_use]
    pub fn request(&self) -> Option<&'a MessageEntry> {
        self.messages().map(|(_, message)| message).find(|message| message.point == Point::ClientIn)
    }

    /// Returns the answer that the client received: the image that left for the client or, on a tape of a transparent
    /// proxy, the one from the server. There, a body that is not a message, such as an error page, is an answer too.
    #[must_use]
    pub fn answer(&self) -> Option<&'a MessageEntry> {
        let answers = |message: &&MessageEntry| {
            matches!(message.kind, MessageKind::Result | MessageKind::Error | MessageKind::Raw)
        };
        let at = |point: Point| {
            let seen = self.messages().map(|(_, message)| message).filter(move |message| message.point == point);
            seen.filter(answers).last()
        };
        at(Point::ClientOut).or_else(|| at(Point::BackendIn))
    }

    /// Returns true if the outcome is not a failure.
    #[must_use]
    pub fn is_good(&self) -> bool {
        matches!(self.outcome, "success" | "cancelled" | "open")
    }
}

/// Returns the recorded body as text.
#[must_use]
pub fn text(message: &MessageEntry) -> Option<std::borrow::Cow<'_, str>> {
    match &message.body {
        Body::Whole(bytes) => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    }
}
