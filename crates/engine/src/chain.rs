//! The ordered list of interceptors, and the phases in which each of them judges a message.
//!
//! Everything that may change, answer, hold or refuse a message, such as a rule or a breakpoint, is an [`Interceptor`]
//! in one [`Chain`]. The front machine runs the chain and carries out its verdict.
//!
//! ```text
//! client ─► Request ─────► backend ─► Response ─────► client     a routed request and its answer
//! client ─► ToGateway ─► (answered here) ─► FromGateway ─► client
//! client ─► FromClient ──► backend                               notifications
//! client ◄─ FromBackend ◄─ backend
//! client ◄─ ServerAsks ◄── backend ... ClientAnswers ─► backend  a question in the middle of a call
//! ```
//!
//! In one phase the interceptors run in order; toward the client in reverse, so that the first one is nearest to the
//! client in both directions. Each sees the message as the ones before it left it:
//!
//! ```text
//!          ┌── Pass, Modify: the next one is asked ──┐
//! judge ───┴─► one interceptor ──────────────────────┴─► all have passed: Pass, or Modify with the last message
//!                │ Reply, Error, Refuse: the walk ends
//!                 └ Hold: the walk stops; when the question is answered, the same interceptor resumes with the answer
//! ```
//!
//! Invariants:
//!
//! - The first verdict that ends the walk is final.
//! - A message is replaced only by one of the same kind, method and id. Any other replacement becomes a refusal.
//! - The message that is sent is the one that was checked: a changed or held request is shown again to the interceptors
//!   that [judge changes](Interceptor::judges_changes), which may then only pass or refuse it.
//! - Rulings and effects of an interceptor count even if a later one ends the walk.
//! - An idle chain costs one check per interceptor ([`Interceptor::is_idle`], [`Interceptor::looks_at`]).
//!
//! An interceptor must never wait or do I/O. Its verdict is a function of the [`Case`] and of the answer it is resumed
//! with, so that replaying recorded exchanges gives the same verdicts. For outside input (a delay, a person's decision,
//! the answer of a webhook) it returns [`Verdict::Hold`].

mod case;
pub mod consent;
mod entry_pattern;
mod judgement;
mod person;
mod work;

pub use case::{Case, HoldAnswer, HoldQuestion, HoldResponse, Phase};
pub use consent::{Consent, ConsentOf};
pub use entry_pattern::{EntryNames, EntryPattern};
pub use judgement::{Effect, Hold, Judgement, Ruling, Rulings, Verdict};
pub use person::{EditError, edited, settle};
pub use work::Work;

/// Maximum size of a webhook's response in bytes. It equals the size of the largest message sent to a webhook, because
/// the webhook may send that back changed.
pub const MAX_WEBHOOK_ANSWER: usize = 4 * 1024 * 1024;

use crate::fact::FinishedFact;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use signalbox_wire::Envelope;
use std::sync::Arc;

/// A concern, such as rules or breakpoints, that judges every message.
pub trait Interceptor: Send + Sync {
    /// Returns the name used in logs, in decisions and in the list of interceptors.
    fn name(&self) -> &'static str;

    /// Judges one message in one phase. `resumed` carries the answer if the interceptor held the message before.
    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement;

    /// Returns true while the interceptor would pass every message and record nothing, so that nothing need be prepared
    /// for it. Called for every message, so it must be cheap.
    fn is_idle(&self) -> bool {
        false
    }

    /// Returns false while the interceptor would pass every message of this phase and record nothing. Called as often
    /// as [`Interceptor::is_idle`].
    fn looks_at(&self, _phase: Phase) -> bool {
        !self.is_idle()
    }

    /// Judges a request for an entry that does not exist or is hidden from the caller; `None` keeps the answer to
    /// unknown names. Both cases must be treated alike.
    fn judge_unknown(&self, _case: &Case<'_>) -> Option<Judgement> {
        None
    }

    /// Returns true if the interceptor must judge a request again after a later one changed it, or after a hold.
    fn judges_changes(&self) -> bool {
        false
    }

    /// Returns true if the interceptor judges each resource that a listen request names, as if the client subscribed to
    /// it alone.
    fn judges_parts(&self) -> bool {
        self.judges_changes()
    }

    /// Returns the fault with which the interceptor would refuse a request, without any effect of the request. It is
    /// asked about the URIs that a completion names, as if the client read them.
    fn would_refuse(&self, _case: &Case<'_>) -> Option<Fault> {
        None
    }

    /// Returns true if the interceptor judges results that another interceptor gives instead of the backend.
    fn judges_replies(&self) -> bool {
        false
    }

    /// Notifies the interceptor that the exchange is over.
    fn finished(&self, _finished: &FinishedFact) {}

