//! Evaluates rules on a single message without a gateway, for `signalbox rules test`.

use crate::end_cache::EndCache;
use crate::facts::MessageFacts;
use crate::outside::Outside;
use crate::recorded_inputs::NoHistory;
use crate::rule_set::RuleSet;
use crate::walk::{Walk, place_of};
use bytes::Bytes;
use signalbox_engine::chain::{Effect, Hold, HoldAnswer, HoldQuestion, Judgement, Phase, Rulings, Verdict};
use signalbox_wire::{Envelope, Kind, Limits, Refusal};
use std::time::{Duration, Instant};

/// Assumed context of a message.
#[derive(Clone, Debug)]
pub struct AssumedContext {
    /// Phase, derived from the message if absent.
    pub phase: Option<Phase>,
    /// Request that an answer belongs to.
    pub request: Option<Bytes>,
    /// Method of that request, if the request itself is not given.
    pub method: Option<String>,
    /// Tool, prompt or URI. Derived from the message for a request.
    pub tool: Option<String>,
    pub backend: Option<String>,
    pub principal: String,
    pub session: Option<String>,
    pub session_age: Duration,
    /// Revision that the client speaks.
    pub revision: Option<String>,
    /// Wall clock in milliseconds since 1970.
    pub unix_ms: u64,
}

impl Default for AssumedContext {
    fn default() -> Self {
        Self {
            phase: None,
            request: None,
            method: None,
            tool: None,
            backend: None,
            principal: "anonymous".to_owned(),
            session: None,
            session_age: Duration::ZERO,
            revision: None,
            unix_ms: 0,
        }
    }
}

/// Outcome of a trial evaluation.
#[derive(Debug)]
pub struct TrialOutcome {
    pub verdict: Verdict,
    /// Rulings of the rules that matched, with their inputs.
    pub rulings: Rulings,
    /// Side effects that would occur.
    pub effects: Vec<Effect>,
    /// Total duration of the delays.
    pub waited: Duration,
}

/// Evaluates a message without history: every limit is free, every cache is empty.
///
/// # Errors
/// If the message or the given request is not a valid JSON-RPC message.
pub fn try_message(
    set: &RuleSet,
    message: &[u8],
    supposed: &AssumedContext,
    now: Instant,
) -> Result<TrialOutcome, Refusal> {
    try_with(set, message, supposed, now, &NoHistory)
}

/// Evaluates a message with custom external inputs, such as [`crate::RecordedInputs`] for recorded ones.
///
/// # Errors
/// If the message or the given request is not a valid JSON-RPC message.
pub fn try_with(
    set: &RuleSet,
    message: &[u8],
    supposed: &AssumedContext,
    now: Instant,
    outside: &dyn Outside,
) -> Result<TrialOutcome, Refusal> {
    let read = |bytes: &[u8]| Envelope::read(Bytes::copy_from_slice(bytes), &Limits::default());
    let message = read(message)?;
    let request = supposed.request.as_ref().map(|bytes| read(bytes)).transpose()?;
    let asked = request.as_ref().and_then(Envelope::method).or(supposed.method.as_deref());
    let of_request = request.as_ref().and_then(crate::facts::subject_of);
    let facts = MessageFacts {
        phase: supposed.phase.unwrap_or(match message.kind() {
            Kind::Request => Phase::Request,
            Kind::Notification => Phase::FromClient,
            Kind::Response | Kind::Error => Phase::Response,
        }),
        round: 1,
        asked,
        subject: supposed.tool.as_deref().or(of_request.as_deref()),
        own_name: None,
        completes_resource: false,
        backend: supposed.backend.as_deref(),
        principal: &supposed.principal,
        page: None,
        token: None,
        session: supposed.session.as_deref(),
        session_age: supposed.session_age,
        revision: supposed.revision.as_deref(),
        exchange: None,
        call: None,
        now,
        unix_ms: supposed.unix_ms,
        request: request.as_ref(),
        by_task: false,
        hidden: None,
        redactor: None,
        audience: None,
    };
    let ends = EndCache::default();
    let mut judged = Walk::new(set, 0, &ends, facts, &message, outside).run();
    let (mut waited, mut message) = (Duration::ZERO, message);
    // A pause ends by itself, and the rules after it run.
    while let Verdict::Hold(Hold { question: HoldQuestion::Pause(pause), cursor, message: changed }) = &judged.verdict {
        waited = waited.saturating_add(*pause);
        let (at, changed) = (place_of(*cursor).1, changed.clone());
        let was_changed = changed.is_some();
        message = changed.unwrap_or(message);
        let mut next = Walk::new(set, 0, &ends, facts, &message, outside).resume(at, &HoldAnswer::GoOn { by: None });
        if was_changed && matches!(next.verdict, Verdict::Pass) {
            next.verdict = Verdict::Modify(message.clone());
        }
        let rulings: Vec<_> = judged.rulings.iter().chain(next.rulings.iter()).cloned().collect();
        judged.effects.append(&mut next.effects);
        judged = Judgement { verdict: next.verdict, rulings: rulings.into(), effects: judged.effects };
    }
    Ok(TrialOutcome { verdict: judged.verdict, rulings: judged.rulings, effects: judged.effects, waited })
}
