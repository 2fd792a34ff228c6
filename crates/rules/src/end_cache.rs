//! Caches the final rulings of evaluations, because similar messages usually take the same path through the rules.

use crate::outcomes::Outcomes;
use crate::rule_set::RuleSet;
use arc_swap::ArcSwapOption;
use signalbox_engine::chain::{Effect, Judgement, Ruling, Rulings, Verdict};
use std::sync::Arc;

/// Number of cached entries.
const PLACES: usize = 16;

/// Cache of final rulings for one rule set.
#[derive(Default, Debug)]
pub(crate) struct EndCache([ArcSwapOption<CachedEnd>; PLACES]);

/// Cached final rulings. Decisions by conditions and counting follow from the rules visited and their outcomes.
#[derive(Debug)]
struct CachedEnd {
    way: RulingPath,
    verdict: &'static str,
    /// Ruling of the evaluation as a whole.
    ruling: Arc<Ruling>,
    plain: Option<CountedOnly>,
}

/// Path of a message through the rules.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct RulingPath {
    /// Address of the list of rules visited.
    pub list: usize,
    pub outcomes: Outcomes,
}

/// Complete result of an evaluation in which matching rules only counted.
#[derive(Clone, Debug)]
pub(crate) struct CountedOnly {
    rulings: Arc<[Arc<Ruling>]>,
    counts: Option<Arc<[Arc<str>]>>,
}

impl EndCache {
    /// Returns the complete result for a path, if only counting happened on it.
    pub fn plain(&self, way: &RulingPath) -> Option<CountedOnly> {
        self.0[way.place()].load().as_ref().filter(|end| end.way == *way)?.plain.clone()
    }

    /// Returns the final ruling, from the cache unless the evaluation resumed after a rule.
    pub fn final_ruling(
        &self,
        set: &RuleSet,
        verdict: &'static str,
        way: RulingPath,
        after: Option<Arc<str>>,
    ) -> Arc<Ruling> {
        let place = &self.0[way.place()];
        let known = |end: &&Arc<CachedEnd>| after.is_none() && end.verdict == verdict && end.way == way;
        if let Some(end) = place.load().as_ref().filter(known) {
            return Arc::clone(&end.ruling);
        }
        let whole = after.is_none();
        let ruling = way.final_ruling(set, verdict, after);
        if whole {
            place.store(Some(Arc::new(CachedEnd { way, verdict, ruling: Arc::clone(&ruling), plain: None })));
        }
        ruling
    }

    /// Caches the complete result for a path on which only counting happened.
    pub fn keep(&self, way: RulingPath, plain: CountedOnly) {
        if let Some(ruling) = plain.rulings.last().cloned() {
            self.0[way.place()].store(Some(Arc::new(CachedEnd { way, verdict: "pass", ruling, plain: Some(plain) })));
        }
    }
}

impl RulingPath {
    /// Builds the final ruling: the version of the rules, all outcomes, and the rule after which the evaluation
    /// resumed.
    pub fn final_ruling(&self, set: &RuleSet, verdict: &'static str, after: Option<Arc<str>>) -> Arc<Ruling> {
        let mut inputs = vec![("rules", set.version().to_owned()), ("outcomes", self.outcomes.text())];
        inputs.extend(after.map(|rule| ("after", rule.to_string())));
        Arc::new(Ruling { verdict, inputs, ..Ruling::default() })
    }

    fn place(&self) -> usize {
        self.outcomes.mixed(self.list as u64) as usize % PLACES
    }
}

impl CountedOnly {
    /// Creates a result from the rulings and from effects that must all be counts.
    pub fn new(rulings: Vec<Arc<Ruling>>, effects: &[Effect]) -> Self {
        let names = effects.iter().flat_map(|effect| match effect {
            Effect::Count { names } => &**names,
            _ => &[],
        });
        let counts: Arc<[Arc<str>]> = names.cloned().collect();
        Self { rulings: rulings.into(), counts: Some(counts).filter(|counts| !counts.is_empty()) }
    }
}

impl From<CountedOnly> for Judgement {
    fn from(plain: CountedOnly) -> Self {
        let effects = plain.counts.map(|names| Effect::Count { names }).into_iter().collect();
        Self { verdict: Verdict::Pass, rulings: Rulings::Many(plain.rulings), effects }
    }
}
