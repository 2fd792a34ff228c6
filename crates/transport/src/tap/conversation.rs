//! One observed conversation of a client and a server.

use super::TapCounts;
use super::introduction::{self, INITIALIZE};
use super::open_requests::{OpenRequest, OpenRequests, UNANSWERED_AFTER};
use bytes::Bytes;
use signalbox_engine::chain::Ruling;
use signalbox_engine::exchange::MethodName;
use signalbox_engine::fact::{
    Decision, Fact, FinishedFact, MessageFact, Outcome, Point, RefusedFact, SessionFact, TransportData,
};
use signalbox_engine::keys::Numbers;
use signalbox_engine::{Caller, ClientProfile, ExchangeId, SessionKey};
use signalbox_wire::{Envelope, Era, Kind, Message, RawId, json};
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of messages of a batch that are analysed.
const MAX_BATCH: usize = 10_000;
/// Outcome of requests that never got an answer.
const UNANSWERED: Outcome = Outcome::Fault("unanswered");

/// Sender of a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TapSide {
    /// The client sent it.
    Client,
    /// The server sent it.
    Server,
}

impl TapSide {
    fn point(self) -> Point {
        match self {
            Self::Client => Point::ClientIn,
            Self::Server => Point::BackendIn,
        }
    }
}

/// The parties of a conversation.
#[derive(Clone, Debug)]
pub struct Who {
    /// Number of the session.
    pub session: SessionKey,
    /// Caller of the session.
    pub caller: Caller,
    /// Name of the server.
    pub backend: Arc<str>,
    /// Name of the client's transport.
    pub transport: &'static str,
}

/// Converts the messages of one session into facts, in the order in which they passed.
#[derive(Debug)]
pub struct Conversation {
    who: Who,
    external: Option<Arc<str>>,
    client: Option<Arc<ClientProfile>>,
    begun: bool,
    /// Numbers the exchanges of all conversations of the process.
    numbers: Arc<Numbers>,
    /// HTTP details of the next message.
    carried: Option<Arc<TransportData>>,
    by_client: OpenRequests,
    by_server: OpenRequests,
    counts: TapCounts,
}

