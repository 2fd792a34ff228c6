//! Evaluation of the rules on one message, from the start or from the action that held it.

use crate::action::Action;
use crate::candidate::SeenBeginning;
use crate::end_cache::{CountedOnly, EndCache, RulingPath};
use crate::facts::{MessageFacts, MessageView, Quotable};
use crate::limits;
use crate::open_ruling::OpenRuling;
use crate::outside::Outside;
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::template::Filling;
use signalbox_engine::chain::{Effect, Hold, HoldAnswer, HoldQuestion, Judgement, Ruling, Verdict};
use signalbox_engine::fault::{Fault, FaultKind};
use signalbox_wire::Envelope;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// Number of rulings to allocate for at once.
const MANY: usize = 16;

/// Position of an action in the rule set.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct ActionPosition {
    pub rule: u16,
    pub action: u8,
}

/// Result of executing an action.
pub(crate) enum WalkStep {
    /// Continue with the next action.
    Next,
    /// Continue with the next action on a changed message.
    Change(Envelope),
    /// Skip all further rules.
    Stop,
    End(Verdict),
    Wait(HoldQuestion),
}

/// Match of a rule that only counts, with the range of its conditions' outcomes.
struct Tally {
    rule: u16,
    outcomes: Range<usize>,
}

/// Result of evaluating rules until the message changes or the evaluation ends.
enum Leg {
    Changed(ActionPosition),
    End(Verdict),
}

pub(crate) struct Walk<'a> {
    pub set: &'a RuleSet,
    pub facts: MessageFacts<'a>,
    pub outside: &'a dyn Outside,
    message: &'a Envelope,
    generation: u16,
    ends: &'a EndCache,
    changed: Option<Envelope>,
    way: RulingPath,
    looked: bool,
    /// Set if the match of a rule could not be determined.
    guessed: bool,
    /// Matches of counting rules that have no ruling yet.
    tallied: SmallVec<[Tally; MANY]>,
    after: Option<Arc<str>>,
    open: Option<OpenRuling<'a>>,
    rulings: Vec<Arc<Ruling>>,
    pub effects: Vec<Effect>,
    work: usize,
    clock: Cell<Option<u64>>,
    clock_noted: bool,
}

impl<'a> Walk<'a> {
    pub fn new(
        set: &'a RuleSet,
        generation: u16,
        ends: &'a EndCache,
        facts: MessageFacts<'a>,
        message: &'a Envelope,
        outside: &'a dyn Outside,
    ) -> Self {
        Self {
            set,
            facts,
            outside,
            message,
            generation,
            ends,
            changed: None,
            way: RulingPath::default(),
            looked: false,
            guessed: false,
            tallied: SmallVec::new(),
            after: None,
            open: None,
            rulings: vec![],
            effects: vec![],
            work: 0,
            clock: Cell::new(None),
            clock_noted: false,
        }
    }

    /// Evaluates all rules from the first.
    pub fn run(self) -> Judgement {
        self.go_on(None)
    }

    /// Continues after the action that held the message.
    pub fn resume(mut self, at: ActionPosition, answer: &HoldAnswer) -> Judgement {
        let set = self.set;
        let held = set.rule(at.rule).and_then(|rule| Some((rule, rule.then.get(usize::from(at.action))?)));
        let Some((rule, action)) = held else {
            let fault = Fault::new(FaultKind::Internal, "no rule held this message");
            return self.close(Verdict::Refuse(fault));
        };
        self.looked = true;
        self.after = Some(Arc::clone(&rule.id));
        self.open = Some(OpenRuling::new(rule, Some(Arc::default())));
        let (facts, message) = (self.facts, self.message);
        let view = MessageView::new(&facts, message, 0);
        let step = self.resume_action(rule, action, answer, &view);
        match self.apply_step(step, at) {
            Some(Leg::End(verdict)) => self.close(verdict),
            _ => self.go_on(Some(ActionPosition { rule: at.rule, action: at.action.saturating_add(1) })),
        }
    }

    fn go_on(mut self, mut inside: Option<ActionPosition>) -> Judgement {
        let facts = self.facts;
        loop {
            let changed = self.changed.clone();
            let view = MessageView::new(&facts, changed.as_ref().unwrap_or(self.message), self.work);
            let leg = self.leg(inside, &view);
            self.work = view.work();
            match leg {
                Leg::Changed(at) => inside = Some(at),
                Leg::End(verdict) => return self.close(verdict),
            }
        }
    }

