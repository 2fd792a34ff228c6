//! Evaluates events with the new rules and compares the outcome with the tape.

use super::class::{Class, Reason};
use super::event::{Event, EventKind};
use super::image::Image;
use super::open_exchange::{Forward, OpenExchange};
use super::outcome::Outcome;
use super::progress::{Progress, arguments, describe, has_content, recorded_content};
use super::report::{BacktestExample, BacktestReport, Difference, TapeNote};
use super::rule_pass::RulePass;
use super::tape_context::{Moment, TapeContext, has_result_types};
use signalbox_engine::chain::{Hold, HoldAnswer, HoldQuestion, HoldResponse, Interceptor, Phase, Verdict};
use signalbox_engine::fact::{FinishedFact, Outcome as Ended};
use signalbox_engine::keys::{ExchangeId, SessionKey};
use signalbox_engine::record::TapeInfo;
use signalbox_engine::{Caller, Principal};
use signalbox_rules::{RecordedContext, RecordedVerdict, RuleInterceptor, RuleSet, answer_of};
use signalbox_wire::{Envelope, Era};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of times that a message is resumed before it is rejected, as in the gateway.
const MAX_HOLDS: usize = 1100;
/// Pass to evaluate again.
struct PassContext<'a> {
    phase: Phase,
    can_wait: bool,
    hides: Option<&'a Image>,
    since: i128,
    at: u64,
}

/// Recorded outcome of a message, with the new one if it is known.
#[derive(Clone, Copy)]
struct OutcomePair<'a> {
    then: &'a Outcome,
    now: Option<&'a Outcome>,
}

/// Evaluates the new rules on one tape.
pub(super) struct Evaluator<'a> {
    set: RuleSet,
    rules: RuleInterceptor,
    /// Instant that corresponds to the origin of the turns.
    start: Instant,
    pub context: TapeContext,
    tape: String,
    sampled: bool,
    /// Time of the latest gap on the tape.
    gap: Option<i128>,
    /// Time of the latest unknown verdict in each phase.
    doubts: HashMap<Phase, i128>,
    report: &'a mut BacktestReport,
}

impl<'a> Evaluator<'a> {
    pub fn new(set: &RuleSet, info: &TapeInfo, report: &'a mut BacktestReport) -> Self {
        let sampling = Some(info.sampling.clone()).filter(|words| !words.is_empty() && words != "all");
        let sampled = sampling.is_some();
        report.tapes.push(TapeNote { id: info.id.clone(), sampling, gaps: 0, missing: 0 });
        let rules = RuleInterceptor::new(set.clone(), 0);
        // Leave room before the first turn, because sessions may be older.
        let start = rules.began() + Duration::from_secs(366 * 24 * 60 * 60);
        let (context, doubts) = Default::default();
        Self { set: set.clone(), rules, start, context, tape: info.id.clone(), sampled, gap: None, doubts, report }
    }

    /// Records a gap with this many lost facts.
    pub fn gap(&mut self, facts: u64, since: i128) {
        self.gap = Some(since);
        if let Some(note) = self.report.note() {
            note.gaps += 1;
            note.missing += facts;
        }
    }

    pub fn judge(&mut self, open: &mut OpenExchange, event: Event, since: i128) {
        let Event { at, phase, kind, mut walks, .. } = event;
        match kind {
            EventKind::Whole if matches!(phase, Phase::Request | Phase::ToGateway) => {
                self.report.calls += 1;
                let message = open.request.as_ref().and_then(Image::envelope);
                self.begin(open, phase, message, open.request.clone(), &mut walks, since, at);
            }
            EventKind::Whole => {
                self.conclude(open, since);
                self.answer(open, phase, &mut walks, since, at);
            }
            EventKind::Resumed => self.resume(open, phase, &mut walks, since, at),
            EventKind::Midway(image) => self.midway(open, phase, &image, &mut walks, since, at),
            EventKind::Beyond => {
                if self.set.judges(phase, open.method.as_deref()) {
                    self.unknown(open, phase, Reason::FurtherRound, since);
                }
            }
            EventKind::End => self.end(open, since),
        }
    }

