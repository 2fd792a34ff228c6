//! Reads one TCP connection: finds the client and the protocol, and extracts the HTTP exchanges.

use super::http_stream::{AnswerHead, Body, HttpStream, RequestHead, Unreadable};
use super::tcp_streams::{Connection, Mark, Piece, Stream};
use super::web_socket::{FrameError, text_messages};
use crate::import::error::ImportError;
use crate::import::http_exchange::{
    EventReader, HttpAnswer, HttpExchange, HttpMessage, find, is_events, messages, origin,
};
use crate::import::left_out::{LeftOut, Missing};
use bytes::Bytes;
use signalbox_wire::Limits;

const METHODS: [&str; 9] = ["GET ", "POST ", "DELETE ", "OPTIONS ", "HEAD ", "PUT ", "PATCH ", "CONNECT ", "TRACE "];
const STATUS_LINE: &[u8] = b"HTTP/1.";
const HTTP2: &[u8] = b"PRI * HTTP/2.0";
/// Kinds of TLS records: change of cipher, alert, handshake, data.
const TLS_RECORDS: std::ops::RangeInclusive<u8> = 0x14..=0x17;
/// Maximum length of an encoding's name that is repeated.
const MAX_NAME: usize = 32;
/// Maximum number of omissions that are listed per connection.
const MAX_LEFT_OUT: usize = 20;
/// Maximum number of headers of exchanges with messages, in the whole file.
const MAX_HEADERS: usize = 4_000_000;

/// Reader of one connection.
pub(super) struct ConnectionReader<'a> {
    number: usize,
    connection: &'a Connection<'a>,
    /// Index of the client's end.
    client: usize,
    missing: Vec<Missing>,
    /// Number of headers of all connections so far.
    headers: &'a mut usize,
}

impl<'a> ConnectionReader<'a> {
    pub(super) fn new(number: usize, connection: &'a Connection<'a>, headers: &'a mut usize) -> Self {
        let client = connection.opened_by.unwrap_or_else(|| {
            let asks = |end: usize| connection.ways[end].pieces().iter().any(|piece| begins_request(piece.data));
            usize::from(!asks(0) && asks(1))
        });
        Self { number, connection, client, missing: Vec::new(), headers }
    }

    /// Returns the omissions of this connection.
    pub(super) fn left_out(self) -> impl Iterator<Item = LeftOut> {
        let [client, server] = [self.connection.ends[self.client], self.connection.ends[1 - self.client]];
        let number = self.number;
        self.missing.into_iter().map(move |what| LeftOut::Connection { number, client, server, what })
    }

