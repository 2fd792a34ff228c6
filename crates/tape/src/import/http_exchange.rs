//! HTTP requests and responses of any source: extracts their messages and assigns them to conversations.

use super::error::ImportError;
use super::recording::{ImportedMessage, ImportedRecording, MAX_MESSAGES, Side, Talk};
use bytes::Bytes;
use signalbox_engine::fact::{HttpHead, TransportData};
use signalbox_wire::{Envelope, Era, Kind, Limits, Revision, SseDecoder, SseError, header, json, meta, method, scan};
use std::collections::HashSet;
use std::sync::Arc;

/// Name of the event by which HTTP+SSE (2024-11-05) tells a client where to post its messages.
const ENDPOINT: &str = "endpoint";

/// Names and values of headers.
pub(super) type Headers = Vec<(String, String)>;

/// One request with its response.
pub(super) struct HttpExchange {
    /// Transport, `http` or `websocket`.
    pub(super) transport: &'static str,
    /// Method of the request.
    pub(super) method: String,
    /// Path and query of the request.
    pub(super) place: String,
    /// Parties of a conversation without an id: at least the origin of the server.
    pub(super) party: String,
    /// Identity of the conversation, if it is known by other means than headers.
    pub(super) conversation: Option<String>,
    /// Name of the server, if one conversation has several.
    pub(super) server: Option<Arc<str>>,
    /// Headers of the request.
    pub(super) headers: Headers,
    /// Messages that the client sent.
    pub(super) sent: Vec<HttpMessage>,
    /// Response, if there was one.
    pub(super) answer: Option<HttpAnswer>,
}

/// Response to a request.
#[derive(Default)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) headers: Headers,
    /// Messages that the server sent.
    pub(super) said: Vec<HttpMessage>,
    /// Address that its `endpoint` event names.
    pub(super) endpoint: Option<String>,
}

/// One message of either side.
#[derive(Clone, Debug)]
pub(super) struct HttpMessage {
    pub(super) body: Bytes,
    pub(super) event_id: Option<Box<str>>,
    /// Time in nanoseconds since 1970.
    pub(super) at: Option<u64>,
    /// Sort key among all messages of the file. Messages with the same key keep their order.
    pub(super) turn: u64,
}

/// Sorts the messages of all exchanges into a recording.
///
/// # Errors
/// Fails if there are too many messages.
pub(super) fn recording(exchanges: Vec<HttpExchange>) -> Result<ImportedRecording, ImportError> {
    let endpoints: HashSet<String> = exchanges.iter().filter_map(HttpExchange::names_endpoint).collect();
    let mut recording = ImportedRecording::default();
    let mut all = Vec::new();
    for exchange in exchanges {
        if exchange.sent.is_empty() && exchange.answer.as_ref().is_none_or(|answer| answer.said.is_empty()) {
            continue;
        }
        let talk = exchange.talk(&endpoints, &mut recording)?;
        exchange.tell(talk, &mut all);
        if all.len() > MAX_MESSAGES {
            return Err(ImportError::TooMany { what: "messages", most: MAX_MESSAGES });
        }
    }
    all.sort_by_key(|(turn, _)| *turn);
    for (_, heard) in all {
        recording.push(heard)?;
    }
    Ok(recording)
}

impl HttpExchange {
    /// Returns the key of the address to which the response tells the client to post.
    fn names_endpoint(&self) -> Option<String> {
        let named = self.answer.as_ref()?.endpoint.as_deref()?;
        let place = named.get(origin(named).len()..).unwrap_or_default();
        if place.starts_with('/') {
            return Some(self.endpoint_key(place));
        }
        let path = self.place.split('?').next().unwrap_or_default();
        let folder = path.rfind('/').and_then(|end| path.get(..=end)).unwrap_or("/");
        Some(self.endpoint_key(&format!("{folder}{place}")))
    }

    fn endpoint_key(&self, place: &str) -> String {
        format!("endpoint {} {place}", self.party)
    }

    /// Returns the conversation of the exchange: by its own identity, the session header, the endpoint of HTTP+SSE, or
    /// the two parties.
    fn talk(&self, endpoints: &HashSet<String>, recording: &mut ImportedRecording) -> Result<usize, ImportError> {
        let answer = self.answer.as_ref().map(|answer| &answer.headers[..]).unwrap_or_default();
        let sent_id = find(&self.headers, header::SESSION_ID);
        let session = sent_id.or_else(|| find(answer, header::SESSION_ID)).map(str::to_owned);
        let revision = find(&self.headers, header::PROTOCOL_VERSION).map(str::to_owned);
        let revision = revision.or_else(|| self.sent.first().and_then(|said| own_revision(&said.body)));
        let modern = revision.as_deref().and_then(Revision::parse).is_some_and(|known| known.era() == Era::Modern);
        let posted = Some(self.endpoint_key(&self.place)).filter(|key| endpoints.contains(key));
        let endpoint = self.names_endpoint().or(posted);
        let stateless = modern && session.is_none() && endpoint.is_none() && self.conversation.is_none();
        let transport = if endpoint.is_some() { "sse" } else { self.transport };
        let key = match (&self.conversation, &session, endpoint) {
            (Some(known), ..) => known.clone(),
            (None, Some(session), _) => format!("session {session}"),
            (None, None, Some(endpoint)) => endpoint,
            (None, None, None) => format!("{} {}", if stateless { "stateless" } else { "at" }, self.party),
        };
        recording.talk(&key, || Talk { external: session, transport, server: None, revision, stateless })
    }

