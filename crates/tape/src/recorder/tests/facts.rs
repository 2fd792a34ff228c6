//! Facts as the gateway would tell them.

use bytes::Bytes;
use signalbox_engine::chain::Ruling;
use signalbox_engine::fact::{Decision, FinishedFact, MessageFact, Outcome, Point, SessionFact};
use signalbox_engine::{Caller, ClientProfile, ExchangeId, Fact, FactSink, Principal, Proof, SessionKey};
use signalbox_wire::{Era, Revision};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than anything takes that works.
pub(super) const LONG: Duration = Duration::from_secs(60);

pub(super) struct Facts<'a>(&'a dyn FactSink);

pub(super) fn request(id: u64, tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#)
}

pub(super) fn result(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"3"}}]}}}}"#)
}

impl<'a> Facts<'a> {
    pub(super) fn new(sink: &'a dyn FactSink) -> Self {
        Self(sink)
    }

    pub(super) fn session(&self, session: u64, client: Option<&str>) {
        let info = client.map(|name| Bytes::from(format!(r#"{{"name":"{name}","version":"1"}}"#)));
        let profile = ClientProfile::new(Revision::LATEST_LEGACY, Bytes::from_static(b"{}"), info);
        self.0.fact(&Fact::Session(Arc::new(SessionFact {
            at: Instant::now(),
            session: SessionKey(session),
            caller: ann(),
            external: Some("s-1".into()),
            transport: "http",
            client: Some(Arc::new(profile)),
        })));
    }

    pub(super) fn session_ended(&self, session: u64) {
        self.0.fact(&Fact::SessionEnded { at: Instant::now(), session: SessionKey(session), caller: ann() });
    }

    pub(super) fn message(&self, session: u64, exchange: Option<u64>, point: Point, text: &str) {
        let inner = matches!(point, Point::BackendIn | Point::BackendOut);
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        self.0.fact(&Fact::Message(MessageFact {
            exchange: exchange.map(ExchangeId),
            backend: inner.then(|| Arc::from("math")),
            ..MessageFact::new(Instant::now(), SessionKey(session), ann(), point, bytes)
        }));
    }

    /// An answer with this number, and the same once more to a client that came back for it.
    pub(super) fn sent_again(&self, session: u64, exchange: u64, number: u64) {
        let bytes = Bytes::from(result(exchange));
        let fact = || MessageFact::new(Instant::now(), SessionKey(session), ann(), Point::ClientOut, bytes.clone());
        let first = MessageFact { exchange: Some(ExchangeId(exchange)), number, ..fact() };
        self.0.fact(&Fact::Message(first));
        self.0.fact(&Fact::Message(MessageFact { number: number + 1, again: NonZeroU64::new(number), ..fact() }));
    }

    /// The four images of a call, under another id at the backend.
    pub(super) fn images(&self, session: u64, exchange: u64, tool: &str) {
        self.message(session, Some(exchange), Point::ClientIn, &request(exchange, tool));
        self.message(session, Some(exchange), Point::BackendOut, &request(900, tool));
        self.message(session, Some(exchange), Point::BackendIn, &result(900));
        self.message(session, Some(exchange), Point::ClientOut, &result(exchange));
    }

    pub(super) fn finished(&self, session: u64, exchange: u64, tool: &str, outcome: Outcome, took: Duration) {
        self.0.fact(&Fact::Finished(Arc::new(FinishedFact {
            at: Instant::now(),
            session: SessionKey(session),
            caller: ann(),
            exchange: ExchangeId(exchange),
            era: Era::Legacy,
            method: "tools/call".into(),
            subject: Some(tool.into()),
            backend: Some(Arc::from("math")),
            client: None,
            operation: ExchangeId(exchange),
            round: 1,
            outcome,
            took,
            bytes_in: 10,
            bytes_out: 20,
            trace: None,
            unreached: None,
        })));
    }

    pub(super) fn call(&self, session: u64, exchange: u64, tool: &str, outcome: Outcome) {
        self.images(session, exchange, tool);
        self.finished(session, exchange, tool, outcome, Duration::from_millis(1));
    }

    pub(super) fn decision(&self, session: u64, exchange: u64, verdict: &'static str) {
        let ruling = Ruling { rule: Some("no-drops".into()), verdict, ..Ruling::default() };
        self.decide(session, exchange, ruling);
    }

    pub(super) fn ruling(&self, session: u64, exchange: u64, text: &str) {
        let ruling = Ruling {
            detail: format!("said {text}"),
            conditions: [(format!("equals {text}").into(), true)].into(),
            inputs: vec![("webhook", format!(r#"{{"said":"{text}"}}"#))],
            ..Ruling::default()
        };
        self.decide(session, exchange, ruling);
    }

    fn decide(&self, session: u64, exchange: u64, ruling: Ruling) {
        self.0.fact(&Fact::Decision(Arc::new(Decision {
            at: Instant::now(),
            session: SessionKey(session),
            caller: ann(),
            exchange: Some(ExchangeId(exchange)),
            phase: "request",
            rulings: vec![("rules", ruling.into())],
        })));
    }
}

fn ann() -> Caller {
    Caller::of(Principal::named("ann"), Proof::LocalUser, "stdio")
}
