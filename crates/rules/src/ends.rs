//! What is told of a message at the end of its walk past the rules, remembered: messages of one kind mostly go one way.

use crate::outcomes::Outcomes;
use crate::rule_set::RuleSet;
use arc_swap::ArcSwapOption;
use signalbox_engine::chain::Ruling;
use std::sync::Arc;

/// The last end of one set of rules.
#[derive(Default, Debug)]
pub(crate) struct Ends(ArcSwapOption<End>);

#[derive(Debug)]
struct End {
    outcomes: Outcomes,
    ruling: Arc<Ruling>,
}

impl Ends {
    /// What came of the walk: the version of the rules, the outcome of every condition, and the rule behind which it began.
    pub fn told(
        &self,
        set: &RuleSet,
        verdict: &'static str,
        outcomes: Outcomes,
        after: Option<Arc<str>>,
    ) -> Arc<Ruling> {
        let last = self.0.load();
        if let Some(last) = last.as_ref().filter(|last| after.is_none() && last.outcomes == outcomes)
            && last.ruling.verdict == verdict
        {
            return Arc::clone(&last.ruling);
        }
        let mut inputs = vec![("rules", set.version().to_owned()), ("outcomes", outcomes.text())];
        let whole = after.is_none();
        inputs.extend(after.map(|rule| ("after", rule.to_string())));
        let ruling = Arc::new(Ruling { verdict, inputs, ..Ruling::default() });
        if whole {
            self.0.store(Some(Arc::new(End { outcomes, ruling: Arc::clone(&ruling) })));
        }
        ruling
    }
}
