//! Ruling under construction, while its rule acts.

use crate::rule::Rule;
use signalbox_engine::chain::Ruling;
use std::sync::Arc;

/// Descriptions of conditions with their outcomes.
type Conditions = Arc<[(Arc<str>, bool)]>;

/// Ruling under construction. Most rulings state nothing but the match and the verdict. These are created once for each
/// rule and shared.
pub(crate) struct OpenRuling<'a> {
    rule: &'a Rule,
    verdict: &'static str,
    detail: String,
    /// Set if `detail` quotes values of the message.
    pub quotes: bool,
    pub inputs: Vec<(&'static str, String)>,
    /// Conditions, or `None` if all were evaluated and held.
    conditions: Option<Conditions>,
}

impl<'a> OpenRuling<'a> {
    pub fn new(rule: &'a Rule, conditions: Option<Conditions>) -> Self {
        Self { rule, verdict: "pass", detail: String::new(), quotes: false, inputs: vec![], conditions }
    }

    /// Records the effect of the rule. The most significant word is kept.
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

/// Ranks the significance of a verdict.
fn weight(word: &str) -> usize {
    ["pass", "count", "log", "notify", "fork", "delay", "released", "modify", "allow", "hold"]
        .iter()
        .position(|known| *known == word)
        .unwrap_or(usize::MAX)
}
