//! What came of a message so far, on the tape and now, and what of it can be compared.

use super::class::Reason;
use super::image::Image;
use super::open::Open;
use super::outcome::{Content, Kind, Outcome};
use bytes::Bytes;
use serde_json::Value;
use signalbox_engine::bridge;
use signalbox_engine::chain::{HoldAnswer, Phase, Ruling, Verdict};
use signalbox_rules::Use;
use signalbox_wire::Envelope;
use std::sync::Arc;

/// Longest arguments of an example, in characters.
const SHORT: usize = 120;
/// Members of params that the gateway may change by itself on the way to a backend.
const OWN_MEMBERS: [&str; 6] = ["_meta", "name", "uri", "requestState", "inputResponses", "task"];

/// The judging of the request or the answer of an exchange, while it goes on.
#[derive(Debug)]
pub(super) struct Progress {
    pub phase: Phase,
    pub then: Outcome,
    pub now: Outcome,
    pub unknown: Option<Reason>,
    /// State of earlier messages that the verdict depends on, and when it was used.
    pub uses: Vec<(Use, i128)>,
    pub held: Option<HeldNow>,
}

/// A message that waits as it did on the tape.
#[derive(Debug)]
pub(super) struct HeldNow {
    pub rule: Arc<str>,
    pub cursor: u32,
    pub message: Envelope,
}

impl Progress {
    pub fn new(phase: Phase) -> Self {
        let (then, now) = Default::default();
        Self { phase, then, now, unknown: None, uses: vec![], held: None }
    }

    pub fn waits(&mut self, holder: Option<&Arc<Ruling>>, cursor: u32, message: Envelope) {
        let rule = holder.and_then(|holder| holder.rule.clone()).unwrap_or_default();
        self.now.verdict("hold");
        self.held = Some(HeldNow { rule, cursor, message });
    }

    /// The rules are done with the message. `typed` is the method of an exchange whose client gets results with their type.
    pub fn ends(&mut self, verdict: Verdict, message: &Envelope, typed: Option<&str>) {
        let (word, content) = match verdict {
            Verdict::Pass => ("pass", Some(message.bytes().clone())),
            Verdict::Modify(message) => ("modify", Some(message.bytes().clone())),
            Verdict::Reply(result) => {
                ("reply", Some(typed.map_or_else(|| result.clone(), |method| bridge::complete_result(method, &result))))
            }
            Verdict::Error(_) => ("error", None),
            Verdict::Refuse(_) => ("refuse", None),
            Verdict::Hold(_) => ("hold", None),
        };
        self.now.verdict(word);
        let value = || content.and_then(|bytes: Bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let content = match self.now.kind {
            Kind::Changed => value().and_then(|message| compared(self.phase, message)),
            Kind::Answered => value(),
            _ => None,
        };
        self.now.content = content.map_or(Content::Incomparable, Content::Is);
    }
}

/// What became of the message on the tape, where it can be compared.
pub(super) fn recorded_content(open: &Open, progress: &Progress) -> Content {
    let member = |image: Option<&Image>, name: &str| image.and_then(|image| image.member(name));
    let found = match (progress.then.kind, progress.phase) {
        (kind, _) if kind != progress.now.kind => None,
        (Kind::Changed, Phase::Request) => member(open.as_sent_on(), "params").map(without_own),
        (Kind::Changed, Phase::Response | Phase::FromGateway) => member(open.answer.as_ref(), "result"),
        (Kind::Answered, Phase::Request | Phase::Response | Phase::ToGateway | Phase::FromGateway) => {
            member(open.answer.as_ref(), "result")
        }
        _ => None,
    };
    found.map_or(Content::Incomparable, Content::Is)
}

/// The part of a changed message that the tape has too.
fn compared(phase: Phase, mut message: Value) -> Option<Value> {
    match phase {
        Phase::Request => message.get_mut("params").map(Value::take).map(without_own),
        _ => message.get_mut("result").map(Value::take),
    }
}

fn without_own(mut params: Value) -> Value {
    if let Some(members) = params.as_object_mut() {
        members.retain(|name, _| !OWN_MEMBERS.contains(&name.as_str()));
    }
    params
}

/// True if what ended a wait says more than that it is over.
pub(super) fn has_content(answer: &HoldAnswer) -> bool {
    matches!(answer, HoldAnswer::Edited { .. } | HoldAnswer::Result { .. } | HoldAnswer::Webhook { .. })
}

/// An outcome in words.
pub(super) fn told(outcome: &Outcome) -> String {
    let mut text = outcome.kind.word().to_owned();
    if let Some(rule) = outcome.decided_by().last() {
        text.push_str(&format!(" by {rule}"));
    }
    for (rule, time) in &outcome.delays {
        text.push_str(&format!(", delayed by {rule} {time}"));
    }
    for rule in outcome.holds.iter().filter(|_| outcome.kind != Kind::Held) {
        text.push_str(&format!(", held by {rule}"));
    }
    text
}

/// The arguments of a call, or its params, shortened.
pub(super) fn arguments(request: Option<&Image>) -> String {
    let Some(params) = request.and_then(|request| request.shown("params")) else { return String::new() };
    let text = params.get("arguments").unwrap_or(&params).to_string();
    match text.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
