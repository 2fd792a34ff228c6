//! The machines of a gateway without their surroundings: one client, one backend, and the runtime's part between them.

use crate::CountError;
use crate::case::{CallCase, Framing};
use crate::messages::{self, Answers};
use bytes::Bytes;
use signalbox_engine::back::{BackCommand, ClientOffer, Wish};
use signalbox_engine::catalog::{Item, ListKind, View, ViewKey};
use signalbox_engine::fact::FactSink as _;
use signalbox_engine::front::Mode;
use signalbox_engine::keys::Numbers;
use signalbox_engine::metrics::MethodMetrics;
use signalbox_engine::operations::Operations;
use signalbox_engine::read_cache::Generation;
use signalbox_engine::task_calls::TaskCalls;
use signalbox_engine::{
    AuthorizedCall, BackMachine, Caller, CapSet, Catalog, Chain, Command, Context, Event, ExchangeId, FrontMachine,
    SessionKey, Snapshot, StreamId,
};
use signalbox_wire::{Envelope, Era, HeaderValues, Limits, Message, Revision, SseDecoder, header};
use std::sync::Arc;
use std::time::{Duration, Instant};

const STREAM: StreamId = StreamId(1);
const BACKEND: &str = "backend";
const INFO: &str = r#"{"name":"signalbox","version":"0"}"#;
const TIMEOUT: Duration = Duration::from_secs(60);

/// State machines of a gateway, with their inputs.
pub struct PathGateway {
    case: CallCase,
    limits: Limits,
    catalog: Snapshot,
    chain: Chain,
    metrics: MethodMetrics,
    caller: Caller,
    numbers: Numbers,
    operations: Operations,
    task_calls: TaskCalls,
    now: Instant,
    front: FrontMachine,
    back: BackMachine<ExchangeId>,
    commands: Vec<Command>,
    back_commands: Vec<BackCommand<ExchangeId>>,
    request: Bytes,
    answers: Answers,
}

impl PathGateway {
    /// Opens the session and the connection.
    pub fn open(case: CallCase) -> Result<Self, CountError> {
        let caller = Caller::anonymous("http");
        let wish = if case.backend == Era::Modern { Wish::Modern } else { Wish::Legacy };
        let offer = ClientOffer {
            revision: Revision::LATEST_LEGACY,
            capabilities: Bytes::from_static(b"{}"),
            info: Arc::from(INFO),
            instance: Arc::from("0"),
            start_timeout: TIMEOUT,
            probe_timeout: TIMEOUT,
            question_timeout: Duration::from_secs(300),
        };
        let mode = if case.client == Era::Modern { Mode::Stateless } else { Mode::Session };
        let mut gateway = Self {
            case,
            limits: Limits::default(),
            catalog: Catalog::new([Arc::from(BACKEND)]).snapshot(),
            chain: Chain::new(vec![]),
            metrics: MethodMetrics::default(),
            now: Instant::now(),
            front: FrontMachine::new(SessionKey(1), caller.clone(), mode),
            caller,
            numbers: Numbers::default(),
            operations: Operations::default(),
            task_calls: TaskCalls::default(),
            back: BackMachine::new(Arc::from(BACKEND), wish, offer, true),
            commands: Vec::new(),
            back_commands: Vec::new(),
            request: messages::request(case),
            answers: Answers::new(case),
        };
        gateway.greet()?;
        Ok(gateway)
    }

    /// Performs the handshakes of both sides, and fills the catalog.
    fn greet(&mut self) -> Result<(), CountError> {
        let mut out = Vec::new();
        self.back.opened(self.now, &mut out);
        let word = if self.case.backend == Era::Modern { messages::DISCOVERED } else { messages::WELCOME };
        self.back.received(parsed(word)?, None, None, self.now, &mut out);
        let profile = self.back.profile().cloned().ok_or_else(|| CountError::Unexpected {
            expected: "a connection that is ready",
            found: format!("{out:?}"),
        })?;
        let item = Item::read(ListKind::Tools, Bytes::from_static(messages::TOOL.as_bytes()))
            .map_err(|error| CountError::Refused(error.to_string()))?;
        let mut view = View::empty(profile);
        view.set(ListKind::Tools, vec![item]);
        let mut catalog = Catalog::new([Arc::from(BACKEND)]);
        catalog.set_view(BACKEND, ViewKey::shared(self.case.backend, CapSet::bare()), view);
        catalog.set_listed(BACKEND, true);
        self.catalog = catalog.snapshot();
        if self.case.client == Era::Legacy {
            for word in [messages::INITIALIZE, messages::INITIALIZED] {
                self.front(Event::Received { stream: STREAM, message: parsed(word)? });
            }
        }
        Ok(())
    }

    /// Takes one call from the client's bytes to the answer's.
    pub fn call(&mut self) -> Result<(), CountError> {
        let message = self.read_request()?;
        if self.case.client == Era::Modern {
            self.front = FrontMachine::new(SessionKey(2), self.caller.clone(), Mode::Stateless);
        }
        self.front(Event::Received { stream: STREAM, message });
        let (exchange, call) = self.forwarded()?;
        let sent = self.back.call(exchange, call, TIMEOUT, self.now);
        let sent = sent.map_err(|fault| CountError::Refused(fault.message.to_string()))?;
        let key = sent.key().unwrap_or_default();
        let answer = self.read_answer(self.answers.to(key))?;
        self.back.received(answer, Some(key), Some(200), self.now, &mut self.back_commands);
        match self.back_commands.pop() {
            Some(BackCommand::Answer { to, message, edits, status }) => {
                self.front(Event::Answered { exchange: to, message, edits, status });
            }
            other => {
                return Err(CountError::Unexpected { expected: "the backend's answer", found: format!("{other:?}") });
            }
        }
        self.answered()
    }

