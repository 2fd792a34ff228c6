//! HTTP Archive 1.2: the own export of Signalbox, and recordings of MCP over HTTP by browsers and proxies. Requests
//! that are not MCP are left out.

use super::error::ImportError;
use super::http_exchange::{
    self, EventReader, Headers, HttpAnswer, HttpExchange, HttpMessage, is_events, messages, origin,
};
use super::recording::ImportedRecording;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use signalbox_wire::timestamp;
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
    /// Duration of the exchange, in milliseconds.
    #[serde(default)]
    time: Option<f64>,
    request: Request,
    #[serde(default)]
    response: Option<Response>,
    /// Member that only the export of Signalbox has.
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

pub(super) fn read(file: &Bytes) -> Result<ImportedRecording, ImportError> {
    let text = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let har: Har = serde_json::from_slice(text)
        .map_err(|error| ImportError::At { place: format!("line {}", error.line()), why: error.to_string() })?;
    let reader = Reader { latin: har.log.creator.name == "mitmproxy" };
    let mut all = Vec::new();
    for (index, exchange) in har.log.entries.into_iter().enumerate() {
        let read = reader.exchange(exchange);
        all.extend(read.map_err(|why| ImportError::At { place: format!("log.entries[{index}]"), why: why.0 })?);
    }
    // If some messages have no time, only the order of the file is reliable.
    let timed = all.iter_mut().flat_map(HttpExchange::said).all(|said| said.at.is_some());
    for said in all.iter_mut().flat_map(HttpExchange::said) {
        said.turn = said.at.filter(|_| timed).unwrap_or_default();
    }
    http_exchange::recording(all)
}

/// Description of a mistake in an entry.
struct Wrong(String);

struct Reader {
    /// True if each byte of UTF-8 text was written as a character of its own, which mitmproxy does if no charset is
    /// named.
    latin: bool,
}

impl Reader {
    /// Returns the exchange of an entry, if it may be MCP.
    fn exchange(&self, exchange: Exchange) -> Result<Option<HttpExchange>, Wrong> {
        let Exchange { request, response, .. } = exchange;
        let sent = match &request.post_data {
            Some(body) if request.method.eq_ignore_ascii_case("POST") => messages(&self.body(body)?),
            _ => Vec::new(),
        };
        let events = request.method.eq_ignore_ascii_case("GET") && response.as_ref().is_some_and(Response::has_events);
        if sent.is_empty() && !events {
            return Ok(None);
        }
        let began = timestamp::parse_rfc3339(&exchange.started_date_time);
        let ended = began.map(|at| at.saturating_add((exchange.time.unwrap_or(0.0).max(0.0) * 1e6) as u64));
        let said = |body| HttpMessage { body, event_id: None, at: began, turn: 0 };
        let party = origin(&request.url).to_owned();
        Ok(Some(HttpExchange {
            transport: "http",
            method: request.method,
            place: request.url.get(party.len()..).unwrap_or_default().to_owned(),
            party,
            conversation: exchange.session.map(|number| format!("number {number}")),
            server: exchange.backend.as_deref().map(Arc::from),
            headers: pairs(request.headers),
            sent: sent.into_iter().map(said).collect(),
            answer: response.map(|response| self.answer(response, ended)).transpose()?,
        }))
    }

    fn answer(&self, response: Response, at: Option<u64>) -> Result<HttpAnswer, Wrong> {
        let (body, events) = (self.body(&response.content)?, response.has_events());
        let status = u16::try_from(response.status).unwrap_or_default();
        let mut answer = HttpAnswer { status, headers: pairs(response.headers), ..HttpAnswer::default() };
        if events {
            let mut reader = EventReader::new();
            // A file may lack the empty line that ends the last event.
            for part in [&body[..], b"\n\n"] {
                reader.push(part, at, 0, &mut answer).map_err(|error| Wrong(error.to_string()))?;
            }
        } else {
            answer.take_body(&body, at, 0);
        }
        Ok(answer)
    }

    fn body(&self, content: &Content) -> Result<Bytes, Wrong> {
        let text = content.text.as_deref().unwrap_or_default();
        if content.encoding.as_deref() == Some("base64") {
            let bytes = STANDARD.decode(text).map_err(|error| Wrong(format!("a body in base64: {error}")))?;
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

impl Response {
    fn has_events(&self) -> bool {
        let of_header = self.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-type"));
        let of_header = of_header.map(|header| &*header.value).filter(|value| !value.trim().is_empty());
        is_events(of_header.or(self.content.mime_type.as_deref()).unwrap_or_default())
    }
}

fn pairs(headers: Vec<Header>) -> Headers {
    headers.into_iter().map(|header| (header.name, header.value)).collect()
}
