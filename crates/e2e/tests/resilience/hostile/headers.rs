//! Headers that lie: Origin and Host, the mirrored headers of 2026-07-28, and every status that has its rule.

use super::raw::{Raw, Reply};
use super::{fixture_config, gateway, session, unharmed, works};
use signalbox_testkit::gateway::GatewayProcess;
use std::time::Duration;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Origins that are not this machine, however much some look like it.
const FOREIGN: &[&str] = &[
    "null",
    "http://evil.example",
    "http://localhost.evil",
    "https://localhost.evil.example",
    "http://evil.localhost",
    "http://127.0.0.1.evil.example",
    "http://127.0.0.2",
    "http://127.1",
    "http://2130706433",
    "http://0x7f000001",
    "http://0.0.0.0",
    "http://[::2]",
    "http://[::ffff:127.0.0.1]",
    "http://[::1",
    "http://[::1].evil.example",
    "http://localhost:99999",
    "http://localhost:80x",
    "http://localhost:",
    "http://localhost@evil.example",
    "http://localhost/evil.example",
    "file://localhost",
    "localhost",
    "ws://localhost",
    "http://",
    "",
    "*",
    "http://localhost http://evil.example",
    "http://localhost, http://evil.example",
    "http://localhost.",
    "http://locаlhost",
    "chrome-extension://abcdef",
];

