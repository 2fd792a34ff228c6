//! Interceptor that evaluates a replaceable rule set, together with the rules' state.

use crate::end_cache::EndCache;
use crate::facts::{AudienceLookup, Hidden, MessageFacts};
use crate::limits;
use crate::live::{Live, Overflows, StoredAnswer};
use crate::outside::Outside;
use crate::recorded_inputs::NoHistory;
use crate::recorded_verdict::{RecordedContext, RecordedVerdict};
use crate::rule_set::RuleSet;
use crate::walk::{Walk, place_of};
use arc_swap::ArcSwap;
use signalbox_engine::bridge::tasks::TaskState;
use signalbox_engine::catalog::Visibility;
use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Phase, Ruling, Rulings, Verdict};
use signalbox_engine::fact::FinishedFact;
use signalbox_engine::fault::{Fault, FaultKind};
use signalbox_engine::keys::{ExchangeId, SessionKey};
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::message_redactor::MessageRedactor;
use signalbox_wire::Envelope;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Interceptor that evaluates rules on messages.
pub struct RuleInterceptor {
    current: ArcSwap<Version>,
    /// Latest sets, newest first. A held message continues under the set that held it.
    versions: Mutex<VecDeque<Arc<Version>>>,
    /// Bit set of the phases that the current set evaluates. Messages of other phases cost no more than this check.
    phases: AtomicU16,
    live: Live,
    redactor: Option<Arc<dyn MessageRedactor>>,
    visibility: Option<Arc<dyn Visibility>>,
}

impl fmt::Debug for RuleInterceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleInterceptor").field("current", &self.current).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Version {
    generation: u16,
    set: Arc<RuleSet>,
    ends: EndCache,
}

impl RuleInterceptor {
    /// Creates an interceptor with this set. `seed` is for random draws of rules without their own seed.
    #[must_use]
    pub fn new(set: RuleSet, seed: u64) -> Self {
        let phases = AtomicU16::new(phases_of(&set));
        let version = Arc::new(Version { generation: 0, set: Arc::new(set), ends: EndCache::default() });
        Self {
            phases,
            current: ArcSwap::new(Arc::clone(&version)),
            versions: Mutex::new(VecDeque::from([version])),
            live: Live::new(seed),
            redactor: None,
            visibility: None,
        }
    }

    /// Redacts the values of messages that texts of rules quote. All of these texts are logged or recorded.
    #[must_use]
    pub fn redacting(self, redactor: Arc<dyn MessageRedactor>) -> Self {
        Self { redactor: Some(redactor), ..self }
    }

    /// Keeps cached lists apart for callers who see different entries.
    #[must_use]
    pub fn showing(self, visibility: Arc<dyn Visibility>) -> Self {
        Self { visibility: Some(visibility), ..self }
    }

    /// Replaces the set from the next message on. Counters, caches and positions survive for rules that keep their id.
    pub fn replace(&self, set: RuleSet) {
        let mut versions = self.versions.lock().unpoisoned();
        let generation = versions.front().map_or(0, |version| version.generation.wrapping_add(1));
        let version = Arc::new(Version { generation, set: Arc::new(set), ends: EndCache::default() });
        self.live.keep_only(version.set.ids());
        versions.push_front(Arc::clone(&version));
        versions.truncate(limits::VERSIONS);
        // During the swap, both sets' phases apply, so that no rule is skipped.
        let phases = phases_of(&version.set);
        self.phases.fetch_or(phases, Ordering::Release);
        self.current.store(version);
        self.phases.store(phases, Ordering::Release);
    }

    /// Returns the current set.
    #[must_use]
    pub fn set(&self) -> Arc<RuleSet> {
        Arc::clone(&self.current.load().set)
    }

    /// Returns the counts of state dropped at a limit.
    #[must_use]
    pub fn overflows(&self) -> Overflows {
        self.live.overflows()
    }

    /// Evaluates a recorded message with the state left by the recorded messages before it. Webhook responses, approval
    /// decisions and random draws come from the tape.
    #[must_use]
    pub fn judge_recorded(
        &self,
        case: &Case<'_>,
        resumed: Option<HoldResponse<'_>>,
        recorded: RecordedContext<'_>,
    ) -> RecordedVerdict {
        let hidden = Hidden::new(recorded.hides);
        let outside = recorded.outside(&self.live);
        let judgement = self.judge_with(case, resumed, &outside, Some(&hidden));
        outside.retried(judgement, hidden.seen())
    }

    /// Records that a forwarded request's answer is not on the tape. The contents of caches that would have stored it
    /// become unknown.
    pub fn answer_is_unknown(&self, exchange: (SessionKey, ExchangeId), now: Instant) {
        self.live.store_unknown_answer(exchange, now);
    }

    /// Returns the origin of the turns ([`crate::outside::Turn::since`]).
    #[must_use]
    pub fn began(&self) -> Instant {
        self.live.began()
    }

    fn version(&self, generation: u16) -> Option<Arc<Version>> {
        let versions = self.versions.lock().unpoisoned();
        versions.iter().find(|version| version.generation == generation).cloned()
    }

    fn facts<'a>(&'a self, case: &Case<'a>) -> MessageFacts<'a> {
        let audience = self.visibility.as_deref().map(|visibility| AudienceLookup { visibility, caller: case.caller });
        MessageFacts { redactor: self.redactor.as_deref(), audience, ..MessageFacts::of(case) }
    }

