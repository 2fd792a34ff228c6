//! Analyses conversations over HTTP: bodies, and the events of streams.

use super::TapCounts;
use super::conversation::TapSide;
use super::feed::{Tap, TapLoss};
use super::http_event::{HttpEvent, HttpStep, ObservedRequest, ObservedResponse};
use super::observed_sessions::ObservedSessions;
use bytes::{Bytes, BytesMut};
use signalbox_engine::fact::{HttpHead, Outcome, TransportData};
use signalbox_engine::keys::KeyMap;
use signalbox_engine::{Caller, ExchangeId, Fact};
use signalbox_wire::{Message, SseDecoder, SseEvent};
use std::sync::Arc;
use std::time::Instant;

/// Maximum size of all unfinished bodies. Beyond it, bodies are recorded in pieces.
pub const MAX_GATHERED: usize = 64 * 1024 * 1024;
/// Status that the client of a proxy gets if the server is unreachable.
const BAD_GATEWAY: u16 = 502;
/// Event in which HTTP+SSE names the address to post to.
const ENDPOINT: &str = "endpoint";

/// Follows all sessions of one endpoint.
#[derive(Debug)]
pub struct HttpTap {
    max: usize,
    calls: KeyMap<u64, Call>,
    sessions: ObservedSessions,
    buffered: usize,
}

/// A request and its answer.
#[derive(Debug)]
struct Call {
    session_key: u64,
    endpoint: bool,
    closes: bool,
    status: u16,
    from_client: BodyBuffer,
    from_server: BodyBuffer,
    events: Option<SseDecoder>,
    /// Exchange opened by the request's body.
    exchange: Option<ExchangeId>,
    /// Heads of request and answer, until they are recorded with the first message of each.
    heads: [Option<Box<HttpHead>>; 2],
    /// Method and address of the request, as text.
    request_line: String,
}

/// A message or a piece of one, as received.
struct ReceivedMessage {
    bytes: Bytes,
    whole: bool,
    event_id: Option<String>,
}

impl Call {
    fn body(&mut self, side: TapSide) -> &mut BodyBuffer {
        match side {
            TapSide::Client => &mut self.from_client,
            TapSide::Server => &mut self.from_server,
        }
    }
}

impl HttpTap {
    /// Creates a tap for conversations with `backend`. Bodies longer than `max_body` are recorded in pieces.
    #[must_use]
    pub fn new(backend: Arc<str>, caller: Caller, max_body: usize) -> Self {
        let sessions = ObservedSessions::new(backend, caller);
        Self { max: max_body, calls: KeyMap::default(), sessions, buffered: 0 }
    }

    fn on_request(&mut self, at: Instant, number: u64, request: ObservedRequest, out: &mut Vec<Fact>) {
        // A session is identified by its header; in HTTP+SSE by the address that its stream named.
        let named = request.session.as_deref().map(session_name);
        let posted = place_name(&request.place);
        let name = named.as_deref().or_else(|| self.sessions.has_name(&posted).then_some(&*posted));
        let session_key = self.sessions.enter(at, name, out);
        if let (Some(named), Some(session)) = (&named, &request.session)
            && !self.sessions.has_name(named)
        {
            self.on_session_id(at, session_key, session, out);
        }
        let call = Call {
            session_key,
            endpoint: request.endpoint,
            closes: request.closes,
            status: 0,
            from_client: BodyBuffer::default(),
            from_server: BodyBuffer::default(),
            events: None,
            exchange: None,
            request_line: request.head.as_deref().map(words).unwrap_or_default(),
            heads: [request.head, None],
        };
        self.calls.insert(number, call);
    }

    fn on_response(&mut self, at: Instant, number: u64, response: &ObservedResponse, out: &mut Vec<Fact>) {
        // A server may answer before it has read the whole request; record the request first all the same.
        self.finish_body(at, number, TapSide::Client, out);
        let Some(call) = self.calls.get_mut(&number) else { return };
        call.status = response.status;
        call.heads[1].clone_from(&response.head);
        call.events = response.events.then(|| SseDecoder::new(self.max));
        let session_key = call.session_key;
        if let Some(session) = &response.session
            && !self.sessions.has_name(&session_name(session))
        {
            self.on_session_id(at, session_key, session, out);
        }
    }