    /// Reads a body as the HTTP front does before its session sees it.
    fn read_request(&self) -> Result<Envelope, CountError> {
        let refused = |error: &dyn std::fmt::Display| CountError::Refused(error.to_string());
        let message = Envelope::read(self.request.clone(), &self.limits).map_err(|refusal| refused(&refusal))?;
        if self.case.client == Era::Modern {
            header::check(headers, &message).map_err(|error| refused(&error))?;
        }
        Ok(message)
    }

    /// Reads an answer as the link does before its connection sees it.
    fn read_answer(&self, bytes: Bytes) -> Result<Envelope, CountError> {
        let refused = |error: &dyn std::fmt::Display| CountError::Refused(error.to_string());
        let bytes = match self.case.framing {
            Framing::Json => bytes,
            Framing::Sse => {
                let mut decoder = SseDecoder::new(self.limits.sse_event);
                decoder.push(&bytes);
                match decoder.next_event() {
                    Some(Ok(event)) => event.data,
                    other => {
                        return Err(CountError::Unexpected { expected: "an event", found: format!("{other:?}") });
                    }
                }
            }
        };
        let message = match Message::look(bytes, &self.limits) {
            Ok(Message::Single(message)) => message,
            Ok(other) => return Err(CountError::Unexpected { expected: "one message", found: format!("{other:?}") }),
            Err(rejected) => return Err(refused(&rejected.error)),
        };
        if !message.holds(&self.limits) {
            return Err(CountError::Unexpected {
                expected: "an answer after the rules",
                found: format!("{message:?}"),
            });
        }
        Ok(message)
    }

    fn front(&mut self, event: Event) {
        let ctx = Context {
            now: self.now,
            unix_ms: &|| 0,
            catalog: &self.catalog,
            caller: None,
            user: &self.caller.principal().clone().into(),
            refusal: None,
            operations: &self.operations,
            task_calls: &self.task_calls,
            numbers: &self.numbers,
            chain: &self.chain,
            session: None,
            session_started: self.now,
            face: None,
            server_info: INFO,
            instance: "1",
            instructions: "",
            max_in_flight: 64,
            round_timeout: TIMEOUT,
            changes: &|_, _| Generation::default(),
            dialect: None,
            error_detail: signalbox_engine::fault::ErrorDetail::Full,
            message_facts: false,
            trace: None,
            task_home: &|_| None,
            clock: &Instant::now,
            sight: None,
            lists_ready: &|_| true,
            sign_ins: &Vec::new,
        };
        self.commands.clear();
        self.front.handle(event, &ctx, &mut self.commands);
    }

    fn forwarded(&mut self) -> Result<(ExchangeId, AuthorizedCall), CountError> {
        match self.commands.pop() {
            Some(Command::Forward { exchange, call, .. }) => Ok((exchange, call)),
            other => Err(CountError::Unexpected { expected: "a call for the backend", found: format!("{other:?}") }),
        }
    }

    /// Counts the facts as the program does, and checks that the client gets its answer.
    fn answered(&mut self) -> Result<(), CountError> {
        let mut found = None;
        for command in self.commands.drain(..) {
            match command {
                Command::Fact(fact) => self.metrics.fact(&fact),
                Command::Send(message) if message.is_last() => found = Some(message.into_bytes()),
                _ => {}
            }
        }
        match found {
            Some(bytes) if bytes.len() >= self.answers.least() && holds_id(&bytes) => Ok(()),
            other => Err(CountError::Unexpected { expected: "the client's answer", found: format!("{other:?}") }),
        }
    }
}

/// Returns true if an answer begins with the client's own id.
fn holds_id(bytes: &[u8]) -> bool {
    let start = br#"{"jsonrpc":"2.0","id":"#;
    bytes.strip_prefix(start).is_some_and(|rest| rest.starts_with(messages::CALL_ID.as_bytes()))
}

fn headers(name: &str) -> HeaderValues<'static> {
    match name {
        header::PROTOCOL_VERSION => HeaderValues::One(b"2026-07-28"),
        header::METHOD => HeaderValues::One(b"tools/call"),
        header::NAME => HeaderValues::One(b"echo"),
        _ => HeaderValues::Missing,
    }
}

fn parsed(text: &'static str) -> Result<Envelope, CountError> {
    Envelope::parse(Bytes::from_static(text.as_bytes()))
        .map_err(|rejected| CountError::Refused(rejected.error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_comes_to_its_answer() {
        for case in CallCase::all() {
            let mut gateway = PathGateway::open(case).unwrap();
            for _ in 0..3 {
                gateway.call().unwrap();
            }
            assert_eq!(gateway.metrics.read().iter().map(|(_, series)| series.count()).sum::<u64>(), 3);
        }
    }
}