    fn walk(
        &self,
        version: &Version,
        case: &Case<'_>,
        resumed: Option<HoldResponse<'_>>,
        outside: &dyn Outside,
        hidden: Option<&Hidden<'_>>,
    ) -> Judgement {
        let mut facts = MessageFacts { hidden, ..self.facts(case) };
        let method = facts.method(case.message);
        let set = &*version.set;
        let remembers = method.is_some_and(|method| set.remembers(method));
        let judges = resumed.is_some() || !set.candidates(case.phase, method).is_empty();
        if !judges && case.phase != Phase::Response && !remembers {
            return Judgement::pass();
        }
        let known = facts.exchange.filter(|_| remembers && case.phase == Phase::Response);
        let request = known.and_then(|exchange| self.live.request(exchange));
        facts.request = request.as_ref();
        let judgement = match resumed {
            _ if !judges => Judgement::pass(),
            None => Walk::new(set, version.generation, &version.ends, facts, case.message, outside).run(),
            Some(resumed) => {
                let (_, at) = place_of(resumed.cursor);
                Walk::new(set, version.generation, &version.ends, facts, case.message, outside)
                    .resume(at, resumed.answer)
            }
        };
        match self.remember(case, &facts, &judgement.verdict, remembers) {
            Some(stored) if stored.is_empty() => return judgement,
            Some(stored) => return Judgement { rulings: with_stored(&judgement.rulings, stored), ..judgement },
            None => {}
        }
        let text = "too many calls are waiting for answers that rules compare with their requests; try again later";
        let verdict = Verdict::Refuse(Fault::new(FaultKind::Overloaded, text));
        Judgement { verdict, ..judgement }
    }

    /// Stores what later messages need: the request for its answer, and the answer for caches. Returns the cache
    /// entries made, or `None` if a request that the rules need for its answer cannot be stored.
    fn remember(
        &self,
        case: &Case<'_>,
        facts: &MessageFacts<'_>,
        verdict: &Verdict,
        remembers: bool,
    ) -> Option<Vec<StoredAnswer>> {
        let Some(exchange) = facts.exchange else { return Some(vec![]) };
        let message: &Envelope = match verdict {
            Verdict::Pass => case.message,
            Verdict::Modify(message) => message,
            _ => return Some(vec![]),
        };
        match case.phase {
            Phase::Request if remembers && !self.live.remember(exchange, message) => return None,
            Phase::Response if case.by_task => {}
            Phase::Response => {
                let stored = self.live.store_answer(exchange, message, case.now);
                if remembers && let Some(task) = message.result().and_then(TaskState::read) {
                    self.live.keep_for_task(exchange, &task, case.now);
                }
                return Some(stored);
            }
            _ => {}
        }
        Some(vec![])
    }

    fn judge_with(
        &self,
        case: &Case<'_>,
        resumed: Option<HoldResponse<'_>>,
        outside: &dyn Outside,
        hidden: Option<&Hidden<'_>>,
    ) -> Judgement {
        let Some(told) = resumed else { return self.walk(&self.current.load(), case, None, outside, hidden) };
        match self.version(place_of(told.cursor).0) {
            Some(version) => self.walk(&version, case, resumed, outside, hidden),
            None => {
                let text = "the rules that held this message have been replaced too often meanwhile; send it again";
                Verdict::Refuse(Fault::new(FaultKind::Refused, text)).into()
            }
        }
    }
}

/// Prepends a ruling for each cache that stored the answer.
fn with_stored(rulings: &Rulings, stored: Vec<StoredAnswer>) -> Rulings {
    let told = |one: StoredAnswer| {
        let detail = format!("the answer is kept for {:?}", one.ttl);
        let inputs = vec![("turn", one.turn.text())];
        Arc::new(Ruling { rule: Some(one.rule), verdict: "cached", detail, inputs, ..Ruling::default() })
    };
    stored.into_iter().map(told).chain(rulings.iter().cloned()).collect::<Vec<_>>().into()
}

fn bit(phase: Phase) -> u16 {
    1 << phase as u16
}

fn phases_of(set: &RuleSet) -> u16 {
    Phase::ALL.into_iter().filter(|phase| set.looks_at(*phase)).map(bit).sum()
}

impl Interceptor for RuleInterceptor {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn is_idle(&self) -> bool {
        self.phases.load(Ordering::Acquire) == 0
    }

    fn looks_at(&self, phase: Phase) -> bool {
        self.phases.load(Ordering::Acquire) & bit(phase) != 0
    }

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        self.judge_with(case, resumed, &self.live, None)
    }

    fn judges_parts(&self) -> bool {
        true
    }

    fn would_refuse(&self, case: &Case<'_>) -> Option<Fault> {
        let version = self.current.load();
        let facts = self.facts(case);
        if version.set.candidates(case.phase, facts.method(case.message)).is_empty() {
            return None;
        }
        let ends = EndCache::default();
        let walk = Walk::new(&version.set, version.generation, &ends, facts, case.message, &NoHistory);
        match walk.run().verdict {
            Verdict::Refuse(fault) => Some(fault),
            Verdict::Error(_) => Some(Fault::new(FaultKind::Refused, "a rule answers with an error")),
            Verdict::Pass | Verdict::Modify(_) | Verdict::Hold(_) | Verdict::Reply(_) => None,
        }
    }

    fn finished(&self, finished: &FinishedFact) {
        self.live.finished((finished.session, finished.exchange));
    }

    fn call_ended(&self, operation: ExchangeId) {
        self.live.call_ended(operation);
    }
}