impl Conversation {
    /// Creates a conversation without messages.
    #[must_use]
    pub fn new(who: Who, numbers: Arc<Numbers>) -> Self {
        Self {
            who,
            external: None,
            client: None,
            begun: false,
            numbers,
            carried: None,
            by_client: OpenRequests::default(),
            by_server: OpenRequests::default(),
            counts: TapCounts::default(),
        }
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counts(&self) -> TapCounts {
        self.counts
    }

    /// Sets the id by which the client knows the session.
    pub fn name(&mut self, at: Instant, external: &str, out: &mut Vec<Fact>) {
        self.external = Some(external.into());
        if self.begun {
            out.push(self.session(at));
        }
    }

    /// Begins the session, unless it has begun. Otherwise the first message begins it.
    pub fn begin(&mut self, at: Instant, out: &mut Vec<Fact>) {
        if !std::mem::replace(&mut self.begun, true) {
            out.push(self.session(at));
        }
    }

    /// Sets the HTTP details of the next message.
    pub fn carried(&mut self, carried: TransportData) {
        self.carried = Some(Arc::new(carried));
    }

    /// Records a message, a batch, or other input in their place. Returns the exchange of a single message that belongs
    /// to one.
    pub fn record(&mut self, at: Instant, side: TapSide, bytes: Bytes, out: &mut Vec<Fact>) -> Option<ExchangeId> {
        let mut after = Vec::new();
        let exchange = match Message::parse(bytes.clone(), MAX_BATCH) {
            Ok(Message::Single(message)) => self.match_exchange(at, side, &message, &mut after),
            Ok(Message::Batch(messages)) => {
                for message in &messages {
                    match message {
                        Ok(message) => drop(self.match_exchange(at, side, message, &mut after)),
                        Err(_) => self.counts.unread += 1,
                    }
                }
                None
            }
            Err(_) => {
                self.counts.unread += 1;
                None
            }
        };
        self.push_message(at, side, exchange, bytes, out);
        out.append(&mut after);
        exchange
    }

    /// Records what the server sent instead of an answer to this exchange: an error page, or only a status.
    pub fn record_page(&mut self, at: Instant, exchange: ExchangeId, bytes: Bytes, out: &mut Vec<Fact>) {
        self.counts.unread += 1;
        self.push_message(at, TapSide::Server, Some(exchange), bytes, out);
    }

    /// Records a piece of a message that is too long to be held as a whole.
    pub fn record_piece(&mut self, at: Instant, side: TapSide, bytes: Bytes, out: &mut Vec<Fact>) {
        self.counts.pieces += 1;
        self.push_message(at, side, None, bytes, out);
    }

    /// Records a gap: something passed that the tap did not see.
    pub fn record_gap(&mut self, at: Instant, detail: String, out: &mut Vec<Fact>) {
        self.begin(at, out);
        let ruling = Ruling::of("gap", detail);
        out.push(Fact::Decision(Arc::new(Decision {
            at,
            session: self.who.session,
            caller: self.who.caller.clone(),
            exchange: None,
            phase: "record",
            rulings: vec![("tap", ruling.into())],
        })));
    }

    /// Records that the server answered with this status and no message.
    pub fn record_refusal(&self, at: Instant, status: u16, detail: String, out: &mut Vec<Fact>) {
        out.push(Fact::Refused(Arc::new(RefusedFact {
            at,
            caller: self.who.caller.clone(),
            session: self.who.session,
            status: Some(status),
            reason: "http_error",
            detail,
            exchange: None,
            unreached: None,
            notification: None,
        })));
    }

    /// Ends a request that will get no answer.
    pub fn give_up(&mut self, at: Instant, exchange: ExchangeId, outcome: Outcome, out: &mut Vec<Fact>) {
        let request = self.by_client.give_up(exchange).or_else(|| self.by_server.give_up(exchange));
        if let Some(request) = request {
            self.finish(at, request, outcome, 0, out);
        }
    }

    /// Gives up requests that have waited too long.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<Fact>) {
        for request in [self.by_client.expire(now), self.by_server.expire(now)].concat() {
            self.finish(now, request, UNANSWERED, 0, out);
        }
    }

    /// Ends the conversation. Open requests end with `outcome`, or as unanswered.
    pub fn end(&mut self, at: Instant, outcome: Option<Outcome>, out: &mut Vec<Fact>) {
        for request in [self.by_client.drain(), self.by_server.drain()].concat() {
            self.finish(at, request, outcome.unwrap_or(UNANSWERED), 0, out);
        }
        if std::mem::take(&mut self.begun) {
            out.push(Fact::SessionEnded { at, session: self.who.session, caller: self.who.caller.clone() });
        }
    }

    fn push_message(
        &mut self,
        at: Instant,
        side: TapSide,
        exchange: Option<ExchangeId>,
        bytes: Bytes,
        out: &mut Vec<Fact>,
    ) {
        self.begin(at, out);
        self.counts.messages += 1;
        out.push(Fact::Message(MessageFact {
            exchange,
            backend: Some(Arc::clone(&self.who.backend)),
            carried: self.carried.take(),
            ..MessageFact::new(at, self.who.session, self.who.caller.clone(), side.point(), bytes)
        }));
    }

    /// Finds the exchange that a message belongs to, opening or closing it if needed.
    fn match_exchange(
        &mut self,
        at: Instant,
        side: TapSide,
        message: &Envelope,
        after: &mut Vec<Fact>,
    ) -> Option<ExchangeId> {
        match message.kind() {
            Kind::Request => Some(self.request(at, side, message, after)),
            Kind::Response | Kind::Error => self.answer(at, side, message, after),
            Kind::Notification if message.method() == Some("notifications/cancelled") => {
                let span = message.param("requestId")?;
                let id = RawId::from_token(message.bytes().slice(span.range()));
                self.requests_of(side).cancel(&id, at)
            }
            Kind::Notification => None,
        }
    }

