//! Condition tree of a rule.

use crate::facts::{MessageFacts, MessageView, Root};
use crate::outcomes::Outcomes;
use crate::phases::Phases;
use crate::pointer::Pointer;
use crate::value_test::ValueTest;
use regex::bytes::Regex;
use signalbox_engine::NamePattern;
use signalbox_engine::chain::Phase;
use signalbox_wire::glob::{self, Wildcards};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// All must hold. An empty list always does.
    And(Vec<Condition>),
    /// At least one must hold.
    Or(Vec<Condition>),
    Not(Box<Condition>),
    /// Single test, with its description.
    Leaf(Leaf, Arc<str>),
}

/// Test of one property of a message.
#[derive(Clone, Debug)]
pub(crate) enum Leaf {
    Method(MethodTest),
    /// Value at a pointer, relative to the root. `inside` is set if the rule wrote the pointer without the root.
    Value {
        root: Root,
        pointer: Pointer,
        inside: bool,
        slot: usize,
        test: ValueTest,
    },
    ErrorCode(Box<[i64]>),
    ErrorContains(Box<str>),
    ErrorMatches(Regex),
    Backend(Globs),
    Tool(Subjects),
    Subject(Subjects),
    Principal(Globs),
    Session(Globs),
    SessionAge(Duration),
    Revision(Box<[Box<str>]>),
    Phase(Phases),
    Direction(Phases),
}

#[derive(Clone, Debug)]
pub(crate) enum MethodTest {
    In(Box<[Box<str>]>),
    Matches(Regex),
    StartsWith(Box<str>),
    EndsWith(Box<str>),
}

impl Condition {
    /// Creates a condition from a single test.
    pub fn leaf(leaf: Leaf) -> Self {
        let words = leaf.to_string().into();
        Self::Leaf(leaf, words)
    }

    /// Evaluates the condition and records the outcomes in order, with short-circuiting. `strictly` is set if a match
    /// grants permission: then all spellings of a name must match.
    pub fn holds(&self, view: &MessageView<'_>, slots: usize, strictly: bool, outcomes: &mut Outcomes) -> bool {
        match self {
            Self::And(all) => all.iter().all(|one| one.holds(view, slots, strictly, outcomes)),
            Self::Or(any) => any.iter().any(|one| one.holds(view, slots, strictly, outcomes)),
            Self::Not(one) => !one.holds(view, slots, !strictly, outcomes),
            Self::Leaf(leaf, _) => {
                let held = leaf.holds(view, slots, strictly);
                outcomes.push(held);
                held
            }
        }
    }

    /// Replays recorded outcomes: collects each test's description and outcome.
    pub fn retrace(&self, noted: &mut dyn Iterator<Item = bool>, words: &mut Vec<(Arc<str>, bool)>) -> Option<bool> {
        match self {
            Self::And(all) => {
                for one in all {
                    if !one.retrace(noted, words)? {
                        return Some(false);
                    }
                }
                Some(true)
            }
            Self::Or(any) => {
                for one in any {
                    if one.retrace(noted, words)? {
                        return Some(true);
                    }
                }
                Some(false)
            }
            Self::Not(one) => one.retrace(noted, words).map(|held| !held),
            Self::Leaf(_, said) => {
                let held = noted.next()?;
                words.push((Arc::clone(said), held));
                Some(held)
            }
        }
    }

    /// Appends all tests in evaluation order.
    pub fn leaves<'a>(&'a self, out: &mut Vec<&'a Leaf>) {
        match self {
            Self::And(list) | Self::Or(list) => list.iter().for_each(|one| one.leaves(out)),
            Self::Not(one) => one.leaves(out),
            Self::Leaf(leaf, _) => out.push(leaf),
        }
    }

    /// Describes all tests in evaluation order.
    pub fn words(&self) -> Vec<Arc<str>> {
        match self {
            Self::And(list) | Self::Or(list) => list.iter().flat_map(Self::words).collect(),
            Self::Not(one) => one.words(),
            Self::Leaf(_, words) => vec![Arc::clone(words)],
        }
    }

    /// Calls `change` on every test.
    pub fn each_leaf(&mut self, change: &mut dyn FnMut(&mut Leaf)) {
        match self {
            Self::And(list) | Self::Or(list) => list.iter_mut().for_each(|one| one.each_leaf(change)),
            Self::Not(one) => one.each_leaf(change),
            Self::Leaf(leaf, _) => change(leaf),
        }
    }

    /// Returns `true` if there are no tests.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::And(all) if all.iter().all(Self::is_empty))
    }
}

impl Leaf {
    /// Returns `true` if the test is a regular expression.
    pub fn is_pattern(&self) -> bool {
        matches!(
            self,
            Self::Method(MethodTest::Matches(_))
                | Self::ErrorMatches(_)
                | Self::Value { test: ValueTest::Matches(_), .. }
        )
    }

    /// Returns `true` if the test needs information about a task's call that is no longer known.
    fn is_unknown(&self, facts: &MessageFacts<'_>) -> bool {
        match self {
            Self::Tool(_) | Self::Subject(_) => facts.lacks_subject(),
            Self::Value { root: Root::Params, .. } => facts.lacks_request(),
            _ => false,
        }
    }

