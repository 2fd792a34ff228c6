//! Outcome of a message in the rules, in the recording or now.

use serde_json::Value;
use std::sync::Arc;

#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) enum Kind {
    /// Passed without a modification.
    #[default]
    Pass,
    /// Passed after rules modified it.
    Changed,
    /// Answered by a mock or cache.
    Answered,
    /// Rejected, or answered with an error.
    Refused,
    /// Held without an answer so far.
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

/// Content of a modified or answered message, if it can be compared.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) enum Content {
    #[default]
    Incomparable,
    Is(Value),
}

impl Content {
    pub fn differs_from(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Is(one), Self::Is(two)) if one != two)
    }
}

/// Summary of the decisions about a message in one phase.
#[derive(Clone, Default, Debug)]
pub(super) struct Outcome {
    pub kind: Kind,
    changed_by: Vec<Arc<str>>,
    ended_by: Option<Arc<str>>,
    /// Rules that delayed the message, with the formatted delay.
    pub delays: Vec<(Arc<str>, String)>,
    /// Rules that held the message for an answer.
    pub holds: Vec<Arc<str>>,
    pub content: Content,
}

impl Outcome {
    /// Records the decision of one rule.
    pub fn note(&mut self, rule: &Arc<str>, verdict: &str, detail: &str) {
        match verdict {
            "delay" => self.delays.push((Arc::clone(rule), detail.to_owned())),
            "hold" => self.holds.push(Arc::clone(rule)),
            "modify" => self.changed_by.push(Arc::clone(rule)),
            "reply" | "error" | "refuse" => self.ended_by = Some(Arc::clone(rule)),
            _ => {}
        }
    }

    /// Records the combined verdict of all rules.
    pub fn verdict(&mut self, word: &str) {
        self.kind = match word {
            "reply" => Kind::Answered,
            "error" | "refuse" => Kind::Refused,
            "hold" => Kind::Held,
            _ if self.changed_by.is_empty() => Kind::Pass,
            _ => Kind::Changed,
        };
    }

    /// Returns the rules that determined the outcome.
    pub fn decided_by(&self) -> &[Arc<str>] {
        match self.kind {
            Kind::Pass => &[],
            Kind::Changed => &self.changed_by,
            Kind::Held => self.holds.last().map_or(&[], std::slice::from_ref),
            Kind::Answered | Kind::Refused => self.ended_by.as_slice(),
        }
    }

    /// Returns the rule to name in a report.
    pub fn chief(&self) -> Option<&Arc<str>> {
        let waits = self.holds.last().or(self.delays.last().map(|(rule, _)| rule));
        self.decided_by().last().or(waits)
    }

    pub fn goes_on(&self) -> bool {
        matches!(self.kind, Kind::Pass | Kind::Changed)
    }
}
