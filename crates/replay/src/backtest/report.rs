//! Report of a backtest: counts, groups of differences, and examples.

use super::class::{Class, Reason};
use signalbox_engine::chain::Phase;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of groups. Further differences are only counted.
const MAX_GROUPS: usize = 10_000;

/// Report of a backtest.
#[derive(Debug)]
pub struct BacktestReport {
    /// Tapes in reading order.
    pub tapes: Vec<TapeNote>,
    /// Number of requests evaluated.
    pub calls: u64,
    /// Number of messages evaluated: requests, answers, and messages in between.
    pub judged: u64,
    counts: BTreeMap<Class, u64>,
    groups: BTreeMap<Key, Group>,
    /// Number of differences that exceeded the group limit.
    pub ungrouped: u64,
    examples: usize,
}

/// Caveats about a tape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TapeNote {
    pub id: String,
    /// Sampling settings, unless everything was recorded.
    pub sampling: Option<String>,
    pub gaps: u64,
    /// Number of facts lost in the gaps.
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

/// Messages of one tool whose outcome one rule changes in the same way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    pub class: Class,
    /// Rule that decides now, or the one that decided before if none does now.
    pub rule: Option<Arc<str>>,
    /// Tool, prompt or URI, or the method if there is none.
    pub tool: Arc<str>,
    /// Message of the call: `request`, `response`, …
    pub phase: &'static str,
    /// Reason if the verdict is unknown.
    pub reason: Option<Reason>,
    pub count: u64,
    /// First examples, up to the configured number.
    pub examples: Vec<BacktestExample>,
}

/// Message whose outcome differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BacktestExample {
    pub tape: String,
    /// Exchange number, if the message belongs to one.
    pub exchange: Option<u64>,
    /// Principal of the caller.
    pub caller: Arc<str>,
    /// Arguments of the call, shortened.
    pub arguments: String,
    /// Outcome in the recording, as text.
    pub then: String,
    /// Outcome under the new rules, as text.
    pub now: String,
}

/// Difference to add to a report.
pub(super) struct Difference<'a> {
    pub class: Class,
    pub rule: Option<Arc<str>>,
    pub tool: Arc<str>,
    pub phase: Phase,
    pub reason: Option<Reason>,
    pub example: &'a dyn Fn() -> BacktestExample,
}

impl BacktestReport {
    pub(super) fn new(examples: usize) -> Self {
        let (counts, groups) = Default::default();
        Self { tapes: vec![], calls: 0, judged: 0, counts, groups, ungrouped: 0, examples }
    }

    /// Returns the number of messages in a class.
    #[must_use]
    pub fn count(&self, class: Class) -> u64 {
        self.counts.get(&class).copied().unwrap_or(0)
    }

    /// Returns the number of messages whose outcome differs or may differ.
    #[must_use]
    pub fn differences(&self) -> u64 {
        Class::ALL.into_iter().filter(|class| *class != Class::Same).map(|class| self.count(class)).sum()
    }

    /// Returns the differences grouped by class, rule and tool.
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