    fn on_session_id(&mut self, at: Instant, session_key: u64, session: &str, out: &mut Vec<Fact>) {
        self.sessions.name(session_key, session_name(session));
        if let Some(conversation) = self.sessions.get(session_key) {
            conversation.name(at, session, out);
        }
    }

    fn body(&mut self, at: Instant, number: u64, side: TapSide, bytes: &Bytes, out: &mut Vec<Fact>) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        if side == TapSide::Server
            && let Some(events) = &mut call.events
        {
            events.push(bytes);
            return self.events(at, number, out);
        }
        let body = call.body(side);
        let piece = if body.len() + bytes.len() > self.max || self.buffered + bytes.len() > MAX_GATHERED {
            self.buffered -= body.len();
            body.piece()
        } else {
            None
        };
        self.buffered += bytes.len();
        body.push(bytes);
        if let Some(piece) = piece {
            self.record(at, number, side, ReceivedMessage { bytes: piece, whole: false, event_id: None }, out);
        }
    }

    fn events(&mut self, at: Instant, number: u64, out: &mut Vec<Fact>) {
        loop {
            let Some(call) = self.calls.get_mut(&number) else { return };
            let session_key = call.session_key;
            match call.events.as_mut().and_then(SseDecoder::next_event) {
                None => return,
                Some(Ok(event)) => self.event(at, number, event, out),
                Some(Err(error)) => {
                    if let Some(conversation) = self.sessions.get(session_key) {
                        conversation.record_gap(at, format!("{error}: it was not recorded"), out);
                    }
                }
            }
        }
    }

    fn event(&mut self, at: Instant, number: u64, event: SseEvent, out: &mut Vec<Fact>) {
        if event.event.as_deref() == Some(ENDPOINT) {
            let session_key = self.calls.get(&number).map(|call| call.session_key);
            if let (Some(session_key), Ok(uri)) = (session_key, std::str::from_utf8(&event.data)) {
                self.sessions.name(session_key, place_name(place_of(uri.trim())));
            }
        } else if !event.data.is_empty() {
            let message = ReceivedMessage { bytes: event.data, whole: true, event_id: event.id };
            self.record(at, number, TapSide::Server, message, out);
        }
    }

    fn finish_body(&mut self, at: Instant, number: u64, side: TapSide, out: &mut Vec<Fact>) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        self.buffered -= call.body(side).len();
        if let Some((bytes, whole)) = call.body(side).finish() {
            self.record(at, number, side, ReceivedMessage { bytes, whole, event_id: None }, out);
        }
    }

    /// Records a message. Outside the endpoint it records only what is certainly a message: a proxy also carries
    /// sign-ins, which must stay private.
    fn record(&mut self, at: Instant, number: u64, side: TapSide, message: ReceivedMessage, out: &mut Vec<Fact>) {
        let ReceivedMessage { bytes, whole, event_id } = message;
        let Some(call) = self.calls.get_mut(&number) else { return };
        if !call.endpoint && (!whole || Message::parse(bytes.clone(), 1).is_err()) {
            return;
        }
        let Some(conversation) = self.sessions.get(call.session_key) else { return };
        let http = call.heads[usize::from(side == TapSide::Server)].take().map(|head| *head);
        if http.is_some() || event_id.is_some() {
            conversation.carried(TransportData { event_id: event_id.map(Into::into), http });
        }
        if !whole {
            return conversation.record_piece(at, side, bytes, out);
        }
        if side == TapSide::Server
            && call.status >= 400
            && let Some(exchange) = call.exchange
            && Message::parse(bytes.clone(), 1).is_err()
        {
            return conversation.record_page(at, exchange, bytes, out);
        }
        let exchange = conversation.record(at, side, bytes, out);
        if side == TapSide::Client {
            call.exchange = exchange;
        }
    }

    /// Records that the server was unreachable and the client got an error of the proxy.
    fn unreachable(&mut self, at: Instant, number: u64, out: &mut Vec<Fact>) {
        self.finish_body(at, number, TapSide::Client, out);
        if let Some(call) = self.calls.get(&number).filter(|call| call.endpoint)
            && let Some(conversation) = self.sessions.get(call.session_key)
        {
            conversation.record_refusal(
                at,
                BAD_GATEWAY,
                format!("{}: the server gave no answer", call.request_line),
                out,
            );
        }
    }

    /// Ends a call whose answer has ended, or that has none.
    fn over(&mut self, at: Instant, number: u64, complete: bool, out: &mut Vec<Fact>) {
        self.finish_body(at, number, TapSide::Client, out);
        self.finish_body(at, number, TapSide::Server, out);
        let Some(mut call) = self.calls.remove(&number) else { return };
        // The head of an answer with a message was recorded with that message.
        if call.endpoint
            && call.status >= 400
            && let Some(head) = call.heads[1].take()
            && let Some(conversation) = self.sessions.get(call.session_key)
        {
            conversation.record_refusal(at, call.status, std::mem::take(&mut call.request_line), out);
            if let Some(exchange) = call.exchange {
                conversation.carried(TransportData { event_id: None, http: Some(*head) });
                conversation.record_page(at, exchange, Bytes::new(), out);
            }
        }
        // A request that was refused by its status, or never reached the server, gets no answer later.
        let refused = call.status >= 400 || call.status == 0;
        if refused && let (Some(exchange), Some(conversation)) = (call.exchange, self.sessions.get(call.session_key)) {
            conversation.give_up(at, exchange, Outcome::Fault("http_error"), out);
        }
        if call.closes && (200..300).contains(&call.status) {
            self.sessions.end(at, call.session_key, None, out);
        } else {
            self.sessions.leave(at, call.session_key, (!complete).then_some(Outcome::Cancelled), out);
        }
    }
}

