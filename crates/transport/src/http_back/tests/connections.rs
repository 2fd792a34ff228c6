//! Connections: kept, found dead, dropped, never used twice for one request that may have been processed.

use super::server::*;
use crate::http_back::{HttpConnector, HttpSpec, headers};
use crate::http1::{Conn, ConnectError, HttpTarget, body};
use bytes::Bytes;
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind, Principal};
use signalbox_runtime::caller_places::CallerPlaces;
use signalbox_runtime::{Connector as _, LinkEvents};
use signalbox_wire::Revision;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn echo(seen: &SeenRequest) -> Act {
    Act::Write(json(&result(seen.id())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_share_a_handful_of_connections() {
    let server = Server::start(echo).await;
    let mut opened = Opened::new(&server).await;
    for round in 0..125 {
        for key in 0..8 {
            opened.link.send(call(round * 8 + key)).unwrap();
        }
        for _ in 0..8 {
            opened.next().await.received();
        }
    }
    assert_eq!(server.seen().len(), 1000);
    assert!(server.connections() <= 16, "{} connections", server.connections());
}

#[tokio::test]
async fn one_call_after_the_other_needs_one_connection() {
    let server = Server::start(|seen| {
        let body = format!("event: message\ndata: {}\n\n", result(seen.id()));
        if seen.id() % 2 == 0 { Act::Write(json(&result(seen.id()))) } else { Act::Write(events(&body)) }
    })
    .await;
    let mut opened = Opened::new(&server).await;
    for key in 0..50 {
        opened.ask(call(key)).await.received();
        // The end of an event stream is read after its answer was posted.
        until(|| opened.connector.backend.pool.idle() == 1).await;
    }
    assert_eq!(server.connections(), 1);
}

struct Deaf;

impl LinkEvents for Deaf {
    fn user(&self) -> Option<signalbox_engine::BackendUser> {
        None
    }

    fn received(&self, _: Bytes, _: Option<u64>, _: Option<u16>) {}
    fn failed(&self, _: u64, _: Fault) {}
    fn expired(&self, _: ToBackend) {}
    fn lost(&self, _: String) {}
}

#[tokio::test]
async fn links_of_one_connector_share_connections() {
    let server = Server::start(echo).await;
    let mut opened = Opened::new(&server).await;
    opened.ask(call(1)).await.received();
    let second = opened.connector.open(Arc::new(Deaf)).await.unwrap();
    second.send(call(2)).unwrap();
    until(|| server.seen().len() == 2).await;
    assert_eq!(server.connections(), 1);
}

/// The server closes after each answer, while the connection lies idle: the next call must not notice.
#[tokio::test]
async fn a_connection_closed_while_idle_is_not_used_again() {
    let server = Server::start(|seen| Act::Last(json(&result(seen.id())))).await;
    let mut opened = Opened::new(&server).await;
    for key in 0..20 {
        opened.ask(call(key)).await.received();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((server.seen().len(), server.connections()), (20, 20));
}

/// The same without the pause: a call may be written before the closing is known. It is then lost or not, but it is
/// never processed twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_never_processed_twice() {
    let server = Server::start(|seen| Act::Last(json(&result(seen.id())))).await;
    let mut opened = Opened::new(&server).await;
    for key in 0..300 {
        match opened.ask(call(key)).await {
            Event::Received(..) => {}
            other => drop(other.failed(key, FaultKind::BackendDied)),
        }
    }
    let mut ids: Vec<u64> = server.seen().iter().map(SeenRequest::id).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

/// A connection that was fine when it was chosen is closed before the request is written: that is retried, once.
#[tokio::test]
async fn a_request_of_which_nothing_was_sent_is_retried_on_a_new_connection() {
    let server = Server::start(|seen| Act::Last(json(&result(seen.id())))).await;
    let opened = Opened::new(&server).await;
    let backend = &opened.connector.backend;
    let request = |key| headers::post(backend, &call(key), None, None, Vec::new()).unwrap();
    let mut stale = Conn::open(&backend.target, Duration::from_secs(1)).await.unwrap();
    assert!(stale.send(request(1)).await.is_ok());
    body::whole(&mut stale, 1000, || None).await.unwrap();
    until(|| server.hung_up.load(Ordering::SeqCst) == 1).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let (_, head) = backend.exchange(&Deaf, Some(stale), request(2)).await.unwrap();
    assert_eq!(head.status, 200);
    let ids: Vec<u64> = server.seen().iter().map(SeenRequest::id).collect();
    assert_eq!((ids, server.connections()), (vec![1, 2], 2));
}

/// The request reached the server, which then closed the kept connection: it may have run, so it is not sent again.
#[tokio::test]
async fn a_request_that_may_have_been_processed_is_not_retried() {
    let count = AtomicUsize::new(0);
    let server = Server::start(move |seen| match count.fetch_add(1, Ordering::SeqCst) {
        0 => echo(seen),
        _ => Act::Close,
    })
    .await;
    let mut opened = Opened::new(&server).await;
    opened.ask(call(1)).await.received();
    let text = opened.ask(call(2)).await.failed(2, FaultKind::BackendDied);
    assert!(text.contains("closed the connection before the answer"), "{text}");
    assert_eq!((server.seen().len(), server.connections()), (2, 1));
}

#[tokio::test]
async fn a_connection_lost_in_the_middle_of_the_answer_fails_the_request() {
    let server = Server::start(|_| {
        let bytes = json(&result(7));
        Act::Last(bytes[..bytes.len() - 3].to_vec())
    })
    .await;
    let text = Opened::new(&server).await.ask(call(7)).await.failed(7, FaultKind::BackendDied);
    assert!(text.contains("in the middle of the answer"), "{text}");
}

#[tokio::test]
async fn a_server_that_wants_no_second_request_gets_a_new_connection() {
    let server = Server::start(|seen| {
        let headers = "content-type: application/json\r\nconnection: close\r\n";
        Act::Write(response("200 OK", headers, &result(seen.id())))
    })
    .await;
    let mut opened = Opened::new(&server).await;
    for key in 0..3 {
        opened.ask(call(key)).await.received();
        assert_eq!(opened.connector.backend.pool.idle(), 0);
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn idle_connections_are_closed_in_time() {
    let server = Server::start(echo).await;
    let idle_timeout = Duration::from_millis(60);
    let mut opened = Opened::to(HttpSpec { idle_timeout, ..HttpSpec::new("demo", server.url()) }).await;
    opened.ask(call(1)).await.received();
    until(|| server.hung_up.load(Ordering::SeqCst) == 1).await;
    opened.ask(call(2)).await.received();
    until(|| server.hung_up.load(Ordering::SeqCst) == 2).await;
    assert_eq!(opened.connector.backend.pool.idle(), 0);
}

#[tokio::test]
async fn a_server_may_ask_for_a_shorter_idle_time() {
    let server = Server::start(|seen| {
        let headers = "content-type: application/json\r\nkeep-alive: timeout=0\r\n";
        Act::Write(response("200 OK", headers, &result(seen.id())))
    })
    .await;
    let mut opened = Opened::new(&server).await;
    opened.ask(call(1)).await.received();
    opened.ask(call(2)).await.received();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn no_more_idle_connections_are_kept_than_allowed() {
    let server = Server::start(echo).await;
    let mut opened = Opened::to(HttpSpec { max_idle: 2, ..HttpSpec::new("demo", server.url()) }).await;
    for key in 0..10 {
        opened.link.send(call(key)).unwrap();
    }
    for _ in 0..10 {
        opened.next().await.received();
    }
    until(|| opened.connector.backend.pool.idle() == 2).await;
}

/// The calls of one caller leave connections to others, and no call fails because another holds one.
#[tokio::test]
async fn a_caller_with_many_calls_leaves_connections_to_others() {
    let server = Server::start(|seen| if seen.id() < 100 { Act::Hang } else { echo(seen) }).await;
    let places = CallerPlaces::new(4);
    let spec = || HttpSpec {
        places: Arc::clone(&places),
        connect_timeout: Duration::from_millis(500),
        ..HttpSpec::new("demo", server.url())
    };
    let mut ada = Opened::by(Some(Principal::named("ada")), spec()).await;
    let mut vic = Opened::by(Some(Principal::named("vic")), spec()).await;
    for key in 0..5 {
        ada.link.send(call(key)).unwrap();
    }
    vic.ask(call(100)).await.received();
    for _ in 0..3 {
        match ada.next().await {
            Event::Failed(_, fault) => assert_eq!(fault.kind, FaultKind::Overloaded, "{fault}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((server.seen().len(), places.refused()), (3, 3), "two calls of ada and one of vic");
    // What is given up makes room.
    ada.link.abort(0);
    ada.link.abort(1);
    (2..5).for_each(|key| ada.link.abort(key));
    ada.ask(call(101)).await.received();
}

/// That the gateway has no file left is not the backend's doing.
#[test]
fn a_connection_for_which_there_is_no_open_file_is_no_failure_of_the_backend() {
    let target = HttpTarget::parse("http://127.0.0.1:9/mcp", "http").unwrap();
    let kind = |number| {
        let error = ConnectError::Io(std::io::Error::from_raw_os_error(number));
        crate::backend_fault::unreachable("demo", &target, &error).kind
    };
    assert_eq!(kind(rustix::io::Errno::MFILE.raw_os_error()), FaultKind::Overloaded);
    assert_eq!(kind(rustix::io::Errno::CONNREFUSED.raw_os_error()), FaultKind::BackendDown);
}

#[tokio::test]
async fn abort_closes_the_connection_and_posts_nothing() {
    let server = Server::start(|seen| if seen.id() == 1 { Act::Hang } else { echo(seen) }).await;
    let mut opened = Opened::new(&server).await;
    opened.link.send(call(1)).unwrap();
    until(|| server.seen().len() == 1).await;
    opened.link.abort(1);
    opened.link.abort(1);
    until(|| server.hung_up.load(Ordering::SeqCst) == 1).await;
    let (text, ..) = opened.ask(call(2)).await.received();
    assert_eq!(text, result(2));
}

#[tokio::test]
async fn abort_also_closes_a_stream() {
    let server = Server::start(|_| Act::Slowly(vec![events_head(), chunk(": hi\n\n")], Duration::ZERO)).await;
    let mut opened = Opened::new(&server).await;
    opened.link.send(message(1, "subscriptions/listen", Revision::LATEST)).unwrap();
    until(|| server.seen().len() == 1).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    opened.link.abort(1);
    until(|| server.hung_up.load(Ordering::SeqCst) == 1).await;
    assert!(opened.events.try_recv().is_err());
}

#[tokio::test]
async fn a_backend_that_is_not_there_is_down() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut opened = Opened::to(HttpSpec::new("demo", format!("http://{address}/mcp"))).await;
    let text = opened.ask(call(1)).await.failed(1, FaultKind::BackendDown);
    assert!(text.contains(&address.to_string()) && text.contains("refused"), "{text}");
    opened.link.send(note("notifications/cancelled")).unwrap();
    opened.ask(call(2)).await.failed(2, FaultKind::BackendDown);
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_down() {
    let mut opened = Opened::to(HttpSpec::new("demo", "http://nowhere.invalid:9/")).await;
    opened.ask(call(1)).await.failed(1, FaultKind::BackendDown);
}

#[tokio::test]
async fn a_closed_link_takes_nothing() {
    let server = Server::start(|_| Act::Hang).await;
    let mut opened = Opened::new(&server).await;
    opened.link.send(call(1)).unwrap();
    opened.link.send(note("notifications/cancelled")).unwrap();
    until(|| server.seen().len() == 2).await;
    opened.link.close();
    until(|| server.hung_up.load(Ordering::SeqCst) == 2).await;
    let fault = opened.link.send(call(2)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::BackendDown);
    opened.link.open_general();
    assert!(opened.events.try_recv().is_err());
    assert_eq!(server.seen().len(), 2);
}

/// A runtime that shuts down drops tasks where they are spawned, which is inside the link.
#[test]
fn a_runtime_that_is_gone_takes_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connector = HttpConnector::new(HttpSpec::new("demo", "http://127.0.0.1:9/")).unwrap();
    let link = runtime.block_on(connector.open(Arc::new(Deaf))).unwrap();
    drop(runtime);
    assert_eq!(link.send(call(1)).unwrap_err().kind, FaultKind::BackendDown);
    link.send(note("notifications/cancelled")).unwrap_err();
    link.open_general();
    link.close();
}

/// An address where nobody listens until the server comes.
async fn empty_address() -> std::net::SocketAddr {
    tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// A refused connection has processed nothing.
/// Proves NO-3.
#[tokio::test]
async fn a_request_that_nobody_took_is_sent_again_a_few_times() {
    let address = empty_address().await;
    let spec = HttpSpec { retries: 2, ..HttpSpec::new("demo", format!("http://{address}/mcp")) };
    let mut opened = Opened::to(spec).await;
    let message = opened.ask(call(1)).await.failed(1, FaultKind::BackendDown);
    assert!(message.contains("cannot be reached"), "{message}");
    assert_eq!(opened.connector.retries(), 2);

    opened.link.send(call(2)).unwrap();
    until(|| opened.connector.retries() == 3).await;
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let answering = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = vec![0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0);
        stream.write_all(&json(&result(2))).await.unwrap();
        stream
    });
    assert_eq!(opened.next().await.received().1, Some(2));
    drop(answering.await);
}

/// Anything that the backend may have seen is not sent again, whatever it says.
/// Proves NO-3.
#[tokio::test]
async fn a_request_that_was_written_is_never_sent_again() {
    let acts: [(fn() -> Act, FaultKind); 5] = [
        (|| Act::Close, FaultKind::BackendDied),
        (|| Act::Last(b"HTTP/1.1 200 O".to_vec()), FaultKind::BackendDied),
        (|| Act::Last(b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{\"json".to_vec()), FaultKind::BackendDied),
        (|| Act::Write(response("503 Busy", "retry-after: 0\r\n", "")), FaultKind::BackendGarbage),
        (|| Act::Write(response("500 Oops", "", "oops")), FaultKind::BackendGarbage),
    ];
    for (act, kind) in acts {
        let server = Server::start(move |_| act()).await;
        let spec = HttpSpec { retries: 5, ..HttpSpec::new("demo", server.url()) };
        let mut opened = Opened::to(spec).await;
        opened.ask(call(1)).await.failed(1, kind);
        assert_eq!((server.seen().len(), opened.connector.retries()), (1, 0));
    }
}