/// One request made of whole lines, and its answer.
async fn ask(gateway: &GatewayProcess, first: &str, lines: &[&str], body: &[u8]) -> Reply {
    let mut raw = Raw::connect(gateway.address()).await.unwrap();
    let mut request = format!("{first} HTTP/1.1\r\n").into_bytes();
    for line in lines {
        request.extend_from_slice(line.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    request.extend_from_slice(body);
    raw.write(&request).await.unwrap();
    let reply = tokio::time::timeout(Duration::from_secs(10), raw.reply()).await;
    reply
        .unwrap_or_else(|_| panic!("no answer to {first} {lines:?}"))
        .unwrap_or_else(|error| panic!("{lines:?}: {error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_origins_and_hosts_get_403() {
    let gateway = gateway().await;
    let port = gateway.address().port();
    let json = "content-type: application/json";
    for origin in FOREIGN {
        for (first, body) in [("POST /mcp", PING), ("GET /mcp", ""), ("DELETE /mcp", ""), ("OPTIONS /mcp", "")] {
            let lines = ["host: localhost", json, &format!("origin: {origin}")];
            let reply = ask(&gateway, first, &lines, body.as_bytes()).await;
            assert_eq!(reply.status, 403, "{first} from {origin:?}");
        }
    }
    let twice = ["host: localhost", json, "origin: http://localhost", "origin: http://localhost"];
    assert_eq!(ask(&gateway, "POST /mcp", &twice, PING.as_bytes()).await.status, 403);
    for host in [
        "evil.example",
        "localhost.evil.example",
        "evil.localhost",
        "127.0.0.1.evil.example",
        "127.0.0.2",
        "0.0.0.0",
        "",
        "localhost:80x",
        "localhost@evil.example",
        "[::ffff:127.0.0.1]",
        "[::1",
        "localhost, evil.example",
        "localhost.",
    ] {
        for path in ["POST /mcp", "GET /healthz", "GET /metrics"] {
            let reply = ask(&gateway, path, &[&format!("host: {host}"), json], PING.as_bytes()).await;
            assert!(matches!(reply.status, 400 | 403), "{path} at {host:?}: {}", reply.status);
        }
    }
    for lines in
        [&[json][..], &["host: localhost", "host: evil.example", json], &["host: localhost", "host: localhost", json]]
    {
        let reply = ask(&gateway, "POST /mcp", lines, PING.as_bytes()).await;
        assert!(matches!(reply.status, 400 | 403), "{lines:?}: {}", reply.status);
    }
    let absolute = ask(&gateway, "GET http://evil.example/healthz", &["host: evil.example"], b"").await;
    assert_eq!(absolute.status, 403);
    let own = format!("http://127.0.0.1:{port}");
    for (origin, status) in [
        (&*own, 400),
        ("http://localhost", 403),
        ("http://127.0.0.1:3000", 403),
        ("https://localhost:8443", 403),
        ("http://[::1]:1", 403),
    ] {
        let lines = [&format!("host: 127.0.0.1:{port}"), json, &format!("origin: {origin}")];
        let reply = ask(&gateway, "POST /mcp", &lines.map(|line| line as &str), PING.as_bytes()).await;
        assert_eq!(reply.status, status, "{origin}: a ping without a session");
    }
}

fn modern(method: &str, version: &str, params: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

/// Headers, body, status and code.
fn ladder() -> Vec<(&'static [&'static str], String, u16, i64)> {
    const VERSION: &str = "mcp-protocol-version: 2026-07-28";
    const CALL: &str = "mcp-method: tools/call";
    let list = || modern("tools/list", "2026-07-28", "");
    let call = || modern("tools/call", "2026-07-28", r#""name":"greet","arguments":{"name":"Ada"},"#);
    let marked = || modern("tools/call", "2026-07-28", r#""name":"test_x_mcp_header","arguments":{"region":"eu"},"#);
    vec![
        (&[VERSION, "mcp-method: tools/list"], list(), 200, 0),
        (&[VERSION, CALL, "mcp-name: greet"], call(), 200, 0),
        (&[VERSION, CALL, "mcp-name: =?base64?Z3JlZXQ=?="], call(), 200, 0),
        (&[VERSION], list(), 400, -32020),
        (&[VERSION, "mcp-method: tools/call"], list(), 400, -32020),
        (&[VERSION, "mcp-method: Tools/List"], list(), 400, -32020),
        (&[VERSION, "mcp-method:"], list(), 400, -32020),
        (&[VERSION, "mcp-method: tools/list", "mcp-method: tools/list"], list(), 400, -32020),
        (&[VERSION, "mcp-method: tools/list, tools/call"], list(), 400, -32020),
        (&[VERSION, "mcp-method: =?base64?dG9vbHMvbGlzdA==?="], list(), 400, -32020),
        (&["mcp-method: tools/list"], list(), 400, -32020),
        (&[VERSION, VERSION, "mcp-method: tools/list"], list(), 400, -32020),
        (&["mcp-protocol-version: 2025-06-18", "mcp-method: tools/list"], list(), 400, -32020),
        (&[VERSION, CALL], call(), 400, -32020),
        (&[VERSION, CALL, "mcp-name: crash"], call(), 400, -32020),
        (&[VERSION, CALL, "mcp-name: GREET"], call(), 400, -32020),
        (&[VERSION, CALL, "mcp-name: greet", "mcp-name: greet"], call(), 400, -32020),
        (&[VERSION, CALL, "mcp-name: greet", "mcp-name: crash"], call(), 400, -32020),
        (&[VERSION, CALL, "mcp-name: =?base64?Z3JlZXQ?="], call(), 400, -32020),
        (&[VERSION, CALL, "mcp-name: =?base64?!!!!?="], call(), 400, -32020),
        (&[VERSION, CALL, "mcp-name: =?base64?/w==?="], call(), 400, -32020),
        (&[VERSION, CALL, "mcp-name: =?base64?Y3Jhc2g=?="], call(), 400, -32020),
        (&[VERSION, CALL, "mcp-name: =?BASE64?Z3JlZXQ=?="], call(), 400, -32020),
        (&[VERSION, CALL, "mcp-name: gr\u{e9}et"], call(), 400, -32020),
        (&[VERSION, CALL, "mcp-name: test_x_mcp_header", "mcp-param-region: eu"], marked(), 200, 0),
        (&[VERSION, CALL, "mcp-name: test_x_mcp_header"], marked(), 400, -32020),
        (&[VERSION, CALL, "mcp-name: test_x_mcp_header", "mcp-param-region: us"], marked(), 400, -32020),
        (
            &[VERSION, CALL, "mcp-name: test_x_mcp_header", "mcp-param-region: eu", "mcp-param-region: us"],
            marked(),
            400,
            -32020,
        ),
        (
            &["mcp-protocol-version: 2099-01-01", "mcp-method: tools/list"],
            modern("tools/list", "2099-01-01", ""),
            400,
            -32022,
        ),
        (&["mcp-protocol-version: x", "mcp-method: tools/list"], modern("tools/list", "x", ""), 400, -32022),
        (&[VERSION, "mcp-method: no/such"], modern("no/such", "2026-07-28", ""), 404, -32601),
        (&[VERSION, "mcp-method: ping"], modern("ping", "2026-07-28", ""), 404, -32601),
        (&[VERSION, "mcp-method: tools/list"], r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.into(), 400, -32602),
        (&[VERSION, "mcp-method: tools/list"], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into(), 400, -32600),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_the_new_era_must_say_what_the_body_says() {
    let gateway = gateway().await;
    let mut wrong = Vec::new();
    for (headers, body, status, code) in ladder() {
        let mut lines = vec!["host: localhost", "content-type: application/json"];
        lines.extend(headers);
        let reply = ask(&gateway, "POST /mcp", &lines, body.as_bytes()).await;
        let id = reply.messages().unwrap().pop().unwrap()["id"].clone();
        if (reply.status, reply.code()) != (status, code) || id != 1 && code != -32600 {
            let got = String::from_utf8_lossy(&reply.body).into_owned();
            wrong.push(format!("{headers:?}: expected {status} {code}, got {} {got}", reply.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    unharmed(&gateway);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_request_has_its_status() {
    let config = format!("[gateway]\nmax_message = 65536\n{}", fixture_config());
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    gateway.ready().await.unwrap();
    let (host, json) = ("host: localhost", "content-type: application/json");
    let large = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":"{}"}}}}"#, "x".repeat(65_536));
    let unknown = "mcp-session-id: 00000000-0000-0000-0000-000000000000";
    let cases: &[(&str, &[&str], &str, u16)] = &[
        ("PUT /mcp", &[host, json], PING, 405),
        ("PATCH /mcp", &[host, json], PING, 405),
        ("OPTIONS /mcp", &[host], "", 405),
        ("GET /mcp", &[host, "accept: text/event-stream", "mcp-protocol-version: 2026-07-28"], "", 405),
        ("DELETE /mcp", &[host, "mcp-protocol-version: 2026-07-28"], "", 405),
        ("POST /mcp", &[host, json, "accept: text/html"], PING, 406),
        ("POST /mcp", &[host, json, "accept: application/jsonx, text/event-streams"], PING, 406),
        ("GET /mcp", &[host], "", 406),
        ("GET /mcp", &[host, "accept: application/json"], "", 406),
        ("POST /mcp", &[host], PING, 415),
        ("POST /mcp", &[host, "content-type: text/plain"], PING, 415),
        ("POST /mcp", &[host, "content-type: application/json-rpc"], PING, 415),
        ("POST /mcp", &[host, "content-type: application/x-www-form-urlencoded"], PING, 415),
        ("POST /mcp", &[host, json], &large, 413),
        ("POST /mcp", &[host, json, unknown], PING, 404),
        ("GET /mcp", &[host, "accept: text/event-stream", unknown], "", 404),
        ("DELETE /mcp", &[host, unknown], "", 404),
        ("POST /mcp", &[host, json, unknown, unknown], PING, 400),
        ("POST /mcp", &[host, json, "mcp-session-id: \u{e9}"], PING, 404),
        ("POST /mcp", &[host, json], PING, 400),
        ("DELETE /mcp", &[host], "", 400),
        ("POST /mcp/", &[host, json], PING, 404),
        ("POST //mcp", &[host, json], PING, 404),
        ("POST /MCP", &[host, json], PING, 404),
        ("POST /mcp/../mcp", &[host, json], PING, 404),
        ("POST /%6dcp", &[host, json], PING, 404),
        ("GET /api/v1/status", &[host], "", 401),
        ("POST *", &[host, json], PING, 404),
    ];
    for (first, lines, body, status) in cases {
        let reply = ask(&gateway, first, lines, body.as_bytes()).await;
        assert_eq!(reply.status, *status, "{first} {lines:?}: {}", String::from_utf8_lossy(&reply.body));
    }
    let mut client = Raw::connect(gateway.address()).await.unwrap();
    let lines = session(&mut client).await;
    let odd = lines.replace("2025-06-18", "1999-01-01");
    assert_eq!(client.post(&odd, PING.as_bytes()).await.unwrap().status, 400);
    works(&mut client, &lines).await;
    unharmed(&gateway);
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_and_malformed_heads_are_refused() {
    let gateway = gateway().await;
    let long = "x".repeat(2 * 1024 * 1024);
    let many = "x-one: 1\r\n".repeat(5_000);
    for (name, bytes) in [
        ("a long header", format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: {long}\r\n\r\n")),
        ("a long name", format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{long}: a\r\n\r\n")),
        ("a long path", format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n")),
        ("many headers", format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{many}\r\n")),
        ("no version", "GET /healthz\r\nhost: localhost\r\n\r\n".to_owned()),
        ("another version", "GET /healthz HTTP/9.9\r\nhost: localhost\r\n\r\n".to_owned()),
        ("another protocol", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
        ("TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}".to_owned() + &long),
        ("nonsense", "\0\u{1}\u{2}\r\n\r\n".to_owned()),
    ] {
        let mut raw = Raw::connect(gateway.address()).await.unwrap();
        // The gateway may close before it has read all of it.
        let _ = raw.write(bytes.as_bytes()).await;
        let (answer, closed) = raw.rest(Duration::from_secs(3)).await;
        let status = String::from_utf8_lossy(&answer).get(9..12).unwrap_or_default().to_owned();
        assert!(closed && (status.is_empty() || status.starts_with('4')), "{name}: {status:?}, closed: {closed}");
    }
    let mut client = Raw::connect(gateway.address()).await.unwrap();
    let lines = session(&mut client).await;
    works(&mut client, &lines).await;
    unharmed(&gateway);
}