    /// Adds the exchanges of this connection that may be MCP.
    ///
    /// # Errors
    /// Fails if the file has too many headers.
    pub(super) fn read(&mut self, exchanges: &mut Vec<HttpExchange>) -> Result<(), ImportError> {
        let (asks, answers) = (&self.connection.ways[self.client], &self.connection.ways[1 - self.client]);
        let first = asks.pieces().first().or(answers.pieces().first());
        if first.is_some_and(|piece| begins_tls(piece.data)) {
            self.missing.push(Missing::Encrypted);
            return Ok(());
        }
        let requests = asks.join(|piece| begins_request(piece.data));
        if requests.bytes.starts_with(HTTP2) {
            self.missing.push(Missing::Http2);
            return Ok(());
        }
        if let (Some(packet), true) = (requests.lost_before, requests.bytes.is_empty())
            && asks.pieces().iter().any(|piece| begins_request(piece.data))
        {
            self.missing.push(Missing::AfterLoss { packet });
        }
        if !begins_request(&requests.bytes) {
            return Ok(());
        }
        // If the capture starts in the middle of a connection, the first answers belong to requests before it.
        let began = requests.mark_before(1).packet;
        let answers =
            answers.join(|piece: &Piece<'_>| piece.mark.packet > began && piece.data.starts_with(STATUS_LINE));
        let before = exchanges.len();
        self.exchanges(&requests, &answers, exchanges)?;
        // A connection without MCP is not worth reporting.
        if exchanges.len() == before && self.missing.is_empty() {
            return Ok(());
        }
        if requests.begins_late || answers.begins_late {
            self.missing.push(Missing::Beginning);
        }
        for packet in [requests.lost_before, answers.lost_before].into_iter().flatten() {
            self.missing.push(Missing::AfterLoss { packet });
        }
        self.missing.truncate(MAX_LEFT_OUT);
        Ok(())
    }

    fn exchanges(
        &mut self,
        requests: &Stream,
        answers: &Stream,
        exchanges: &mut Vec<HttpExchange>,
    ) -> Result<(), ImportError> {
        let (mut asked, mut answered) = (HttpStream::new(requests), HttpStream::new(answers));
        let mut answers_end = false;
        loop {
            let (head, body) = match asked.request() {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.unreadable(error);
                    return Ok(());
                }
            };
            let sent_by = asked.mark();
            let answer = if answers_end { Ok(None) } else { answered.answer(&head.method) };
            let answer = answer.unwrap_or_else(|error| {
                self.unreadable(error);
                None
            });
            answers_end |= answer.is_none();
            if let Some((answer, _)) = &answer
                && (answer.status == 101 || head.method == "CONNECT")
            {
                exchanges.extend(self.web_socket(head, answer, &asked, &answered));
                return Ok(());
            }
            let exchange = self.exchange(head, &body, sent_by, &asked, answer.map(|answer| (answer, &answered)));
            let headers = exchange.as_ref().map_or(0, HttpExchange::headers);
            *self.headers = self.headers.saturating_add(headers);
            if *self.headers > MAX_HEADERS {
                return Err(ImportError::TooMany { what: "HTTP headers", most: MAX_HEADERS });
            }
            exchanges.extend(exchange);
        }
    }