    /// Evaluates the rest of the current rule and all rules after it, until the message changes.
    fn leg(&mut self, inside: Option<ActionPosition>, view: &MessageView<'_>) -> Leg {
        let set = self.set;
        let mut first = 0;
        if let Some(at) = inside {
            first = at.rule + 1;
            if let Some(leg) = set.rule(at.rule).and_then(|rule| self.actions(rule, at, view)) {
                return leg;
            }
        }
        let candidates = set.candidates(view.facts.phase, view.method());
        self.way.list = candidates.as_ptr() as usize;
        let behind = candidates.partition_point(|one| one.rule < first);
        let mut seen = SeenBeginning::NOTHING;
        for candidate in &candidates[behind..] {
            self.looked = true;
            if candidate.misses(view, &mut seen, &mut self.way.outcomes) {
                continue;
            }
            let Some(rule) = set.rule(candidate.rule) else { continue };
            let mark = self.way.outcomes.len();
            let held = candidate.fits(&mut self.way.outcomes)
                || rule.when.holds(view, set.slots(), rule.permits(), &mut self.way.outcomes);
            // The rule may have located further texts.
            seen = SeenBeginning::NOTHING;
            if view.exceeds_work_limit() {
                return Leg::End(self.too_much());
            }
            let outcomes = mark..self.way.outcomes.len();
            let guessed = view.take_guess() || view.facts.lacks_request() && rule.reads_request;
            if held && guessed && !rule.permits() {
                self.guessed = true;
                if !rule.acts() {
                    continue;
                }
                self.catch_up();
                self.record_match(rule, outcomes);
                return Leg::End(self.cannot_tell(rule));
            }
            if held && candidate.tallies {
                self.tallied.push(Tally { rule: candidate.rule, outcomes });
            } else if held {
                self.catch_up();
                self.record_match(rule, outcomes);
                if let Some(leg) = self.actions(rule, ActionPosition { rule: candidate.rule, action: 0 }, view) {
                    return leg;
                }
            }
        }
        Leg::End(self.pass_verdict())
    }

    /// Executes a rule's actions from one on. Returns `Some` if evaluation must not continue with the next rule.
    fn actions(&mut self, rule: &'a Rule, from: ActionPosition, view: &MessageView<'_>) -> Option<Leg> {
        for (number, action) in (0_u8..).zip(&rule.then).skip(usize::from(from.action)) {
            if !action.fits().has(view.facts.phase) {
                continue;
            }
            let at = ActionPosition { rule: from.rule, action: number };
            let step = self.act(rule, action, number, view);
            if let Some(leg) = self.apply_step(step, at) {
                return Some(leg);
            }
        }
        self.rulings.extend(self.open.take().map(OpenRuling::close));
        None
    }

    fn apply_step(&mut self, step: WalkStep, at: ActionPosition) -> Option<Leg> {
        match step {
            WalkStep::Next => None,
            WalkStep::Stop => Some(Leg::End(self.pass_verdict())),
            WalkStep::End(verdict) => Some(Leg::End(verdict)),
            WalkStep::Change(message) => {
                self.changed = Some(message);
                Some(Leg::Changed(ActionPosition { rule: at.rule, action: at.action.saturating_add(1) }))
            }
            WalkStep::Wait(question) => {
                let cursor = cursor(self.generation, at);
                Some(Leg::End(Verdict::Hold(Hold { question, cursor, message: self.changed.take() })))
            }
        }
    }

    /// Writes the rulings of counting rules, before another rule acts.
    fn catch_up(&mut self) {
        for tally in std::mem::take(&mut self.tallied) {
            let Some(rule) = self.set.rule(tally.rule) else { continue };
            self.record_match(rule, tally.outcomes);
            let names = rule.then.iter().filter_map(|action| match action {
                Action::Count { name } => Some(Arc::clone(name)),
                _ => None,
            });
            self.effects.push(Effect::Count { names: names.collect() });
            self.note("count", "");
            self.rulings.extend(self.open.take().map(OpenRuling::close));
        }
    }

    fn record_match(&mut self, rule: &'a Rule, outcomes: Range<usize>) {
        if self.rulings.is_empty() {
            // Where one rule matches, others usually do too.
            self.rulings.reserve(MANY);
            self.effects.reserve(MANY);
        }
        let held = |outcomes: &Range<usize>| self.way.outcomes.within(outcomes.clone()).all(|held| held);
        let all_held = outcomes.len() == rule.all_held.len() && held(&outcomes);
        let conditions = (!all_held).then(|| {
            let mut conditions = Vec::new();
            rule.when.retrace(&mut self.way.outcomes.within(outcomes), &mut conditions);
            conditions.into()
        });
        self.open = Some(OpenRuling::new(rule, conditions));
    }

    /// Records the effect of the current rule. The most significant word is kept.
    pub fn note(&mut self, word: &'static str, detail: impl AsRef<str>) {
        if let Some(open) = &mut self.open {
            open.note(word, detail.as_ref());
        }
    }

