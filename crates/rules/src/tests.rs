//! Dialogues with rules: what a client and a backend say, and what the rules make of it.

use crate::interceptor::RuleInterceptor;
use crate::rule_set::RuleSet;
use bytes::Bytes;
use signalbox_engine::chain::{
    Case, Effect, HoldAnswer, HoldQuestion, HoldResponse, Interceptor, Judgement, Phase, Ruling, Rulings, Verdict,
};
use signalbox_engine::exchange::Exchange;
use signalbox_engine::fact::{FinishedFact, Outcome};
use signalbox_engine::keys::{ExchangeId, SessionKey, StreamId};
use signalbox_engine::message_redactor::{MessageRedactor, RedactedMessage};
use signalbox_engine::{Caller, Principal, Proof};
use signalbox_wire::{Envelope, Era, RawId};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod actions;
mod conditions;
mod documents;
mod judging;
mod mock_files;
mod properties;
mod reading;
mod together;
mod waiting;

const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello","n":3,"list":[1,"two"],"nothing":null}}}"#;
const RESULT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"hello"}],"n":1}}"#;
const ERROR: &str = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32050,"message":"the disk is full"}}"#;

/// A gateway with nothing but rules.
fn caller(principal: &str) -> Caller {
    Caller::of(Principal::named(principal), Proof::LocalUser, "test")
}

struct Dialogue {
    rules: RuleInterceptor,
    start: Instant,
    now: Instant,
    caller: Caller,
    /// The page that the caller acts for, if any.
    page: Option<Principal>,
    session: Option<String>,
    revision: Option<String>,
    backend: Option<String>,
    exchange: u64,
    /// The exchange of the first round, and the round.
    operation: (u64, u32),
    method: String,
    subject: Option<String>,
    rulings: Rulings,
    held: Option<(u32, Envelope, Phase)>,
}

impl Dialogue {
    /// With the rules of this text.
    fn new(toml: &str) -> Self {
        Self::with(RuleSet::parse("rules.toml", toml).unwrap_or_else(|error| panic!("{error}\n{toml}")))
    }

    /// With one rule of these conditions and actions.
    fn rule(when: &str, then: &str) -> Self {
        Self::new(&format!("[[rules]]\nid = \"r\"\nwhen = {{ {when} }}\nthen = [{then}]\n"))
    }

    fn with(set: RuleSet) -> Self {
        let start = Instant::now();
        Self {
            rules: RuleInterceptor::new(set, 1).redacting(Arc::new(WithoutPasswords)),
            start,
            now: start,
            caller: caller("local:ada"),
            page: None,
            session: Some("s-1".to_owned()),
            revision: Some("2025-06-18".to_owned()),
            backend: Some("files".to_owned()),
            exchange: 0,
            operation: (0, 1),
            method: String::new(),
            subject: None,
            rulings: Rulings::None,
            held: None,
        }
    }

    /// With entries that not every caller sees.
    fn showing(mut self, visibility: Arc<dyn signalbox_engine::catalog::Visibility>) -> Self {
        self.rules = self.rules.showing(visibility);
        self
    }

