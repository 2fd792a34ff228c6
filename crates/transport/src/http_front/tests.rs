//! Streams that are lost, taken over and resumed, without sockets.

use super::resume::{MAX_PARKED_PER_SESSION, ResumeStore};
use super::sse_body::{KEPT_EVENTS, RETRY_MS, Resumable, SseBody};
use super::track::{EventId, NoReplay};
use bytes::Bytes;
use signalbox_engine::front::Mode;
use signalbox_engine::{Caller, Event, PeerId};
use signalbox_runtime::outbox::{AWAY_BYTES, OUTBOX_BOUND};
use signalbox_runtime::{Gateway, GatewayParts, OutgoingMessage, Session, Settings};
use signalbox_wire::{Envelope, SseDecoder};
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A client's session and the front's memory of its streams.
struct Scene {
    gateway: Arc<Gateway>,
    session: Arc<Session>,
    store: Arc<ResumeStore>,
}

impl Scene {
    fn new() -> Self {
        let gateway = Gateway::new(GatewayParts::unguarded(Settings::default(), Vec::new()).unwrap()).unwrap();
        let session = gateway.open_session(Caller::anonymous("http"), Mode::Session, "s", "test").unwrap();
        Self { gateway, session, store: Arc::default() }
    }

    fn resumable(&self) -> Resumable {
        Resumable {
            session: "s".into(),
            store: Arc::clone(&self.store),
            prime: false,
            call: None,
            caller: Caller::anonymous("http"),
        }
    }

    /// What a GET without an id gets.
    fn general(&self) -> SseBody {
        SseBody::general(self.session.open_general().unwrap(), Some(self.resumable()))
    }

    /// What a POST of a ping gets, from a client that would rather have events.
    fn ping(&self) -> SseBody {
        let reader = self.session.open_stream().unwrap();
        let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        self.session.receive(&reader, Envelope::parse(Bytes::from_static(ping)).unwrap());
        SseBody::new(reader, [], Some(self.resumable()))
    }

    /// What a GET with this id gets.
    fn resume(&self, id: &str) -> Result<SseBody, NoReplay> {
        let id = EventId::parse(id).unwrap();
        SseBody::resumed(self.store.find("s", id.stream).unwrap(), id.number, self.resumable())
    }

    /// A backend logs these numbers, each with so much beside it.
    fn log(&self, numbers: Range<u64>, more: usize) {
        for number in numbers {
            let padding = "x".repeat(more);
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"error","data":{number},"x":"{padding}"}}}}"#
            );
            let message = Envelope::parse(Bytes::from(text)).unwrap();
            self.session.handle(Event::Notified { backend: "b".into(), peer: PeerId(1), message, about: None });
        }
    }

    fn dropped(&self, reason: &str) -> u64 {
        self.gateway.counters.all_dropped().get(reason).copied().unwrap_or(0)
    }
}

/// Everything that can be read now: the ids of events, and whether the body has ended.
fn read(body: &mut SseBody) -> (Vec<(String, Bytes)>, bool) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut decoder = SseDecoder::new(1 << 20);
    let ended = loop {
        match body.poll_chunk(&mut cx) {
            Poll::Ready(Some(chunk)) => decoder.push(&chunk),
            Poll::Ready(None) => break true,
            Poll::Pending => break false,
        }
    };
    let mut events = Vec::new();
    while let Some(event) = decoder.next_event() {
        let event = event.unwrap();
        events.push((event.id.unwrap(), event.data));
    }
    (events, ended)
}

fn ids(body: &mut SseBody) -> (Vec<String>, bool) {
    let (events, ended) = read(body);
    (events.into_iter().map(|(id, _)| id).collect(), ended)
}

#[tokio::test]
async fn a_lost_general_stream_collects_and_goes_on_after_the_last_event_seen() {
    let scene = Scene::new();
    let mut body = scene.general();
    scene.log(1..4, 0);
    assert_eq!(ids(&mut body), (vec!["g1-1".into(), "g1-2".into(), "g1-3".into()], false));
    drop(body);
    scene.log(4..6, 0);
    // The third event was written and never arrived.
    let mut body = scene.resume("g1-2").unwrap();
    assert_eq!(ids(&mut body), (vec!["g1-3".into(), "g1-4".into(), "g1-5".into()], false));
    scene.log(6..7, 0);
    assert_eq!(ids(&mut body), (vec!["g1-6".into()], false));
    assert!(scene.gateway.counters.all_dropped().is_empty());
}

#[tokio::test]
async fn a_client_that_is_back_before_its_loss_is_noticed_takes_the_stream_over() {
    let scene = Scene::new();
    let mut first = scene.general();
    scene.log(1..3, 0);
    assert_eq!(ids(&mut first).0.len(), 2);
    let mut second = scene.resume("g1-1").unwrap();
    scene.log(3..4, 0);
    assert_eq!(ids(&mut first), (Vec::new(), true), "the old connection gets nothing more");
    assert_eq!(ids(&mut second), (vec!["g1-2".into(), "g1-3".into()], false));
    drop(first);
    scene.log(4..5, 0);
    assert_eq!(ids(&mut second), (vec!["g1-4".into()], false), "its end changes nothing");
}

