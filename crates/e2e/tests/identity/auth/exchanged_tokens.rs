//! Backends that are reached with what the caller's own token is exchanged for.

use super::{ISSUER, RESOURCE, VERSION, bearer, gateway_with, key, now, token, token_for};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::protected_server::{Demands, ProtectedServer, SeenRequest};
use signalbox_testkit::scene::{eventually, text};
use std::time::Duration;

/// RFC 8693: each caller reaches a server with what its own token was exchanged for, and the token itself never goes
/// there.
#[tokio::test(flavor = "multi_thread")]
async fn a_callers_own_token_is_exchanged_for_one_that_the_server_takes() {
    let server = ProtectedServer::start(Demands::Token, None).await.unwrap();
    let gateway = gateway_with(&exchanging(&server)).await;
    let (ada, eve) = (token("ada", 60, "mcp"), token("eve", 60, "mcp"));
    for (credential, subject) in [(&ada, "ada"), (&eve, "eve"), (&ada, "ada")] {
        let session = bearer(&gateway, credential).initialize(VERSION, json!({})).await.unwrap();
        let work = json!({"name": "safe__work", "arguments": {}});
        let called = async || {
            let answer = session.request(2, "tools/call", work.clone()).await.ok()?;
            text(&answer).filter(|text| text == "done")
        };
        eventually("the call is answered", called).await.unwrap();
        let mut calls = server.seen().into_iter().filter(|seen| seen.what == "tools/call");
        assert_eq!(calls.next_back().unwrap().headers["authorization"], format!("Bearer made-up-for-{subject}"));
    }
    let key = key(&gateway, &["editor"]).await;
    let session = bearer(&gateway, &key).initialize(VERSION, json!({})).await.unwrap();
    let answer = session.request(3, "tools/call", json!({"name": "safe__work", "arguments": {}})).await.unwrap();
    assert!(answer["error"].is_object(), "a caller without a token has nothing to exchange: {answer}");
    // That says nothing of the backend: others go on at once.
    let session = bearer(&gateway, &eve).initialize(VERSION, json!({})).await.unwrap();
    let answer = session.request(4, "tools/call", json!({"name": "safe__work", "arguments": {}})).await.unwrap();
    assert_eq!(text(&answer).as_deref(), Some("done"), "{answer}");
    for seen in server.seen() {
        let shown = seen.headers.get("authorization").map(String::as_str).unwrap_or_default();
        assert!(!shown.contains(&ada) && !shown.contains(&eve) && !shown.contains(&key), "{}: {shown}", seen.what);
    }
}

/// A backend that takes what callers' own tokens are exchanged for.
fn exchanging(server: &ProtectedServer) -> String {
    let at = server.url().replace("/mcp", "/exchange");
    format!(
        "[auth.outbound]\nallow = [\"127.0.0.1\"]\n[backends.safe]\nurl = \"{}\"\n[backends.safe.auth]\n\
         type = \"token_exchange\"\nexchange_url = \"{at}\"\nexchange_subject = \"caller\"\nclient_id = \"gate\"\n",
        server.url()
    )
}

/// A token of Ada that is exchanged for one of this grade.
fn graded(grade: &str) -> String {
    let (iat, exp) = (now(), now() + 600);
    token_for(&json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "ada", "iat": iat, "exp": exp, "scope": "mcp", "grade": grade,
    }))
}

/// The parameters of a call that names the grade of its own token.
fn work(grade: &str) -> Value {
    json!({"name": "safe__work", "arguments": {"grade": grade}})
}

