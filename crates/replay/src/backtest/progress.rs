//! Progress of a message through the rules, in the recording and now, and the parts of it that can be compared.

use super::class::Reason;
use super::image::Image;
use super::open_exchange::OpenExchange;
use super::outcome::{Content, Kind, Outcome};
use bytes::Bytes;
use serde_json::Value;
use signalbox_engine::bridge;
use signalbox_engine::chain::{HoldAnswer, Phase, Ruling, Verdict};
use signalbox_rules::StateUse;
use signalbox_wire::Envelope;
use std::sync::Arc;

/// Maximum length of the arguments in an example, in characters.
const SHORT: usize = 120;
/// Params that the gateway may change on the way to a backend.
const OWN_MEMBERS: [&str; 6] = ["_meta", "name", "uri", "requestState", "inputResponses", "task"];

/// Evaluation of one request or answer.
#[derive(Debug)]
pub(super) struct Progress {
    pub phase: Phase,
    pub then: Outcome,
    pub now: Outcome,
    pub unknown: Option<Reason>,
    /// Shared state that the verdict depends on, with the time of its use.
    pub uses: Vec<(StateUse, i128)>,
    pub held: Option<HeldNow>,
}

/// Message held at the same rule as in the recording.
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

    /// Records the verdict of all rules. `typed` is the method if the client's results carry their type.
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
            Kind::Changed => value().and_then(|message| comparable_part(self.phase, message)),
            Kind::Answered => value(),
            _ => None,
        };
        self.now.content = content.map_or(Content::Incomparable, Content::Is);
    }
}

/// Returns the recorded content of the message, if it can be compared.
pub(super) fn recorded_content(open: &OpenExchange, progress: &Progress) -> Content {
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

/// Returns the part of a changed message that the tape also has.
fn comparable_part(phase: Phase, mut message: Value) -> Option<Value> {
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

/// Returns `true` if the answer to a hold carries content.
pub(super) fn has_content(answer: &HoldAnswer) -> bool {
    matches!(answer, HoldAnswer::Edited { .. } | HoldAnswer::Result { .. } | HoldAnswer::Webhook { .. })
}

/// Formats an outcome for an example.
pub(super) fn describe(outcome: &Outcome) -> String {
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

/// Formats the arguments or params of a call, shortened.
pub(super) fn arguments(request: Option<&Image>) -> String {
    let Some(params) = request.and_then(|request| request.shown("params")) else { return String::new() };
    let text = params.get("arguments").unwrap_or(&params).to_string();
    match text.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
