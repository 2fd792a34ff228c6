//! What the tape says about one walk of a message past the rules.

use super::outcome::Outcome;
use signalbox_engine::chain::Ruling;
use signalbox_engine::record::DecisionEntry;
use signalbox_rules::outside::Turn;
use std::sync::Arc;

/// The interceptor whose decisions are computed again.
const RULES: &str = "rules";

/// What the rules say of a webhook that they ask, before its address.
const ASKS: &str = "asks http";

/// The decisions of the rules from where a message came to them, or continued after a wait, to where it left them.
#[derive(Clone, Default, Debug)]
pub(super) struct Walk(Vec<Arc<DecisionEntry>>);

impl Walk {
    /// The walks of an entry; decisions about a message that follow each other at once are one entry.
    pub fn all(decisions: &[Arc<DecisionEntry>]) -> Vec<Self> {
        let mut walks = Vec::new();
        let mut open = Self::default();
        for decision in decisions.iter().filter(|decision| decision.by == RULES) {
            open.0.push(Arc::clone(decision));
            if decision.rule.is_none() {
                walks.push(std::mem::take(&mut open));
            }
        }
        if !open.0.is_empty() {
            walks.push(open);
        }
        walks
    }

    /// The verdict of all rules together.
    pub fn verdict(&self) -> &str {
        self.0.last().filter(|last| last.rule.is_none()).map_or("pass", |whole| &whole.verdict)
    }

    /// The rule that the message waited at before.
    pub fn after(&self) -> Option<&str> {
        let whole = self.0.last().filter(|last| last.rule.is_none())?;
        whole.inputs.iter().find(|(kind, _)| kind == "after").map(|(_, rule)| &**rule)
    }

    /// True if the message waits where and for what it waits now.
    pub fn holds_as(&self, now: &Ruling) -> bool {
        let last = self.0.iter().rev().find(|decision| decision.rule.is_some());
        let asks = |detail: &str| detail.contains(ASKS);
        self.verdict() == "hold"
            && last.is_some_and(|then| {
                let same_question = match asks(&then.detail) || asks(&now.detail) {
                    true => then.detail == now.detail || then.redacted,
                    false => true,
                };
                then.rule == now.rule && then.verdict == now.verdict && same_question
            })
    }

    /// The first use of shared state.
    pub fn turn(&self) -> Option<Turn> {
        let turns = self.inputs().filter(|(_, kind, _)| *kind == "turn").filter_map(|(_, _, text)| Turn::parse(text));
        turns.min_by_key(|turn| turn.number)
    }

    /// What came from outside: the rule, the kind and the text of each.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0.iter().flat_map(|decision| {
            let rule = decision.rule.as_deref().unwrap_or_default();
            decision.inputs.iter().map(move |(kind, text)| (rule, &**kind, &**text))
        })
    }

    /// What ended the wait that the walk continues after.
    pub fn answer(&self, rule: &str) -> impl Iterator<Item = (&str, &str)> {
        let first = self.0.first().filter(|first| first.rule.as_deref() == Some(rule));
        first.into_iter().flat_map(|decision| decision.inputs.iter().map(|(kind, text)| (&**kind, &**text)))
    }

    /// True if the first decision of the walk had something redacted.
    pub fn is_redacted(&self) -> bool {
        self.0.first().is_some_and(|first| first.redacted)
    }

    /// The rules that changed the message or made it wait, in order, with the words of each.
    pub fn changes(&self) -> impl Iterator<Item = (&str, &str)> {
        let changes = self.0.iter().filter(|decision| decision.verdict == "modify");
        changes.filter_map(|decision| Some((decision.rule.as_deref()?, &*decision.detail)))
    }

    pub fn add_to(&self, outcome: &mut Outcome) {
        for decision in &self.0 {
            if let Some(rule) = &decision.rule {
                outcome.note(rule, &decision.verdict, &decision.detail);
            }
        }
        outcome.verdict(self.verdict());
    }
}