    /// Evaluates a request, or an answer as the client would get it. `image` is its source.
    #[allow(clippy::too_many_arguments, reason = "the parts of a message, each needed once")]
    fn begin(
        &mut self,
        open: &mut OpenExchange,
        phase: Phase,
        message: Option<Envelope>,
        image: Option<Image>,
        walks: &mut VecDeque<RulePass>,
        since: i128,
        at: u64,
    ) {
        let walk = walks.pop_front().unwrap_or_default();
        let mut progress = Progress::new(phase);
        walk.add_to(&mut progress.then);
        let judged = self.set.judges(phase, open.method.as_deref());
        let needed = judged || self.rules.looks_at(phase);
        match message {
            _ if !needed => {}
            _ if open.at_breakpoint => progress.unknown = Some(Reason::Breakpoint),
            Some(message) => {
                let again = PassContext { phase, can_wait: true, hides: image.as_ref(), since, at };
                self.walk(open, &mut progress, message, None, walk, walks, &again);
            }
            None if judged => progress.unknown = Some(Reason::NoMessage),
            None => {}
        }
        open.progress = Some(progress);
    }

    /// Evaluates an answer, provided that the backend gets the recorded request.
    fn answer(&mut self, open: &mut OpenExchange, phase: Phase, walks: &mut VecDeque<RulePass>, since: i128, at: u64) {
        let reason = match open.forward {
            Some(Forward::AsRecorded) | None => None,
            Some(Forward::Otherwise) => Some(Reason::OtherRequest),
            Some(Forward::Unanswered | Forward::Stopped | Forward::Unknown) => return,
        };
        if let Some(reason) = reason {
            self.answer_unknown(open, phase, reason, since);
            return;
        }
        let as_it_was = walks.front().is_none_or(|first| first.verdict() == "pass");
        let image = match as_it_was {
            true => open.answer.clone(),
            false => open.as_answered().cloned(),
        };
        let mut message = image.as_ref().and_then(Image::envelope);
        if let Some(answered) = message.take_if(|_| !as_it_was) {
            message = self.context.translated(open, answered);
            if message.is_none() {
                self.answer_unknown(open, phase, Reason::Translated, since);
                return;
            }
        }
        if message.is_none() {
            self.forget_answer(open, since);
        }
        self.begin(open, phase, message, image, walks, since, at);
    }

    fn answer_unknown(&mut self, open: &mut OpenExchange, phase: Phase, reason: Reason, since: i128) {
        self.forget_answer(open, since);
        if self.set.judges(phase, open.method.as_deref()) {
            self.unknown(open, phase, reason, since);
        }
    }

    /// Tells the caches that the answer to a forwarded request is unknown.
    fn forget_answer(&self, open: &OpenExchange, since: i128) {
        self.rules.answer_is_unknown(key(open), self.moment(since, 0).now);
    }

    /// Evaluates the continuation of a held message.
    fn resume(&mut self, open: &mut OpenExchange, phase: Phase, walks: &mut VecDeque<RulePass>, since: i128, at: u64) {
        let Some(walk) = walks.pop_front() else { return };
        let Some(mut progress) = open.progress.take_if(|progress| progress.phase == phase) else { return };
        walk.add_to(&mut progress.then);
        if let Some(held) = progress.held.take_if(|held| walk.after() == Some(&*held.rule)) {
            let answer = answer_of(walk.answer(&held.rule));
            let told = |answer: &HoldAnswer| !walk.is_redacted() || !has_content(answer);
            match answer.filter(told) {
                Some(answer) => {
                    let again = PassContext { phase, can_wait: true, hides: None, since, at };
                    let told = Some((held.cursor, answer));
                    self.walk(open, &mut progress, held.message, told, walk, walks, &again);
                }
                None => progress.unknown = Some(Reason::NoAnswerToHold),
            }
        }
        open.progress = Some(progress);
    }

    /// Evaluates a message that cannot be held.
    fn midway(
        &mut self,
        open: &mut OpenExchange,
        phase: Phase,
        image: &Image,
        walks: &mut VecDeque<RulePass>,
        since: i128,
        at: u64,
    ) {
        if !self.set.judges(phase, open.method.as_deref()) && walks.is_empty() {
            return;
        }
        let walk = walks.pop_front().unwrap_or_default();
        let mut progress = Progress::new(phase);
        walk.add_to(&mut progress.then);
        match image.envelope() {
            Some(message) => {
                let again = PassContext { phase, can_wait: false, hides: Some(image), since, at };
                self.walk(open, &mut progress, message, None, walk, walks, &again);
            }
            None => progress.unknown = Some(Reason::NoMessage),
        }
        self.compare(open, progress, since);
    }