    /// Notifies the interceptor that the call that began with this exchange is over: its last round asked the client
    /// for nothing more.
    fn call_ended(&self, _operation: ExchangeId) {}
}

/// All interceptors, in order.
#[derive(Clone, Default)]
pub struct Chain(Arc<[Arc<dyn Interceptor>]>);

/// Position and answer with which a suspended walk resumes.
#[derive(Clone, Copy, Debug)]
pub struct Resume<'a> {
    /// Number of interceptors that passed the message before the one that held it.
    pub passed: usize,
    /// Input for the interceptor that held the message.
    pub told: HoldResponse<'a>,
}

/// Result of running a chain.
#[derive(Debug)]
pub struct ChainJudgement {
    /// Final verdict. [`Verdict::Modify`] carries the message with the changes of all interceptors.
    pub verdict: Verdict,
    /// Rulings of each interceptor, under its name.
    pub rulings: Vec<(&'static str, Rulings)>,
    /// Side effects of all interceptors.
    pub effects: Vec<Effect>,
    /// Number of interceptors that had passed the message when the walk ended.
    pub passed: usize,
}

impl Chain {
    /// Creates a chain that runs in this order for requests and in reverse for answers.
    #[must_use]
    pub fn new(list: Vec<Arc<dyn Interceptor>>) -> Self {
        Self(list.into())
    }

    /// Returns the names of the interceptors, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|one| one.name()).collect()
    }

