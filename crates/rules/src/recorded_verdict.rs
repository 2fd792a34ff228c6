//! Verdicts on recorded messages. State comes from the recorded messages before, external inputs from the tape. Missing
//! information is reported, not guessed.

use crate::facts::Hides;
use crate::live::{Live, UNKNOWN_ANSWER};
use crate::outside::{CacheAsk, InTurn, LimitAsk, LimitDecision, Outside, Slot};
use bytes::Bytes;
use signalbox_engine::chain::{HoldAnswer, Judgement};
use signalbox_engine::keys::ExchangeId;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Recorded context of a message.
#[derive(Clone, Default)]
pub struct RecordedContext<'a> {
    /// External inputs of the recorded decisions as rule, kind and text.
    pub inputs: Vec<(&'a str, &'a str, &'a str)>,
    /// Tells which values of the message were redacted.
    pub hides: Option<Hides<'a>>,
}

/// Verdict on a recorded message.
#[derive(Debug)]
pub struct RecordedVerdict {
    /// Judgement. Meaningless if `lacks` is not empty.
    pub judgement: Judgement,
    /// Information that the verdict needs but the tape lacks.
    pub lacks: Vec<Lack>,
    /// State that the verdict depends on.
    pub uses: Vec<StateUse>,
}

/// Information that a verdict needs but the tape lacks.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Lack {
    /// Random draw of this rule, which has no seed.
    Draw(Arc<str>),
    /// Answer in the cache of this rule.
    CachedAnswer(Arc<str>),
    /// Redacted value of the message.
    HiddenValue,
}

/// Use of state from earlier messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateUse {
    /// Rule that owns the state.
    pub rule: Arc<str>,
    /// Age limit of the messages that matter, or `None` if all do.
    pub reaches: Option<Duration>,
}

impl std::fmt::Display for Lack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Draw(rule) => write!(f, "rule `{rule}` draws a random number that is not on the tape"),
            Self::CachedAnswer(rule) => {
                write!(f, "the cache of rule `{rule}` would hold an answer that is not on the tape")
            }
            Self::HiddenValue => f.write_str("a rule looks at a value that was redacted"),
        }
    }
}

impl std::fmt::Debug for RecordedContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorded").field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

impl<'a> RecordedContext<'a> {
    pub(crate) fn outside(self, live: &'a Live) -> TapeOutside<'a> {
        TapeOutside { live, inputs: RefCell::new(self.inputs), lacks: RefCell::default(), uses: RefCell::default() }
    }
}

/// External inputs of a recorded message.
pub(crate) struct TapeOutside<'a> {
    live: &'a Live,
    inputs: RefCell<Vec<(&'a str, &'a str, &'a str)>>,
    lacks: RefCell<Vec<Lack>>,
    uses: RefCell<Vec<StateUse>>,
}

impl TapeOutside<'_> {
    pub fn retried(self, judgement: Judgement, saw_hidden: bool) -> RecordedVerdict {
        let mut lacks = self.lacks.into_inner();
        lacks.extend(saw_hidden.then_some(Lack::HiddenValue));
        RecordedVerdict { judgement, lacks, uses: self.uses.into_inner() }
    }

    /// Takes the next recorded input of a kind, of one rule or of any.
    fn take(&self, rule: Option<&str>, kind: &str) -> Option<u64> {
        let mut inputs = self.inputs.borrow_mut();
        let at = inputs.iter().position(|(by, is, _)| *is == kind && rule.is_none_or(|rule| rule == *by))?;
        inputs.remove(at).2.parse().ok()
    }

    fn uses(&self, slot: &Slot, reaches: Option<Duration>) {
        self.uses.borrow_mut().push(StateUse { rule: Arc::clone(&slot.rule), reaches });
    }
}

