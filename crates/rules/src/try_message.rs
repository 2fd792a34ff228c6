//! What the rules would do with one message, without a gateway: `signalbox rules test`.

use crate::ends::Ends;
use crate::facts::MessageFacts;
use crate::outside::Outside;
use crate::played::Fresh;
use crate::rule_set::RuleSet;
use crate::walk::{Walk, place_of};
use bytes::Bytes;
use signalbox_engine::chain::{Effect, Hold, HoldAnswer, HoldQuestion, Judgement, Phase, Rulings, Verdict};
use signalbox_wire::{Envelope, Kind, Limits, Refusal};
use std::time::{Duration, Instant};

/// What is to be supposed of a message besides its bytes.
#[derive(Clone, Debug)]
pub struct Supposed {
    /// Which way it goes; told from the message where this is not said.
    pub phase: Option<Phase>,
    /// The request that an answer belongs to.
    pub request: Option<Bytes>,
    /// The method of that request, where the request itself is not given.
    pub method: Option<String>,
    /// The tool, prompt or URI; of a request it is told from the message.
    pub tool: Option<String>,
    /// The backend.
    pub backend: Option<String>,
    /// On whose behalf.
    pub principal: String,
    /// The id of the session.
    pub session: Option<String>,
    /// How old the session is.
    pub session_age: Duration,
    /// The revision the client speaks.
    pub revision: Option<String>,
    /// The wall clock, in milliseconds since 1970.
    pub unix_ms: u64,
}

impl Default for Supposed {
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

/// What became of it.
#[derive(Debug)]
pub struct Tried {
    /// The verdict.
    pub verdict: Verdict,
    /// What each rule that fitted decided, and from what.
    pub rulings: Rulings,
    /// What would be done besides.
    pub effects: Vec<Effect>,
    /// How long it was made to wait before.
    pub waited: Duration,
}

/// Judges one message as if nothing had happened before: every limit is free, every cache is empty.
///
/// # Errors
/// If the message, or the request given with it, is not a valid JSON-RPC message.
pub fn try_message(set: &RuleSet, message: &[u8], supposed: &Supposed, now: Instant) -> Result<Tried, Refusal> {
    try_with(set, message, supposed, now, &Fresh)
}

/// Judges one message with an outside of its own, such as [`crate::Played`] for what a tape has written down.
///
/// # Errors
/// If the message, or the request given with it, is not a valid JSON-RPC message.
pub fn try_with(
    set: &RuleSet,
    message: &[u8],
    supposed: &Supposed,
    now: Instant,
    outside: &dyn Outside,
) -> Result<Tried, Refusal> {
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
        token: None,
        session: supposed.session.as_deref(),
        session_age: supposed.session_age,
        revision: supposed.revision.as_deref(),
        exchange: None,
        now,
        unix_ms: supposed.unix_ms,
        request: request.as_ref(),
        by_task: false,
        hidden: None,
    };
    let ends = Ends::default();
    let mut judged = Walk::new(set, 0, &ends, facts, &message, outside).run();
    let (mut waited, mut message) = (Duration::ZERO, message);
    // A pause is over by itself, and the rules after it are asked.
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
    Ok(Tried { verdict: judged.verdict, rulings: judged.rulings, effects: judged.effects, waited })
}