    /// Returns one request with its answer, if it may be MCP.
    fn exchange(
        &mut self,
        head: RequestHead,
        body: &Body,
        sent_by: Mark,
        asked: &HttpStream<'_>,
        answer: Option<((AnswerHead, Body), &HttpStream<'_>)>,
    ) -> Option<HttpExchange> {
        let posted = head.method == "POST";
        if posted && let Some(missing) = encoded(&head.headers, sent_by).filter(|_| is_json(&head.headers)) {
            self.missing.push(missing);
            return None;
        }
        let sent = match posted && body.whole {
            true => self.body(body, asked.stream(), sent_by).map(|body| messages(&body)).unwrap_or_default(),
            false => Vec::new(),
        };
        let has_events = |head: &AnswerHead| is_events(find(&head.headers, "content-type").unwrap_or_default());
        let events = head.method == "GET" && answer.as_ref().is_some_and(|((head, _), _)| has_events(head));
        if sent.is_empty() && !events {
            return None;
        }
        let mut exchange = self.of_head(head, "http");
        exchange.sent = sent.into_iter().map(|body| said(body, sent_by)).collect();
        exchange.answer = answer.map(|((head, body), stream)| {
            let events = has_events(&head);
            self.answer(head, &body, events, stream)
        });
        Some(exchange)
    }

    fn of_head(&self, head: RequestHead, transport: &'static str) -> HttpExchange {
        let (client, server) = (self.connection.ends[self.client], self.connection.ends[1 - self.client]);
        let origin = origin(&head.target);
        HttpExchange {
            transport,
            method: head.method,
            place: head.target.get(origin.len()..).unwrap_or_default().to_owned(),
            party: format!("{} {server} {origin}", client.ip()),
            conversation: None,
            server: None,
            headers: head.headers,
            sent: Vec::new(),
            answer: None,
        }
    }

    fn answer(&mut self, head: AnswerHead, body: &Body, events: bool, stream: &HttpStream<'_>) -> HttpAnswer {
        let mark = stream.mark();
        let encoded = encoded(&head.headers, mark);
        let mut answer = HttpAnswer { status: head.status, headers: head.headers, ..HttpAnswer::default() };
        if body.len() == 0 {
            return answer;
        }
        if let Some(missing) = encoded {
            self.missing.push(missing);
        } else if events {
            let mut reader = EventReader::new();
            for (bytes, mark) in body.parts.iter().flat_map(|part| stream.stream().cut(part.clone())) {
                // After an event that is too large, the reader continues with the next one.
                let mut next = bytes;
                while reader.push(next, mark.at, mark.packet, &mut answer).is_err() {
                    self.missing.push(Missing::TooLarge { packet: mark.packet });
                    next = &[];
                }
            }
        } else if body.whole
            && let Some(bytes) = self.body(body, stream.stream(), mark)
        {
            answer.take_body(&bytes, mark.at, mark.packet);
        }
        answer
    }

    /// Returns the bytes of a body, unless it is too large.
    fn body(&mut self, body: &Body, stream: &Stream, mark: Mark) -> Option<Bytes> {
        if body.len() > Limits::default().message {
            self.missing.push(Missing::TooLarge { packet: mark.packet });
            return None;
        }
        Some(body.bytes(stream))
    }

    /// Returns the messages of both sides of a WebSocket, which starts at the current positions of both streams.
    fn web_socket(
        &mut self,
        head: RequestHead,
        answer: &AnswerHead,
        asked: &HttpStream<'_>,
        answered: &HttpStream<'_>,
    ) -> Option<HttpExchange> {
        if !find(&answer.headers, "upgrade").is_some_and(|name| name.eq_ignore_ascii_case("websocket")) {
            return None;
        }
        let mut exchange = self.of_head(head, "websocket");
        exchange.conversation = Some(format!("socket {}", self.number));
        exchange.sent = self.frames(asked);
        let (status, said) = (answer.status, self.frames(answered));
        exchange.answer = Some(HttpAnswer { status, headers: answer.headers.clone(), said, endpoint: None });
        Some(exchange)
    }

    fn frames(&mut self, stream: &HttpStream<'_>) -> Vec<HttpMessage> {
        let mut found = Vec::new();
        match text_messages(stream.stream(), stream.position(), &mut found) {
            Ok(()) => {}
            Err(FrameError::Extension(mark)) => {
                let why = "a WebSocket frame is compressed or of another extension";
                self.missing.push(Missing::Unreadable { packet: mark.packet, why });
            }
            Err(FrameError::TooLarge(mark)) => self.missing.push(Missing::TooLarge { packet: mark.packet }),
        }
        let parted = found.iter().flat_map(|(body, mark)| messages(body).into_iter().map(|body| said(body, *mark)));
        parted.collect()
    }

    fn unreadable(&mut self, Unreadable { packet, why }: Unreadable) {
        self.missing.push(Missing::Unreadable { packet, why });
    }
}

fn said(body: Bytes, mark: Mark) -> HttpMessage {
    HttpMessage { body, event_id: None, at: mark.at, turn: mark.packet }
}

fn begins_request(data: &[u8]) -> bool {
    METHODS.iter().any(|method| data.starts_with(method.as_bytes())) || data.starts_with(HTTP2)
}

fn begins_tls(data: &[u8]) -> bool {
    matches!(data, [kind, 3, minor, ..] if TLS_RECORDS.contains(kind) && *minor <= 4)
}

fn is_json(headers: &[(String, String)]) -> bool {
    find(headers, "content-type").is_some_and(|kind| kind.to_ascii_lowercase().contains("json"))
}

/// Reports a body in an unsupported encoding.
fn encoded(headers: &[(String, String)], mark: Mark) -> Option<Missing> {
    let encoding = find(headers, "content-encoding").filter(|name| !name.eq_ignore_ascii_case("identity"))?;
    Some(Missing::Encoded { packet: mark.packet, encoding: encoding.chars().take(MAX_NAME).collect() })
}
