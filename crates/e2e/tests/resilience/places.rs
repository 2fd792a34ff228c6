//! Every place for connections is taken by one caller, or by one machine without a credential, with each kind of stream
//! that does not end by itself: others and the probes of an orchestrator are still served, and the newest streams of
//! the one that has too many end.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{child, eventually, signalbox, status};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::process::Command;

/// `gateway.max_connections` of these gateways.
const PLACES: usize = 50;
/// Connections of the same caller that are opened beyond that, and refused.
const MORE: usize = 10;

/// A gateway on which everybody has to prove who they are, except at the relay.
async fn gateway() -> GatewayProcess {
    let config = format!(
        "[mcp.protocol.security]\nrequire_authentication = true\nauthentication_timeout = 120\n\
         [mcp.protocol.audit]\nenabled = true\n[gateway]\nmax_connections = {PLACES}\n\
         [relay]\nenabled = true\npublic_url = 'https://relay.example'\n{}",
        child("one", ServedEra::Both, "").unwrap()
    );
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

/// The API key of a new caller.
async fn key(gateway: &GatewayProcess, name: &str) -> String {
    let key = signalbox(&gateway.data_dir(), &["keys", "new", name]).await.unwrap().trim().to_owned();
    let client = bearer(gateway, &key);
    let look = async || client.get("/metrics").await.ok().filter(|answer| answer.status == 200);
    eventually("the key is known", look).await.unwrap();
    key
}

fn bearer(gateway: &GatewayProcess, key: &str) -> HttpClient {
    HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"))
}

/// The headers of a caller with this key, or of one without a credential.
fn authorization(key: Option<&str>) -> String {
    key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default()
}

fn websocket(key: Option<&str>) -> String {
    format!(
        "GET /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{}\r\n",
        authorization(key)
    )
}

/// A request whose body never comes.
fn half_body(key: &str) -> String {
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n";
    format!("{head}{}\r\n{{", authorization(Some(key)))
}

/// A request of 2026-07-28.
fn modern(key: &str, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}
    });
    let name = params["name"].as_str().map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n\
         {name}{}content-length: {}\r\n\r\n{body}",
        authorization(Some(key)),
        body.len()
    )
}

fn listen(key: &str) -> String {
    modern(key, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}))
}

fn slow(key: &str) -> String {
    modern(key, "tools/call", json!({"name": "slow", "arguments": {"ms": 120_000}}))
}

/// A relay's session: what a page sends to prove that it is the page.
async fn page(gateway: &GatewayProcess) -> String {
    let opened =
        HttpClient::new(gateway.address()).send(http::Method::POST, "/api/sessions", "{}".into()).await.unwrap();
    let opened = opened.message().unwrap();
    let (code, token) = (opened["sessionCode"].as_str().unwrap(), opened["workerToken"].as_str().unwrap());
    format!("x-session-code: {code}\r\nx-worker-token: {token}\r\n")
}

/// Opens connections with this request until all places are taken, and a few more.
async fn take_all(gateway: &GatewayProcess, request: &str, more: usize) -> Vec<TcpStream> {
    let mut taken = Vec::new();
    for _ in 0..PLACES + more {
        let mut socket = TcpStream::connect(gateway.address()).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        taken.push(socket);
    }
    let data_dir = gateway.data_dir();
    let full = async || status(&data_dir).await.ok().filter(|now| now["connections"].as_u64() >= Some(PLACES as u64));
    eventually("all places are taken", full).await.unwrap();
    // What has no place is told so, and goes.
    eventually("the others have gone", async || {
        let ended = taken.iter_mut().filter_map(|socket| has_ended(socket).then_some(())).count();
        (ended == more).then_some(())
    })
    .await
    .unwrap();
    // They need not be the last ones: connections are accepted in their order, and read in any.
    taken.retain_mut(|socket| !has_ended(socket));
    taken
}