    /// Returns the number of headers of request and response.
    pub(super) fn headers(&self) -> usize {
        self.headers.len() + self.answer.as_ref().map_or(0, |answer| answer.headers.len())
    }

    /// Iterates over all messages of the exchange.
    pub(super) fn said(&mut self) -> impl Iterator<Item = &mut HttpMessage> {
        self.sent.iter_mut().chain(self.answer.iter_mut().flat_map(|answer| &mut answer.said))
    }

    /// Adds the messages of the exchange, each with its sort key.
    fn tell(self, talk: usize, all: &mut Vec<(u64, ImportedMessage)>) {
        // An answer without an id belongs to the only request that was sent.
        let mut asked = self.sent.iter().filter_map(|said| Envelope::parse(said.body.clone()).ok()?.id());
        let during = asked.next().filter(|_| asked.next().is_none() && self.transport == "http");
        let during = during.map(|id| id.bytes().clone());
        let mut http = Some(HttpHead::of_request(&self.method, &self.place, pairs(&self.headers)));
        for said in self.sent {
            let carried = http.take().map(|head| Arc::new(TransportData { event_id: None, http: Some(head) }));
            let heard = ImportedMessage::new(talk, Side::Client, said.at, said.body);
            all.push((said.turn, ImportedMessage { server: self.server.clone(), carried, ..heard }));
        }
        let Some(answer) = self.answer else { return };
        let mut http = Some(HttpHead::of_answer(answer.status, pairs(&answer.headers)));
        for HttpMessage { body, event_id, at, turn } in answer.said {
            let carried =
                (event_id.is_some() || http.is_some()).then(|| Arc::new(TransportData { event_id, http: http.take() }));
            let (server, during) = (self.server.clone(), during.clone());
            all.push((
                turn,
                ImportedMessage { server, carried, during, ..ImportedMessage::new(talk, Side::Server, at, body) },
            ));
        }
    }
}

impl HttpAnswer {
    /// Takes the body of a response that is not an event stream. An error page counts as the answer too.
    pub(super) fn take_body(&mut self, body: &Bytes, at: Option<u64>, turn: u64) {
        let mut all = messages(body);
        if all.is_empty() && self.status >= 400 {
            all.push(body.clone());
        }
        self.said.extend(all.into_iter().map(|body| HttpMessage { body, event_id: None, at, turn }));
    }
}

/// Incremental reader of the events of a response.
pub(super) struct EventReader(SseDecoder);

impl EventReader {
    pub(super) fn new() -> Self {
        Self(SseDecoder::new(Limits::default().sse_event))
    }

    /// Reads the next bytes, and adds the messages of all completed events to the answer.
    ///
    /// # Errors
    /// Fails if an event was too large; the event is skipped, and the next call continues after it.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        at: Option<u64>,
        turn: u64,
        answer: &mut HttpAnswer,
    ) -> Result<(), SseError> {
        self.0.push(bytes);
        while let Some(event) = self.0.next_event() {
            let event = event?;
            if event.event.as_deref() == Some(ENDPOINT) && answer.endpoint.is_none() {
                answer.endpoint = std::str::from_utf8(&event.data).ok().map(|text| text.trim().to_owned());
                continue;
            }
            let id: Option<Box<str>> = event.id.map(Box::from);
            let said = |body| HttpMessage { body, event_id: id.clone(), at, turn };
            answer.said.extend(messages(&event.data).into_iter().map(said));
        }
        Ok(())
    }
}

/// Returns true if this content type is an event stream.
pub(super) fn is_events(content_type: &str) -> bool {
    content_type.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}

/// Returns the value of a header, unless it is redacted.
pub(super) fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let (_, value) = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(value.trim()).filter(|value| !value.is_empty() && *value != "[redacted]")
}

/// Returns scheme, host and port of an address, or an empty text for a mere path.
pub(super) fn origin(url: &str) -> &str {
    if url.starts_with('/') {
        return "";
    }
    let Some(host) = url.find("://").map(|at| at + 3) else { return "" };
    let end = url.get(host..).and_then(|rest| rest.find(['/', '?', '#'])).map_or(url.len(), |at| host + at);
    url.get(..end).unwrap_or_default()
}

/// Returns the messages in a body, or none if the body is not MCP.
pub(super) fn messages(body: &Bytes) -> Vec<Bytes> {
    if scan(body, &Limits::default()).is_err() {
        return Vec::new();
    }
    let is_message = |body: &Bytes| Envelope::parse(body.clone()).is_ok_and(|message| is_mcp(&message));
    if is_message(body) {
        return vec![body.clone()];
    }
    let elements: Vec<Bytes> = json::elements(body).map(|span| body.slice(span.range())).collect();
    if elements.iter().all(is_message) { elements } else { Vec::new() }
}

fn pairs(headers: &[(String, String)]) -> impl Iterator<Item = (&str, &[u8])> {
    headers.iter().map(|(name, value)| (&**name, value.as_bytes()))
}

/// Returns the revision that a request of the new era names.
fn own_revision(body: &Bytes) -> Option<String> {
    let span = json::path(body, &["params", meta::META, meta::PROTOCOL_VERSION])?;
    json::string(span.of(body)).map(|text| text.into_owned())
}

/// Returns true for methods of MCP. A browser may speak JSON-RPC of other protocols as well, which is left out.
fn is_mcp(message: &Envelope) -> bool {
    match message.kind() {
        Kind::Response | Kind::Error => true,
        Kind::Request | Kind::Notification => {
            message.method().is_some_and(|name| name.contains('/') || method::intern(name).is_some())
        }
    }
}