impl Outside for TapeOutside<'_> {
    fn limit(&self, ask: &LimitAsk<'_>) -> InTurn<LimitDecision> {
        self.uses(ask.slot, Some(ask.per));
        self.live.limit(ask)
    }

    fn is_counted(&self, slot: &Slot, call: ExchangeId) -> bool {
        self.live.is_counted(slot, call)
    }

    fn draw(&self, slot: &Slot, seed: Option<u64>) -> u64 {
        let next = seed.map(|seed| self.live.seeded(slot, seed));
        if let Some(drawn) = self.take(Some(&slot.rule), "random") {
            return drawn;
        }
        if next.is_none() {
            self.lacks.borrow_mut().push(Lack::Draw(Arc::clone(&slot.rule)));
        } else {
            self.uses(slot, None);
        }
        next.unwrap_or(0)
    }

    fn position(&self, slot: &Slot, now: Instant) -> InTurn<u64> {
        self.uses(slot, None);
        self.live.position(slot, now)
    }

    fn cached(&self, ask: &CacheAsk<'_>) -> InTurn<Option<Bytes>> {
        self.uses(ask.slot, Some(ask.ttl));
        let found = self.live.cached(ask);
        if found.answer.as_ref() == Some(&UNKNOWN_ANSWER) {
            self.lacks.borrow_mut().push(Lack::CachedAnswer(Arc::clone(&ask.slot.rule)));
        }
        found
    }

    fn unix_ms(&self, now: u64) -> u64 {
        self.take(None, "clock").unwrap_or(now)
    }
}

/// Reconstructs the answer to a hold from the inputs of the decision recorded after it. Returns `None` if the tape
/// lacks a part of it.
#[must_use]
pub fn answer_of<'a>(inputs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<HoldAnswer> {
    let inputs: Vec<(&str, &str)> = inputs.into_iter().collect();
    let find = |kind: &str| inputs.iter().find(|(is, _)| *is == kind).map(|(_, text)| *text);
    if let Some(said) = find("webhook") {
        return webhook(said);
    }
    let Some(person) = find("person") else { return Some(HoldAnswer::GoOn { by: None }) };
    if person == "expired" {
        return Some(HoldAnswer::Expired);
    }
    let (did, by) = person.split_once(" by ")?;
    let by = Some(by.to_owned());
    match did {
        "released" => Some(HoldAnswer::GoOn { by }),
        "edited" => Some(HoldAnswer::Edited { by, message: complete_input(find("message")?)? }),
        "answered" => Some(HoldAnswer::Result { by, result: complete_input(find("result")?)? }),
        "refused" => Some(HoldAnswer::Refused { by, reason: find("reason")?.to_owned() }),
        _ => None,
    }
}

fn webhook(said: &str) -> Option<HoldAnswer> {
    if said == "expired" {
        return Some(HoldAnswer::Expired);
    }
    let (status, body) = said.split_once(' ')?;
    if status == "failed" {
        return Some(HoldAnswer::Failed(body.to_owned()));
    }
    if status == "overloaded" {
        return Some(HoldAnswer::Overloaded(body.to_owned()));
    }
    let body = if body.is_empty() { Bytes::new() } else { complete_input(body)? };
    Some(HoldAnswer::Webhook { status: status.parse().ok()?, body })
}

/// Returns the bytes of an input, or `None` if only its length and hash were recorded.
fn complete_input(text: &str) -> Option<Bytes> {
    let shortened = text.split_once(" bytes, fnv ").is_some_and(|(length, _)| length.parse::<usize>().is_ok());
    (!shortened).then(|| Bytes::copy_from_slice(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_a_wait_is_read_back() {
        let by = || Some("ada".to_owned());
        let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
        type Inputs = &'static [(&'static str, &'static str)];
        let cases: [(Inputs, Option<HoldAnswer>); 12] = [
            (&[], Some(HoldAnswer::GoOn { by: None })),
            (&[("person", "released by ada")], Some(HoldAnswer::GoOn { by: by() })),
            (&[("person", "expired")], Some(HoldAnswer::Expired)),
            (
                &[("person", "edited by ada"), ("message", "{}")],
                Some(HoldAnswer::Edited { by: by(), message: bytes("{}") }),
            ),
            (&[("person", "edited by ada")], None),
            (&[("person", "answered by ada"), ("result", "99999 bytes, fnv 0011223344556677")], None),
            (
                &[("person", "refused by ada"), ("reason", "no")],
                Some(HoldAnswer::Refused { by: by(), reason: "no".to_owned() }),
            ),
            (&[("webhook", "204 ")], Some(HoldAnswer::Webhook { status: 204, body: Bytes::new() })),
            (&[("webhook", "200 {\"a\":1}")], Some(HoldAnswer::Webhook { status: 200, body: bytes("{\"a\":1}") })),
            (&[("webhook", "failed it is gone")], Some(HoldAnswer::Failed("it is gone".to_owned()))),
            (&[("webhook", "overloaded too many")], Some(HoldAnswer::Overloaded("too many".to_owned()))),
            (&[("webhook", "nonsense")], None),
        ];
        for (inputs, answer) in cases {
            assert_eq!(answer_of(inputs.iter().copied()), answer, "{inputs:?}");
        }
    }
}
