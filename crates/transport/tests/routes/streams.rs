//! Answers that come bit by bit: many at a time, until the client has gone or the gateway stops.

use super::scene::{LISTENERS, Scene, Socket, read_until, request, rest, until};
use signalbox_transport::router::Listener;
use tokio::io::AsyncWriteExt as _;

/// Clients at each door.
const CLIENTS: usize = 8;

/// A client that has read the beginning of a stream.
async fn begun(scene: &Scene, listener: Listener, path: &str) -> Box<dyn Socket> {
    let mut socket = scene.connect(listener).await;
    let sent = request("GET", path, "", "").replace("connection: close\r\n", "");
    socket.write_all(sent.as_bytes()).await.unwrap();
    let heard = read_until(&mut socket, "hello").await;
    assert!(heard.starts_with("HTTP/1.1 200 OK\r\n") && heard.contains("transfer-encoding: chunked"), "{heard}");
    socket
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_hear_what_is_said_as_it_is_said() {
    let scene = Scene::new().await;
    let mut clients = Vec::new();
    for listener in LISTENERS {
        for _ in 0..CLIENTS {
            clients.push(begun(&scene, listener, "/live").await);
        }
    }
    assert_eq!(scene.streams.open(), 2 * CLIENTS);
    for text in ["one thing", "another"] {
        scene.streams.say(text);
        for client in &mut clients {
            read_until(client, text).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_written_as_events() {
    let scene = Scene::new().await;
    for listener in LISTENERS {
        let mut client = begun(&scene, listener, "/events").await;
        scene.streams.say("two\nlines");
        let heard = read_until(&mut client, "lines\n\n").await;
        assert!(heard.contains("id: 1\nevent: said\ndata: two\ndata: lines\n\n"), "{heard}");
        scene.streams.end();
        assert!(rest_of_kept(&mut client).await.ends_with("0\r\n\r\n"));
    }
}

/// What comes until the stream has its end; the connection is kept.
async fn rest_of_kept(client: &mut Box<dyn Socket>) -> String {
    read_until(client, "0\r\n\r\n").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_vanishes_in_the_middle_leaves_nothing_behind() {
    let scene = Scene::new().await;
    for path in ["/live", "/events", "/download"] {
        for listener in LISTENERS {
            let clients = [begun(&scene, listener, path).await, begun(&scene, listener, path).await];
            assert_eq!(scene.streams.open(), 2);
            drop(clients);
            // Nothing is said meanwhile, so that no write could fail.
            scene.streams.all_gone().await;
        }
    }
    scene.no_connections().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_has_its_end_leaves_its_connection_to_the_next_request() {
    let scene = Scene::new().await;
    for listener in LISTENERS {
        let mut client = begun(&scene, listener, "/download").await;
        scene.streams.end();
        rest_of_kept(&mut client).await;
        client.write_all(request("GET", "/plain", "", "").as_bytes()).await.unwrap();
        assert!(rest(&mut client).await.ends_with("\r\n\r\nplain"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_for_ever_ends_when_the_gateway_stops_and_what_has_an_end_comes_to_it() {
    let mut scene = Scene::new().await;
    let mut live = begun(&scene, Listener::Tcp, "/live").await;
    let mut events = begun(&scene, Listener::Tcp, "/events").await;
    let mut download = begun(&scene, Listener::Tcp, "/download").await;
    scene.stop();
    // In good order: with a last chunk.
    assert!(rest(&mut live).await.ends_with("0\r\n\r\n") && rest(&mut events).await.ends_with("0\r\n\r\n"));
    until("a stream that should end does not", || scene.streams.open() == 1).await;
    assert!(!scene.fronting.is_finished());
    scene.streams.say("the rest");
    scene.streams.end();
    let heard = rest(&mut download).await;
    assert!(heard.contains("the rest") && heard.ends_with("0\r\n\r\n"), "{heard}");
    (&mut scene.fronting).await.unwrap();

    let mut watching = begun(&scene, Listener::Control, "/live").await;
    scene.controlling.abort();
    rest(&mut watching).await;
    scene.streams.all_gone().await;
}
