//! The server over HTTP+SSE: one stream of events to the client, and a path to which it posts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, Request};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::call::{OUTLET, Outlet};
use super::shared::ServerShared;
use super::talk::{Talk, TalkKind};
use super::web::{self, First, WebAnswer, names, plain};
use crate::wire_log::Tap;

/// The path of the stream.
const STREAM: &str = "/sse";
/// The path that messages are posted to.
const MESSAGES: &str = "/messages";

type Pipes = Mutex<HashMap<String, (Arc<Talk>, Outlet, Tap)>>;

/// Serves until the future is dropped.
pub async fn accept(listener: TcpListener, shared: Arc<ServerShared>) {
    let pipes: Arc<Pipes> = Arc::default();
    web::serve(listener, move |request| answer(shared.clone(), pipes.clone(), request)).await;
}

async fn answer(shared: Arc<ServerShared>, pipes: Arc<Pipes>, request: Request<Incoming>) -> WebAnswer {
    match (request.method(), request.uri().path()) {
        (&Method::GET, STREAM) => open(&shared, pipes, &request),
        (&Method::POST, MESSAGES) => post(&shared, &pipes, request).await,
        // A client may try whether there is Streamable HTTP here.
        (_, STREAM | MESSAGES) => plain(405, "GET /sse, then POST to the path it names"),
        _ => plain(404, "not found"),
    }
}

fn open(shared: &Arc<ServerShared>, pipes: Arc<Pipes>, request: &Request<Incoming>) -> WebAnswer {
    if !names(request.headers(), "accept", &["text/event-stream"]) {
        shared.violation("GET /sse without Accept: text/event-stream");
        return plain(406, "Accept must name text/event-stream");
    }
    let (out, queue) = mpsc::channel(OUTLET);
    let talk = Talk::new(shared.clone(), TalkKind::Pipe, Some(out.clone()));
    let tap = shared.tap();
    let id = format!("pipe-{}-{}", std::process::id(), shared.number());
    pipes.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), (talk.clone(), out, tap.clone()));
    let first = format!("event: endpoint\ndata: {MESSAGES}?session={id}\n\n");
    web::events(First::Lines(first), queue, tap, move || {
        pipes.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        talk.end();
    })
}

async fn post(shared: &ServerShared, pipes: &Pipes, request: Request<Incoming>) -> WebAnswer {
    let id = request.uri().query().and_then(|query| query.strip_prefix("session=")).unwrap_or_default().to_owned();
    let found = pipes.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
    let Some((talk, out, tap)) = found else {
        shared.violation("a message for a stream that is not open");
        return plain(404, "no such stream");
    };
    if !names(request.headers(), "content-type", &["application/json"]) {
        shared.violation("Content-Type is not application/json");
        return plain(415, "Content-Type is not application/json");
    }
    let Ok(message) = web::json(request.into_body(), &tap).await else {
        shared.violation("a body that is no JSON");
        return plain(400, "no JSON");
    };
    talk.receive(message, &out);
    plain(202, "Accepted")
}
