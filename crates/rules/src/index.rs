//! Index of the rules that can match a message, by phase and method.

use crate::candidate::RuleCandidate;
use crate::phases::place;
use crate::reach::Methods;
use crate::rule::Rule;
use signalbox_engine::chain::Phase;
use signalbox_engine::keys::TextMap;
use std::collections::BTreeSet;

/// Candidates by phase and method, in evaluation order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Index {
    phases: [Lists; Phase::ALL.len()],
}

#[derive(Clone, Default, Debug)]
struct Lists {
    named: TextMap<Box<str>, Box<[RuleCandidate]>>,
    /// Candidates for methods that no rule names.
    others: Box<[RuleCandidate]>,
}

impl Index {
    /// Builds the index of rules in evaluation order.
    pub fn new(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for phase in Phase::ALL {
            index.phases[place(phase)] = lists(rules, phase);
        }
        index
    }

    pub fn list(&self, phase: Phase, method: Option<&str>) -> &[RuleCandidate] {
        let lists = &self.phases[place(phase)];
        method.and_then(|method| lists.named.get(method)).unwrap_or(&lists.others)
    }
}

fn lists(rules: &[Rule], phase: Phase) -> Lists {
    let live: Vec<(u16, &Rule)> = (0..).zip(rules).filter(|(_, rule)| rule.enabled && rule.phases.has(phase)).collect();
    let mut names = BTreeSet::new();
    for (_, rule) in &live {
        if let Methods::Only(some) = &rule.methods {
            names.extend(some);
        }
    }
    let chosen = |method: Option<&str>, fits: &dyn Fn(&Rule) -> bool| {
        let fitting = live.iter().filter(|(_, rule)| fits(rule));
        fitting.map(|(at, rule)| RuleCandidate::new(*at, rule, phase, method)).collect()
    };
    Lists {
        others: chosen(None, &|rule| rule.methods == Methods::Any),
        named: names
            .into_iter()
            .map(|name| (name.clone(), chosen(Some(name), &|rule| rule.methods.has(name))))
            .collect(),
    }
}