    /// Records that a text of the rule quotes values of the message.
    pub fn note_quote(&mut self) {
        if let Some(open) = &mut self.open {
            open.quotes = true;
        }
    }

    /// Records an external input of the current rule.
    pub fn input(&mut self, kind: &'static str, text: String) {
        if let Some(open) = &mut self.open {
            open.inputs.push((kind, text));
        }
    }

    pub fn fill<T>(&mut self, rule: &Rule, view: &MessageView<'_>, render: impl FnOnce(&Filling<'_, '_>) -> T) -> T {
        self.fill_unless(false, rule, view, render)
    }

    /// Fills a text that is logged or recorded with the values that records show of the message.
    pub fn fill_for_record<T>(
        &mut self,
        rule: &Rule,
        view: &MessageView<'_>,
        render: impl FnOnce(&Filling<'_, '_>) -> T,
    ) -> T {
        match view.quotable() {
            Quotable::All => self.fill(rule, view, render),
            Quotable::Nothing => self.fill_unless(true, rule, view, render),
            Quotable::Redacted { message, request } => {
                let facts = MessageFacts { request: request.as_ref(), ..*view.facts };
                self.fill(rule, &MessageView::new(&facts, &message, 0), render)
            }
        }
    }

    fn fill_unless<T>(
        &mut self,
        withheld: bool,
        rule: &Rule,
        view: &MessageView<'_>,
        render: impl FnOnce(&Filling<'_, '_>) -> T,
    ) -> T {
        let clock = || match self.clock.get() {
            Some(known) => known,
            None => {
                let now = self.outside.unix_ms(self.facts.unix_ms);
                self.clock.set(Some(now));
                now
            }
        };
        let rendered = render(&Filling { view, withheld, rule: &rule.id, unix_ms: &clock });
        if let (Some(now), false) = (self.clock.get(), self.clock_noted) {
            self.clock_noted = true;
            self.input("clock", now.to_string());
        }
        rendered
    }

    fn pass_verdict(&mut self) -> Verdict {
        self.changed.take().map_or(Verdict::Pass, Verdict::Modify)
    }

    /// Refuses a task's result that a rule can no longer evaluate.
    fn cannot_tell(&mut self, rule: &Rule) -> Verdict {
        let why = "the call that created its task is no longer known";
        self.note("refuse", why);
        let text = format!("rule `{}` cannot judge this result: {why}", rule.id);
        Verdict::Refuse(Fault::new(FaultKind::Refused, text))
    }

    fn too_much(&mut self) -> Verdict {
        let message = format!("the rules would have to read more than {} bytes for this message", limits::WORK);
        Verdict::Refuse(Fault::new(FaultKind::Overloaded, message))
    }

    fn close(mut self, verdict: Verdict) -> Judgement {
        let others = !self.rulings.is_empty() || self.open.is_some() || self.after.is_some();
        let plain = self.looked && !self.guessed && !others && matches!(verdict, Verdict::Pass);
        if let Some(known) = plain.then(|| self.ends.plain(&self.way)).flatten() {
            return known.into();
        }
        self.catch_up();
        self.rulings.extend(self.open.take().map(OpenRuling::close));
        if plain {
            self.rulings.push(self.way.final_ruling(self.set, word(&verdict), None));
            let plain = CountedOnly::new(self.rulings, &self.effects);
            self.ends.keep(self.way, plain.clone());
            return plain.into();
        }
        if self.looked {
            self.rulings.push(self.ends.final_ruling(self.set, word(&verdict), self.way, self.after));
        }
        Judgement { verdict, rulings: self.rulings.into(), effects: self.effects }
    }
}

/// Returns the name of a verdict in rulings.
pub(crate) fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Modify(_) => "modify",
        Verdict::Reply(_) => "reply",
        Verdict::Error(_) => "error",
        Verdict::Refuse(_) => "refuse",
        Verdict::Hold(_) => "hold",
    }
}

/// Encodes the action that holds a message, with the generation of the rules.
fn cursor(generation: u16, at: ActionPosition) -> u32 {
    u32::from(generation) << 16 | u32::from(at.rule) << 5 | u32::from(at.action)
}

/// Decodes the result of [`cursor`].
pub(crate) fn place_of(cursor: u32) -> (u16, ActionPosition) {
    let low = cursor & 0xffff;
    let rule = u16::try_from(low >> 5).unwrap_or(u16::MAX);
    let action = u8::try_from(low & 31).unwrap_or(u8::MAX);
    (u16::try_from(cursor >> 16).unwrap_or(0), ActionPosition { rule, action })
}

// Rule and action must fit into their bits of the cursor.
const _: () = assert!(limits::RULES <= 2048 && limits::ACTIONS <= 32);
