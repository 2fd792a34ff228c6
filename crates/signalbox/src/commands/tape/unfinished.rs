//! Calls of a tape that have no end on it.

use serde_json::{Value, json};
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Content, Entry, MessageEntry, MessageKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Outcome under which unfinished calls are shown and filtered.
pub(super) const UNFINISHED: &str = "unfinished";
/// Maximum number of open calls tracked. Beyond it, the oldest are dropped.
const MOST_OPEN: usize = 100_000;

/// A call without an end on the tape.
#[derive(Clone, Debug)]
pub(super) struct OpenCall {
    pub number: u64,
    /// Arrival of its request, in nanoseconds since 1970.
    pub at: u64,
    pub session: Option<u64>,
    pub principal: Arc<str>,
    pub method: Option<Arc<str>>,
    pub subject: Option<Arc<str>>,
    pub backend: Option<Arc<str>>,
    seq: u64,
    reached: Stage,
    session_ended: bool,
    /// The tape that has the rest of it.
    rest: Option<String>,
}

/// Last stage that the call reached.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stage {
    Gateway,
    Backend,
    BackAgain,
}

impl Stage {
    fn words(self) -> &'static str {
        match self {
            Self::Gateway => "not sent to a backend",
            Self::Backend => "sent to the backend",
            Self::BackAgain => "answered by the backend",
        }
    }
}

impl OpenCall {
    fn new(number: u64, entry: &Entry, message: &MessageEntry) -> Self {
        Self {
            number,
            at: entry.at,
            session: entry.session,
            principal: Arc::clone(&entry.principal),
            method: message.method.clone(),
            subject: message.subject.clone(),
            backend: message.backend.clone(),
            seq: entry.seq,
            reached: Stage::Gateway,
            session_ended: false,
            rest: None,
        }
    }

    fn passed(&mut self, message: &MessageEntry) {
        let reached = match (message.point, message.kind) {
            (Point::BackendOut, MessageKind::Request) => Stage::Backend,
            (Point::BackendIn, MessageKind::Result | MessageKind::Error) => Stage::BackAgain,
            _ => Stage::Gateway,
        };
        self.reached = self.reached.max(reached);
        if self.backend.is_none() {
            self.backend.clone_from(&message.backend);
        }
    }

    /// Describes the stage, and whether the session has ended.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![self.reached.words().to_owned()];
        if self.session_ended {
            remarks.push("its session has ended".to_owned());
        }
        remarks.extend(self.rest.as_ref().map(|tape| format!("its rest is on tape {tape}")));
        remarks
    }

    /// Formats the call as JSON.
    pub fn json(&self) -> Value {
        json!({
            "seq": self.seq, "at": self.at, "session": self.session, "exchange": self.number, "principal": &*self.principal,
            "unfinished": {
                "method": self.method.as_deref(), "subject": self.subject.as_deref(), "backend": self.backend.as_deref(),
                "reached": self.reached.words(), "session_ended": self.session_ended, "rest_on_tape": self.rest,
            },
        })
    }
}

/// Open calls by number, updated while the entries of a tape arrive.
#[derive(Default, Debug)]
pub(super) struct OpenCalls(BTreeMap<u64, OpenCall>);

impl OpenCalls {
    /// Processes the next entry of the tape.
    pub fn add(&mut self, entry: &Entry) {
        match (&entry.content, entry.exchange) {
            (Content::Finished(_), Some(number)) => drop(self.0.remove(&number)),
            (Content::Message(message), Some(number)) => {
                if message.point == Point::ClientIn && message.kind == MessageKind::Request {
                    self.0.entry(number).or_insert_with(|| OpenCall::new(number, entry, message));
                    if self.0.len() > MOST_OPEN {
                        self.0.pop_first();
                    }
                } else if let Some(open) = self.0.get_mut(&number) {
                    open.passed(message);
                }
            }
            (Content::Decisions(list), Some(number)) => {
                if let Some(tape) = list.iter().find_map(|decision| decision.tape_of_rest())
                    && let Some(open) = self.0.get_mut(&number)
                {
                    open.rest = Some(tape.to_owned());
                }
            }
            (Content::SessionEnded, _) if entry.session.is_some() => {
                let of_session = self.0.values_mut().filter(|open| open.session == entry.session);
                of_session.for_each(|open| open.session_ended = true);
            }
            _ => {}
        }
    }

    /// Iterates over the open calls, in order of arrival.
    pub fn all(&self) -> impl Iterator<Item = &OpenCall> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use signalbox_engine::record::{Body, DecisionEntry, FinishedEntry};

    fn entry(seq: u64, exchange: Option<u64>, content: Content) -> Entry {
        Entry { session: Some(1), exchange, ..Entry::new(seq, seq, "ann".into(), content) }
    }

    fn message(point: Point, kind: MessageKind, backend: Option<&str>) -> Content {
        let mut message = MessageEntry::new(point, kind, 2, Body::Whole(Bytes::from_static(b"{}")));
        message.backend = backend.map(Arc::from);
        Content::Message(message)
    }

    #[test]
    fn a_call_is_open_until_its_end_and_tells_how_far_it_came() {
        let mut open = OpenCalls::default();
        for number in [4, 5, 6, 7] {
            open.add(&entry(number, Some(number), message(Point::ClientIn, MessageKind::Request, None)));
        }
        open.add(&entry(8, Some(5), message(Point::BackendOut, MessageKind::Request, Some("b"))));
        open.add(&entry(9, Some(6), message(Point::BackendOut, MessageKind::Request, Some("b"))));
        open.add(&entry(10, Some(6), message(Point::BackendIn, MessageKind::Result, Some("b"))));
        open.add(&entry(11, Some(7), Content::Finished(FinishedEntry::default())));
        open.add(&entry(12, Some(2), message(Point::BackendIn, MessageKind::Result, Some("b"))));
        open.add(&entry(13, None, Content::SessionEnded));
        let note = Content::Decisions(vec![Arc::new(DecisionEntry::continues_on("6a-2"))]);
        open.add(&entry(14, Some(6), note));
        let told: Vec<String> = open
            .all()
            .map(|call| format!("{} {:?} {}", call.number, call.backend.as_deref(), call.remarks().join(", ")))
            .collect();
        assert_eq!(
            told,
            [
                "4 None not sent to a backend, its session has ended",
                "5 Some(\"b\") sent to the backend, its session has ended",
                "6 Some(\"b\") answered by the backend, its session has ended, its rest is on tape 6a-2",
            ]
        );
    }
}
