//! Derives from a rule's conditions and actions which messages it can match.

use crate::action::Action;
use crate::condition::{Condition, Leaf, MethodTest};
use crate::facts::Root;
use crate::phases::Phases;
use crate::template::Hole;
use signalbox_engine::question_origin::is_question;
use signalbox_wire::method;
use std::collections::BTreeSet;

/// Set of methods that a rule can match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Methods {
    Any,
    Only(BTreeSet<Box<str>>),
}

impl Methods {
    pub fn has(&self, method: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(some) => some.contains(method),
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Only(some) if some.is_empty())
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, some) | (some, Self::Any) => some,
            (Self::Only(a), Self::Only(b)) => Self::Only(a.intersection(&b).cloned().collect()),
        }
    }

    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Only(a), Self::Only(b)) => Self::Only(a.union(&b).cloned().collect()),
            _ => Self::Any,
        }
    }
}

/// Upper bounds for where a condition can hold, and for where it can fail.
struct Reach {
    yes: (Phases, Methods),
    no: (Phases, Methods),
}

/// Returns the phases and methods that a rule evaluates.
pub(crate) fn reach(when: &Condition, then: &[Action]) -> (Phases, Methods) {
    let (phases, methods) = of(when).yes;
    (phases.and(by_default(when, then, &methods)), methods)
}

/// Returns the phases that a rule evaluates if it does not say so: answers if it refers to them, notifications if it
/// names them, and requests otherwise.
fn by_default(when: &Condition, then: &[Action], methods: &Methods) -> Phases {
    let mut leaves = Vec::new();
    when.leaves(&mut leaves);
    if leaves.iter().any(|leaf| matches!(leaf, Leaf::Phase(phases) if !Phases::USUAL.covers(*phases))) {
        return Phases::EVERY;
    }
    if leaves.iter().any(|leaf| matches!(leaf, Leaf::Phase(_) | Leaf::Direction(_))) {
        return Phases::USUAL;
    }
    let of_answer = |leaf: &&Leaf| of_leaf(leaf).0.and(Phases::USUAL) == Phases::RESPONSE;
    let for_answer = |action: &Action| action.fits().and(Phases::USUAL) == Phases::RESPONSE;
    if leaves.iter().any(of_answer) || then.iter().any(for_answer) {
        return Phases::RESPONSE;
    }
    let notification = |method: &str| method.starts_with("notifications/");
    let prefix = |leaf: &&Leaf| matches!(leaf, Leaf::Method(MethodTest::StartsWith(start)) if notification(start));
    match methods {
        Methods::Only(some) if some.iter().all(|method| notification(method)) => Phases::NOTIFICATIONS,
        Methods::Only(some) if some.iter().any(|method| notification(method)) => {
            Phases::REQUEST.or(Phases::NOTIFICATIONS)
        }
        Methods::Any if leaves.iter().any(prefix) => Phases::NOTIFICATIONS,
        _ => Phases::REQUEST,
    }
}

/// Returns a server request that a rule names although it evaluates none.
pub(crate) fn unseen_question(when: &Condition, phases: Phases) -> Option<&'static str> {
    if phases.meets(Phases::QUESTION.or(Phases::ANSWER)) { None } else { named_question(when) }
}

/// Skips conditions under `not`: an excluded method need not be seen.
fn named_question(when: &Condition) -> Option<&'static str> {
    match when {
        Condition::And(all) | Condition::Or(all) => all.iter().find_map(named_question),
        Condition::Leaf(Leaf::Method(test), _) => {
            let matched = || method::all().filter(|name| test.holds(name));
            let question = matched().find(|name| is_question(name));
            // A pattern that also matches other methods is meant for those.
            question.filter(|_| matches!(test, MethodTest::In(_)) || matched().all(is_question))
        }
        Condition::Not(_) | Condition::Leaf(..) => None,
    }
}

/// Returns `true` if a rule needs the request of an answer that it evaluates.
pub(crate) fn reads_request(when: &Condition, then: &[Action]) -> bool {
    let mut leaves = Vec::new();
    when.leaves(&mut leaves);
    let in_leaf = |leaf: &&Leaf| matches!(leaf, Leaf::Value { root: Root::Params, .. });
    let in_action = |action: &Action| action.holes().iter().any(|hole| matches!(hole, Hole::Value(Root::Params, _)));
    leaves.iter().any(in_leaf) || then.iter().any(in_action)
}

fn of(condition: &Condition) -> Reach {
    match condition {
        Condition::Leaf(leaf, _) => {
            let yes = of_leaf(leaf);
            let no = match leaf {
                Leaf::Phase(phases) | Leaf::Direction(phases) => phases.others(),
                _ => Phases::EVERY,
            };
            Reach { yes, no: (no, Methods::Any) }
        }
        Condition::Not(one) => {
            let Reach { yes, no } = of(one);
            Reach { yes: no, no: yes }
        }
        Condition::And(all) => {
            let everywhere = Reach { yes: (Phases::EVERY, Methods::Any), no: nowhere() };
            all.iter().map(of).fold(everywhere, |a, b| Reach { yes: both(a.yes, b.yes), no: either(a.no, b.no) })
        }
        Condition::Or(any) => {
            let never = Reach { yes: nowhere(), no: (Phases::EVERY, Methods::Any) };
            any.iter().map(of).fold(never, |a, b| Reach { yes: either(a.yes, b.yes), no: both(a.no, b.no) })
        }
    }
}

fn nowhere() -> (Phases, Methods) {
    (Phases::NONE, Methods::Only(BTreeSet::new()))
}

fn both(a: (Phases, Methods), b: (Phases, Methods)) -> (Phases, Methods) {
    (a.0.and(b.0), a.1.and(b.1))
}

fn either(a: (Phases, Methods), b: (Phases, Methods)) -> (Phases, Methods) {
    (a.0.or(b.0), a.1.or(b.1))
}

fn of_leaf(leaf: &Leaf) -> (Phases, Methods) {
    let of_calls = || Methods::Only(BTreeSet::from(["tools/call".into()]));
    match leaf {
        Leaf::Method(MethodTest::In(list)) => (Phases::EVERY, Methods::Only(list.iter().cloned().collect())),
        Leaf::Tool(_) => (Phases::EVERY, of_calls()),
        Leaf::Phase(phases) | Leaf::Direction(phases) => (*phases, Methods::Any),
        Leaf::Value { root: Root::Result, .. }
        | Leaf::ErrorCode(_)
        | Leaf::ErrorContains(_)
        | Leaf::ErrorMatches(_) => (Phases::RESULTS, Methods::Any),
        _ => (Phases::EVERY, Methods::Any),
    }
}
