//! What a backtest found: counts, groups of differences, and examples of each.

use super::class::{Class, Reason};
use signalbox_engine::chain::Phase;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most groups; differences beyond them are counted, but not told apart.
const MAX_GROUPS: usize = 10_000;

/// What a backtest found.
#[derive(Debug)]
pub struct Report {
    /// The tapes, in the order in which they were read.
    pub tapes: Vec<TapeNote>,
    /// How many requests were judged.
    pub calls: u64,
    /// How many messages were judged: requests, answers, and what came between them.
    pub judged: u64,
    counts: BTreeMap<Class, u64>,
    groups: BTreeMap<Key, Group>,
    /// Differences in groups that there was no room for.
    pub ungrouped: u64,
    examples: usize,
}

/// What is to be known about a tape before its figures are believed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TapeNote {
    /// Its name.
    pub id: String,
    /// What was recorded of what passed, unless everything was.
    pub sampling: Option<String>,
    /// How often it was interrupted.
    pub gaps: u64,
    /// How many facts are missing there.
    pub missing: u64,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    class: Class,
    rule: Option<Arc<str>>,
    tool: Arc<str>,
    phase: &'static str,
    reason: Option<Reason>,
}

/// Messages of one tool that one rule decides about differently in the same way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// How it differs.
    pub class: Class,
    /// The rule that decides now, or that decided then if none does now.
    pub rule: Option<Arc<str>>,
    /// The tool, prompt or URI, or the method of what has none.
    pub tool: Arc<str>,
    /// Which message of the call: `request`, `response`, …
    pub phase: &'static str,
    /// Why the verdict is not known.
    pub reason: Option<Reason>,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<Example>,
}

/// One message that is decided about differently.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example {
    /// The tape.
    pub tape: String,
    /// The number of the exchange, if it belongs to one.
    pub exchange: Option<u64>,
    /// Who called.
    pub caller: Arc<str>,
    /// The arguments of the call, shortened.
    pub arguments: String,
    /// What became of it on the tape.
    pub then: String,
    /// What becomes of it now.
    pub now: String,
}

/// A difference that was found.
pub(super) struct Difference<'a> {
    pub class: Class,
    pub rule: Option<Arc<str>>,
    pub tool: Arc<str>,
    pub phase: Phase,
    pub reason: Option<Reason>,
    pub example: &'a dyn Fn() -> Example,
}

impl Report {
    pub(super) fn new(examples: usize) -> Self {
        let (counts, groups) = Default::default();
        Self { tapes: vec![], calls: 0, judged: 0, counts, groups, ungrouped: 0, examples }
    }

    /// How many messages are of this class.
    #[must_use]
    pub fn count(&self, class: Class) -> u64 {
        self.counts.get(&class).copied().unwrap_or(0)
    }

    /// How many messages are decided about differently, or may be.
    #[must_use]
    pub fn differences(&self) -> u64 {
        Class::ALL.into_iter().filter(|class| *class != Class::Same).map(|class| self.count(class)).sum()
    }

    /// The differences by class, rule and tool.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }

    pub(super) fn same(&mut self) {
        self.judged += 1;
        *self.counts.entry(Class::Same).or_default() += 1;
    }

    pub(super) fn differs(&mut self, difference: Difference<'_>) {
        self.judged += 1;
        let Difference { class, rule, tool, phase, reason, example } = difference;
        *self.counts.entry(class).or_default() += 1;
        let key = Key { class, rule, tool, phase: phase.word(), reason };
        if self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(&key) {
            self.ungrouped += 1;
            return;
        }
        let examples = self.examples;
        let Key { rule, tool, reason, .. } = key.clone();
        let new = || Group { class, rule, tool, phase: phase.word(), reason, count: 0, examples: vec![] };
        let group = self.groups.entry(key).or_insert_with(new);
        group.count += 1;
        if group.examples.len() < examples {
            group.examples.push(example());
        }
    }

    pub(super) fn note(&mut self) -> Option<&mut TapeNote> {
        self.tapes.last_mut()
    }
}