    /// Passes a message through the rules until they are done or it is held.
    #[allow(clippy::too_many_arguments, reason = "the parts of a walk, each needed once")]
    fn walk(
        &self,
        open: &OpenExchange,
        progress: &mut Progress,
        mut message: Envelope,
        mut told: Option<(u32, HoldAnswer)>,
        mut walk: RulePass,
        later: &mut VecDeque<RulePass>,
        again: &PassContext<'_>,
    ) {
        for _ in 0..MAX_HOLDS {
            let RecordedVerdict { judgement, lacks, uses } = self.ask(open, &message, told.as_ref(), &walk, again);
            progress.uses.extend(uses.into_iter().map(|one| (one, again.since)));
            if let Some(lack) = lacks.into_iter().next() {
                progress.unknown = Some(Reason::Lack(lack));
                return;
            }
            let mut changes = Vec::new();
            for ruling in judgement.rulings.iter() {
                let Some(rule) = &ruling.rule else { continue };
                progress.now.note(rule, ruling.verdict, &ruling.detail);
                if ruling.verdict == "modify" {
                    changes.push((&**rule, &*ruling.detail));
                }
            }
            let hold = match judgement.verdict {
                Verdict::Hold(hold) => hold,
                end => {
                    let typed = open.method.as_deref().filter(|_| has_result_types(self.context.revision(open)));
                    return progress.ends(end, &message, typed);
                }
            };
            let Hold { question, cursor, message: changed } = hold;
            message = changed.unwrap_or(message);
            let pauses = matches!(question, HoldQuestion::Pause(_));
            let holder = judgement.rulings.iter().rev().find(|ruling| ruling.rule.is_some());
            let as_recorded = holder.is_some_and(|holder| walk.holds_as(holder)) && walk.changes().eq(changes);
            match question {
                _ if as_recorded && again.can_wait => return progress.waits(holder, cursor, message),
                HoldQuestion::Pause(_) => {}
                HoldQuestion::Work(work) => work.run(),
                _ if !again.can_wait => return progress.now.verdict("refuse"),
                HoldQuestion::Person { .. } | HoldQuestion::Consent(_) => return progress.now.verdict("hold"),
                HoldQuestion::Webhook { .. } => return progress.unknown = Some(Reason::Webhook),
            }
            if pauses
                && as_recorded
                && let Some(next) = later.pop_front()
            {
                next.add_to(&mut progress.then);
                walk = next;
            }
            told = Some((cursor, HoldAnswer::GoOn { by: None }));
        }
        progress.now.verdict("refuse");
    }

    fn ask(
        &self,
        open: &OpenExchange,
        message: &Envelope,
        told: Option<&(u32, HoldAnswer)>,
        walk: &RulePass,
        again: &PassContext<'_>,
    ) -> RecordedVerdict {
        let hides = |value: Option<&[u8]>| again.hides.is_some_and(|image| image.hides(value));
        let recorded = RecordedContext { inputs: walk.inputs().collect(), hides: Some(&hides) };
        let resumed = told.map(|(cursor, answer)| HoldResponse { cursor: *cursor, answer });
        let moment = self.moment(again.since, again.at);
        self.context.with_case(open, again.phase, again.can_wait, message, moment, |case| {
            self.rules.judge_recorded(case, resumed, recorded)
        })
    }

    fn moment(&self, since: i128, at: u64) -> Moment {
        let nanos = u64::try_from(since.unsigned_abs()).unwrap_or(u64::MAX);
        let distance = Duration::from_nanos(nanos);
        let now = if since < 0 { self.start.checked_sub(distance) } else { self.start.checked_add(distance) };
        Moment { now: now.unwrap_or(self.start), at }
    }

    /// Finishes the evaluation of the request or answer.
    fn conclude(&mut self, open: &mut OpenExchange, since: i128) {
        let Some(mut progress) = open.progress.take() else { return };
        if progress.held.is_some() {
            progress.now.verdict("hold");
        }
        let asks = matches!(progress.phase, Phase::Request | Phase::ToGateway);
        let then_goes_on = progress.then.goes_on();
        let now_goes_on = progress.now.goes_on();
        let class = self.compare(open, progress, since);
        if asks {
            open.forward = Some(match class {
                Class::Unknown => Forward::Unknown,
                _ if !now_goes_on => Forward::Stopped,
                _ if !then_goes_on => Forward::Unanswered,
                Class::Changed | Class::Differently | Class::Unchanged => Forward::Otherwise,
                _ => Forward::AsRecorded,
            });
        }
    }

