//! One exchange of a tape, read as a story: who asked for what, what was decided, what came of it.

use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, DecisionEntry, Entry, FinishedEntry, MessageEntry, MessageKind};

/// What the entries of one exchange say together.
#[derive(Debug)]
pub struct Story<'a> {
    /// Its entries, in their order.
    pub entries: &'a [Entry],
    /// Its number in the tape.
    pub number: u64,
    /// Its session, if it has one.
    pub session: Option<u64>,
    /// Its caller.
    pub principal: &'a str,
    /// Its method; `unknown` if that is not on the tape.
    pub method: &'a str,
    /// The tool, prompt or URI, as the client knows it.
    pub subject: Option<&'a str>,
    /// The backend that it went to.
    pub backend: Option<&'a str>,
    /// When it began, in nanoseconds since 1970.
    pub began: u64,
    /// How long it took, in nanoseconds.
    pub took: u64,
    /// How it ended; `open` if that is not on the tape.
    pub outcome: &'a str,
    /// The entry of its end.
    pub finished: Option<&'a FinishedEntry>,
}

impl<'a> Story<'a> {
    /// The story of these entries of one exchange; none if there are none.
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

    /// Its messages, in their order, with their times.
    pub fn messages(&self) -> impl Iterator<Item = (u64, &'a MessageEntry)> + use<'a> {
        self.entries.iter().filter_map(|entry| match &entry.content {
            Content::Message(message) => Some((entry.at, message)),
            _ => None,
        })
    }

    /// Its decisions, in their order, with their times.
    pub fn decisions(&self) -> impl Iterator<Item = (u64, &'a DecisionEntry)> + use<'a> {
        self.entries.iter().flat_map(|entry| {
            let list = match &entry.content {
                Content::Decisions(list) => &**list,
                _ => &[],
            };
            list.iter().map(|decision| (entry.at, &**decision))
        })
    }

    /// The request as the client sent it.
    #[must_use]
    pub fn request(&self) -> Option<&'a MessageEntry> {
        self.messages().map(|(_, message)| message).find(|message| message.point == Point::ClientIn)
    }

    /// The answer as the client got it: as it left for the client, or as the server sent it, which is all that a transparent
    /// proxy sees. What is not a message is an answer there too: a page of an error.
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

    /// Whether it ended well.
    #[must_use]
    pub fn is_good(&self) -> bool {
        matches!(self.outcome, "success" | "cancelled" | "open")
    }
}

/// What is kept of a body, as text.
#[must_use]
pub fn text(message: &MessageEntry) -> Option<std::borrow::Cow<'_, str>> {
    match &message.body {
        Body::Whole(bytes) => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    }
}