    fn later(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    /// A client's request, as a new exchange.
    fn asks(&mut self, json: &str) -> String {
        let message = envelope(json);
        self.exchange += 1;
        self.operation = (self.exchange, 1);
        self.method = message.method().unwrap().to_owned();
        self.subject = crate::facts::subject_of(&message).map(std::borrow::Cow::into_owned);
        self.says(Phase::Request, &message, None)
    }

    /// The same call again, as its next round.
    fn asks_again(&mut self, json: &str) -> String {
        let (first, round) = self.operation;
        self.exchange += 1;
        self.operation = (first, round + 1);
        self.says(Phase::Request, &envelope(json), None)
    }

    /// The backend's answer to it.
    fn answers(&mut self, json: &str) -> String {
        let out = self.says(Phase::Response, &envelope(json), None);
        if self.held.is_none() {
            self.finishes();
        }
        out
    }

    fn notifies(&mut self, phase: Phase, json: &str) -> String {
        self.says(phase, &envelope(json), None)
    }

    /// What the last wait came to.
    fn hears(&mut self, answer: &HoldAnswer) -> String {
        let (cursor, message, phase) = self.held.take().expect("nothing is held");
        self.says(phase, &message, Some(HoldResponse { cursor, answer }))
    }

    fn finishes(&mut self) {
        self.rules.finished(&FinishedFact {
            at: self.now,
            session: SessionKey(1),
            caller: self.caller.clone(),
            client: None,
            operation: ExchangeId(self.exchange),
            round: 1,
            exchange: ExchangeId(self.exchange),
            era: Era::Legacy,
            method: self.method.clone().into(),
            subject: None,
            backend: None,
            outcome: Outcome::Ok,
            took: Duration::ZERO,
            bytes_in: 0,
            bytes_out: 0,
            trace: None,
            unreached: None,
        });
    }

    fn says(&mut self, phase: Phase, message: &Envelope, resumed: Option<HoldResponse<'_>>) -> String {
        let Judgement { verdict, rulings, effects } =
            self.with_case(phase, message, |rules, case| rules.judge(case, resumed));
        self.rulings = rulings;
        let mut said: Vec<String> = effects.iter().map(effect).collect();
        said.push(self.verdict(verdict, message, phase));
        said.join(" | ")
    }

    /// Shows a message to the rules.
    fn with_case<T>(
        &self,
        phase: Phase,
        message: &Envelope,
        judge: impl FnOnce(&RuleInterceptor, &Case<'_>) -> T,
    ) -> T {
        let exchange = self.exchange();
        let of_exchange = matches!(phase, Phase::Request | Phase::Response);
        let case = Case {
            phase,
            message,
            exchange: of_exchange.then_some(&exchange),
            caller: &self.caller,
            acts_for: self.page.as_ref().unwrap_or(self.caller.principal()),
            session: self.session.as_deref(),
            session_started: self.start,
            revision: self.revision.as_deref(),
            backend: self.backend.as_deref(),
            definition: None,
            attempt: 1,
            round: self.operation.1,
            can_wait: true,
            by_task: false,
            task_tool: None,
            now: self.now,
            unix_ms: 1_700_000_000_000,
        };
        judge(&self.rules, &case)
    }

    fn exchange(&self) -> Exchange {
        Exchange {
            id: ExchangeId(self.exchange),
            session: SessionKey(1),
            caller: self.caller.clone(),
            operation: ExchangeId(self.operation.0),
            round: self.operation.1,
            attempt: 1,
            consulted: false,
            asks: false,
            client_id: RawId::string("x"),
            stream: StreamId(1),
            stream_open: true,
            era: Era::Legacy,
            client: None,
            log_level: None,
            method: self.method.clone().into(),
            subject: self.subject.as_deref().map(Box::from),
            asked_name: None,
            own_name: None,
            completes_resource: false,
            completed_template: None,
            backend: self.backend.as_deref().map(Arc::from),
            progress_token: None,
            held_progress: 0,
            renamed_uri: None,
            read: None,
            wants_task: false,
            started: self.now,
            bytes_in: 0,
            trace: None,
            unreached: None,
        }
    }

    fn verdict(&mut self, verdict: Verdict, message: &Envelope, phase: Phase) -> String {
        match verdict {
            Verdict::Pass => "pass".to_owned(),
            Verdict::Modify(message) => format!("modify {}", text(message.bytes())),
            Verdict::Reply(result) => format!("reply {}", text(&result)),
            Verdict::Error(error) => format!("error {}", text(&error)),
            Verdict::Refuse(fault) => format!("refuse {}: {fault}", fault.reason()),
            Verdict::Hold(hold) => {
                let changed =
                    hold.message.as_ref().map_or(String::new(), |message| format!(" {}", text(message.bytes())));
                let message = hold.message.unwrap_or_else(|| message.clone());
                self.held = Some((hold.cursor, message, phase));
                match hold.question {
                    HoldQuestion::Pause(time) => format!("pause {time:?}{changed}"),
                    HoldQuestion::Work(_) => format!("work{changed}"),
                    HoldQuestion::Person { reason, within } => format!("hold {within:?} {reason}{changed}"),
                    HoldQuestion::Consent(consent) => {
                        format!("consent {:?} {}{changed}", consent.within, consent.reason)
                    }
                    HoldQuestion::Webhook { url, body, within } => {
                        format!("ask {url} {within:?} {}{changed}", text(&body))
                    }
                }
            }
        }
    }

    /// The ruling of one rule about the last message.
    fn ruling(&self, id: &str) -> Option<&Ruling> {
        self.rulings.iter().find(|ruling| ruling.rule.as_deref() == Some(id)).map(|ruling| &**ruling)
    }

    /// The inputs of the last message's rulings, without those of the message as a whole and without turns.
    fn inputs(&self) -> Vec<String> {
        let of_rules = self.rulings.iter().filter(|ruling| ruling.rule.is_some());
        let inputs = of_rules.flat_map(|ruling| &ruling.inputs).filter(|(kind, _)| *kind != "turn");
        inputs.map(|(kind, text)| format!("{kind}: {text}")).collect()
    }
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Fork { backend, message } => format!("fork {backend} {}", text(message.bytes())),
        Effect::Log { level, text } => format!("log {} {text}", level.as_str()),
        Effect::Count { names } => names.iter().map(|name| format!("count {name}")).collect::<Vec<_>>().join(" | "),
        Effect::Notify { url, body, within } => format!("tell {url} {within:?} {}", text(body)),
    }
}

fn envelope(json: &str) -> Envelope {
    Envelope::parse(Bytes::copy_from_slice(json.as_bytes())).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Replaces the value of `password`, and keeps nothing of a message with a `poison`.
#[derive(Debug)]
struct WithoutPasswords;

impl MessageRedactor for WithoutPasswords {
    fn redact(&self, message: &Bytes, _: Option<&str>) -> RedactedMessage {
        let kept = text(message).replace("hunter2", "[gone]");
        match kept {
            kept if kept.contains("poison") => RedactedMessage::Withheld,
            kept if kept == text(message) => RedactedMessage::Same,
            kept => RedactedMessage::Changed(kept.into()),
        }
    }
}

fn somebody(name: &str) -> Option<String> {
    Some(name.to_owned())
}
