//! A link to a scripted server of HTTP+SSE: what is sent, what comes back, and every way in which it ends.

use super::*;
use crate::child::recorder::{RecordedEvent, RecordedEvents, outbound, recorder};
use crate::http_back::tests::server::{Act, SeenRequest, Server, chunk, events_head, note, response, until};
use http::header::{HeaderName, HeaderValue};
use signalbox_engine::FaultKind;
use signalbox_engine::back::ToBackend;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// Most that a server may be told to say before it has said it.
const SAID: usize = 64;
const ENDPOINT: &str = "event: endpoint\ndata: /message?sessionId=7\n\n";

/// A server whose stream carries what the test says, and whose POSTs are answered by the script.
struct Scene {
    server: Server,
    say: mpsc::Sender<Option<String>>,
}

impl Scene {
    async fn new(post: impl Fn(&SeenRequest) -> Act + Send + Sync + 'static) -> Self {
        let (say, said) = mpsc::channel(SAID);
        let said = Mutex::new(Some(said));
        let server = Server::start(move |seen| match seen.verb() {
            "GET" => Act::Follow(said.lock().unwrap().take().expect("one stream is opened")),
            _ => post(seen),
        })
        .await;
        say.try_send(Some(String::from_utf8(events_head()).unwrap())).unwrap();
        let scene = Self { server, say };
        scene.say(ENDPOINT);
        scene
    }

    async fn accepting() -> Self {
        Self::new(|_| accepted()).await
    }

    fn say(&self, text: &str) {
        self.say.try_send(Some(String::from_utf8(chunk(text)).unwrap())).unwrap();
    }

    fn end(&self) {
        self.say.try_send(None).unwrap();
    }

    fn spec(&self) -> HttpSpec {
        HttpSpec::new("old", format!("http://{}/sse", self.server.address))
    }

    async fn open(&self) -> (Arc<dyn Link>, RecordedEvents) {
        let (events, recorded) = recorder();
        (SseConnector::new(self.spec()).unwrap().open(events).await.unwrap(), recorded)
    }

    async fn refused(&self) -> Fault {
        let (events, _) = recorder();
        match SseConnector::new(self.spec()).unwrap().open(events).await {
            Ok(_) => panic!("it was opened"),
            Err(fault) => fault,
        }
    }

    fn posts(&self) -> Vec<SeenRequest> {
        self.server.seen().into_iter().filter(|seen| seen.verb() == "POST").collect()
    }
}

fn accepted() -> Act {
    Act::Write(response("202 Accepted", "content-type: text/plain\r\n", "Accepted"))
}

