//! Signed calls at real gateways: who signed is who calls, and every forgery is refused with its
//! own error and recorded.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::Method;
use serde_json::{Value, json};
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content};
use signalbox_seal::keys::files::{load_key_set, save_key_set, save_signing_key};
use signalbox_seal::proto::mcp_message::Message;
use signalbox_seal::proto::mcp_request::Params;
use signalbox_seal::proto::{Action, PermissionSpecification, PurposeCategory};
use signalbox_seal::signed_json::{SignatureTerms, SignatureVerifier, sign_request};
use signalbox_seal::{
    CryptoSignature, Head, HeadContent, HeadKind, KeyRole, KeySet, McpMessage, McpRequest, NonceBook, Permission,
    Profile, PurposeDna, RequestorIdentity, SigningKey, TimeWindow, Timestamp, TrustedKey, message_from_json,
    message_from_protobuf, message_to_json, message_to_protobuf, prepare_request_for_signing, sha256, verify_response,
};
use signalbox_tape::TapeSource;
use signalbox_tape::seal::SignedHead;
use signalbox_testkit::clients::{run, run_script};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::{alive, child, eventually, remote, signal, signalbox, status, text};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

const VERSION: &str = "2025-06-18";
const PROTOBUF: &str = "application/vnd.signalbox.mcp+protobuf";
const MINUTE: u64 = 60_000;

fn key(seed: u8, id: &str) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap().named(id).unwrap()
}

fn ada() -> SigningKey {
    key(1, "ada-key")
}

/// Signs a request anew.
fn sign_as_ada(request: &mut McpRequest) {
    request.signature = None;
    let signature = ada().sign_prepared(&prepare_request_for_signing(request).unwrap()).unwrap();
    request.signature = Some(CryptoSignature {
        key_id: ada().id().to_owned(),
        algorithm: "Ed25519".to_owned(),
        signature: Bytes::copy_from_slice(signature.as_ref()),
    });
}

fn trusted(key: &SigningKey, name: &str, role: KeyRole) -> TrustedKey {
    TrustedKey::new(key.verifying_key().clone(), name, &[role])
}

fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn nonce() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("nonce-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn terms() -> SignatureTerms {
    SignatureTerms::new(&nonce(), now(), now() + MINUTE)
}

/// A data folder whose gateway trusts these keys, and signs with this one.
fn folder(keys: Vec<TrustedKey>, own: Option<&SigningKey>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let seal = folder.path().join("data/seal");
    std::fs::create_dir_all(&seal).unwrap();
    let mut set = KeySet::new();
    keys.into_iter().for_each(|key| set.add(key).unwrap());
    save_key_set(&seal.join("keys.toml"), &set).unwrap();
    if let Some(own) = own {
        save_signing_key(&seal.join("signing.key"), own).unwrap();
    }
    folder
}

/// A gateway before the fixture that takes signed calls of its tools only. It trusts Ada, and Bob no longer.
async fn guarded() -> GatewayProcess {
    let mut bob = trusted(&key(2, "bob-key"), "bob", KeyRole::Client);
    bob.revoked_at = Some(1_000);
    let folder = folder(vec![trusted(&ada(), "ada", KeyRole::Client), bob], None);
    let config = format!("[seal]\nrequire = [\"one/*\"]\n{}", child("one", ServedEra::Both, "").unwrap());
    GatewayProcess::serve_in(folder, &config).await.unwrap()
}

fn call(id: u64, tool: &str, name: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {"name": name}}})
        .to_string()
}

fn signed(id: u64, tool: &str, by: &SigningKey) -> String {
    String::from_utf8(sign_request(call(id, tool, "Eve").as_bytes(), by, &terms()).unwrap().to_vec()).unwrap()
}

fn greets(answer: &Value) -> bool {
    text(answer).unwrap_or_else(|| panic!("no result: {answer}")).contains("Eve")
}

fn reason(answer: &Value) -> &str {
    answer["error"]["data"]["reason"].as_str().unwrap_or_else(|| panic!("no refusal: {answer}"))
}

/// A call as protobuf, signed by its own field.
fn protobuf_call(id: u64, change: impl FnOnce(&mut McpRequest)) -> Vec<u8> {
    let Some(Message::Request(mut request)) = message_from_json(call(id, "greet", "Eve").into()).unwrap().message
    else {
        panic!("a call is a request")
    };
    let millis = now();
    let seconds = i64::try_from(millis / 1_000).unwrap();
    request.timestamp = Some(Timestamp { seconds, nanos: 0 });
    request.request_expiry = Some(Timestamp { seconds: seconds + 60, nanos: 0 });
    request.profile = "mcp-cbor/2".to_owned();
    request.domain = "request".to_owned();
    request.nonce = nonce().into_bytes().into();
    let signature = ada().sign_prepared(&prepare_request_for_signing(&request).unwrap()).unwrap();
    request.signature = Some(CryptoSignature {
        key_id: ada().id().to_owned(),
        algorithm: "ed25519".to_owned(),
        signature: Bytes::copy_from_slice(signature.as_ref()),
    });
    change(&mut request);
    message_to_protobuf(&McpMessage { message: Some(Message::Request(request)) }, false)
}

/// The messages of a body in which each stands after its length.
fn delimited(body: &[u8]) -> Vec<Value> {
    messages(body).iter().map(|message| serde_json::from_slice(&message_to_json(message).unwrap()).unwrap()).collect()
}

