//! Reads the recorded decisions of one pass through the rules.

use super::outcome::Outcome;
use signalbox_engine::chain::Ruling;
use signalbox_engine::record::DecisionEntry;
use signalbox_rules::outside::Turn;
use std::sync::Arc;

/// Interceptor whose decisions are recomputed.
const RULES: &str = "rules";

/// Prefix of the rules' text for a webhook call, before its address.
const ASKS: &str = "asks http";

/// Recorded decisions of one pass through the rules, from the start or a resumption to its end.
#[derive(Clone, Default, Debug)]
pub(super) struct RulePass(Vec<Arc<DecisionEntry>>);

impl RulePass {
    /// Splits an entry into passes. Consecutive decisions about a message share an entry.
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

    /// Returns the combined verdict of all rules.
    pub fn verdict(&self) -> &str {
        self.0.last().filter(|last| last.rule.is_none()).map_or("pass", |whole| &whole.verdict)
    }

    /// Returns the rule whose hold preceded this pass.
    pub fn after(&self) -> Option<&str> {
        let whole = self.0.last().filter(|last| last.rule.is_none())?;
        whole.inputs.iter().find(|(kind, _)| kind == "after").map(|(_, rule)| &**rule)
    }

    /// Returns `true` if the recorded hold has the same rule and question as `now`.
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

    /// Returns the first use of shared state.
    pub fn turn(&self) -> Option<Turn> {
        let turns = self.inputs().filter(|(_, kind, _)| *kind == "turn").filter_map(|(_, _, text)| Turn::parse(text));
        turns.min_by_key(|turn| turn.number)
    }

    /// Returns the recorded external inputs as rule, kind and text.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0.iter().flat_map(|decision| {
            let rule = decision.rule.as_deref().unwrap_or_default();
            decision.inputs.iter().map(move |(kind, text)| (rule, &**kind, &**text))
        })
    }

    /// Returns the recorded answer to the hold that preceded this pass.
    pub fn answer(&self, rule: &str) -> impl Iterator<Item = (&str, &str)> {
        let first = self.0.first().filter(|first| first.rule.as_deref() == Some(rule));
        first.into_iter().flat_map(|decision| decision.inputs.iter().map(|(kind, text)| (&**kind, &**text)))
    }

    /// Returns `true` if part of the first decision was redacted.
    pub fn is_redacted(&self) -> bool {
        self.0.first().is_some_and(|first| first.redacted)
    }

    /// Returns the rules that modified the message, with their texts.
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