fn request(key: u64) -> ToBackend {
    outbound(&format!(r#"{{"jsonrpc":"2.0","id":{key},"method":"ping"}}"#), Some(key))
}

async fn failed(recorded: &mut RecordedEvents) -> (u64, Fault) {
    match recorded.next().await {
        RecordedEvent::Failed(key, fault) => (key, fault),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn messages_are_posted_to_the_endpoint_and_answers_come_on_the_stream() {
    let scene = Scene::accepting().await;
    let mut spec = scene.spec();
    spec.headers.push((HeaderName::from_static("authorization"), HeaderValue::from_static("Bearer s3cret")));
    let connector = SseConnector::new(spec).unwrap();
    assert_eq!((connector.kind(), connector.carries_headers(), connector.is_process()), ("sse", false, false));
    let (events, mut recorded) = recorder();
    let link = connector.open(events).await.unwrap();
    link.send(request(1)).unwrap();
    until(|| scene.posts().len() == 1).await;
    let post = scene.posts().remove(0);
    assert_eq!(post.line, "POST /message?sessionId=7 HTTP/1.1");
    assert_eq!(post.header("content-type"), Some("application/json"));
    assert_eq!(post.body, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let get = scene.server.seen().remove(0);
    assert_eq!(get.header("accept"), Some("text/event-stream"));
    for seen in [&get, &post] {
        assert_eq!(seen.header("authorization"), Some("Bearer s3cret"));
        assert_eq!(seen.header("host"), Some(scene.server.address.to_string().as_str()));
    }
    scene.say(": alive\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n");
    assert_eq!(recorded.message().await, "{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{}}");
    // Without a kind it is a message too; of an unknown kind it is none.
    scene.say("event: other\ndata: x\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\n");
    assert_eq!(recorded.message().await, r#"{"jsonrpc":"2.0","method":"a"}"#);
    // What is no message is handed on as it is, for whoever counts such things.
    scene.say("data: garbage\n\n");
    assert_eq!(recorded.message().await, "garbage");
    link.close();
    until(|| scene.server.hung_up.load(Ordering::SeqCst) >= 1).await;
    assert_eq!(link.send(request(2)).unwrap_err().kind, FaultKind::BackendDown);
    drop(link);
    recorded.silence().await;
}

#[tokio::test]
async fn a_refused_post_fails_its_own_request_only() {
    let scene = Scene::new(|seen| match seen.body.contains("\"id\":1,") {
        true => Act::Write(response("404 Not Found", "", "no such session s3cret-token")),
        false => accepted(),
    })
    .await;
    let mut spec = scene.spec();
    spec.headers.push((HeaderName::from_static("x-key"), HeaderValue::from_static("s3cret-token")));
    let (events, mut recorded) = recorder();
    let link = SseConnector::new(spec).unwrap().open(events).await.unwrap();
    link.send(request(1)).unwrap();
    let (key, fault) = failed(&mut recorded).await;
    assert_eq!((key, fault.kind), (1, FaultKind::BackendGarbage));
    assert_eq!(fault.message, "backend `old` answered a message with HTTP 404: no such session [hidden]");
    link.send(request(2)).unwrap();
    until(|| scene.posts().len() == 2).await;
    scene.say("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n");
    assert_eq!(recorded.message().await, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
}

#[tokio::test]
async fn the_end_of_the_stream_is_told_once() {
    let scene = Scene::accepting().await;
    let (link, mut recorded) = scene.open().await;
    scene.end();
    let why = recorded.lost().await;
    assert!(why.contains("its event stream"), "{why}");
    assert_eq!(link.send(request(1)).unwrap_err().kind, FaultKind::BackendDown);
    drop(link);
    recorded.silence().await;
}

#[tokio::test]
async fn an_event_that_is_too_large_is_skipped() {
    let scene = Scene::accepting().await;
    let mut spec = scene.spec();
    spec.limits.sse_event = 1000;
    let (events, mut recorded) = recorder();
    let _link = SseConnector::new(spec).unwrap().open(events).await.unwrap();
    scene.say(&format!("data: {}\n\n", "x".repeat(2000)));
    assert_eq!(recorded.message().await, "");
    scene.say("data: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\n");
    assert_eq!(recorded.message().await, r#"{"jsonrpc":"2.0","method":"a"}"#);
}

/// POSTs overtake each other, so that what follows `notifications/initialized` waits until that is accepted.
#[tokio::test]
async fn nothing_overtakes_the_end_of_the_handshake() {
    let released = Arc::new(AtomicUsize::new(0));
    let (release, answer) = mpsc::channel(SAID);
    let (flag, answer) = (Arc::clone(&released), Mutex::new(Some(answer)));
    let early = Arc::new(AtomicUsize::new(0));
    let too_early = Arc::clone(&early);
    let scene = Scene::new(move |seen| {
        if seen.body.contains("notifications/initialized") {
            return Act::Follow(answer.lock().unwrap().take().expect("it is told once"));
        }
        too_early.fetch_add(1 - flag.load(Ordering::SeqCst), Ordering::SeqCst);
        accepted()
    })
    .await;
    let (link, _recorded) = scene.open().await;
    link.send(note("notifications/initialized")).unwrap();
    for key in 1..5 {
        link.send(request(key)).unwrap();
    }
    until(|| !scene.posts().is_empty()).await;
    released.store(1, Ordering::SeqCst);
    release.try_send(Some(String::from_utf8(response("202 Accepted", "connection: close\r\n", "")).unwrap())).unwrap();
    until(|| scene.posts().len() == 5).await;
    assert_eq!(early.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_aborted_request_closes_its_own_connection() {
    let scene = Scene::new(|_| Act::Hang).await;
    let (link, mut recorded) = scene.open().await;
    link.send(request(1)).unwrap();
    until(|| scene.posts().len() == 1).await;
    link.abort(2);
    link.abort(1);
    until(|| scene.server.hung_up.load(Ordering::SeqCst) == 1).await;
    scene.end();
    recorded.lost().await;
}

/// What a backend may say instead of naming an address to post to, and what is said about it.
#[tokio::test]
async fn a_backend_that_names_no_good_address_is_refused() {
    for (events, part) in [
        ("event: endpoint\ndata: http://evil.example/m\n\n", "another scheme, host or port"),
        ("event: endpoint\ndata: javascript:alert(1)\n\n", "another scheme, host or port"),
        ("event: endpoint\ndata:\n\n", "is empty"),
        ("data: {}\n\n", "ended its event stream before"),
        ("", "ended its event stream before"),
    ] {
        let answer = [events_head(), if events.is_empty() { vec![] } else { chunk(events) }, b"0\r\n\r\n".to_vec()];
        let server = Server::start(move |_| Act::Write(answer.concat())).await;
        let (say, _) = mpsc::channel(SAID);
        let fault = Scene { server, say }.refused().await;
        assert_eq!(fault.kind, FaultKind::BackendGarbage, "{events:?}: {fault}");
        assert!(fault.message.contains(part), "{events:?}: {fault}");
    }
    for (answer, part) in [
        (response("405 Method Not Allowed", "", ""), "HTTP 405"),
        (response("401 Unauthorized", "", "who?"), "wants authentication"),
        (response("307 Temporary Redirect", "location: http://evil.example/\r\n", ""), "redirects are not followed"),
        (response("200 OK", "content-type: text/html\r\n", "<p>"), "something else than an event stream"),
    ] {
        let server = Server::start(move |_| Act::Write(answer.clone())).await;
        let (say, _) = mpsc::channel(SAID);
        let fault = Scene { server, say }.refused().await;
        assert!(fault.message.contains(part), "{fault}");
    }
    let many = "data: x\n\n".repeat(100);
    let answer = [events_head(), chunk(&many)].concat();
    let server = Server::start(move |_| Act::Write(answer.clone())).await;
    let (say, _) = mpsc::channel(SAID);
    assert!(Scene { server, say }.refused().await.message.contains("not the one that names the address"));
}

#[tokio::test]
async fn a_backend_that_is_not_there_is_down() {
    let scene = Scene::accepting().await;
    let (events, _) = recorder();
    let connector = SseConnector::new(HttpSpec::new("old", "http://127.0.0.1:1/sse")).unwrap();
    let Err(fault) = connector.open(events).await else { panic!("it was opened") };
    assert_eq!(fault.kind, FaultKind::BackendDown);
    drop(scene);
}