    fn request(&mut self, at: Instant, side: TapSide, message: &Envelope, after: &mut Vec<Fact>) -> ExchangeId {
        if side == TapSide::Client
            && let Some(client) = introduction::of_request(message)
        {
            self.set_client(at, client, after);
        }
        self.counts.requests += 1;
        let exchange = self.numbers.exchange();
        let era = introduction::revision_of(message).map(|revision| revision.era()).unwrap_or_else(|| self.era());
        let method = method_of(message);
        let request = OpenRequest {
            exchange,
            era,
            subject: subject(message, &method),
            method,
            at,
            bytes: message.bytes().len(),
            cancelled: false,
            until: at + UNANSWERED_AFTER,
        };
        if let Some(id) = message.id()
            && let Some(gone) = self.requests_of(side).open(id.detached(), request)
        {
            self.finish(at, gone, UNANSWERED, 0, after);
        }
        exchange
    }

    fn answer(&mut self, at: Instant, side: TapSide, message: &Envelope, after: &mut Vec<Fact>) -> Option<ExchangeId> {
        let asker = if side == TapSide::Client { TapSide::Server } else { TapSide::Client };
        let Some(request) = message.id().and_then(|id| self.requests_of(asker).close(&id)) else {
            self.counts.orphans += 1;
            return None;
        };
        let exchange = request.exchange;
        if side == TapSide::Server
            && request.method == INITIALIZE
            && let (Some(revision), Some(client)) = (introduction::negotiated_revision(message), self.client.clone())
        {
            self.set_client(at, introduction::at(&client, revision), after);
        }
        self.counts.answered += 1;
        self.finish(at, request, Outcome::of(message), message.bytes().len(), after);
        Some(exchange)
    }

    fn set_client(&mut self, at: Instant, client: ClientProfile, out: &mut Vec<Fact>) {
        if self.client.as_ref().is_some_and(|known| introduction::is_same(known, &client)) {
            return;
        }
        self.client = Some(Arc::new(client));
        // A session that has not begun is recorded with its client when it does.
        if self.begun {
            out.push(self.session(at));
        }
    }

    fn finish(&mut self, at: Instant, request: OpenRequest, outcome: Outcome, bytes_out: usize, out: &mut Vec<Fact>) {
        if bytes_out == 0 {
            self.counts.unanswered += 1;
        }
        out.push(Fact::Finished(Arc::new(FinishedFact {
            at,
            session: self.who.session,
            caller: self.who.caller.clone(),
            exchange: request.exchange,
            era: request.era,
            method: request.method,
            subject: request.subject,
            backend: Some(Arc::clone(&self.who.backend)),
            client: self.client.clone(),
            operation: request.exchange,
            round: 1,
            outcome: if request.cancelled { Outcome::Cancelled } else { outcome },
            took: at.saturating_duration_since(request.at),
            bytes_in: request.bytes,
            bytes_out,
            trace: None,
            unreached: None,
        })));
    }

    fn requests_of(&mut self, side: TapSide) -> &mut OpenRequests {
        match side {
            TapSide::Client => &mut self.by_client,
            TapSide::Server => &mut self.by_server,
        }
    }

    fn era(&self) -> Era {
        self.client.as_ref().map_or(Era::Legacy, |client| client.revision.era())
    }

    fn session(&self, at: Instant) -> Fact {
        Fact::Session(Arc::new(SessionFact {
            at,
            session: self.who.session,
            caller: self.who.caller.clone(),
            external: self.external.clone(),
            transport: self.who.transport,
            client: self.client.clone(),
        }))
    }
}

fn method_of(message: &Envelope) -> MethodName {
    match message.known_method() {
        Some(known) => known.into(),
        None => message.method().unwrap_or_default().to_owned().into(),
    }
}

/// Returns the tool, prompt or URI that a request is about.
fn subject(message: &Envelope, method: &str) -> Option<Box<str>> {
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        _ => return None,
    };
    let span = message.param(member)?;
    json::string(span.of(message.bytes())).map(|text| text.into_owned().into())
}
