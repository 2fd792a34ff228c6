//! HTTP Archive 1.2: our own export, and what browsers and proxies write of MCP over HTTP. Requests that are not MCP are
//! left out.

use super::error::ImportError;
use super::recording::{Heard, Recording, Side, Talk};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use signalbox_engine::fact::{Carried, HttpHead};
use signalbox_wire::{Envelope, Era, Kind, Limits, Revision, SseDecoder, header, json, meta, method, scan, timestamp};
use std::sync::Arc;

#[derive(Deserialize)]
struct Har {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    #[serde(default)]
    creator: Creator,
    entries: Vec<Exchange>,
}

#[derive(Deserialize, Default)]
struct Creator {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exchange {
    #[serde(default)]
    started_date_time: String,
    /// In milliseconds.
    #[serde(default)]
    time: Option<f64>,
    request: Request,
    #[serde(default)]
    response: Option<Response>,
    /// What our own export tells besides.
    #[serde(rename = "_session", default)]
    session: Option<u64>,
    #[serde(rename = "_backend", default)]
    backend: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    headers: Vec<Header>,
    #[serde(default)]
    post_data: Option<Content>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    status: i64,
    #[serde(default)]
    headers: Vec<Header>,
    #[serde(default)]
    content: Content,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    value: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Content {
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    encoding: Option<String>,
}

pub(super) fn read(file: &Bytes) -> Result<Recording, ImportError> {
    let text = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let har: Har = serde_json::from_slice(text)
        .map_err(|error| ImportError::At { place: format!("line {}", error.line()), why: error.to_string() })?;
    let mut reader = Reader { recording: Recording::default(), latin: har.log.creator.name == "mitmproxy" };
    for (index, exchange) in har.log.entries.iter().enumerate() {
        reader.exchange(exchange).map_err(|error| match error {
            Wrong::Import(error) => error,
            Wrong::Here(why) => ImportError::At { place: format!("log.entries[{index}]"), why },
        })?;
    }
    let mut recording = reader.recording;
    if recording.heard.iter().all(|heard| heard.at.is_some()) {
        recording.heard.sort_by_key(|heard| heard.at);
    }
    Ok(recording)
}

enum Wrong {
    Import(ImportError),
    Here(String),
}

impl From<ImportError> for Wrong {
    fn from(error: ImportError) -> Self {
        Self::Import(error)
    }
}

struct Reader {
    recording: Recording,
    /// Text was written as if each byte of its UTF-8 were a letter, as mitmproxy does where no charset is named.
    latin: bool,
}

impl Reader {
    fn exchange(&mut self, exchange: &Exchange) -> Result<(), Wrong> {
        let sent = match &exchange.request.post_data {
            Some(body) if exchange.request.method.eq_ignore_ascii_case("POST") => messages(&self.body(body)?),
            _ => Vec::new(),
        };
        let events = exchange.request.method.eq_ignore_ascii_case("GET") && exchange.answers_with_events();
        if sent.is_empty() && !events {
            return Ok(());
        }
        let answered = match &exchange.response {
            Some(response) => self.answers(response)?,
            None => Vec::new(),
        };
        if sent.is_empty() && answered.is_empty() {
            return Ok(());
        }
        let began = timestamp::parse_rfc3339(&exchange.started_date_time);
        let ended = began.map(|at| at.saturating_add((exchange.time.unwrap_or(0.0).max(0.0) * 1e6) as u64));
        let talk = self.talk(exchange, &sent)?;
        let server: Option<Arc<str>> = exchange.backend.as_deref().map(Arc::from);
        // An answer without an id of its own is to the only request that was sent.
        let mut asked = sent.iter().filter_map(|body| Envelope::parse(body.clone()).ok()?.id());
        let during = asked.next().filter(|_| asked.next().is_none()).map(|id| id.bytes().clone());
        let mut carried = Some(Arc::new(Carried { event_id: None, http: Some(exchange.request.head()) }));
        for body in sent {
            let server = server.clone();
            let heard = Heard::new(talk, Side::Client, began, body);
            self.recording.push(Heard { server, carried: carried.take(), ..heard })?;
        }
        let mut http = exchange.response.as_ref().map(Response::head);
        for Answer { body, event_id } in answered {
            let carried =
                (event_id.is_some() || http.is_some()).then(|| Arc::new(Carried { event_id, http: http.take() }));
            let (server, during) = (server.clone(), during.clone());
            self.recording.push(Heard { server, carried, during, ..Heard::new(talk, Side::Server, ended, body) })?;
        }
        Ok(())
    }

