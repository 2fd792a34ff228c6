//! Interceptors whose verdicts are thrown with dice: they let pass, pause, hold for a person, ask a web address,
//! change, answer, refuse and fork. Their mood is what a reload of rules changes.

use crate::dice::Dice;
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::chain::Interceptor;
use signalbox_engine::chain::{
    Case, Effect, Hold, HoldAnswer, HoldQuestion, HoldResponse, Judgement, Phase, Verdict, settle,
};
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{PostFuture, WebhookError, WebhookTransport};
use signalbox_wire::{Envelope, Limits};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The interceptor.
pub struct Whims {
    name: &'static str,
    dice: Mutex<Dice>,
    mood: AtomicUsize,
}

impl Whims {
    /// One that has something to say about this many of a hundred messages.
    pub fn new(name: &'static str, seed: u64, mood: usize) -> Self {
        Self { name, dice: Mutex::new(Dice::new(seed)), mood: AtomicUsize::new(mood) }
    }

    /// From now on it has something to say about this many of a hundred messages.
    pub fn set_mood(&self, mood: usize) {
        self.mood.store(mood, Ordering::Relaxed);
    }

    fn decide(&self, case: &Case<'_>) -> Judgement {
        let mut dice = self.dice.lock().unwrap();
        let opens = matches!(case.message.method(), Some("initialize" | "notifications/initialized"));
        if !dice.chance(self.mood.load(Ordering::Relaxed)) || (opens && !dice.chance(5)) {
            return Judgement::pass();
        }
        let hold = |question| Verdict::Hold(Hold { question, cursor: 0, message: None });
        match dice.below(9) {
            0 | 1 => hold(HoldQuestion::Pause(dice.millis(0..3_000))),
            2 | 3 => hold(HoldQuestion::Person { reason: "a whim".into(), within: dice.millis(200..12_000) }),
            4 => {
                let (url, body) = ("http://whim".into(), Bytes::from_static(b"{}"));
                hold(HoldQuestion::Webhook { url, body, within: dice.millis(100..3_000) })
            }
            5 => Verdict::Refuse(Fault::new(FaultKind::Refused, "a whim")),
            6 => Verdict::Reply(Bytes::from_static(br#"{"content":[],"resultType":"complete"}"#)),
            7 => modified(case),
            _ => return forked(case),
        }
        .into()
    }
}

/// The same message, written in another way.
fn modified(case: &Case<'_>) -> Verdict {
    let mut message: Value = serde_json::from_slice(case.message.bytes()).unwrap();
    if let Some(arguments) = message.pointer_mut("/params/arguments") {
        arguments["whim"] = json!(true);
    }
    Verdict::Modify(Envelope::parse(Bytes::from(format!("{message} "))).unwrap())
}

fn forked(case: &Case<'_>) -> Judgement {
    let mut judgement = Judgement::pass();
    if case.phase == Phase::Request {
        judgement.effects.push(Effect::Fork { backend: "b0".into(), message: case.message.clone() });
    }
    judgement
}

impl Interceptor for Whims {
    fn name(&self) -> &'static str {
        self.name
    }

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        match resumed.map(|resumed| resumed.answer) {
            None => self.decide(case),
            Some(HoldAnswer::Webhook { status: 200, .. }) => Judgement::pass(),
            Some(answer) => settle(case, answer, None, &Limits::default()),
        }
    }
}

/// A web that answers sooner or later, or not at all.
pub struct Web(pub Mutex<Dice>);

impl WebhookTransport for Web {
    fn post(&self, url: &str, _body: Bytes, _bearer: Option<&str>) -> PostFuture {
        let (url, after, outcome) = {
            let mut dice = self.0.lock().unwrap();
            (url.to_owned(), dice.millis(0..4_000), dice.below(3))
        };
        Box::pin(async move {
            tokio::time::sleep(after).await;
            match outcome {
                0 => Err(WebhookError::Failed(url)),
                1 => Ok((500, Bytes::new())),
                _ => Ok((200, Bytes::from_static(b"{}"))),
            }
        })
    }
}
