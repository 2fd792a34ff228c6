//! Client notifications of a recording.

use crate::recorded_side::{Heading, RecordedSide};
use bytes::Bytes;
use signalbox_engine::record::{Body, Content, Entry, MessageKind};
use signalbox_wire::method;

/// Notification from a recorded client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedNotification {
    /// Position on the tape.
    pub seq: u64,
    pub session: Option<u64>,
    pub message: Bytes,
    /// Set if the notification cannot change anything. Only a changed roots list qualifies.
    pub is_harmless: bool,
}

impl RecordedNotification {
    /// Reads a notification from an entry. Returns `None` for those that the runner sends itself, and for those that
    /// refer to a request id, which differs now.
    #[must_use]
    pub fn of(side: &RecordedSide, entry: &Entry) -> Option<Self> {
        let Content::Message(message) = &entry.content else { return None };
        if message.kind != MessageKind::Notification || message.redacted {
            return None;
        }
        let name = message.method.as_deref()?;
        if [method::INITIALIZED, method::CANCELLED, method::PROGRESS].contains(&name) {
            return None;
        }
        match (side.heading(message)?, &message.body) {
            (Heading::ToServer, Body::Whole(bytes)) => Some(Self {
                seq: entry.seq,
                session: entry.session,
                message: bytes.clone(),
                is_harmless: name == method::ROOTS_LIST_CHANGED,
            }),
            _ => None,
        }
    }
}

/// Notifications of one session still to be sent.
#[derive(Debug)]
pub(super) struct Unsent<'a>(std::iter::Peekable<std::vec::IntoIter<&'a RecordedNotification>>);

impl<'a> Unsent<'a> {
    /// Selects the notifications of a session that may be sent.
    pub(super) fn new(all: &'a [RecordedNotification], session: Option<u64>, allow_writes: bool) -> Self {
        let own = all.iter().filter(|one| one.session == session && (allow_writes || one.is_harmless));
        Self(own.collect::<Vec<_>>().into_iter().peekable())
    }

    /// Returns the next notification recorded before this position.
    pub(super) fn before(&mut self, seq: u64) -> Option<&'a RecordedNotification> {
        self.0.next_if(|one| one.seq < seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_gatherer::gather;
    use crate::paths::Paths;
    use crate::run::{Connection, RunSettings, Runner};
    use serde_json::{Value, json};
    use signalbox_engine::fact::Point;
    use signalbox_engine::record::MessageEntry;
    use tokio::sync::mpsc;

    fn entry(seq: u64, point: Point, kind: MessageKind, method: &str) -> Entry {
        let message = match kind {
            MessageKind::Result => json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
            MessageKind::Request => json!({"jsonrpc": "2.0", "id": 1, "method": method}),
            _ => json!({"jsonrpc": "2.0", "method": method}),
        };
        let mut message = MessageEntry::new(point, kind, 0, Body::Whole(message.to_string().into()));
        message.method = Some(method.into());
        let entry = Entry::new(seq, seq * 1000, "me".into(), Content::Message(message));
        let exchange = (kind != MessageKind::Notification).then_some(1 + seq / 4);
        Entry { exchange, session: Some(1), ..entry }
    }

    /// A session in which the client says, between two lists, what nobody asked for.
    fn session() -> Vec<Entry> {
        let told = |seq, method| entry(seq, Point::ClientIn, MessageKind::Notification, method);
        let listed = |seq, method| {
            let answer = entry(seq + 1, Point::ClientOut, MessageKind::Result, method);
            [entry(seq, Point::ClientIn, MessageKind::Request, method), answer]
        };
        let [list, answer] = listed(1, "tools/list");
        let mut entries = vec![list, answer];
        entries.extend([told(3, method::ROOTS_LIST_CHANGED), told(4, "notifications/deploy")]);
        entries.push(told(5, method::CANCELLED));
        entries.extend(listed(6, "prompts/list"));
        entries
    }

    /// The methods that a server hears when the session is sent to it again.
    async fn heard(allow_writes: bool) -> Vec<String> {
        let side = RecordedSide::Client;
        let told: Vec<_> = session().iter().filter_map(|one| RecordedNotification::of(&side, one)).collect();
        let entries = session().into_iter().map(Ok::<_, std::convert::Infallible>);
        let calls = gather(entries, side, Paths::default()).unwrap();
        let (to, mut requests) = mpsc::channel::<Bytes>(8);
        let (answers, from) = mpsc::channel(8);
        let server = tokio::spawn(async move {
            let mut heard = Vec::new();
            while let Some(bytes) = requests.recv().await {
                let message: Value = serde_json::from_slice(&bytes).unwrap();
                heard.push(message["method"].as_str().unwrap().to_owned());
                if let Some(id) = message.get("id") {
                    let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
                    answers.send(answer.to_string().into()).await.unwrap();
                }
            }
            heard
        });
        let settings = RunSettings { allow_writes, ..RunSettings::default() };
        let mut connection = Connection::new(to, from);
        Runner::new(&settings).notifying(&told).session(&calls, &mut connection).await.unwrap();
        drop(connection);
        server.await.unwrap()
    }

    /// Proves S-39.
    #[tokio::test]
    async fn notifications_are_sent_in_their_place_and_only_harmless_ones_without_leave() {
        let roots = "notifications/roots/list_changed";
        let begin = ["initialize", "notifications/initialized", "tools/list", roots];
        assert_eq!(heard(true).await, [&begin[..], &["notifications/deploy", "prompts/list"]].concat());
        assert_eq!(heard(false).await, [&begin[..], &["prompts/list"]].concat());
    }
}
