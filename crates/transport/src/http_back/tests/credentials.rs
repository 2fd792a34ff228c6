//! Credentials of a protected backend, on every transport: sent with each request, replaced when they are refused.

use super::server::{Act, Opened, SeenRequest, Server, call, json, response, result, until};
use crate::child::recorder::recorder;
use crate::http_back::HttpSpec;
use crate::sse_back::SseConnector;
use crate::ws_back::{WsConnector, WsSpec};
use http::header::{AUTHORIZATION, HeaderValue};
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{AuthHeader, AuthRefusal, BackendCredentials, BoxFuture, Connector as _, RequestIdentity};
use std::sync::{Arc, Mutex};

/// Gives the next of these tokens whenever one is refused, and a fault after the last.
struct Tokens {
    left: Mutex<Vec<&'static str>>,
    refusals: Mutex<Vec<AuthRefusal>>,
}

impl Tokens {
    fn new(tokens: &[&'static str]) -> Arc<Self> {
        Arc::new(Self { left: Mutex::new(tokens.iter().rev().copied().collect()), refusals: Mutex::default() })
    }

    fn next(&self) -> Option<AuthHeader> {
        let token = self.left.lock().unwrap().last().copied()?;
        Some(AuthHeader::new(AUTHORIZATION, HeaderValue::from_static(token)))
    }
}

impl BackendCredentials for Tokens {
    fn current(&self, _: RequestIdentity) -> BoxFuture<Result<Option<AuthHeader>, Fault>> {
        let next = self.next();
        Box::pin(async move { Ok(next) })
    }

    fn renewed(&self, _: RequestIdentity, refusal: AuthRefusal) -> BoxFuture<Result<Option<AuthHeader>, Fault>> {
        self.refusals.lock().unwrap().push(refusal);
        self.left.lock().unwrap().pop();
        let next = self.next().ok_or_else(|| Fault::new(FaultKind::SignInNeeded, "sign in"));
        Box::pin(async move { next.map(Some) })
    }
}

fn judge(seen: &SeenRequest) -> Option<Act> {
    let refused = response("401 Unauthorized", "www-authenticate: Bearer scope=\"a\"\r\n", "bad token made-up-old");
    (seen.header("authorization") != Some("Bearer good")).then_some(Act::Write(refused))
}

#[tokio::test]
async fn a_refused_request_is_sent_again_with_another_credential() {
    let server = Server::start(|seen| judge(seen).unwrap_or_else(|| Act::Write(json(&result(seen.id()))))).await;
    let tokens = Tokens::new(&["Bearer old", "Bearer good"]);
    let mut spec = HttpSpec::new("b", server.url());
    spec.credentials = Some(tokens.clone());
    let mut opened = Opened::to(spec).await;
    assert!(opened.connector.signs_in() && !opened.connector.is_per_user());
    assert_eq!(opened.ask(call(7)).await.received().0, result(7));
    let sent: Vec<_> = server.seen().iter().map(|seen| seen.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["Bearer old", "Bearer good"]);
    let refusals = tokens.refusals.lock().unwrap();
    assert_eq!((refusals[0].status, &refusals[0].challenges), (401, &vec!["Bearer scope=\"a\"".to_owned()]));
}

#[tokio::test]
async fn what_the_port_says_in_the_end_is_what_the_caller_hears_and_no_token_is_repeated() {
    let server = Server::start(|seen| judge(seen).unwrap()).await;
    let mut spec = HttpSpec::new("b", server.url());
    spec.credentials = Some(Tokens::new(&["Bearer made-up-old"]));
    let mut opened = Opened::to(spec.clone()).await;
    opened.ask(call(7)).await.failed(7, FaultKind::SignInNeeded);
    // After the last try the backend's own refusal is told, without what was sent in confidence.
    spec.credentials = Some(Tokens::new(&["Bearer made-up-a", "Bearer made-up-b", "Bearer made-up-old", "Bearer x"]));
    let mut opened = Opened::to(spec).await;
    let text = opened.ask(call(8)).await.failed(8, FaultKind::BackendRefused);
    assert!(text.contains("[hidden]") && !text.contains("made-up-old"), "{text}");
}

#[tokio::test]
async fn the_stream_of_http_sse_and_the_handshake_of_websocket_are_authorized_too() {
    let server = Server::start(|seen| judge(seen).unwrap_or(Act::Close)).await;
    let tokens = Tokens::new(&["Bearer old", "Bearer good"]);
    let mut spec = HttpSpec::new("b", format!("http://{}/sse", server.address));
    spec.credentials = Some(tokens);
    let (events, _recorded) = recorder();
    assert!(SseConnector::new(spec).unwrap().open(events).await.is_err(), "the server says nothing else");
    let mut spec = WsSpec::new("b", format!("ws://{}/ws", server.address));
    spec.credentials = Some(Tokens::new(&["Bearer old", "Bearer good"]));
    let (events, _recorded) = recorder();
    assert!(WsConnector::new(spec).unwrap().open(events).await.is_err(), "the server says nothing else");
    until(|| server.seen().len() == 4).await;
    let sent: Vec<_> = server.seen().iter().map(|seen| seen.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["Bearer old", "Bearer good", "Bearer old", "Bearer good"]);
}