    fn holds(&self, view: &MessageView<'_>, slots: usize, strictly: bool) -> bool {
        let facts = view.facts;
        if facts.by_task && self.is_unknown(facts) {
            // Assume the worse for the message: a rule that forbids matches, one that permits does not.
            view.guess();
            return !strictly;
        }
        match self {
            Self::Method(test) => view.method().is_some_and(|method| test.holds(method)),
            Self::Value { root: Root::Result, .. } if !Phases::RESULTS.has(facts.phase) => false,
            Self::Value { root, pointer, slot, test, .. } => test.holds(view.value(*root, pointer, *slot, slots), view),
            Self::ErrorCode(codes) => view.error_code().is_some_and(|code| codes.contains(&code)),
            Self::ErrorContains(part) => view.error_text().is_some_and(|text| text.contains(&**part)),
            Self::ErrorMatches(regex) => view.error_text().is_some_and(|text| regex.is_match(text.as_bytes())),
            Self::Backend(names) => facts.backend.is_some_and(|name| names.fit(name)),
            Self::Tool(names) => view.method() == Some("tools/call") && names.fit(view, strictly),
            Self::Subject(names) => names.fit(view, strictly),
            Self::Principal(names) => names.fit(facts.principal),
            Self::Session(names) => view.session().is_some_and(|id| names.fit(id)),
            Self::SessionAge(bound) => facts.session_age > *bound,
            Self::Revision(list) => facts.revision.is_some_and(|spoken| list.iter().any(|one| **one == *spoken)),
            Self::Phase(phases) | Self::Direction(phases) => phases.has(facts.phase),
        }
    }
}

/// Patterns of which one must match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Globs(pub Box<[Box<str>]>);

impl Globs {
    pub fn new(patterns: &[&str]) -> Self {
        Self(patterns.iter().map(|pattern| Box::from(*pattern)).collect())
    }

    pub fn fit(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| glob::fits(pattern, name, Wildcards::StarAndQuestion))
    }
}

/// Patterns for tools, prompts and resources, of which one must match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Subjects(Box<[NamePattern]>);

impl Subjects {
    pub fn new(patterns: &[&str]) -> Self {
        Self(patterns.iter().map(|pattern| NamePattern::new(pattern)).collect())
    }

    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(NamePattern::text)
    }

    fn fit(&self, view: &MessageView<'_>, strictly: bool) -> bool {
        view.names().is_some_and(|names| names.meet(strictly, &self.0))
    }
}

impl MethodTest {
    pub fn holds(&self, method: &str) -> bool {
        match self {
            Self::In(list) => list.iter().any(|one| **one == *method),
            Self::Matches(regex) => regex.is_match(method.as_bytes()),
            Self::StartsWith(start) => method.starts_with(&**start),
            Self::EndsWith(end) => method.ends_with(&**end),
        }
    }
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method(test) => write!(f, "method {test}"),
            Self::Value { root, pointer, test, .. } => {
                write!(f, "/{}{} {test}", root.word(), pointer.as_str())
            }
            Self::ErrorCode(codes) => {
                let codes: Vec<_> = codes.iter().map(i64::to_string).collect();
                write!(f, "error code is {}", codes.join(" or "))
            }
            Self::ErrorContains(part) => write!(f, "error text contains \"{part}\""),
            Self::ErrorMatches(regex) => write!(f, "error text matches /{regex}/"),
            Self::Backend(names) => write!(f, "backend is {names}"),
            Self::Tool(names) => write!(f, "tool is {names}"),
            Self::Subject(names) => write!(f, "subject is {names}"),
            Self::Principal(names) => write!(f, "principal is {names}"),
            Self::Session(names) => write!(f, "session is {names}"),
            Self::SessionAge(bound) => write!(f, "session is older than {bound:?}"),
            Self::Revision(list) => write!(f, "revision is {}", list.join(" or ")),
            Self::Phase(phases) => write!(f, "phase is {}", phases.words()),
            Self::Direction(phases) => {
                let side = if phases.has(Phase::Request) { "from the client" } else { "from the backend" };
                write!(f, "it comes {side}")
            }
        }
    }
}

impl fmt::Display for MethodTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In(list) => write!(f, "is {}", list.join(" or ")),
            Self::Matches(regex) => write!(f, "matches /{regex}/"),
            Self::StartsWith(start) => write!(f, "starts with \"{start}\""),
            Self::EndsWith(end) => write!(f, "ends with \"{end}\""),
        }
    }
}

impl fmt::Display for Subjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.texts().collect::<Vec<_>>().join(" or "))
    }
}

impl fmt::Display for Globs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" or "))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |list: &[Self], word: &str, f: &mut fmt::Formatter<'_>| {
            for (index, one) in list.iter().enumerate() {
                if index > 0 {
                    write!(f, " {word} ")?;
                }
                match one {
                    Self::And(inner) | Self::Or(inner) if inner.len() > 1 => write!(f, "({one})")?,
                    _ => write!(f, "{one}")?,
                }
            }
            Ok(())
        };
        match self {
            Self::And(all) if all.is_empty() => f.write_str("always"),
            Self::And(all) => joined(all, "and", f),
            Self::Or(any) => joined(any, "or", f),
            Self::Not(one) => write!(f, "not ({one})"),
            Self::Leaf(_, words) => f.write_str(words),
        }
    }
}