    /// Returns true if every interceptor is idle.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.0.iter().all(|one| one.is_idle())
    }

    /// Returns true if any interceptor looks at messages of this phase.
    #[must_use]
    pub fn looks_at(&self, phase: Phase) -> bool {
        self.0.iter().any(|one| one.looks_at(phase))
    }

    /// Returns true if a result given by an interceptor must be judged.
    #[must_use]
    pub fn judges_replies(&self) -> bool {
        self.0.iter().any(|one| one.judges_replies() && one.looks_at(Phase::Response))
    }

    /// Judges a message. Each interceptor sees the message as those before it changed it; the first that ends the walk
    /// decides.
    #[must_use]
    pub fn judge(&self, case: &Case<'_>, resume: Option<Resume<'_>>) -> ChainJudgement {
        let mut outcome = ChainJudgement { verdict: Verdict::Pass, rulings: vec![], effects: vec![], passed: 0 };
        outcome.passed = resume.map_or(0, |resume| resume.passed);
        let mut told = resume.map(|resume| resume.told);
        let mut changed = None;
        while let Some(one) = self.at(case.phase, outcome.passed) {
            // Another interceptor may be the reason why the phase is judged at all. An interceptor that held the
            // message always receives the answer.
            if told.is_none() && !one.looks_at(case.phase) {
                outcome.passed += 1;
                continue;
            }
            let message = changed.as_ref().unwrap_or(case.message);
            let judgement = one.judge(&Case { message, ..*case }, told.take());
            if !judgement.rulings.is_empty() {
                outcome.rulings.push((one.name(), judgement.rulings));
            }
            if outcome.effects.is_empty() {
                outcome.effects = judgement.effects;
            } else {
                outcome.effects.extend(judgement.effects);
            }
            match replaceable(case.message, judgement.verdict, one.name()) {
                Verdict::Pass => {}
                Verdict::Modify(message) => changed = Some(message),
                Verdict::Hold(mut hold) => {
                    hold.message = hold.message.or(changed);
                    outcome.verdict = Verdict::Hold(hold);
                    return outcome;
                }
                end => {
                    outcome.verdict = end;
                    return outcome;
                }
            }
            outcome.passed += 1;
        }
        if case.phase == Phase::Request && (changed.is_some() || resume.is_some()) {
            let message = changed.as_ref().unwrap_or(case.message);
            if let Some(refusal) = self.judge_again(&Case { message, can_wait: false, ..*case }, &mut outcome) {
                outcome.verdict = refusal;
                return outcome;
            }
        }
        if let Some(message) = changed {
            outcome.verdict = Verdict::Modify(message);
        }
        outcome
    }

    /// Judges a request without a route.
    #[must_use]
    pub fn judge_unknown(&self, case: &Case<'_>) -> ChainJudgement {
        let mut outcome = ChainJudgement { verdict: Verdict::Pass, rulings: vec![], effects: vec![], passed: 0 };
        let found = self.0.iter().find_map(|one| Some((one.name(), one.judge_unknown(case)?)));
        if let Some((name, judgement)) = found {
            outcome.rulings.push((name, judgement.rulings));
            outcome.verdict = judgement.verdict;
        }
        outcome
    }

    /// Runs the interceptors that judge changes on a request that was turned into one for another entry. It cannot
    /// wait.
    #[must_use]
    pub fn judge_changed(&self, case: &Case<'_>) -> ChainJudgement {
        let mut outcome = ChainJudgement { verdict: Verdict::Pass, rulings: vec![], effects: vec![], passed: 0 };
        if let Some(refusal) = self.judge_again(&Case { can_wait: false, ..*case }, &mut outcome) {
            outcome.verdict = refusal;
        }
        outcome
    }

    /// Returns the fault with which an interceptor would refuse a request, with the interceptor's name.
    #[must_use]
    pub fn would_refuse(&self, case: &Case<'_>) -> Option<(&'static str, Fault)> {
        let mut asked = self.0.iter().filter(|one| one.looks_at(case.phase));
        asked.find_map(|one| Some((one.name(), one.would_refuse(case)?)))
    }

    /// Runs the interceptors that judge parts on a part of a request. It cannot wait, and changes of it are ignored
    /// because it is not sent.
    #[must_use]
    pub fn judge_part(&self, case: &Case<'_>) -> ChainJudgement {
        let mut outcome = ChainJudgement { verdict: Verdict::Pass, rulings: vec![], effects: vec![], passed: 0 };
        let case = Case { can_wait: false, ..*case };
        for one in self.0.iter().filter(|one| one.judges_parts() && one.looks_at(case.phase)) {
            let judgement = one.judge(&case, None);
            if !matches!(judgement.verdict, Verdict::Pass | Verdict::Modify(_)) {
                outcome.rulings.push((one.name(), judgement.rulings));
                outcome.verdict = judgement.verdict;
                break;
            }
        }
        outcome
    }

    /// Runs the interceptors that judge replies on a result that an interceptor gave. It cannot wait.
    #[must_use]
    pub fn judge_reply(&self, case: &Case<'_>) -> ChainJudgement {
        let mut outcome = ChainJudgement { verdict: Verdict::Pass, rulings: vec![], effects: vec![], passed: 0 };
        for one in self.0.iter().rev().filter(|one| one.judges_replies() && one.looks_at(case.phase)) {
            let message = match &outcome.verdict {
                Verdict::Modify(message) => message,
                _ => case.message,
            };
            let judgement = one.judge(&Case { message, can_wait: false, ..*case }, None);
            if !judgement.rulings.is_empty() {
                outcome.rulings.push((one.name(), judgement.rulings));
            }
            match replaceable(case.message, judgement.verdict, one.name()) {
                Verdict::Pass => {}
                Verdict::Modify(message) => outcome.verdict = Verdict::Modify(message),
                end => {
                    outcome.verdict = end;
                    break;
                }
            }
        }
        outcome
    }

    /// Runs the interceptors that judge changes on the final form of a request. Returns the first verdict other than
    /// pass.
    fn judge_again(&self, case: &Case<'_>, outcome: &mut ChainJudgement) -> Option<Verdict> {
        for one in self.0.iter().filter(|one| one.judges_changes() && one.looks_at(case.phase)) {
            let judgement = one.judge(case, None);
            match judgement.verdict {
                Verdict::Pass => {}
                Verdict::Refuse(_) | Verdict::Error(_) => {
                    outcome.rulings.push((one.name(), judgement.rulings));
                    return Some(judgement.verdict);
                }
                _ => {
                    let text = format!("{}: the request was changed after it was checked", one.name());
                    return Some(Verdict::Refuse(Fault::new(FaultKind::Refused, text)));
                }
            }
        }
        None
    }

    /// Notifies every interceptor that an exchange is over.
    pub fn finished(&self, finished: &FinishedFact) {
        for one in self.0.iter() {
            one.finished(finished);
        }
    }

    /// Notifies every interceptor that the call that began with this exchange is over.
    pub fn call_ended(&self, operation: ExchangeId) {
        for one in self.0.iter() {
            one.call_ended(operation);
        }
    }

    fn at(&self, phase: Phase, passed: usize) -> Option<&dyn Interceptor> {
        let index = if phase.is_inward() { self.0.len().checked_sub(passed + 1)? } else { passed };
        self.0.get(index).map(AsRef::as_ref)
    }
}

/// Turns a verdict whose message may not replace the judged one into a refusal.
fn replaceable(before: &Envelope, verdict: Verdict, who: &str) -> Verdict {
    let after = match &verdict {
        Verdict::Modify(message) => Some(message),
        Verdict::Hold(hold) => hold.message.as_ref(),
        _ => None,
    };
    let unfit = after.and_then(|after| {
        let same_id = after.id_token() == before.id_token();
        person::fits(before, after)
            .err()
            .map(|error| error.to_string())
            .or_else(|| (!same_id).then(|| "the edited message must keep its id".to_owned()))
    });
    match unfit {
        Some(why) => Verdict::Refuse(Fault::new(FaultKind::Refused, format!("{who}: {why}"))),
        None => verdict,
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