/// The calls that reached the server with a credential, each as the grade that it names and the credential.
fn made_with(server: &ProtectedServer) -> Vec<(String, String)> {
    let calls = server.seen().into_iter().filter(|seen| seen.what == "tools/call");
    let read = |call: SeenRequest| {
        let grade = call.message["params"]["arguments"]["grade"].as_str()?.to_owned();
        Some((grade, call.headers.get("authorization")?.clone()))
    };
    calls.filter_map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_got_for_one_token_serves_no_other_credential_of_the_same_principal() {
    let server = ProtectedServer::start(Demands::Token, None).await.unwrap();
    let gateway = gateway_with(&exchanging(&server)).await;
    let (strong, weak) = (graded("strong"), graded("weak"));
    let session = bearer(&gateway, &strong).initialize(VERSION, json!({})).await.unwrap();
    let called = async || {
        let answer = session.request(2, "tools/call", work("strong")).await.ok()?;
        text(&answer).filter(|text| text == "done")
    };
    eventually("the call is answered", called).await.unwrap();
    let key = key(&gateway, &["robot", "--subject", "corp:ada"]).await;
    let in_session = async |credential: &str, id: u64, grade: &str| {
        let client = bearer(&gateway, credential).with("mcp-session-id", session.session_id().unwrap());
        let client = client.with("mcp-protocol-version", VERSION);
        let post = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": work(grade)}).to_string();
        client.post(&post).await.unwrap().message().unwrap()
    };
    for round in 0..2 {
        for (credential, grade) in [(&weak, "weak"), (&key, "none"), (&strong, "strong")] {
            let own = bearer(&gateway, credential).initialize(VERSION, json!({})).await.unwrap();
            let modern = bearer(&gateway, credential).modern(7, "tools/call", work(grade)).await.unwrap();
            let answers = [
                modern.message().unwrap(),
                own.request(5, "tools/call", work(grade)).await.unwrap(),
                in_session(credential, 40 + round, grade).await,
            ];
            for (way, answer) in answers.into_iter().enumerate() {
                let done = text(&answer).is_some_and(|text| text == "done");
                assert_eq!(done, grade != "none", "{grade}, way {way}: {answer}");
            }
            own.send(Method::DELETE, "/mcp", Bytes::new()).await.unwrap();
        }
    }
    // Requests at once in one session are each made with what they show.
    for round in 0..20 {
        let id = 100 + 3 * round;
        let (first, second, third) = tokio::join!(
            in_session(&strong, id, "strong"),
            in_session(&weak, id + 1, "weak"),
            in_session(&key, id + 2, "none")
        );
        assert!(text(&first).is_some() && text(&second).is_some() && third["error"].is_object(), "{third}");
    }
    let made = made_with(&server);
    assert!(made.len() >= 50, "{}", made.len());
    for (grade, credential) in made {
        assert_eq!(credential, format!("Bearer made-up-for-ada-{grade}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_a_token_to_exchange_leaves_the_backend_to_others() {
    let server = ProtectedServer::start(Demands::Token, None).await.unwrap();
    let gateway = gateway_with(&exchanging(&server)).await;
    let key = key(&gateway, &["editor"]).await;
    let ada = graded("strong");
    for round in 0..10 {
        // The first finds the backend without a connection, and all of them together would trip its breaker.
        let refused =
            bearer(&gateway, &key).modern(round, "tools/call", work("none")).await.unwrap().message().unwrap();
        assert!(refused["error"].is_object(), "{refused}");
    }
    let session = bearer(&gateway, &ada).initialize(VERSION, json!({})).await.unwrap();
    let answer = session.request(2, "tools/call", work("strong")).await.unwrap();
    assert_eq!(text(&answer).as_deref(), Some("done"), "{answer}");
    for round in 10..20 {
        let refused =
            bearer(&gateway, &key).modern(round, "tools/call", work("none")).await.unwrap().message().unwrap();
        assert!(refused["error"].is_object(), "{refused}");
    }
    let answer = session.request(3, "tools/call", work("strong")).await.unwrap();
    assert_eq!(text(&answer).as_deref(), Some("done"), "{answer}");
}

/// The parts of an exchange that name whom the server took the caller for.
const GRADES: [&str; 2] = ["strong", "weak"];

/// Everything that a caller asks of the server, by method and params.
fn questions() -> Vec<(&'static str, Value)> {
    let template =
        json!({"ref": {"type": "ref/resource", "uri": "acct://{x}"}, "argument": {"name": "x", "value": ""}});
    vec![
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
        ("tools/call", json!({"name": "safe__common", "arguments": {}})),
        ("tools/call", json!({"name": "safe__common", "arguments": {"kept": true}})),
        ("tools/call", json!({"name": "safe__of_strong", "arguments": {}})),
        ("resources/read", json!({"uri": "acct://x"})),
        ("prompts/get", json!({"name": "safe__ask"})),
        ("completion/complete", template),
    ]
}

/// True if an answer shows what the server has for the token of this grade.
fn shows(answer: &Value, grade: &str) -> bool {
    let said = answer["result"].to_string();
    ["of ", "of_", "for "].iter().any(|before| said.contains(&format!("{before}{grade}")))
}

/// The answers to all questions, by one way.
async fn answers(gateway: &GatewayProcess, credential: &str, way: &str) -> Vec<Value> {
    let client = bearer(gateway, credential);
    let mut answers = Vec::new();
    match way {
        "modern" => {
            for (id, (method, params)) in (10..).zip(questions()) {
                answers.push(client.modern(id, method, params).await.unwrap().message().unwrap());
            }
        }
        "session" => {
            let session = client.initialize(VERSION, json!({})).await.unwrap();
            for (id, (method, params)) in (10..).zip(questions()) {
                answers.push(session.request(id, method, params).await.unwrap());
            }
            session.send(Method::DELETE, "/mcp", Bytes::new()).await.unwrap();
        }
        _ => {
            let header = format!("Bearer {credential}");
            let mut socket = PipeClient::websocket(gateway.address(), &[("authorization", &header)]).await.unwrap();
            socket.initialize(VERSION, json!({})).await.unwrap();
            for (id, (method, params)) in (10..).zip(questions()) {
                answers.push(socket.request(id, method, params).await.unwrap());
            }
        }
    }
    answers
}

/// What a server shows for one token is for no other credential of the principal, in any order.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_shows_for_one_token_is_for_no_other_credential() {
    let cached = "[[rules]]\nid = 'call'\nwhen = { tool = ['common', 'safe__common'], params = { '/arguments/kept' = true } }\nthen = { cache = { ttl = '1h' } }\n\
                  [[rules]]\nid = 'read'\nwhen = { method = 'resources/read' }\nthen = { cache = { ttl = '1h' } }\n";
    for order in [
        ["strong", "weak", "refused", "key"],
        ["key", "refused", "weak", "strong"],
        ["refused", "strong", "key", "weak"],
    ] {
        let server = ProtectedServer::start(Demands::TokenOwnAll, None).await.unwrap();
        let gateway = gateway_with(&format!("{}{cached}", exchanging(&server))).await;
        let key = key(&gateway, &["robot", "--subject", "corp:ada"]).await;
        let callers = order.map(|grade| (grade, if grade == "key" { key.clone() } else { graded(grade) }));
        for (round, way) in ["modern", "session", "socket", "modern"].into_iter().enumerate() {
            for (grade, credential) in &callers {
                for (answer, (method, params)) in answers(&gateway, credential, way).await.iter().zip(questions()) {
                    let about = format!("{order:?}, round {round}, {way}: {method} {params}");
                    for other in GRADES.into_iter().filter(|other| other != grade) {
                        assert!(!shows(answer, other), "{about} for {grade} shows what is for {other}: {answer}");
                    }
                    let is_good = GRADES.contains(grade) && params["name"] != "safe__of_strong" || *grade == "strong";
                    assert_eq!(shows(answer, grade), is_good, "{about} for {grade}: {answer}");
                }
            }
        }
        for seen in server.seen().into_iter().filter(|seen| seen.headers.contains_key("mcp-session-id")) {
            let Some(token) = seen.headers.get("authorization") else { continue };
            let session = seen.headers["mcp-session-id"].replace("session-of", "Bearer made-up-for-ada");
            assert_eq!(*token, session, "{} in a session of another token", seen.what);
        }
    }
}

/// Everything that a session's stream for messages of no call brings within a while, or until it brings this.
async fn told(session: &HttpClient, wanted: &str, patience: Duration) -> String {
    let stream = session.open(Method::GET, "/mcp", Bytes::new()).await.unwrap();
    let (mut body, mut told) = (stream.into_body(), String::new());
    let _ = tokio::time::timeout(patience, async {
        while let Some(Ok(frame)) = body.frame().await {
            told.push_str(&String::from_utf8_lossy(frame.data_ref().map_or(&[], |data| data)));
            if told.contains(wanted) {
                return;
            }
        }
    })
    .await;
    told
}

/// What a server tells the owner of a token reaches no other credential of the principal.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_tells_for_one_token_reaches_no_other_credential() {
    let server = ProtectedServer::start(Demands::TokenOwnAll, None).await.unwrap();
    let gateway = gateway_with(&exchanging(&server)).await;
    let key = key(&gateway, &["robot", "--subject", "corp:ada"]).await;
    for (grade, credential) in
        [("strong", graded("strong")), ("weak", graded("weak")), ("refused", graded("refused")), ("key", key)]
    {
        for capabilities in [json!({}), json!({"sampling": {}})] {
            let session = bearer(&gateway, &credential).initialize("2025-11-25", capabilities).await.unwrap();
            session.request(2, "logging/setLevel", json!({"level": "debug"})).await.unwrap();
            session.request(3, "tools/list", json!({})).await.unwrap();
            session.request(4, "tools/call", json!({"name": "safe__common", "arguments": {}})).await.unwrap();
            let (own, is_good) = (format!("inbox of {grade}"), GRADES.contains(&grade));
            let told = told(&session, &own, Duration::from_secs(if is_good { 20 } else { 2 })).await;
            assert_eq!(told.contains(&own), is_good, "{grade} is told: {told}");
            for other in GRADES.into_iter().filter(|other| *other != grade) {
                assert!(!told.contains(&format!("inbox of {other}")), "{grade} is told: {told}");
            }
            session.send(Method::DELETE, "/mcp", Bytes::new()).await.unwrap();
        }
    }
}

/// A session goes on with the next token of its client, and its stream belongs to the token that opened it.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_with_another_token_as_another_user() {
    let server = ProtectedServer::start(Demands::TokenOwnAll, None).await.unwrap();
    let gateway = gateway_with(&exchanging(&server)).await;
    let (strong, weak) = (graded("strong"), graded("weak"));
    let session = bearer(&gateway, &strong).initialize("2025-11-25", json!({})).await.unwrap();
    let stream = session.open(Method::GET, "/mcp", Bytes::new()).await.unwrap();
    let list = session.request(2, "tools/list", json!({})).await.unwrap();
    assert!(list.to_string().contains("of_strong"), "{list}");
    let other = bearer(&gateway, &weak).with("mcp-session-id", session.session_id().unwrap());
    let other = other.with("mcp-protocol-version", "2025-11-25");
    let list = other.request(3, "tools/list", json!({})).await.unwrap();
    assert!(list.to_string().contains("of_weak") && !list.to_string().contains("of_strong"), "{list}");
    let ended = tokio::time::timeout(Duration::from_secs(20), stream.into_body().collect()).await;
    assert!(ended.is_ok(), "the stream of the first token is open to the second");
}
