//! What the rules did with a message, on the tape or now.

use serde_json::Value;
use std::sync::Arc;

/// What became of a message.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) enum Kind {
    /// It goes on as it is.
    #[default]
    Pass,
    /// It goes on as another one.
    Changed,
    /// It is answered with a made-up or a kept result.
    Answered,
    /// It is refused, or answered with an error.
    Refused,
    /// It waits, and nobody has answered.
    Held,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "passed",
            Self::Changed => "changed",
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Held => "held",
        }
    }
}

/// What a changed or answered message has become, as far as both sides can be compared.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) enum Content {
    /// It cannot be compared.
    #[default]
    Incomparable,
    Is(Value),
}

impl Content {
    pub fn differs_from(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Is(one), Self::Is(two)) if one != two)
    }
}

/// All that matters of the decisions about a message in one phase.
#[derive(Clone, Default, Debug)]
pub(super) struct Outcome {
    pub kind: Kind,
    changed_by: Vec<Arc<str>>,
    ended_by: Option<Arc<str>>,
    /// The rules that made it wait for a time, and the time in words.
    pub delays: Vec<(Arc<str>, String)>,
    /// The rules that made it wait for somebody.
    pub holds: Vec<Arc<str>>,
    pub content: Content,
}

impl Outcome {
    /// Notes what a rule decided.
    pub fn note(&mut self, rule: &Arc<str>, verdict: &str, detail: &str) {
        match verdict {
            "delay" => self.delays.push((Arc::clone(rule), detail.to_owned())),
            "hold" => self.holds.push(Arc::clone(rule)),
            "modify" => self.changed_by.push(Arc::clone(rule)),
            "reply" | "error" | "refuse" => self.ended_by = Some(Arc::clone(rule)),
            _ => {}
        }
    }

    /// Notes the verdict of all rules together.
    pub fn verdict(&mut self, word: &str) {
        self.kind = match word {
            "reply" => Kind::Answered,
            "error" | "refuse" => Kind::Refused,
            "hold" => Kind::Held,
            _ if self.changed_by.is_empty() => Kind::Pass,
            _ => Kind::Changed,
        };
    }

    /// The rules that made it what it is.
    pub fn decided_by(&self) -> &[Arc<str>] {
        match self.kind {
            Kind::Pass => &[],
            Kind::Changed => &self.changed_by,
            Kind::Held => self.holds.last().map_or(&[], std::slice::from_ref),
            Kind::Answered | Kind::Refused => self.ended_by.as_slice(),
        }
    }

    /// The rule that a person would name first.
    pub fn chief(&self) -> Option<&Arc<str>> {
        let waits = self.holds.last().or(self.delays.last().map(|(rule, _)| rule));
        self.decided_by().last().or(waits)
    }

    pub fn goes_on(&self) -> bool {
        matches!(self.kind, Kind::Pass | Kind::Changed)
    }
}