#[tokio::test]
async fn without_an_id_the_general_stream_begins_anew() {
    let scene = Scene::new();
    drop(scene.general());
    scene.log(1..4, 0);
    let mut body = scene.general();
    scene.log(4..5, 0);
    assert_eq!(ids(&mut body), (vec!["g2-1".into()], false));
    assert!(scene.store.find("s", 1).is_none());
    assert_eq!(scene.dropped("not_resumed"), 3);
}

#[tokio::test]
async fn an_answer_that_was_written_may_not_have_arrived() {
    let scene = Scene::new();
    let mut body = scene.ping();
    let (events, ended) = read(&mut body);
    assert!(ended && events.len() == 1);
    drop(body);
    let mut body = scene.resume("1-0").unwrap();
    assert_eq!(read(&mut body), (events, true));
    let mut body = scene.resume("1-1").unwrap();
    assert_eq!(ids(&mut body), (Vec::new(), true));
    assert_eq!(scene.resume("1-2").err(), Some(NoReplay::Future));
}

#[tokio::test]
async fn what_is_no_longer_kept_is_not_left_out_silently() {
    let scene = Scene::new();
    let mut body = scene.general();
    for start in (0..KEPT_EVENTS as u64 + 50).step_by(50) {
        scene.log(start..start + 50, 0);
        read(&mut body);
    }
    drop(body);
    assert_eq!(scene.resume("g1-3").err(), Some(NoReplay::Gap));
    assert!(scene.resume(&format!("g1-{KEPT_EVENTS}")).is_ok());
}

#[tokio::test]
async fn what_a_client_that_is_away_has_no_room_for_is_not_left_out_silently() {
    for (count, size) in [(OUTBOX_BOUND as u64 + 1, 0), (3, AWAY_BYTES / 2)] {
        let scene = Scene::new();
        let mut body = scene.general();
        scene.log(0..1, 0);
        assert_eq!(ids(&mut body).0.len(), 1);
        drop(body);
        scene.log(0..count, size);
        assert!(scene.dropped("slow_client") > 0);
        assert_eq!(scene.resume("g1-1").err(), Some(NoReplay::Gap));
    }
}

#[tokio::test]
async fn a_session_keeps_so_many_streams_and_the_oldest_go_first() {
    let scene = Scene::new();
    let mut general = scene.general();
    scene.log(0..1, 0);
    read(&mut general);
    drop(general);
    for _ in 0..MAX_PARKED_PER_SESSION {
        read(&mut scene.ping());
    }
    assert!(scene.store.find("s", 2).is_none(), "the oldest that has ended");
    assert!(scene.store.find("s", 3).is_some());
    assert!(scene.resume("g1-1").is_ok(), "what has not ended stays");
    scene.store.sweep(|_| false);
    assert!(scene.store.find("s", 3).is_none(), "with the session everything goes");
}

#[test]
fn event_ids_are_read_as_they_are_written() {
    let id = |text: &str| EventId::parse(text).map(|id| (id.general, id.stream, id.number));
    assert_eq!(id("g7-3"), Some((true, 7, 3)));
    assert_eq!(id("7-0"), Some((false, 7, 0)));
    for wrong in ["", "7", "-", "g-1", "x7-1", "7-+1", "+7-1", "gg7-1", "7-1-1", "99999999999999999999-1"] {
        assert_eq!(id(wrong), None, "{wrong}");
    }
}

/// The wait that a server named for its own stream is the one that the client is told.
#[tokio::test]
async fn a_stream_that_closes_for_now_says_how_long_its_server_wants_its_client_to_wait() {
    let scene = Scene::new();
    let wait = Some(Duration::from_millis(250));
    let reader = scene.session.open_stream().unwrap();
    let stream = reader.id().0;
    let mut body =
        SseBody::new(reader, [OutgoingMessage::parting(wait)], Some(Resumable { prime: true, ..scene.resumable() }));
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Some(chunk)) = body.poll_chunk(&mut cx) else { panic!() };
    let mut decoder = SseDecoder::new(1 << 20);
    decoder.push(&chunk);
    let events: Vec<_> = std::iter::from_fn(|| decoder.next_event()).map(Result::unwrap).collect();
    let told: Vec<_> = events.iter().map(|event| (event.id.clone().unwrap(), event.retry.unwrap())).collect();
    let id = format!("{stream}-0");
    assert_eq!(told, [(id.clone(), RETRY_MS), (id.clone(), 250)]);
    assert_eq!(body.poll_chunk(&mut cx), Poll::Ready(None));
    drop(body);
    assert!(scene.resume(&id).is_ok(), "and its client can come back after that event");
}
