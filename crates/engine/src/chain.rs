//! The ordered list of interceptors, and the phases in which each of them is asked about a message.
//!
//! Whatever may change, answer, hold or refuse a message is an [`Interceptor`] in one [`Chain`], as breakpoints and rules
//! are. The front machine asks the chain and carries out its verdict.
//!
//! ```text
//! client ─► Request ─────► backend ─► Response ─────► client     a routed request and its answer
//! client ─► ToGateway ─► (answered here) ─► FromGateway ─► client
//! client ─► FromClient ──► backend                               notifications
//! client ◄─ FromBackend ◄─ backend
//! client ◄─ ServerAsks ◄── backend ... ClientAnswers ─► backend  a question in the middle of a call
//! ```
//!
//! In one phase the interceptors are asked in order; toward the client in reverse, so that the first is the one nearest to
//! the client both ways. Each sees what those before it made of the message:
//!
//! ```text
//!          ┌── Pass, Modify: the next one is asked ──┐
//! judge ───┴─► one interceptor ──────────────────────┴─► all have passed: Pass, or Modify with the last message
//!                │ Reply, Error, Refuse: the walk ends
//!                └ Hold: the walk stops; when the question is answered, the same interceptor goes on with the answer
//! ```
//!
//! Invariants:
//!
//! - The first verdict that ends the walk is final.
//! - A message is replaced only by one of the same kind, method and id. Any other replacement becomes a refusal.
//! - What is checked is what is sent: a request that was changed or held is shown once more to those that
//!   [judge changes](Interceptor::judges_changes), who can only pass or refuse it then.
//! - Rulings and effects of an interceptor count even where a later one ends the walk.
//! - An idle chain costs one look at each interceptor ([`Interceptor::is_idle`], [`Interceptor::looks_at`]).
//!
//! An interceptor must never wait or do I/O. Its verdict is a function of the [`Case`] and of the answer it is resumed with,
//! so that a chain that is run again over recorded exchanges gives the same verdicts. What it cannot know by itself (time
//! that must pass, a person's word, the answer of a web address) it asks for with [`Verdict::Hold`].

mod case;
pub mod consent;
mod judgement;
mod person;
mod subject_pattern;

pub use case::{Case, HoldAnswer, HoldQuestion, Phase, Resumed};
pub use consent::{Consent, ConsentOf};
pub use judgement::{Effect, Hold, Judgement, Ruling, Rulings, Verdict};
pub use person::{EditError, edited, settle};
pub use subject_pattern::{EntryNames, SubjectPattern};

/// Maximum size of a webhook's response in bytes: as large as the largest message it is shown, which it may send back
/// changed.
pub const MAX_WEBHOOK_ANSWER: usize = 4 * 1024 * 1024;

use crate::fact::Finished;
use crate::fault::{Fault, FaultKind};
use signalbox_wire::Envelope;
use std::sync::Arc;

/// One concern that is asked about every message.
pub trait Interceptor: Send + Sync {
    /// Its name in logs, in decisions and in the list of interceptors.
    fn name(&self) -> &'static str;

    /// Decides about one message in one phase. `resumed` carries the answer if it held the message before.
    fn judge(&self, case: &Case<'_>, resumed: Option<Resumed<'_>>) -> Judgement;

    /// True while it would pass every message and record nothing, so that nothing need be prepared for it. Called for
    /// every message, so it must be cheap.
    fn is_idle(&self) -> bool {
        false
    }

    /// False while it would pass every message of this phase and record nothing. Called as often as
    /// [`Interceptor::is_idle`].
    fn looks_at(&self, _phase: Phase) -> bool {
        !self.is_idle()
    }

    /// Decides about a request for something that nobody has, or that its caller must not know of; `None` to let the answer to
    /// unknown names stand. Both kinds must be treated alike.
    fn judge_unknown(&self, _case: &Case<'_>) -> Option<Judgement> {
        None
    }