fn messages(mut body: &[u8]) -> Vec<McpMessage> {
    let mut messages = Vec::new();
    while !body.is_empty() {
        let (mut length, mut shift) = (0, 0);
        loop {
            let (byte, rest) = body.split_first().unwrap();
            body = rest;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let (message, rest) = body.split_at(length);
        messages.push(message_from_protobuf(Bytes::copy_from_slice(message)).unwrap());
        body = rest;
    }
    messages
}

fn from_protobuf(bytes: &[u8]) -> Value {
    let message = message_from_protobuf(Bytes::copy_from_slice(bytes)).unwrap();
    serde_json::from_slice(&message_to_json(&message).unwrap()).unwrap()
}

async fn post_protobuf(client: &HttpClient, body: Vec<u8>) -> Value {
    let client = client.clone().with("content-type", PROTOBUF).with("accept", PROTOBUF);
    let answer = client.send(Method::POST, "/mcp", body.into()).await.unwrap();
    assert_eq!(answer.headers["content-type"], PROTOBUF, "{answer:?}");
    delimited(&answer.body).pop().unwrap()
}

fn as_protobuf(json: &str) -> Vec<u8> {
    message_to_protobuf(&message_from_json(Bytes::copy_from_slice(json.as_bytes())).unwrap(), false)
}

/// Waits until the tape of this data folder, which is written a moment later, has what `fits` asks for: the messages
/// that clients sent or got, each with its principal.
async fn taped(data_dir: &Path, point: Point, what: &str, fits: impl Fn(&[(String, String)]) -> bool) {
    let look = async || fits(&on_tape(data_dir, point).await).then_some(());
    eventually(&format!("on the tape: {what}"), look).await.unwrap();
}

async fn on_tape(data_dir: &Path, point: Point) -> Vec<(String, String)> {
    let file = data_dir.join(format!("{}.tape", nonce()));
    signalbox(data_dir, &["tape", "export", "last", "-o", file.to_str().unwrap()]).await.unwrap();
    let mut source = TapeSource::open(&file).unwrap();
    let messages = source.entries(None).filter_map(|entry| {
        let entry = entry.unwrap();
        let principal = entry.principal.to_string();
        match entry.content {
            Content::Message(message) if message.point == point => match message.body {
                Body::Whole(bytes) => Some((principal, String::from_utf8(bytes.to_vec()).unwrap())),
                _ => None,
            },
            _ => None,
        }
    });
    messages.collect()
}

fn has(messages: &[(String, String)], principal: &str, part: &str) -> bool {
    messages.iter().any(|(who, message)| who == principal && message.contains(part))
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_calls_are_accepted_as_json_and_as_protobuf() {
    let gateway = guarded().await;
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let unsigned = client.post(&call(1, "greet", "Eve")).await.unwrap().message().unwrap();
    assert_eq!(reason(&unsigned), "signature_missing");

    // JSON, and the answer is signed over the hash of the request.
    let request = signed(2, "greet", &ada());
    let answer = client.post(&request).await.unwrap();
    assert!(greets(&answer.message().unwrap()));
    let keys = load_key_set(&gateway.data_dir().join("seal/keys.toml")).unwrap();
    let nonces = NonceBook::new(10);
    let (window, profiles) = (TimeWindow::default(), &Profile::ALL);
    let verifier = SignatureVerifier { keys: &keys, window, nonces: &nonces, profiles };
    let hash = sha256(request.as_bytes());
    assert_eq!(verifier.response(&answer.body, Some(&hash), now()).unwrap().principal, "gateway");

    // JSON of the new era, where the signer owns the session.
    let modern = json!({"name": "greet", "arguments": {"name": "Eve"}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}});
    let modern = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": modern}).to_string();
    let modern = sign_request(modern.as_bytes(), &ada(), &terms()).unwrap();
    let bare = HttpClient::new(gateway.address());
    let new_era =
        bare.with("mcp-protocol-version", "2026-07-28").with("mcp-method", "tools/call").with("mcp-name", "greet");
    let answer = new_era.send(Method::POST, "/mcp", modern).await.unwrap().message().unwrap();
    assert!(greets(&answer));

    // Protobuf over HTTP, by its own signature and by that in `_meta`.
    for body in [protobuf_call(4, |_| {}), as_protobuf(&signed(4, "greet", &ada()))] {
        let answer = post_protobuf(&client, body).await;
        assert!(answer["id"] == 4 && text(&answer).unwrap().contains("Eve"), "{answer}");
    }
    // Protobuf over a WebSocket.
    let mut socket = protobuf_socket(&gateway).await;
    let unsigned = as_protobuf(&call(3, "greet", "Eve"));
    for message in [protobuf_call(2, |_| {}), unsigned] {
        socket.send(Frame::Binary(message.into())).await.unwrap();
    }
    let mut answers = Vec::new();
    while answers.len() < 3 {
        answers.push(next_answer(&mut socket).await.1);
    }
    let of = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert!(text(of(2)).unwrap().contains("Eve"), "{answers:?}");
    assert_eq!(reason(of(3)), "signature_missing");
    for point in [Point::ClientIn, Point::ClientOut] {
        let five = |all: &[(String, String)]| {
            all.iter().filter(|(who, message)| who == "ada" && message.contains("Eve")).count() == 5
        };
        taped(&gateway.data_dir(), point, "five calls of their signer", five).await;
    }
    taped(&gateway.data_dir(), Point::ClientIn, "an unsigned call", |all| has(all, "anonymous", "Eve")).await;
}

/// Opens a session as protobuf over a WebSocket. The answer to `initialize` has the id 1 and is yet to come.
async fn protobuf_socket(gateway: &GatewayProcess) -> WebSocketStream<TcpStream> {
    let mut request = format!("ws://{}/mcp", gateway.address()).into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", http::HeaderValue::from_static("signalbox.v1.protobuf"));
    let socket = TcpStream::connect(gateway.address()).await.unwrap();
    let (mut socket, upgraded) = tokio_tungstenite::client_async(request, socket).await.unwrap();
    assert_eq!(upgraded.headers()["sec-websocket-protocol"], "signalbox.v1.protobuf");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    for message in [&hello.to_string(), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#] {
        socket.send(Frame::Binary(as_protobuf(message).into())).await.unwrap();
    }
    socket
}

/// Reads on until an answer comes, past notifications. Returns it as it came, and as JSON.
async fn next_answer(socket: &mut WebSocketStream<TcpStream>) -> (Bytes, Value) {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Frame::Binary(bytes) => {
                let message = from_protobuf(&bytes);
                if message["method"].is_null() {
                    return (bytes, message);
                }
            }
            other => assert!(!other.is_text(), "{other:?}"),
        }
    }
}

