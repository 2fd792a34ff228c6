//! Formats one fact as one line of JSON.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use signalbox_engine::chain::Ruling;
use signalbox_engine::fact::{Decision, FinishedFact, MessageFact, SessionFact};
use signalbox_engine::{Caller, ExchangeId, Fact, SessionKey};
use signalbox_wire::{Envelope, Kind, json as wire_json, timestamp};
use std::fmt::Write as _;
use std::time::{Duration, Instant, SystemTime};

/// Maximum bytes of a message in a line.
pub const MAX_BODY: usize = 64 * 1024;

/// Wall clock at the start of the feed, so that all times of a feed come from one monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct FeedClock {
    instant: Instant,
    unix: Duration,
}

impl FeedClock {
    /// Starts a clock at this moment.
    #[must_use]
    pub fn start() -> Self {
        Self { instant: Instant::now(), unix: timestamp::since_1970(SystemTime::now()) }
    }

    fn millis(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.instant);
        u64::try_from((self.unix + since).as_millis()).unwrap_or(u64::MAX)
    }
}

/// Members that all lines share.
#[derive(Serialize)]
struct Head<'a> {
    r#type: &'a str,
    at_ms: u64,
    session: u64,
    exchange: Option<u64>,
    principal: &'a str,
}

#[derive(Serialize)]
struct Message<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    point: &'static str,
    kind: &'static str,
    method: Option<&'a str>,
    subject: Option<String>,
    backend: Option<&'a str>,
    length: usize,
    /// Whole message, if it is JSON on one line and at most [`MAX_BODY`] bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a RawValue>,
    /// True for a message that the gateway itself sends or receives.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    own: bool,
    /// Reason why the message did not reach its recipient.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<&'static str>,
    /// Beginning of the message as text, if there is no `body`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// Writes the first line of a feed.
pub(super) fn greeting(text: &mut String) {
    let hello = json!({"type": "watching", "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION")});
    let _ = writeln!(text, "{hello}");
}

/// Writes a line that says how many facts are missing here.
pub(super) fn dropped(text: &mut String, facts: u64) {
    let _ = writeln!(text, "{}", json!({"type": "dropped", "facts": facts}));
}

/// Appends the line of a fact.
pub fn write(text: &mut String, fact: &Fact, clock: &FeedClock) {
    let head = |kind, at, session: SessionKey, exchange: Option<ExchangeId>, caller| Head {
        r#type: kind,
        at_ms: clock.millis(at),
        session: session.0,
        exchange: exchange.map(|exchange| exchange.0),
        principal: Caller::principal(caller).as_str(),
    };
    let line = match fact {
        Fact::Message(one) => {
            let head = head("message", one.at, one.session, one.exchange, &one.caller);
            message(head, one)
        }
        Fact::Decision(decision) => {
            let Decision { at, session, caller, exchange, phase, .. } = &**decision;
            let head = head("decision", *at, *session, *exchange, caller);
            let lines: Vec<String> =
                decision.each().map(|(by, ruling)| with(&head, decided(phase, by, ruling))).collect();
            lines.join("\n")
        }
        Fact::Session(session) => {
            let head = head("session", session.at, session.session, None, &session.caller);
            with(&head, introduced(session))
        }
        Fact::SessionEnded { at, session, caller } => {
            with(&head("session_ended", *at, *session, None, caller), json!({}))
        }
        Fact::Finished(finished) => {
            let FinishedFact { at, session, caller, exchange, .. } = &**finished;
            with(&head("finished", *at, *session, Some(*exchange), caller), ended(finished))
        }
        Fact::Lost(lost) => {
            let head = head("lost", lost.at, lost.session, lost.exchange, &lost.caller);
            with(&head, json!({"point": lost.point.words(), "number": lost.number, "reason": lost.reason}))
        }
        Fact::Refused(refused) => {
            let head = head("refused", refused.at, refused.session, None, &refused.caller);
            with(&head, json!({"status": refused.status, "reason": refused.reason, "detail": refused.detail}))
        }
    };
    text.push_str(&line);
    text.push('\n');
}

fn with(head: &Head<'_>, more: Value) -> String {
    let mut whole = serde_json::to_value(head).unwrap_or_default();
    if let (Value::Object(whole), Value::Object(more)) = (&mut whole, more) {
        whole.extend(more);
    }
    whole.to_string()
}

fn message(head: Head<'_>, fact: &MessageFact) -> String {
    let (bytes, backend) = (&fact.bytes, fact.backend.as_deref());
    let read = Envelope::parse(bytes.clone()).ok();
    let kind = match read.as_ref().map(Envelope::kind) {
        Some(Kind::Request) => "request",
        Some(Kind::Notification) => "notification",
        Some(Kind::Response) => "result",
        Some(Kind::Error) => "error",
        None => "raw",
    };
    let subject = read.as_ref().and_then(|message| {
        let span = message.param("name").or_else(|| message.param("uri"))?;
        wire_json::string(span.of(message.bytes())).map(std::borrow::Cow::into_owned)
    });
    let one_line = bytes.len() <= MAX_BODY && !bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
    let body = one_line.then(|| serde_json::from_slice::<&RawValue>(bytes).ok()).flatten();
    let shown = &bytes[..bytes.len().min(MAX_BODY)];
    let text = body.is_none().then(|| String::from_utf8_lossy(shown).into_owned());
    let method = read.as_ref().and_then(|message| message.method());
    let line = Message {
        head,
        point: fact.point.words(),
        own: fact.own,
        lost: fact.lost,
        kind,
        method,
        subject,
        backend,
        length: bytes.len(),
        body,
        text,
    };
    serde_json::to_string(&line).unwrap_or_default()
}

fn decided(phase: &str, by: &'static str, ruling: &Ruling) -> Value {
    json!({
        "by": by,
        "phase": phase,
        "rule": ruling.rule.as_deref(),
        "verdict": ruling.verdict,
        "detail": ruling.detail,
        "conditions": ruling.conditions.iter().map(|(text, held)| (&**text, held)).collect::<Vec<_>>(),
        "inputs": ruling.inputs,
    })
}

fn introduced(session: &SessionFact) -> Value {
    let client = session.client.as_ref();
    let info: Value =
        client.and_then(|client| serde_json::from_slice(client.info.as_deref()?).ok()).unwrap_or_default();
    json!({
        "external": session.external.as_deref(),
        "transport": session.transport,
        "client": info,
        "revision": client.map(|client| client.revision.as_str()),
    })
}

fn ended(finished: &FinishedFact) -> Value {
    json!({
        "method": finished.method,
        "subject": finished.subject,
        "backend": finished.backend.as_deref(),
        "outcome": finished.outcome.label(),
        "took_us": u64::try_from(finished.took.as_micros()).unwrap_or(u64::MAX),
        "bytes_in": finished.bytes_in,
        "bytes_out": finished.bytes_out,
    })
}
