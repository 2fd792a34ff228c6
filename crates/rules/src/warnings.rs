//! Rules that are allowed, but surely not meant.

use crate::action::Action;
use crate::error::Warning;
use crate::phases::Phases;
use crate::reach::Methods;
use crate::rule::Rule;

pub(crate) fn warnings(rules: &[Rule]) -> Vec<Warning> {
    let mut out = Vec::new();
    // Rules that take every message of some phases, and what they do with it.
    let mut enders: Vec<(&Rule, Phases, &Action)> = Vec::new();
    for rule in rules.iter().filter(|rule| rule.enabled) {
        let warn = |text: String| Warning { place: rule.place.clone(), rule: rule.id.to_string(), text };
        if rule.phases == Phases::NONE || rule.methods.is_empty() {
            out.push(warn("can never match: its conditions exclude each other".to_owned()));
            continue;
        }
        if let Some((ender, _, action)) = enders.iter().find(|(_, phases, _)| phases.covers(rule.phases)) {
            let (ender, word) = (&ender.id, action.word());
            out.push(warn(format!(
                "is never reached: rule `{ender}` comes first, has no conditions and ends with `{word}`"
            )));
            continue;
        }
        if let Some(place) = rule.then.iter().position(Action::always_ends)
            && place + 1 < rule.then.len()
            && rule.then[place].fits().covers(rule.phases)
        {
            let (word, rest) = (rule.then[place].word(), rule.then.len() - place - 1);
            out.push(warn(format!("ends with `{word}`; the {rest} after it never run")));
        }
        let ender = rule.then.iter().find(|action| action.always_ends());
        if let (true, Methods::Any, Some(action)) = (takes_all(rule), &rule.methods, ender) {
            enders.push((rule, rule.phases.and(action.fits()), action));
        }
    }
    out
}

/// True where a rule fits every message of its phases.
fn takes_all(rule: &Rule) -> bool {
    use crate::condition::{Condition, Leaf};
    match &rule.when {
        Condition::Leaf(Leaf::Phase(_) | Leaf::Direction(_), _) => true,
        other => other.is_empty(),
    }
}