/// The refusals that any transport meets: what is sent, and the word for it.
fn forgeries() -> Vec<(String, &'static str)> {
    let of = |terms: SignatureTerms| {
        String::from_utf8(sign_request(call(9, "greet", "Eve").as_bytes(), &ada(), &terms).unwrap().to_vec()).unwrap()
    };
    let good = || signed(9, "greet", &ada());
    vec![
        (good().replace("Eve", "Mallory"), "tampered"),
        (of(SignatureTerms::new(&nonce(), now() - MINUTE, now() - 1)), "expired"),
        (of(SignatureTerms::new(&nonce(), now() - 6 * MINUTE, now() + MINUTE)), "expired"),
        (of(SignatureTerms::new(&nonce(), now() + 6 * MINUTE, now() + 7 * MINUTE)), "from_the_future"),
        (signed(9, "greet", &key(7, "nobody")), "unknown_key"),
        (signed(9, "greet", &key(2, "bob-key")), "revoked_key"),
        (good().replace("Ed25519", "RS256"), "unsupported_algorithm"),
        (good().replace(r#""domain":"request""#, r#""domain":"audit""#), "wrong_domain"),
        (good().replace(r#""name":"greet","arg"#, r#""name":"slow","arg"#), "renamed"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_forgery_is_refused_with_its_own_error_and_recorded() {
    let gateway = guarded().await;
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let mut expected = vec!["replayed"];
    let once = signed(8, "greet", &ada());
    assert!(text(&client.post(&once).await.unwrap().message().unwrap()).unwrap().contains("Eve"));
    assert_eq!(reason(&client.post(&once).await.unwrap().message().unwrap()), "replayed");
    for (message, word) in forgeries() {
        let answer = client.post(&message).await.unwrap().message().unwrap();
        assert_eq!((reason(&answer), &answer["id"]), (word, &json!(9)), "{answer}");
        expected.push(word);
    }

    // The same as protobuf.
    let once = protobuf_call(7, |_| {});
    assert!(text(&post_protobuf(&client, once.clone()).await).unwrap().contains("Eve"));
    let mut refused = vec![(once, "replayed")];
    type Forgery = fn(&mut McpRequest);
    let changes: Vec<(Forgery, &str)> = vec![
        (|request| request.params = Some(Params::ParamsJson(Bytes::from_static(br#"{"name":"greet"}"#))), "tampered"),
        (|request| request.timestamp.as_mut().unwrap().seconds -= 600, "expired"),
        (|request| request.timestamp.as_mut().unwrap().seconds += 600, "from_the_future"),
        (|request| request.signature.as_mut().unwrap().key_id = "nobody".to_owned(), "unknown_key"),
        (|request| request.signature.as_mut().unwrap().key_id = "bob-key".to_owned(), "revoked_key"),
        (|request| request.signature.as_mut().unwrap().algorithm = "RS256".to_owned(), "unsupported_algorithm"),
        (|request| request.domain = "audit".to_owned(), "wrong_domain"),
    ];
    refused.extend(changes.into_iter().map(|(change, word)| (protobuf_call(7, change), word)));
    for (message, word) in refused {
        let answer = post_protobuf(&client, message).await;
        assert_eq!((reason(&answer), &answer["id"]), (word, &json!(7)), "{answer}");
    }

    let counted = status(&gateway.data_dir()).await.unwrap();
    let metrics = String::from_utf8(client.get("/metrics").await.unwrap().body.to_vec()).unwrap();
    for word in expected {
        let data = format!("\"reason\":\"{word}\"");
        taped(&gateway.data_dir(), Point::ClientOut, word, |all| has(all, "anonymous", &data)).await;
        assert!(counted["refused_signatures"][word].as_u64().unwrap() > 0, "{word} in the status");
        assert!(metrics.contains(&format!("signalbox_signatures_refused_total{{reason=\"{word}\"}}")), "{word}");
    }
    taped(&gateway.data_dir(), Point::ClientIn, "the forged request", |all| has(all, "anonymous", "Mallory")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_call_goes_through_two_gateways_that_both_rename() {
    let west = key(3, "west-key");
    let east_folder =
        folder(vec![trusted(&ada(), "ada", KeyRole::Client), trusted(&west, "west", KeyRole::Gateway)], None);
    let fixtures = [child("one", ServedEra::Old, "").unwrap(), child("two", ServedEra::Old, "").unwrap()];
    let config = format!("[seal]\nrequire = [\"two/*\"]\n{}", fixtures.concat());
    let east = GatewayProcess::serve_in(east_folder, &config).await.unwrap();
    let west_folder =
        folder(vec![trusted(&ada(), "ada", KeyRole::Client), trusted(&west, "west", KeyRole::Gateway)], Some(&west));
    let rule = r#"
[[rules]]
id = "polite"
when = { tool = "two__greet", params = { "/params/arguments/name" = { ends_with = "Mallory" } } }
then = { set = { "/params/arguments/name" = "Mallory, called Eve" } }
"#;
    let config = remote("east", &east.address().to_string(), "seal = true") + rule;
    let front = GatewayProcess::serve_in(west_folder, &config).await.unwrap();

    let client = HttpClient::new(front.address()).initialize(VERSION, json!({})).await.unwrap();
    let far = "east__two__greet";
    let answer = client.post(&signed(1, far, &ada())).await.unwrap().message().unwrap();
    assert!(greets(&answer));
    let hop = r#""from":"east__two__greet","to":"two__greet","keyId":"west-key""#;
    taped(&east.data_dir(), Point::ClientIn, "the hop", |all| has(all, "ada", hop)).await;

    // What came as protobuf, or unsigned, is signed by the gateway in front, which names the first signer.
    let renamed = |request: &mut McpRequest| {
        let params = format!(r#"{{"name":"{far}","arguments":{{"name":"Eve"}}}}"#);
        request.params = Some(Params::ParamsJson(params.into()));
        sign_as_ada(request);
    };
    let answer = post_protobuf(&client, protobuf_call(2, renamed)).await;
    assert!(greets(&answer));
    let first = r#""firstSigner":{"keyId":"ada-key""#;
    taped(&east.data_dir(), Point::ClientIn, "the first signer", |all| has(all, "west", first)).await;

    // What a rule changed is signed by the gateway, too.
    let changed = sign_request(call(3, far, "Mallory").as_bytes(), &ada(), &terms()).unwrap();
    let answer = client.send(Method::POST, "/mcp", changed).await.unwrap().message().unwrap();
    assert!(greets(&answer));
    let by_west = |all: &[(String, String)]| {
        all.iter().any(|(who, message)| who == "west" && message.contains(first) && message.contains("called Eve"))
    };
    taped(&east.data_dir(), Point::ClientIn, "what the rule changed", by_west).await;

    // A gateway that is no longer trusted renames nothing.
    let file = east.data_dir().join("seal/keys.toml");
    let mut keys = load_key_set(&file).unwrap();
    keys.revoke("west-key", 1_000).unwrap();
    save_key_set(&file, &keys).unwrap();
    let refused = eventually("the revocation is noticed", async || {
        let answer = client.post(&signed(4, far, &ada())).await.unwrap().message().unwrap();
        answer["error"]["data"]["reason"].as_str().map(str::to_owned)
    });
    assert_eq!(refused.await.unwrap(), "renamed");
}

/// A call as protobuf with a purpose and permissions, signed after `change`.
fn purposeful_call(id: u64, change: impl FnOnce(&mut McpRequest)) -> Vec<u8> {
    protobuf_call(id, |request| {
        request.request_id = format!("request-{id}");
        request.mcp_version = VERSION.to_owned();
        request.requestor_identity = Some(RequestorIdentity {
            pseudonym_id: "ada".to_owned(),
            public_key: Bytes::copy_from_slice(ada().verifying_key().as_bytes()),
            ..Default::default()
        });
        let in_an_hour = request.timestamp.as_ref().map(|now| Timestamp { seconds: now.seconds + 3_600, nanos: 0 });
        request.purpose_dna = Some(PurposeDna {
            purpose_id: "p".to_owned(),
            primary_category: PurposeCategory::Analytics.into(),
            data_types_involved: vec!["mail".to_owned()],
            purpose_expiry: in_an_hour,
            ..Default::default()
        });
        request.permissions = vec![Permission {
            resource_identifier: "mail".to_owned(),
            requested_action: Action::Read.into(),
            permission_specification: Some(PermissionSpecification {
                max_frequency_per_hour: 1_000,
                data_access_scope: "personal".to_owned(),
                ..Default::default()
            }),
        }];
        change(request);
        sign_as_ada(request);
    })
}

/// Proves PO-15 and PO-16.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_validates_in_full_asks_for_purpose_and_permissions() {
    let folder = folder(vec![trusted(&ada(), "ada", KeyRole::Client)], None);
    let config =
        format!("[seal]\nrequire = [\"one/*\"]\nvalidate = \"full\"\n{}", child("one", ServedEra::Both, "").unwrap());
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let answer = post_protobuf(&client, purposeful_call(2, |_| {})).await;
    assert!(greets(&answer));
    let json = client.post(&signed(3, "greet", &ada())).await.unwrap().message().unwrap();
    assert_eq!(reason(&json), "validation_needs_protobuf");
    type Change = fn(&mut McpRequest);
    let refused: [(Change, &str); 7] = [
        (|request| request.purpose_dna = None, "field_missing"),
        (|request| request.permissions.clear(), "field_missing"),
        (|request| request.mcp_version.clear(), "field_missing"),
        (
            |request| request.purpose_dna.as_mut().unwrap().purpose_expiry = Some(Timestamp { seconds: 1, nanos: 0 }),
            "purpose_expired",
        ),
        (|request| request.permissions[0].requested_action = Action::Write.into(), "purpose_not_allowed"),
        (|request| request.permissions[0].resource_identifier = "files".to_owned(), "purpose_not_allowed"),
        (
            |request| {
                let bounds = request.permissions[0].permission_specification.as_mut().unwrap();
                bounds.max_frequency_per_hour = 1_001;
            },
            "purpose_not_allowed",
        ),
    ];
    for (number, (change, word)) in refused.into_iter().enumerate() {
        let answer = post_protobuf(&client, purposeful_call(10 + number as u64, change)).await;
        assert_eq!(reason(&answer), word, "case {number}: {answer}");
    }
}

/// A gateway that signs answers with this key, and trusts Ada.
async fn signing(own: &SigningKey) -> GatewayProcess {
    let folder = folder(vec![trusted(&ada(), "ada", KeyRole::Client)], Some(own));
    GatewayProcess::serve_in(folder, &child("one", ServedEra::Both, "").unwrap()).await.unwrap()
}

/// A call with the request id `request-ID`, signed or not.
fn call_of_id(id: u64, signed: bool) -> Bytes {
    let call = protobuf_call(id, |request| {
        request.request_id = format!("request-{id}");
        if signed { sign_as_ada(request) } else { request.signature = None }
    });
    call.into()
}

/// Checks the answer to a call of this id, and returns the id of the answer.
fn response_id(answer: McpMessage, id: u64, signed: bool, own: &SigningKey) -> String {
    let Some(Message::Response(response)) = answer.message else { panic!("{answer:?}") };
    let named = (response.request_id.as_str(), response.mcp_version.as_str());
    assert_eq!(named, (&*format!("request-{id}"), VERSION));
    let made = response.timestamp.as_ref().unwrap().seconds.unsigned_abs() * 1_000;
    assert!(made.abs_diff(now()) < MINUTE, "{response:?}");
    match signed {
        true => verify_response(&response, own.verifying_key()).unwrap(),
        false => assert_eq!(response.signature, None),
    }
    response.response_id
}

fn all_differ(mut ids: Vec<String>, count: usize) {
    ids.sort();
    ids.dedup();
    assert!(ids.len() == count && ids.iter().all(|id| !id.is_empty()), "{ids:?}");
}

/// Answers as protobuf have an id, the id of their request, a time and a signature over all of it.
/// Proves P-23 and PO-11.
#[tokio::test(flavor = "multi_thread")]
async fn answers_as_protobuf_are_signed_in_the_specified_form() {
    let own = key(9, "gateway-key");
    let gateway = signing(&own).await;
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let client = client.with("content-type", PROTOBUF).with("accept", PROTOBUF);
    let mut ids = Vec::new();
    for (id, signed) in [(1, true), (2, true), (3, false)] {
        let answer = client.send(Method::POST, "/mcp", call_of_id(id, signed)).await.unwrap();
        ids.push(response_id(messages(&answer.body).pop().unwrap(), id, signed, &own));
    }
    all_differ(ids, 3);
}

/// So do answers over a WebSocket, in whatever order they come.
/// Proves P-23 and PO-11.
#[tokio::test(flavor = "multi_thread")]
async fn answers_as_protobuf_over_a_web_socket_are_signed_in_the_specified_form() {
    let own = key(9, "gateway-key");
    let gateway = signing(&own).await;
    let mut socket = protobuf_socket(&gateway).await;
    assert_eq!(next_answer(&mut socket).await.1["id"], 1);
    let calls = [(2, true), (3, true), (4, false)];
    for (id, signed) in calls {
        socket.send(Frame::Binary(call_of_id(id, signed))).await.unwrap();
    }
    let mut ids = Vec::new();
    for _ in calls {
        let (bytes, answer) = next_answer(&mut socket).await;
        let called = calls.into_iter().find(|(id, _)| answer["id"] == *id);
        let (id, signed) = called.unwrap_or_else(|| panic!("no call of this id: {answer}"));
        assert!(greets(&answer));
        ids.push(response_id(message_from_protobuf(bytes).unwrap(), id, signed, &own));
    }
    all_differ(ids, 3);
}

/// With `validate = "full"` a request may be 24 hours old and 5 minutes ahead. The frequency that requests state is
/// kept, and the audit log has their purpose and permissions.
/// Proves PO-15 and PO-16.
#[tokio::test(flavor = "multi_thread")]
async fn old_requests_are_taken_and_what_they_state_is_kept_and_recorded() {
    let folder = folder(vec![trusted(&ada(), "ada", KeyRole::Client)], None);
    let config = format!(
        "[seal]\nrequire = [\"one/*\"]\nvalidate = \"full\"\n[mcp.protocol.audit]\nenabled = true\n{}",
        child("one", ServedEra::Both, "").unwrap()
    );
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let log = gateway.data_dir().join("audit/audit.log");
    let aged = |id: u64, seconds: i64, often: u32| {
        purposeful_call(id, move |request| {
            let made = request.timestamp.as_mut().unwrap();
            made.seconds -= seconds;
            request.request_expiry.as_mut().unwrap().seconds += 3_600;
            let bounds = request.permissions[0].permission_specification.as_mut().unwrap();
            bounds.max_frequency_per_hour = often;
        })
    };
    assert!(greets(&post_protobuf(&client, aged(2, 23 * 3_600, 2)).await), "23 hours old");
    assert_eq!(reason(&post_protobuf(&client, aged(3, 25 * 3_600, 2)).await), "expired");
    assert!(greets(&post_protobuf(&client, aged(4, -200, 2)).await), "200 s ahead");
    assert_eq!(reason(&post_protobuf(&client, aged(5, -400, 2)).await), "from_the_future");
    let often = post_protobuf(&client, aged(6, 0, 2)).await;
    assert_eq!(reason(&often), "rate_limited", "{often}");
    assert!(often["error"]["data"]["retryAfter"].as_u64().is_some_and(|wait| wait <= 1_800), "{often}");
    let recorded = async || {
        let text = std::fs::read_to_string(&log).ok()?;
        text.contains(r#""purpose":"analytics: p","permissions":"read:mail 2/h""#).then_some(())
    };
    eventually("purpose and permissions are in the audit log", recorded).await.unwrap();
}

/// `seal.max_age` sets the age that requests may have, and none is taken twice while it may still come.
/// Proves PO-15.
#[tokio::test(flavor = "multi_thread")]
async fn requests_may_be_as_old_as_max_age_says() {
    let aged = |id: u64, minutes: u64| {
        let terms = SignatureTerms::new(&nonce(), now() - minutes * MINUTE, now() + MINUTE);
        let signed = sign_request(call(id, "greet", "Eve").as_bytes(), &ada(), &terms).unwrap();
        String::from_utf8(signed.to_vec()).unwrap()
    };
    for (max_age, taken, expired) in [("1h", 50, 70), ("3m", 0, 4)] {
        let gateway = trusting(&format!("max_age = '{max_age}'")).await;
        let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
        let say = async |message: &str| client.post(message).await.unwrap().message().unwrap();
        let once = aged(2, taken);
        assert!(greets(&say(&once).await), "{taken} min with {max_age}");
        assert_eq!(reason(&say(&once).await), "replayed", "{taken} min with {max_age}");
        assert_eq!(reason(&say(&aged(3, expired)).await), "expired", "{expired} min with {max_age}");
    }
    let full = trusting("require = ['one/*']\nvalidate = 'full'\nmax_age = '1h'").await;
    let client = HttpClient::new(full.address()).initialize(VERSION, json!({})).await.unwrap();
    let aged = |id: u64, minutes: i64| {
        purposeful_call(id, |request| request.timestamp.as_mut().unwrap().seconds -= minutes * 60)
    };
    assert!(greets(&post_protobuf(&client, aged(2, 50)).await));
    assert_eq!(reason(&post_protobuf(&client, aged(3, 70)).await), "expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_killed_still_refuses_what_it_took_before() {
    let gateway = guarded().await;
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let (once, protobuf) = (signed(2, "greet", &ada()), protobuf_call(3, |_| {}));
    assert!(greets(&client.post(&once).await.unwrap().message().unwrap()));
    assert!(greets(&post_protobuf(&client, protobuf.clone()).await));
    let config = std::fs::read_to_string(gateway.config_file()).unwrap();
    let folder = gateway.stop().await.unwrap();
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    assert_eq!(reason(&client.post(&once).await.unwrap().message().unwrap()), "replayed");
    assert_eq!(reason(&post_protobuf(&client, protobuf).await), "replayed");
    assert!(greets(&client.post(&signed(4, "greet", &ada())).await.unwrap().message().unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn little_is_read_of_callers_whom_only_their_signature_proves() {
    let folder = folder(vec![trusted(&ada(), "ada", KeyRole::Client)], None);
    let config = format!("[seal]\nrequire = [\"*\"]\n{}", child("one", ServedEra::Both, "").unwrap());
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let large = sign_request(call(2, "greet", &"Eve".repeat(400_000)).as_bytes(), &ada(), &terms()).unwrap();
    let text = String::from_utf8(large.to_vec()).unwrap();
    let protobuf = client.clone().with("content-type", PROTOBUF).with("accept", PROTOBUF);
    for (client, body) in [(&client, large.clone()), (&protobuf, as_protobuf(&text).into())] {
        let refused = client.send(Method::POST, "/mcp", body).await.unwrap();
        let said = String::from_utf8_lossy(&refused.body).into_owned();
        assert_eq!(refused.status, 413, "{said}");
        assert!(said.contains("1048576 bytes") && said.contains("only its signature proves"), "{said}");
    }
    let told = status(&gateway.data_dir()).await.unwrap();
    assert_eq!(told["unknown_callers"], json!({"127.0.0.1": 2}), "{told}");
    let metrics = String::from_utf8(client.get("/metrics").await.unwrap().body.to_vec()).unwrap();
    assert!(metrics.contains("signalbox_refused_total{limit=\"unknown_caller\"} 2"), "{metrics}");
    // Smaller ones are read, and a gateway that also takes unsigned calls reads larger ones.
    assert!(greets(&client.post(&signed(3, "greet", &ada())).await.unwrap().message().unwrap()));
    let open = GatewayProcess::serve(&child("one", ServedEra::Both, "").unwrap()).await.unwrap();
    let client = HttpClient::new(open.address()).initialize(VERSION, json!({})).await.unwrap();
    let answer = client.post(&call(2, "greet", &"Eve".repeat(400_000))).await.unwrap().message().unwrap();
    assert!(greets(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_gateway_keeps_the_signed_heads_of_a_tape() {
    let west = key(3, "west-key");
    let south = key(4, "south-key");
    let trusts = vec![trusted(&west, "west", KeyRole::Gateway), trusted(&south, "south", KeyRole::Recorder)];
    let audited = format!("[mcp.protocol.audit]\nenabled = true\n{}", child("one", ServedEra::Both, "").unwrap());
    let east = GatewayProcess::serve_in(folder(trusts, None), &audited).await.unwrap();
    let west_folder = folder(vec![trusted(&west, "gateway", KeyRole::Recorder)], Some(&west));
    let anchor = format!("[seal]\nanchor = [\"http://{}/anchors\"]\nhead_every = 3\n", east.address());
    let config = anchor + &child("one", ServedEra::Both, "").unwrap();
    let gateway = GatewayProcess::serve_in(west_folder, &config).await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    for id in 1..5 {
        assert!(greets(&client.post(&call(id, "greet", "Eve")).await.unwrap().message().unwrap()));
    }
    let counted = eventually("heads are anchored", async || {
        let metrics = client.get("/metrics").await.unwrap().body;
        let metrics = String::from_utf8(metrics.to_vec()).unwrap();
        let kept = metrics.lines().find(|line| line.starts_with("signalbox_anchors_total{outcome=\"kept\"}"))?;
        kept.split(' ').next_back()?.parse::<u64>().ok().filter(|kept| *kept >= 2)
    });
    counted.await.unwrap();
    let told = status(&gateway.data_dir()).await.unwrap();
    assert!(told["recording"]["anchors"]["kept"].as_u64().unwrap() >= 2, "{told}");
    let stranger = HttpClient::new(east.address()).with("content-type", "application/json");
    let head = std::fs::read_to_string(east.data_dir().join("seal/anchors.jsonl")).unwrap();
    let head: Value = serde_json::from_str(head.trim().lines().next().unwrap()).unwrap();
    let mut forged = head.clone();
    forged["seq"] = json!(9_999);
    let tape = head["tape"].as_str().unwrap().to_owned();
    let signed = |key: &SigningKey, seq: u64| {
        let head = Head::sign(HeadKind::Interim, &tape, HeadContent::of(seq, &[9; 32], 1), key).unwrap();
        SignedHead { tape: tape.clone(), kind: HeadKind::Interim, head }.to_json().to_string()
    };
    let sent = [
        (head.to_string(), 200, None),
        (forged.to_string(), 403, Some("tampered")),
        ("{}".to_owned(), 400, Some("invalid_request")),
        (signed(&key(5, "unknown"), 15), 403, Some("key_not_trusted")),
        // Another trusted recorder cannot speak for the tape, nor keep its own later heads out.
        (signed(&south, 1 << 40), 403, Some("anchor_owner")),
    ];
    for (body, expected, _) in &sent {
        let answer = stranger.send(Method::POST, "/anchors", body.clone().into()).await.unwrap();
        assert_eq!(answer.status, *expected, "{answer:?}");
    }
    // What is refused is in the audit log, with its address.
    let line = ["audit", "search", "--json", "--limit", "1000"];
    for (_, status, reason) in sent {
        let Some(reason) = reason else { continue };
        let is_it = |record: &Value| {
            let details = &record["details"];
            details["reason"] == reason && details["http_status"] == status && record["user_context"]["address"] != ""
        };
        let file = east.config_file().display().to_string();
        let args: Vec<&str> = line.iter().copied().chain(["-c", &file]).collect();
        let recorded = async || {
            let all: Vec<Value> = serde_json::from_str(&signalbox(&east.data_dir(), &args).await.ok()?).ok()?;
            all.iter().any(is_it).then_some(())
        };
        eventually(&format!("{reason} is recorded"), recorded).await.unwrap();
    }

    // The end of the tape is anchored as well, and the tape agrees with all of it.
    let pid = u32::try_from(told["pid"].as_u64().unwrap()).unwrap();
    signal(pid, "TERM").await.unwrap();
    eventually("the process ends", async || (!alive(pid)).then_some(())).await.unwrap();
    let west_folder = gateway.stop().await.unwrap();
    let (data, anchors) = (west_folder.path().join("data"), east.data_dir().join("seal/anchors.jsonl"));
    let line = ["tape", "verify", "last", "--json", "--anchor", anchors.to_str().unwrap()];
    let told: Value = serde_json::from_str(&signalbox(&data, &line).await.unwrap()).unwrap();
    assert_eq!((&told["outcome"], &told["trust"]), (&json!("valid"), &json!("anchored")), "{told}");
    assert_eq!(told["anchored_up_to"], told["last_entry"], "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_client_made_of_our_proto_lists_and_calls_tools_of_a_real_server() {
    let Some(backend) = real_server() else { return eprintln!("SKIP: the real servers are not installed") };
    let folder = folder(vec![trusted(&ada(), "ada", KeyRole::Client)], None);
    let seed = folder.path().join("seed");
    std::fs::write(&seed, [1; 32]).unwrap();
    let config = format!("[seal]\nrequire = [\"*\"]\n{backend}");
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let url = format!("http://{}/mcp", gateway.address());
    let arguments = json!({"timezone": "Etc/UTC"}).to_string();
    let client = ["py-protobuf", &url, seed.to_str().unwrap(), "ada-key", "get_current_time", &arguments];
    let Some(said) = run(&client).await.unwrap() else { return eprintln!("SKIP: py-protobuf is not installed") };
    assert!(said["tools"].as_array().unwrap().contains(&json!("get_current_time")), "{said}");
    assert!(said["result"]["content"][0]["text"].as_str().unwrap().contains("Etc/UTC"), "{said}");
    let words = [&said["replayed"], &said["unsigned"], &said["answers_request"]];
    assert_eq!(words, [&json!("replayed"), &json!("signature_missing"), &json!(true)], "{said}");
}

/// The configuration of the time server of PyPI, where it is installed.
fn real_server() -> Option<String> {
    let script = run_script();
    let own = script.ancestors().nth(3).unwrap().join(".deps");
    let deps = std::env::var_os("MCP_TEST_DEPS").map_or(own, std::path::PathBuf::from);
    let there = deps.join("py-servers/bin/python").exists();
    let there = there.then(|| {
        format!("[backends.time]\ncommand = {}\nargs = [\"time\"]\nenv_pass = [\"MCP_TEST_DEPS\"]\n", json!(script))
    });
    assert!(there.is_some() || std::env::var("CI").as_deref() != Ok("true"), "the real servers are not installed");
    if there.is_none() {
        eprintln!("SKIP the real servers: run script/install-test-deps");
    }
    there
}

/// A gateway before the fixture that trusts Ada, with these settings of `[seal]`.
async fn trusting(seal: &str) -> GatewayProcess {
    let folder = folder(vec![trusted(&ada(), "ada", KeyRole::Client)], None);
    let config = format!("[seal]\n{seal}\n{}", child("one", ServedEra::Both, "").unwrap());
    GatewayProcess::serve_in(folder, &config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_profile_is_accepted_only_where_it_is_configured() {
    let json = |id| {
        let terms = SignatureTerms { profile: Profile::One, ..terms() };
        sign_request(call(id, "greet", "Eve").as_bytes(), &ada(), &terms).unwrap()
    };
    let protobuf = |id, profile: &str| purposeful_call(id, |request| request.profile = profile.to_owned());
    let strict = trusting("").await;
    let client = HttpClient::new(strict.address()).initialize(VERSION, json!({})).await.unwrap();
    let text = String::from_utf8(json(2).to_vec()).unwrap();
    for refused in [
        client.post(&text).await.unwrap().message().unwrap(),
        post_protobuf(&client, protobuf(3, "mcp-cbor/1")).await,
        post_protobuf(&client, protobuf(4, "")).await,
    ] {
        assert_eq!(reason(&refused), "unsupported_profile");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("mcp-cbor/1") && message.contains("`seal.profiles`"), "{message}");
    }
    assert!(greets(&client.post(&signed(5, "greet", &ada())).await.unwrap().message().unwrap()));
    let both = trusting("profiles = ['mcp-cbor/2', 'mcp-cbor/1']").await;
    let client = HttpClient::new(both.address()).initialize(VERSION, json!({})).await.unwrap();
    assert!(greets(&client.post(&text).await.unwrap().message().unwrap()));
    assert!(greets(&post_protobuf(&client, protobuf(3, "mcp-cbor/1")).await));
    assert!(greets(&post_protobuf(&client, protobuf(4, "")).await));
    assert!(greets(&client.post(&signed(5, "greet", &ada())).await.unwrap().message().unwrap()));
}

/// A forged signature over numbers of 318 digits is refused wherever it comes, before its form is made.
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_signature_over_long_numbers_is_refused_at_every_way_in() {
    let gateway = trusting("profiles = ['mcp-cbor/1']").await;
    let numbers = format!("[{}]", vec!["1e308"; 90_000].join(","));
    let forge = |id| {
        let terms = SignatureTerms { profile: Profile::One, ..terms() };
        let signed = sign_request(call(id, "greet", "Eve").as_bytes(), &ada(), &terms).unwrap();
        String::from_utf8(signed.to_vec()).unwrap().replace("\"Eve\"", &numbers)
    };
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    assert_eq!(reason(&client.post(&forge(2)).await.unwrap().message().unwrap()), "no_canonical_form");
    let protobuf = purposeful_call(3, |request| request.profile = "mcp-cbor/1".to_owned());
    let Some(Message::Request(mut request)) = message_from_protobuf(protobuf.into()).unwrap().message else {
        panic!("a call is a request")
    };
    let params = format!(r#"{{"name":"greet","arguments":{{"name":{numbers}}}}}"#);
    request.params = Some(Params::ParamsJson(params.into()));
    let forged = message_to_protobuf(&McpMessage { message: Some(Message::Request(request)) }, false);
    assert_eq!(reason(&post_protobuf(&client, forged).await), "no_canonical_form");
    let old = HttpClient::new(gateway.address()).initialize("2025-03-26", json!({})).await.unwrap();
    let batch = old.post(&format!("[{}]", forge(4))).await.unwrap().message().unwrap();
    assert_eq!(reason(batch.get(0).unwrap_or(&batch)), "too_large_for_a_batch", "{batch}");
    let stream = TcpStream::connect(gateway.address()).await.unwrap();
    let request = format!("ws://{}/mcp", gateway.address()).into_client_request().unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": VERSION,
        "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for message in [hello.to_string(), ready.to_string(), forge(5)] {
        socket.send(Frame::text(message)).await.unwrap();
    }
    loop {
        let Some(Ok(Frame::Text(text))) = socket.next().await else { panic!("the socket ended") };
        let message: Value = serde_json::from_str(&text).unwrap();
        if message["id"] == 5 {
            assert_eq!(reason(&message), "no_canonical_form");
            break;
        }
    }
}