impl Tap for HttpTap {
    type Input = HttpEvent;

    fn take(&mut self, at: Instant, seen: HttpEvent, out: &mut Vec<Fact>) {
        let number = seen.call;
        match seen.step {
            HttpStep::Request(request) => self.on_request(at, number, request, out),
            HttpStep::Response(response) => self.on_response(at, number, &response, out),
            HttpStep::Body(side, bytes) => self.body(at, number, side, &bytes, out),
            HttpStep::BodyEnd { side: TapSide::Client, .. } => self.finish_body(at, number, TapSide::Client, out),
            HttpStep::BodyEnd { side: TapSide::Server, complete } => self.over(at, number, complete, out),
            HttpStep::Failed => {
                self.unreachable(at, number, out);
                self.over(at, number, true, out);
            }
        }
    }

    fn lost(&mut self, at: Instant, lost: TapLoss, out: &mut Vec<Fact>) {
        self.sessions.record_gap(at, &lost.to_string(), out);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Fact>) {
        self.sessions.tick(now, out);
    }

    fn end(&mut self, at: Instant, out: &mut Vec<Fact>) -> TapCounts {
        let mut open: Vec<u64> = self.calls.keys().copied().collect();
        open.sort_unstable();
        for number in open {
            self.over(at, number, false, out);
        }
        self.sessions.end_all(at, out)
    }
}

fn words(head: &HttpHead) -> String {
    format!("{} {}", head.method.as_deref().unwrap_or_default(), head.url.as_deref().unwrap_or_default())
}

fn session_name(session: &str) -> Box<str> {
    format!("session {session}").into()
}

fn place_name(place: &str) -> Box<str> {
    format!("place {place}").into()
}

/// Returns path and query of an address, which may be absolute or begin with the path.
fn place_of(uri: &str) -> &str {
    match uri.split_once("://") {
        None => uri,
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
    }
}

/// The part of a body received so far.
#[derive(Debug, Default)]
pub(super) struct BodyBuffer {
    held: BytesMut,
    broken: bool,
}

impl BodyBuffer {
    /// Number of bytes held.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Takes the bytes held, because the limit is reached. The rest of the body is then recorded in pieces.
    pub(super) fn piece(&mut self) -> Option<Bytes> {
        self.broken = true;
        (!self.held.is_empty()).then(|| std::mem::take(&mut self.held).freeze())
    }

    /// Takes the rest of the body. The flag tells whether that is the whole body.
    pub(super) fn finish(&mut self) -> Option<(Bytes, bool)> {
        let whole = !std::mem::take(&mut self.broken);
        (!self.held.is_empty()).then(|| (std::mem::take(&mut self.held).freeze(), whole))
    }
}