    fn end(&mut self, open: &mut OpenExchange, since: i128) {
        self.conclude(open, since);
        match open.forward {
            Some(Forward::Unanswered) => {
                if let Some(phase) = open.answering() {
                    self.answer_unknown(open, phase, Reason::NoAnswer, since);
                }
            }
            Some(Forward::Unknown) => self.forget_answer(open, since),
            _ => {}
        }
        self.rules.finished(&finished(open, self.start));
    }

    /// Compares both outcomes and reports a difference.
    fn compare(&mut self, open: &OpenExchange, mut progress: Progress, since: i128) -> Class {
        if let Some(reason) = progress.unknown {
            let rule = progress.then.chief().cloned();
            return self.differs(
                open,
                progress.phase,
                Class::Unknown,
                rule,
                Some(reason),
                OutcomePair { then: &progress.then, now: None },
                since,
            );
        }
        progress.then.content = recorded_content(open, &progress);
        let class = Class::of(&progress.then, &progress.now);
        if class == Class::Same {
            self.report.same();
            return class;
        }
        let rule = progress.now.chief().or(progress.then.chief()).cloned();
        let sides = OutcomePair { then: &progress.then, now: Some(&progress.now) };
        match self.doubt(&progress) {
            Some(reason) => self.differs(open, progress.phase, Class::Unknown, rule, Some(reason), sides, since),
            None => self.differs(open, progress.phase, class, rule, None, sides, since),
        }
    }

    /// Returns the reason if unknown earlier messages may explain a difference.
    fn doubt(&self, progress: &Progress) -> Option<Reason> {
        let reached = |from: Option<i128>| {
            from.is_some_and(|from| {
                progress.uses.iter().any(|(one, at)| {
                    one.reaches.is_none_or(|span| at - from <= i128::try_from(span.as_nanos()).unwrap_or(i128::MAX))
                })
            })
        };
        let sampled = self.sampled && !progress.uses.is_empty();
        if sampled || reached(self.gap) {
            return Some(Reason::Gap);
        }
        reached(self.doubts.get(&progress.phase).copied()).then_some(Reason::EarlierUnknown)
    }

    fn unknown(&mut self, open: &OpenExchange, phase: Phase, reason: Reason, since: i128) {
        self.differs(
            open,
            phase,
            Class::Unknown,
            None,
            Some(reason),
            OutcomePair { then: &Outcome::default(), now: None },
            since,
        );
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a difference, each needed once")]
    fn differs(
        &mut self,
        open: &OpenExchange,
        phase: Phase,
        class: Class,
        rule: Option<Arc<str>>,
        reason: Option<Reason>,
        sides: OutcomePair<'_>,
        since: i128,
    ) -> Class {
        // The message may or may not reach rules that count it, so their counts are unknown as well.
        if matches!(class, Class::Unknown | Class::Held) {
            self.doubts.insert(phase, since);
        }
        let tool = open.subject.clone().or_else(|| open.method.clone()).unwrap_or_default();
        let tape = &self.tape;
        let example = || BacktestExample {
            tape: tape.clone(),
            exchange: open.exchange,
            caller: Arc::clone(&open.principal),
            arguments: arguments(open.request.as_ref()),
            then: describe(sides.then),
            now: sides.now.map_or_else(|| "unknown".to_owned(), describe),
        };
        self.report.differs(Difference { class, rule, tool, phase, reason, example: &example });
        class
    }
}

fn key(open: &OpenExchange) -> (SessionKey, ExchangeId) {
    (SessionKey(open.session.unwrap_or_default()), ExchangeId(open.exchange.unwrap_or_default()))
}

fn finished(open: &OpenExchange, at: Instant) -> FinishedFact {
    let (session, exchange) = key(open);
    FinishedFact {
        at,
        session,
        caller: Caller::gateway(Principal::named(&open.principal)),
        exchange,
        era: Era::Legacy,
        method: String::new().into(),
        subject: None,
        backend: None,
        client: None,
        operation: exchange,
        round: 1,
        outcome: Ended::Ok,
        took: Duration::ZERO,
        bytes_in: 0,
        bytes_out: 0,
        trace: None,
        unreached: None,
    }
}