    /// The conversation that an exchange belongs to: by the session that our export names, by the session header, by the
    /// place of the server.
    fn talk(&mut self, exchange: &Exchange, sent: &[Bytes]) -> Result<usize, ImportError> {
        let answer = exchange.response.as_ref().map(|response| &response.headers[..]).unwrap_or_default();
        let sent_id = find(&exchange.request.headers, header::SESSION_ID);
        let session = sent_id.or_else(|| find(answer, header::SESSION_ID)).map(str::to_owned);
        let revision = find(&exchange.request.headers, header::PROTOCOL_VERSION).map(str::to_owned);
        let revision = revision.or_else(|| sent.first().and_then(own_revision));
        let modern = revision.as_deref().and_then(Revision::parse).is_some_and(|known| known.era() == Era::Modern);
        let stateless = modern && session.is_none() && exchange.session.is_none();
        let origin = origin(&exchange.request.url);
        let key = match (exchange.session, &session) {
            (Some(number), _) => format!("number {number}"),
            (None, Some(session)) => format!("session {session}"),
            (None, None) => format!("{} {origin}", if stateless { "stateless" } else { "at" }),
        };
        self.recording.talk(&key, || Talk { external: session, transport: "http", server: None, revision, stateless })
    }

    fn answers(&self, response: &Response) -> Result<Vec<Answer>, Wrong> {
        let body = self.body(&response.content)?;
        if is_events(response) {
            let mut decoder = SseDecoder::new(Limits::default().sse_event);
            decoder.push(&body);
            // A file may lack the empty line that ends the last event.
            decoder.push(b"\n\n");
            let mut all = Vec::new();
            while let Some(event) = decoder.next_event() {
                let event = event.map_err(|error| Wrong::Here(error.to_string()))?;
                let id = event.id.map(Box::from);
                all.extend(messages(&event.data).into_iter().map(|body| Answer { body, event_id: id.clone() }));
            }
            return Ok(all);
        }
        let mut all = messages(&body);
        // A page that tells of an error is the answer too.
        if all.is_empty() && response.status >= 400 {
            all.push(body);
        }
        Ok(all.into_iter().map(|body| Answer { body, event_id: None }).collect())
    }

    fn body(&self, content: &Content) -> Result<Bytes, Wrong> {
        let text = content.text.as_deref().unwrap_or_default();
        if content.encoding.as_deref() == Some("base64") {
            let bytes = STANDARD.decode(text).map_err(|error| Wrong::Here(format!("a body in base64: {error}")))?;
            return Ok(bytes.into());
        }
        let bytes: Option<Vec<u8>> = text.chars().map(|letter| u8::try_from(u32::from(letter)).ok()).collect();
        if let (true, Some(bytes)) = (self.latin && !text.is_ascii(), bytes)
            && std::str::from_utf8(&bytes).is_ok()
        {
            return Ok(bytes.into());
        }
        Ok(Bytes::copy_from_slice(text.as_bytes()))
    }
}

struct Answer {
    body: Bytes,
    event_id: Option<Box<str>>,
}

impl Exchange {
    fn answers_with_events(&self) -> bool {
        self.response.as_ref().is_some_and(is_events)
    }
}

impl Request {
    fn head(&self) -> HttpHead {
        let place = self.url.get(origin(&self.url).len()..).unwrap_or_default();
        HttpHead::of_request(&self.method, place, pairs(&self.headers))
    }
}

impl Response {
    fn head(&self) -> HttpHead {
        HttpHead::of_answer(u16::try_from(self.status).unwrap_or_default(), pairs(&self.headers))
    }
}

fn pairs(headers: &[Header]) -> impl Iterator<Item = (&str, &[u8])> {
    headers.iter().map(|header| (&*header.name, header.value.as_bytes()))
}

fn is_events(response: &Response) -> bool {
    let of_header = find(&response.headers, "content-type").map(str::to_owned);
    let kind = of_header.or_else(|| response.content.mime_type.clone()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}

/// The value of a header, unless it was taken out.
fn find<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    Some(header.value.trim()).filter(|value| !value.is_empty() && *value != "[redacted]")
}

/// Scheme, host and port of an address.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(host..).and_then(|rest| rest.find(['/', '?', '#'])).map_or(url.len(), |at| host + at);
    url.get(..end).unwrap_or_default()
}

/// The revision that a request of the new era names itself.
fn own_revision(body: &Bytes) -> Option<String> {
    let span = json::path(body, &["params", meta::META, meta::PROTOCOL_VERSION])?;
    json::string(span.of(body)).map(|text| text.into_owned())
}

/// The messages in a body: none if it is something else.
fn messages(body: &Bytes) -> Vec<Bytes> {
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

/// JSON-RPC of other protocols, which a browser may speak as well, is left out by its methods.
fn is_mcp(message: &Envelope) -> bool {
    match message.kind() {
        Kind::Response | Kind::Error => true,
        Kind::Request | Kind::Notification => {
            message.method().is_some_and(|name| name.contains('/') || method::intern(name).is_some())
        }
    }
}
