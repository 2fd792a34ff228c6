//! The router in dialogue, over TCP and over a control socket: who is let in, what is found where, bodies, and streams.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod scene;
mod streams;

use scene::{LISTENERS, Scene, body, head_of, request, status};
use signalbox_transport::http_front::FrontSpec;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_strange_host_or_origin_is_refused_on_routes_as_on_mcp() {
    let scene = Scene::new().await;
    for path in ["/plain", "/mcp", "/nothing", "/live"] {
        for header in ["host: evil.example", "host: localhost\r\norigin: http://evil.example"] {
            let answer = scene.listener(&format!("GET {path} HTTP/1.1\r\n{header}\r\nconnection: close\r\n\r\n")).await;
            assert_eq!(status(&answer), 403, "{path} {header}: {answer}");
            assert!(answer.contains("this Host or Origin is not allowed"), "{answer}");
        }
    }
    assert_eq!(scene.streams.open(), 0);
    let local = "GET /plain HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\nconnection: close\r\n\r\n";
    assert_eq!(status(&scene.listener(local).await), 200);
    // Nobody but its owner opens the control socket, and it has no name.
    let any = "GET /plain HTTP/1.1\r\nhost: whatever\r\nconnection: close\r\n\r\n";
    assert_eq!(status(&scene.control(any).await), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_is_only_where_it_is_mounted() {
    let scene = Scene::new().await;
    for method in ["GET", "POST", "DELETE", "HEAD", "OPTIONS"] {
        let answer = scene.listener(&request(method, "/api/v1/status", "", "")).await;
        assert_eq!(status(&answer), 404, "{method}: {answer}");
    }
    let at_listener = scene.listener(&request("GET", "/nothing", "", "")).await;
    let hidden = scene.listener(&request("GET", "/api/v1/status", "", "")).await;
    assert_eq!(body(&at_listener), r#"{"error":"there is nothing here"}"#);
    assert_eq!(body(&hidden), body(&at_listener), "one cannot tell that it is somewhere else");
    assert_eq!(status(&scene.control(&request("GET", "/api/v1/status", "", "")).await), 200);
    assert_eq!(status(&scene.control(&request("GET", "/outside", "", "")).await), 404);
    assert_eq!(status(&scene.listener(&request("GET", "/outside", "", "")).await), 200);
    // MCP is not at the control socket.
    assert_eq!(status(&scene.control(&request("POST", "/mcp", "", "{}")).await), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_gets_what_was_sent_and_who_sent_it() {
    let scene = Scene::new().await;
    let sent = request("POST", "/echo/a%2Fb%20c?x=1&x=%C3%A9+y&z", "x-thing: 7\r\n", "hello");
    let expected = |who: &str| format!("POST /echo/a%2Fb%20c a/b c x=1 x=é y z= 7 {who} hello");
    assert_eq!(body(&scene.listener(&sent).await), expected("anonymous"));
    let uid = rustix::process::getuid().as_raw();
    assert_eq!(body(&scene.control(&sent).await), expected(&format!("uid:{uid}")));
    let below = request("GET", "/files/a/b%20c.txt", "", "");
    assert_eq!(body(&scene.listener(&below).await), "a/b c.txt");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_refused_and_says_why() {
    let scene = Scene::new().await;
    for listener in LISTENERS {
        for (path, why) in [
            ("/plain?a=%zz", "the query: a `%` needs two hexadecimal digits behind it"),
            ("/plain?a=%", "the query: a `%` needs two hexadecimal digits behind it"),
            ("/plain?%ff=1", "the query: its percent signs do not stand for UTF-8"),
            ("/files/%c3", "the path: its percent signs do not stand for UTF-8"),
            ("/files/%4", "the path: a `%` needs two hexadecimal digits behind it"),
        ] {
            let answer = scene.ask(listener, &request("GET", path, "", "")).await;
            assert_eq!((status(&answer), body(&answer)), (400, format!(r#"{{"error":"{why}"}}"#).as_str()), "{path}");
            assert!(answer.contains("content-type: application/json"), "{answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_are_refused_and_head_is_get_without_a_body() {
    let scene = Scene::new().await;
    for listener in LISTENERS {
        let answer = scene.ask(listener, &request("DELETE", "/plain", "", "")).await;
        assert_eq!((status(&answer), body(&answer)), (405, r#"{"error":"only GET or PUT is served here"}"#));
        assert!(answer.contains("allow: GET, HEAD, PUT\r\n"), "{answer}");

        let got = scene.ask(listener, &request("GET", "/plain", "", "")).await;
        let head = scene.ask(listener, &request("HEAD", "/plain", "", "")).await;
        assert_eq!((body(&got), body(&head)), ("plain", ""));
        let without_date =
            |head: &str| head.lines().filter(|line| !line.starts_with("date:")).collect::<Vec<_>>().join("\n");
        assert_eq!(without_date(head_of(&got)), without_date(head_of(&head)));
        assert!(head.contains("content-length: 5\r\n"), "{head}");

        let head = scene.ask(listener, &request("HEAD", "/live", "", "")).await;
        assert_eq!((status(&head), body(&head)), (200, ""));
        scene.streams.all_gone().await;
    }
    // No page of another origin is let in by asking first, here as little as at the MCP endpoint.
    for path in ["/plain", "/mcp"] {
        let asked = request("OPTIONS", path, "access-control-request-method: GET\r\n", "");
        let answer = scene.listener(&asked).await;
        assert!(status(&answer) == 405 && answer.contains("\r\nallow: "), "{answer}");
        assert!(!answer.contains("access-control-allow"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_beyond_the_limit_of_its_route_gets_413_and_is_counted() {
    let scene = Scene::new().await;
    let mut counted = 0;
    for listener in LISTENERS {
        for path in ["/echo/x", "/pieces"] {
            let fits = request("POST", path, "", &"x".repeat(1000));
            assert_eq!(status(&scene.ask(listener, &fits).await), 200);
            let declared = request("POST", path, "", &"x".repeat(1001));
            let chunk = format!("1f4\r\n{}\r\n", "x".repeat(500));
            let grows = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{chunk}{chunk}1\r\nx\r\n0\r\n\r\n"
            );
            for sent in [declared, grows] {
                let answer = scene.ask(listener, &sent).await;
                assert_eq!(status(&answer), 413, "{answer}");
                assert_eq!(body(&answer), r#"{"error":"the body is larger than 1000 bytes"}"#);
                assert!(answer.contains("connection: close\r\n"), "{answer}");
                counted += 1;
                scene.refused("message_size", counted).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_gets_408_and_is_counted() {
    let spec = FrontSpec { body_timeout: Duration::from_millis(200), ..FrontSpec::default() };
    let scene = Scene::with(spec).await;
    for (counted, path) in ["/echo/x", "/pieces"].iter().enumerate() {
        let sent = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nhel");
        let answer = scene.listener(&sent).await;
        assert_eq!((status(&answer), body(&answer)), (408, r#"{"error":"the body did not arrive in time"}"#));
        scene.refused("message_time", counted as u64 + 1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_ends_its_request_and_nothing_else() {
    let scene = Scene::new().await;
    for listener in LISTENERS {
        for path in ["/panics/at-once", "/panics/later"] {
            let answer = scene.ask(listener, &request("GET", path, "", "")).await;
            assert_eq!(status(&answer), 500, "{answer}");
            assert!(body(&answer).contains("a fault in the gateway"), "{answer}");
        }
        // Of a body that breaks off nobody thinks that it is whole.
        let answer = scene.ask(listener, &request("GET", "/panics/midway", "", "")).await;
        assert!(answer.contains("begun") && !answer.contains("\r\n0\r\n\r\n"), "{answer}");
        assert_eq!(status(&scene.ask(listener, &request("GET", "/plain", "", "")).await), 200);
    }
    scene.no_connections().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_carries_routes_and_mcp_in_turn() {
    let scene = Scene::new().await;
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let kept = |method: &str, path: &str, body: &str| {
        request(method, path, "content-type: application/json\r\n", body).replace("connection: close\r\n", "")
    };
    let sent = [
        kept("GET", "/plain", ""),
        kept("POST", "/mcp", initialize),
        kept("POST", "/echo/x", "not read by anybody"),
        request("GET", "/plain", "", ""),
    ];
    let answer = scene.listener(&sent.concat()).await;
    let statuses: Vec<&str> = answer.match_indices("HTTP/1.1 ").map(|(at, _)| &answer[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["200", "400", "200", "200"], "{answer}");
}
