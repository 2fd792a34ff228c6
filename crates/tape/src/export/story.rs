//! One exchange, gathered for an export.

use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, DecisionEntry, Entry, FinishedEntry, MessageEntry, MessageKind};

/// What the entries of one exchange say together.
#[derive(Debug)]
pub(crate) struct Story<'a> {
    pub(crate) entries: &'a [Entry],
    pub(crate) number: u64,
    pub(crate) session: Option<u64>,
    pub(crate) principal: &'a str,
    pub(crate) method: &'a str,
    pub(crate) subject: Option<&'a str>,
    pub(crate) backend: Option<&'a str>,
    /// Nanoseconds since 1970.
    pub(crate) began: u64,
    pub(crate) took: u64,
    /// How it ended; `open` if that is not on the tape.
    pub(crate) outcome: &'a str,
    pub(crate) finished: Option<&'a FinishedEntry>,
}

impl<'a> Story<'a> {
    pub(crate) fn new(entries: &'a [Entry]) -> Option<Self> {
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
    pub(crate) fn messages(&self) -> impl Iterator<Item = (u64, &'a MessageEntry)> + use<'a> {
        self.entries.iter().filter_map(|entry| match &entry.content {
            Content::Message(message) => Some((entry.at, message)),
            _ => None,
        })
    }

    /// Its decisions, in their order, with their times.
    pub(crate) fn decisions(&self) -> impl Iterator<Item = (u64, &'a DecisionEntry)> + use<'a> {
        self.entries.iter().flat_map(|entry| {
            let list = match &entry.content {
                Content::Decisions(list) => &**list,
                _ => &[],
            };
            list.iter().map(|decision| (entry.at, &**decision))
        })
    }

    /// The request as the client sent it.
    pub(crate) fn request(&self) -> Option<&'a MessageEntry> {
        self.messages().map(|(_, message)| message).find(|message| message.point == Point::ClientIn)
    }

    /// The answer as the client got it: as it left for the client, or as the server sent it, which is all that a transparent
    /// proxy sees. What is not a message is an answer there too: a page of an error.
    pub(crate) fn answer(&self) -> Option<&'a MessageEntry> {
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
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.outcome, "success" | "cancelled" | "open")
    }
}

/// What is kept of a body, as text.
pub(crate) fn text(message: &MessageEntry) -> Option<std::borrow::Cow<'_, str>> {
    match &message.body {
        Body::Whole(bytes) => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    }
}