    /// True if it has to be asked once more about a request that an interceptor behind it changed, or that was held.
    fn judges_changes(&self) -> bool {
        false
    }

    /// True if it is asked about each resource that a listen request names, as if the client subscribed to it alone.
    fn judges_parts(&self) -> bool {
        self.judges_changes()
    }

    /// True if it is asked about results that another interceptor gives in the place of the backend's.
    fn judges_replies(&self) -> bool {
        false
    }

    /// The exchange is over.
    fn finished(&self, _finished: &Finished) {}
}

/// All interceptors, in order.
#[derive(Clone, Default)]
pub struct Chain(Arc<[Arc<dyn Interceptor>]>);

/// Where a suspended walk continues, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Resume<'a> {
    /// How many interceptors had passed the message before the one that held it.
    pub passed: usize,
    /// What the holding interceptor is given.
    pub told: Resumed<'a>,
}

/// The result of asking a chain.
#[derive(Debug)]
pub struct ChainJudgement {
    /// The verdict. [`Verdict::Modify`] carries the message as all interceptors together changed it.
    pub verdict: Verdict,
    /// The rulings of each interceptor, under its name.
    pub rulings: Vec<(&'static str, Rulings)>,
    /// Side effects.
    pub effects: Vec<Effect>,
    /// How many interceptors had passed the message when the walk ended.
    pub passed: usize,
}

impl Chain {
    /// A chain of these, asked in this order for requests and in reverse for answers.
    #[must_use]
    pub fn new(list: Vec<Arc<dyn Interceptor>>) -> Self {
        Self(list.into())
    }

    /// The names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|one| one.name()).collect()
    }

    /// True if every interceptor is idle.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.0.iter().all(|one| one.is_idle())
    }

    /// True if any interceptor looks at messages of this phase.
    #[must_use]
    pub fn looks_at(&self, phase: Phase) -> bool {
        self.0.iter().any(|one| one.looks_at(phase))
    }

    /// True if a result that an interceptor gives has to be judged.
    #[must_use]
    pub fn judges_replies(&self) -> bool {
        self.0.iter().any(|one| one.judges_replies() && one.looks_at(Phase::Response))
    }

    /// Asks about a message. Each interceptor sees the message as those before it changed it; the first that ends the
    /// walk decides.
    #[must_use]
    pub fn judge(&self, case: &Case<'_>, resume: Option<Resume<'_>>) -> ChainJudgement {
        let mut outcome = ChainJudgement { verdict: Verdict::Pass, rulings: vec![], effects: vec![], passed: 0 };
        outcome.passed = resume.map_or(0, |resume| resume.passed);
        let mut told = resume.map(|resume| resume.told);
        let mut changed = None;
        while let Some(one) = self.at(case.phase, outcome.passed) {
            // Another interceptor may be why the phase is judged at all. One that held the message is told the answer in any case.
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

    /// Asks about a request that leads nowhere.
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

    /// Asks those that judge changes about a request that has become one for another entry. It cannot wait.
    #[must_use]
    pub fn judge_changed(&self, case: &Case<'_>) -> ChainJudgement {
        let mut outcome = ChainJudgement { verdict: Verdict::Pass, rulings: vec![], effects: vec![], passed: 0 };
        if let Some(refusal) = self.judge_again(&Case { can_wait: false, ..*case }, &mut outcome) {
            outcome.verdict = refusal;
        }
        outcome
    }

    /// Asks those that judge parts about a part of a request. It cannot wait, and is not sent, so that a change of it means nothing.
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

    /// Asks those that judge replies about a result that an interceptor gave. It cannot wait.
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

    /// Shows the final form of a request to those that judge changes, and gives the first verdict that is not to pass it.
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

    /// Tells every interceptor that an exchange is over.
    pub fn finished(&self, finished: &Finished) {
        for one in self.0.iter() {
            one.finished(finished);
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
