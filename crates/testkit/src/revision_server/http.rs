//! The server over Streamable HTTP: with sessions from 2025-03-26 to 2025-11-25, without in 2026-07-28.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, HeaderValue, Method, Request};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::call::OUTLET;
use super::fault::RpcFault;
use super::oddities;
use super::rules::PROBE;
use super::rules_modern;
use super::shared::ServerShared;
use super::talk::{Talk, TalkKind, TalkPhase};
use super::web::{self, First, WebAnswer, header, names, plain};
use crate::revision::Revision;
use crate::wire_log::Tap;

/// The path the server answers on.
const PATH: &str = "/mcp";
/// Most sessions at once.
const MAX_SESSIONS: usize = 10_000;
const SESSION: &str = "mcp-session-id";

/// The endpoint.
struct Endpoint {
    shared: Arc<ServerShared>,
    /// The conversation with everyone, in the new era.
    everyone: Arc<Talk>,
    sessions: Mutex<HashMap<String, Arc<Talk>>>,
}

/// Serves until the future is dropped.
pub async fn accept(listener: TcpListener, shared: Arc<ServerShared>) {
    let everyone = Talk::new(shared.clone(), TalkKind::Stateless, None);
    let endpoint = Arc::new(Endpoint { shared, everyone, sessions: Mutex::default() });
    web::serve(listener, move |request| endpoint.clone().answer(request)).await;
}

impl Endpoint {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> WebAnswer {
        if request.uri().path() != PATH {
            return plain(404, "not found");
        }
        let modern = self.shared.revision.modern();
        let (head, body) = request.into_parts();
        match head.method {
            Method::POST => {
                let tap = self.shared.tap();
                let Ok(message) = web::json(body, &tap).await else {
                    self.shared.violation("a body that is no JSON");
                    return web::message(400, &RpcFault::new(-32700, "Parse error").reply(&Value::Null), &tap);
                };
                if !names(&head.headers, "content-type", &["application/json"]) {
                    return self.refuse(415, "Content-Type is not application/json", &tap);
                }
                if !names(&head.headers, "accept", &["application/json", "text/event-stream"]) {
                    return self.refuse(406, "Accept must name both application/json and text/event-stream", &tap);
                }
                if modern {
                    self.stateless(&head.headers, message, tap).await
                } else {
                    self.post(&head.headers, message, tap).await
                }
            }
            Method::GET | Method::DELETE if modern => plain(405, "POST only"),
            Method::GET => self.general(&head.headers),
            Method::DELETE => self.delete(&head.headers),
            _ => plain(405, "POST, GET and DELETE only"),
        }
    }

    fn refuse(&self, status: u16, what: &'static str, tap: &Tap) -> WebAnswer {
        self.shared.violation(what);
        web::message(status, &RpcFault::new(-32000, what).reply(&Value::Null), tap)
    }

    async fn stateless(&self, headers: &HeaderMap, message: Value, tap: Tap) -> WebAnswer {
        if let Err(broken) = rules_modern::headers(headers, &message) {
            let method = message["method"].as_str().unwrap_or_default();
            let fault = broken.told(&self.shared, method);
            return web::message(fault.status, &fault.reply(&message["id"]), &tap);
        }
        exchange(&self.everyone, message, tap).await
    }

    /// The session of a request; `Err` is the refusal.
    fn session(&self, headers: &HeaderMap, method: &str, tap: &Tap) -> Result<Arc<Talk>, Box<WebAnswer>> {
        let Some(id) = header(headers, SESSION) else {
            let fault = RpcFault::new(-32000, "Bad Request: Mcp-Session-Id header is required");
            if method != PROBE {
                self.shared.violation(&format!("{method}: no session id"));
            }
            return Err(Box::new(web::message(400, &fault.reply(&Value::Null), tap)));
        };
        let session = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let Some(session) = session else {
            let fault = RpcFault::new(-32001, "Session not found");
            return Err(Box::new(web::message(404, &fault.reply(&Value::Null), tap)));
        };
        let revision = self.shared.revision;
        match header(headers, "mcp-protocol-version") {
            Some(version) if version == revision.name() => Ok(session),
            _ if revision < Revision::R3 => Ok(session),
            Some(_) => Err(Box::new(self.refuse(400, "MCP-Protocol-Version is not the agreed one", tap))),
            None => Err(Box::new(self.refuse(400, "MCP-Protocol-Version is missing", tap))),
        }
    }

    async fn post(&self, headers: &HeaderMap, message: Value, tap: Tap) -> WebAnswer {
        if message["method"] == "initialize" {
            return self.initialize(headers, message, tap).await;
        }
        let method = message["method"].as_str().unwrap_or("an answer");
        match self.session(headers, method, &tap) {
            Ok(talk) => exchange(&talk, message, tap).await,
            Err(refusal) => *refusal,
        }
    }

    async fn initialize(&self, headers: &HeaderMap, message: Value, tap: Tap) -> WebAnswer {
        if headers.contains_key(SESSION) {
            return self.refuse(400, "initialize with a session id", &tap);
        }
        if self.sessions.lock().unwrap_or_else(PoisonError::into_inner).len() >= MAX_SESSIONS {
            return plain(503, "too many sessions");
        }
        let talk = Talk::new(self.shared.clone(), TalkKind::Session, None);
        let id = format!("session-{}-{}", std::process::id(), self.shared.number());
        let mut answer = exchange(&talk, message, tap).await;
        if talk.phase() == TalkPhase::Answered
            && let Ok(value) = HeaderValue::from_str(&id)
        {
            answer.headers_mut().insert(SESSION, value);
            self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(id, talk);
        }
        answer
    }

    fn general(&self, headers: &HeaderMap) -> WebAnswer {
        let tap = self.shared.tap();
        if !names(headers, "accept", &["text/event-stream"]) {
            return self.refuse(406, "Accept must name text/event-stream", &tap);
        }
        let talk = match self.session(headers, "GET", &tap) {
            Ok(talk) => talk,
            Err(refusal) => return *refusal,
        };
        if talk.has_general() {
            return plain(409, "there is one such stream already");
        }
        let (out, queue) = mpsc::channel(OUTLET);
        talk.set_general(out);
        // A comment, so that the client sees the stream begin.
        web::events(First::Lines(": open\n\n".to_owned()), queue, tap, || {})
    }

    fn delete(&self, headers: &HeaderMap) -> WebAnswer {
        if let Err(refusal) = self.session(headers, "DELETE", &self.shared.tap()) {
            return *refusal;
        }
        let id = header(headers, SESSION).unwrap_or_default();
        let ended = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(talk) = ended {
            talk.end();
        }
        plain(200, "")
    }
}

/// Takes a message and answers with what it sets off: nothing, one message, or events.
async fn exchange(talk: &Arc<Talk>, message: Value, tap: Tap) -> WebAnswer {
    let streamed = message.is_array() || oddities::streams(&message);
    let request = message["method"].is_string() && message.get("id").is_some();
    let (out, mut queue) = mpsc::channel(OUTLET);
    talk.receive(message, &out);
    drop(out);
    let Some(first) = queue.recv().await else {
        // A request without an answer was cancelled.
        return if request { web::events(First::Nothing, queue, tap, || {}) } else { plain(202, "") };
    };
    let answer = first.message.get("method").is_none();
    if answer && !streamed {
        return web::message(first.status, &first.message, &tap);
    }
    web::events(First::Message(first.message), queue, tap, || {})
}
