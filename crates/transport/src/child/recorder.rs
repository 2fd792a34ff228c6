//! Records the events of a link for tests.

use bytes::Bytes;
use signalbox_engine::Fault;
use signalbox_engine::back::ToBackend;
use signalbox_runtime::LinkEvents;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// An event of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RecordedEvent {
    Received(String),
    Failed(u64, Fault),
    Lost(String),
}

/// Receiver of the link's events.
pub(crate) struct Recorder(mpsc::Sender<RecordedEvent>);

/// Recorded events, in their order.
pub(crate) struct RecordedEvents(mpsc::Receiver<RecordedEvent>);

pub(crate) fn recorder() -> (Arc<Recorder>, RecordedEvents) {
    let (sender, receiver) = mpsc::channel(10_000);
    (Arc::new(Recorder(sender)), RecordedEvents(receiver))
}

impl LinkEvents for Recorder {
    fn user(&self) -> Option<signalbox_engine::BackendUser> {
        None
    }

    fn received(&self, bytes: Bytes, about: Option<u64>, status: Option<u16>) {
        assert_eq!((about, status), (None, None));
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        self.0.try_send(RecordedEvent::Received(text)).unwrap();
    }

    fn failed(&self, key: u64, fault: Fault) {
        self.0.try_send(RecordedEvent::Failed(key, fault)).unwrap();
    }

    fn expired(&self, _message: ToBackend) {
        panic!("a pipe has no sessions");
    }

    fn lost(&self, why: String) {
        self.0.try_send(RecordedEvent::Lost(why)).unwrap();
    }
}

impl RecordedEvents {
    pub(crate) async fn next(&mut self) -> RecordedEvent {
        let next = timeout(Duration::from_secs(20), self.0.recv()).await;
        next.expect("nothing happened for 20 s").expect("no more events can come")
    }

    pub(crate) async fn message(&mut self) -> String {
        match self.next().await {
            RecordedEvent::Received(text) => text,
            other => panic!("expected a message, got {other:?}"),
        }
    }

    pub(crate) async fn lost(&mut self) -> String {
        match self.next().await {
            RecordedEvent::Lost(why) => why,
            other => panic!("expected the end, got {other:?}"),
        }
    }

    /// Waits until all senders are dropped, and asserts that they sent nothing.
    pub(crate) async fn silence(&mut self) {
        let next = timeout(Duration::from_secs(20), self.0.recv()).await;
        assert_eq!(next.expect("the tasks of a link have not ended"), None);
    }
}

/// Creates a message; with a `key` it is a request.
pub(crate) fn outbound(text: &str, key: Option<u64>) -> ToBackend {
    ToBackend::for_test(key, "ping", None, Bytes::copy_from_slice(text.as_bytes()))
}
