//! Caches the rulings at the end of a walk past the rules, since messages of one kind mostly take the same way.

use crate::outcomes::Outcomes;
use crate::rule_set::RuleSet;
use arc_swap::ArcSwapOption;
use signalbox_engine::chain::{Effect, Judgement, Ruling, Rulings, Verdict};
use std::sync::Arc;

/// How many ends are remembered, for as many kinds of messages.
const PLACES: usize = 16;

/// The last ends of one set of rules.
#[derive(Default, Debug)]
pub(crate) struct Ends([ArcSwapOption<End>; PLACES]);

/// Where a walk came to. What conditions and counting decided follows from the rules that were looked at and the outcomes.
#[derive(Debug)]
struct End {
    way: RulingPath,
    verdict: &'static str,
    /// The rulings of the walk as a whole.
    ruling: Arc<Ruling>,
    plain: Option<Plain>,
}

/// The way that a message went.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct RulingPath {
    /// The list of rules that were looked at, by where it is.
    pub list: usize,
    pub outcomes: Outcomes,
}

/// All that is said about a message where every rule that fitted only counts.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    rulings: Arc<[Arc<Ruling>]>,
    counts: Option<Arc<[Arc<str>]>>,
}

impl Ends {
    /// What is said at the end of this way, if nothing but counting was done on it.
    pub fn plain(&self, way: &RulingPath) -> Option<Plain> {
        self.0[way.place()].load().as_ref().filter(|end| end.way == *way)?.plain.clone()
    }

    /// The rulings of a walk; cached, unless it began after a rule.
    pub fn told(&self, set: &RuleSet, verdict: &'static str, way: RulingPath, after: Option<Arc<str>>) -> Arc<Ruling> {
        let place = &self.0[way.place()];
        let known = |end: &&Arc<End>| after.is_none() && end.verdict == verdict && end.way == way;
        if let Some(end) = place.load().as_ref().filter(known) {
            return Arc::clone(&end.ruling);
        }
        let whole = after.is_none();
        let ruling = way.told(set, verdict, after);
        if whole {
            place.store(Some(Arc::new(End { way, verdict, ruling: Arc::clone(&ruling), plain: None })));
        }
        ruling
    }

    /// Remembers what is said at the end of a way on which nothing but counting was done.
    pub fn keep(&self, way: RulingPath, plain: Plain) {
        if let Some(ruling) = plain.rulings.last().cloned() {
            self.0[way.place()].store(Some(Arc::new(End { way, verdict: "pass", ruling, plain: Some(plain) })));
        }
    }
}

impl RulingPath {
    /// The version of the rules, the outcome of every condition, and the rule after which the walk began.
    pub fn told(&self, set: &RuleSet, verdict: &'static str, after: Option<Arc<str>>) -> Arc<Ruling> {
        let mut inputs = vec![("rules", set.version().to_owned()), ("outcomes", self.outcomes.text())];
        inputs.extend(after.map(|rule| ("after", rule.to_string())));
        Arc::new(Ruling { verdict, inputs, ..Ruling::default() })
    }

    fn place(&self) -> usize {
        self.outcomes.mixed(self.list as u64) as usize % PLACES
    }
}

impl Plain {
    /// Of what was told, and of effects that are all counts.
    pub fn new(rulings: Vec<Arc<Ruling>>, effects: &[Effect]) -> Self {
        let names = effects.iter().flat_map(|effect| match effect {
            Effect::Count { names } => &**names,
            _ => &[],
        });
        let counts: Arc<[Arc<str>]> = names.cloned().collect();
        Self { rulings: rulings.into(), counts: Some(counts).filter(|counts| !counts.is_empty()) }
    }
}

impl From<Plain> for Judgement {
    fn from(plain: Plain) -> Self {
        let effects = plain.counts.map(|names| Effect::Count { names }).into_iter().collect();
        Self { verdict: Verdict::Pass, rulings: Rulings::Many(plain.rulings), effects }
    }
}
