//! What a rule has decided so far about a message that it matches.

use crate::rule::Rule;
use signalbox_engine::chain::Ruling;
use std::sync::Arc;

/// Conditions in words, and whether each held.
type Conditions = Arc<[(Arc<str>, bool)]>;

/// A ruling while its rule acts. Most say nothing but that the rule fitted and what it did: those are made once for the rule
/// and shared, and nothing of the rule is touched for the others.
pub(crate) struct OpenRuling<'a> {
    rule: &'a Rule,
    verdict: &'static str,
    detail: String,
    /// Values of the message are in `detail`.
    pub quotes: bool,
    pub inputs: Vec<(&'static str, String)>,
    /// None if all conditions of the rule were looked at and held.
    conditions: Option<Conditions>,
}

impl<'a> OpenRuling<'a> {
    pub fn new(rule: &'a Rule, conditions: Option<Conditions>) -> Self {
        Self { rule, verdict: "pass", detail: String::new(), quotes: false, inputs: vec![], conditions }
    }

    /// Notes what the rule did, in a word and for a person. The word that weighs most stays.
    pub fn note(&mut self, word: &'static str, detail: &str) {
        if weight(word) >= weight(self.verdict) {
            self.verdict = word;
        }
        if !self.detail.is_empty() && !detail.is_empty() {
            self.detail.push_str("; ");
        }
        self.detail.push_str(detail);
    }

    pub fn close(self) -> Arc<Ruling> {
        let plain = self.conditions.is_none() && self.detail.is_empty() && self.inputs.is_empty();
        if !plain {
            return Arc::new(self.ruling());
        }
        let (rule, verdict) = (self.rule, self.verdict);
        let usual = rule.usual.get_or_init(|| Arc::new(self.ruling()));
        if usual.verdict == verdict { Arc::clone(usual) } else { Arc::new(Ruling { verdict, ..(**usual).clone() }) }
    }

    fn ruling(self) -> Ruling {
        Ruling {
            rule: Some(Arc::clone(&self.rule.id)),
            verdict: self.verdict,
            detail: self.detail,
            quotes: self.quotes,
            conditions: self.conditions.unwrap_or_else(|| Arc::clone(&self.rule.all_held)),
            inputs: self.inputs,
        }
    }
}

/// How much a word says about what became of the message.
fn weight(word: &str) -> usize {
    ["pass", "count", "log", "notify", "fork", "delay", "released", "modify", "allow", "hold"]
        .iter()
        .position(|known| *known == word)
        .unwrap_or(usize::MAX)
}