/// True once the other side has closed the connection. What came before is thrown away.
fn has_ended(socket: &mut TcpStream) -> bool {
    let mut scrap = [0; 4096];
    loop {
        match socket.try_read(&mut scrap) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}

/// Holds that another caller and the probes are served while one holds all places, and that only its newest
/// streams end for that.
async fn others_are_served(gateway: &GatewayProcess, vic: &str, request: &str) {
    // A WebSocket may prove who calls by its first message, so that one beyond the limit is not refused at once.
    let may_prove_later = request.contains("websocket") && !request.contains("authorization");
    let mut taken = take_all(gateway, request, if may_prove_later { 0 } else { MORE }).await;
    let open = HttpClient::new(gateway.address());
    for round in 0..5 {
        for probe in ["/healthz", "/readyz"] {
            assert_eq!(open.get(probe).await.unwrap().status, 200, "{probe} in round {round}");
        }
        let greeting = json!({"name": "greet", "arguments": {"name": "Vic"}});
        let answer = bearer(gateway, vic).modern(round, "tools/call", greeting).await.unwrap();
        assert_eq!(answer.status, 200, "round {round}: {}", String::from_utf8_lossy(&answer.body));
    }
    let some_ended = async || {
        let ended: Vec<usize> = (0..PLACES).filter(|at| has_ended(&mut taken[*at])).collect();
        (!ended.is_empty()).then_some(ended)
    };
    let ended = eventually("a stream has ended", some_ended).await.unwrap();
    assert!(ended.iter().all(|at| *at >= PLACES / 2), "older streams have ended: {ended:?}");
    let metrics = bearer(gateway, vic).get("/metrics").await.unwrap().body;
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    let counted =
        metrics.lines().find_map(|line| line.strip_prefix("signalbox_refused_total{limit=\"connection_share\"} "));
    assert!(counted.unwrap().parse::<u64>().unwrap() >= 1);
    let log = gateway.data_dir().join("audit/audit.log");
    let refused = if may_prove_later { 0 } else { MORE };
    let told = async || {
        let text = std::fs::read_to_string(&log).ok()?;
        let all: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let about = |words: &str| -> Vec<Value> {
            let is_it = |one: &&Value| one["details"]["error"].as_str().is_some_and(|error| error.contains(words));
            all.iter().filter(is_it).cloned().collect()
        };
        let (shares, places) = (about("more than its share of"), about("too many connections are open"));
        (!shares.is_empty() && places.len() >= refused).then_some([shares, places].concat())
    };
    let told = eventually("the audit log tells who had too many, and who had no place", told).await.unwrap();
    // Of the holder, and not of those for whom it had to make room.
    let holder = if request.contains("authorization") { "key:ada" } else { "unknown" };
    for record in told {
        let (who, details) = (&record["user_context"], &record["details"]);
        assert_eq!((&who["principal"], &details["reason"]), (&json!(holder), &json!("overloaded")), "{record}");
        assert!(who["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{record}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_websockets_without_a_credential_give_way_to_proved_callers_and_probes() {
    let gateway = gateway().await;
    let vic = key(&gateway, "vic").await;
    others_are_served(&gateway, &vic, &websocket(None)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_pages_give_way_to_proved_callers_and_probes() {
    let gateway = gateway().await;
    let vic = key(&gateway, "vic").await;
    let page = page(&gateway).await;
    let request =
        format!("GET /api/stream?role=worker HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n{page}\r\n");
    others_are_served(&gateway, &vic, &request).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_bodies_of_pages_give_way_to_proved_callers_and_probes() {
    let gateway = gateway().await;
    let vic = key(&gateway, "vic").await;
    let page = page(&gateway).await;
    let request = format!(
        "POST /api/response HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: 1000\r\n{page}\r\n{{"
    );
    others_are_served(&gateway, &vic, &request).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listens_of_one_caller_give_way_to_others_and_probes() {
    let gateway = gateway().await;
    let (ada, vic) = (key(&gateway, "ada").await, key(&gateway, "vic").await);
    others_are_served(&gateway, &vic, &listen(&ada)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_websockets_of_one_caller_give_way_to_others_and_probes() {
    let gateway = gateway().await;
    let (ada, vic) = (key(&gateway, "ada").await, key(&gateway, "vic").await);
    others_are_served(&gateway, &vic, &websocket(Some(&ada))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_bodies_of_one_caller_give_way_to_others_and_probes() {
    let gateway = gateway().await;
    let (ada, vic) = (key(&gateway, "ada").await, key(&gateway, "vic").await);
    others_are_served(&gateway, &vic, &half_body(&ada)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_caller_give_way_to_others_and_probes() {
    let gateway = gateway().await;
    let (ada, vic) = (key(&gateway, "ada").await, key(&gateway, "vic").await);
    others_are_served(&gateway, &vic, &slow(&ada)).await;
}

/// Everything that came on the connection that ends first.
async fn last_words(sockets: &[TcpStream]) -> Vec<u8> {
    let mut heard = vec![Vec::new(); sockets.len()];
    let ended = async || {
        let mut some = [0; 4096];
        for (socket, heard) in sockets.iter().zip(&mut heard) {
            loop {
                match socket.try_read(&mut some) {
                    Ok(0) => return Some(std::mem::take(heard)),
                    Ok(read) => heard.extend_from_slice(&some[..read]),
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(_) => return Some(std::mem::take(heard)),
                }
            }
        }
        None
    };
    eventually("a stream has ended", ended).await.unwrap()
}

/// An ended stream is told why, in the words of what it is: an error as the last event of a listen request, status 503
/// for a call, a close frame (1013, try again later) for a WebSocket.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_gives_way_is_told_why() {
    let gateway = gateway().await;
    let (ada, vic) = (key(&gateway, "ada").await, key(&gateway, "vic").await);
    for request in [listen(&ada), slow(&ada), websocket(Some(&ada))] {
        let mut taken = Vec::new();
        for _ in 0..PLACES {
            let mut socket = TcpStream::connect(gateway.address()).await.unwrap();
            socket.write_all(request.as_bytes()).await.unwrap();
            taken.push(socket);
        }
        let data_dir = gateway.data_dir();
        let full = async || status(&data_dir).await.ok().filter(|now| now["connections"] == PLACES);
        eventually("all places are taken", full).await.unwrap();
        let listed = bearer(&gateway, &vic).modern(1, "tools/list", json!({})).await.unwrap();
        assert_eq!(listed.status, 200);
        let heard = last_words(&taken).await;
        let text = String::from_utf8_lossy(&heard);
        match request.starts_with("GET") {
            true => assert!(heard.windows(2).any(|two| two == 1013_u16.to_be_bytes()), "{text:?}"),
            false => assert!(text.contains("\"overloaded\""), "{text}"),
        }
        drop(taken);
        let empty = async || status(&data_dir).await.ok().filter(|now| now["connections"].as_u64() <= Some(1));
        eventually("all places are free", empty).await.unwrap();
    }
}

/// Where the system allows fewer open files than `gateway.max_connections`, there are fewer places, and streams without
/// a credential leave files to proved callers and probes.
#[tokio::test(flavor = "multi_thread")]
async fn connections_leave_open_files_to_others_where_the_system_allows_few() {
    let config = format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n\
         [relay]\nenabled = true\npublic_url = 'https://relay.example'\n{}",
        child("one", ServedEra::Both, "").unwrap()
    );
    let gateway = GatewayProcess::serve_with_files(256, &config).await.unwrap();
    gateway.ready().await.unwrap();
    let vic = key(&gateway, "vic").await;
    let page = page(&gateway).await;
    let request =
        format!("GET /api/stream?role=worker HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n{page}\r\n");
    let mut taken = Vec::new();
    for _ in 0..330 {
        let mut socket = TcpStream::connect(gateway.address()).await.unwrap();
        // One that has no place may be closed by then.
        let _ = socket.write_all(request.as_bytes()).await;
        taken.push(socket);
    }
    for round in 0..5 {
        let greeting = json!({"name": "greet", "arguments": {"name": "Vic"}});
        let answer = bearer(&gateway, &vic).modern(round, "tools/call", greeting).await.unwrap();
        assert_eq!(answer.status, 200, "round {round}: {}", String::from_utf8_lossy(&answer.body));
        assert_eq!(HttpClient::new(gateway.address()).get("/healthz").await.unwrap().status, 200, "round {round}");
    }
    let status = status(&gateway.data_dir()).await.unwrap();
    let limit = |what: &str| status["limits"].as_array().unwrap().iter().find(|one| one["what"] == what).cloned();
    assert_eq!(limit("open files").unwrap()["bound"], 256, "{status}");
    let connections = limit("connections").unwrap();
    assert!(connections["bound"].as_u64().unwrap() < 200 && connections["set_by"] == "ulimit -n", "{connections}");
    let doctor = Command::new(built("signalbox").unwrap())
        .args(["doctor", "-c"])
        .arg(gateway.config_file())
        .arg("--data-dir")
        .arg(gateway.data_dir())
        .output()
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(told.contains("256 allowed for the running gateway"), "{told}");
}
