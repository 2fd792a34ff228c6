//! Classifies the new verdict against the recorded one.

use super::outcome::{Kind, Outcome};
use signalbox_rules::Lack;
use std::fmt;

/// Change of a message's outcome relative to the recording.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    Same,
    /// Rejected now, but not before.
    Blocked,
    /// Passed now; rejected, answered or held before.
    Allowed,
    /// Modified now, but not before.
    Changed,
    /// Same kind of outcome, but with different content or by another rule.
    Differently,
    /// Passed unmodified now; modified before.
    Unchanged,
    /// Held for approval now, but not before.
    Held,
    /// Delayed for a different time.
    Delayed,
    /// Answered by a mock or cache now, but not before.
    Answered,
    /// The verdict depends on information missing from the tape.
    Unknown,
}

impl Class {
    pub const ALL: [Self; 10] = [
        Self::Same,
        Self::Blocked,
        Self::Allowed,
        Self::Changed,
        Self::Differently,
        Self::Unchanged,
        Self::Held,
        Self::Delayed,
        Self::Answered,
        Self::Unknown,
    ];

    /// Returns the name of the class.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Blocked => "blocked",
            Self::Allowed => "allowed",
            Self::Changed => "changed",
            Self::Differently => "differently",
            Self::Unchanged => "unchanged",
            Self::Held => "held",
            Self::Delayed => "delayed",
            Self::Answered => "answered",
            Self::Unknown => "unknown",
        }
    }

    /// Finds the class with this name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
    }

    pub(super) fn of(then: &Outcome, now: &Outcome) -> Self {
        let goes_on = matches!(now.kind, Kind::Pass | Kind::Changed);
        match (then.kind, now.kind) {
            (before, after) if before == after => {
                let other = then.decided_by() != now.decided_by() || then.content.differs_from(&now.content);
                match () {
                    () if other => Self::Differently,
                    () if goes_on && then.holds.iter().any(|rule| !now.holds.contains(rule)) => Self::Allowed,
                    () if then.delays != now.delays => Self::Delayed,
                    () => Self::Same,
                }
            }
            (_, Kind::Held) => Self::Held,
            (_, Kind::Refused) => Self::Blocked,
            (_, Kind::Answered) => Self::Answered,
            (Kind::Pass, _) => Self::Changed,
            (Kind::Changed, _) => Self::Unchanged,
            _ => Self::Allowed,
        }
    }
}

/// Reason for an unknown verdict.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// The message is missing or incomplete on the tape.
    NoMessage,
    /// The rules need other information that is not on the tape.
    Lack(Lack),
    /// A webhook would be called with a request that is not on the tape.
    Webhook,
    /// The answer to the hold is missing or incomplete on the tape.
    NoAnswerToHold,
    /// The request passes now, but the tape has no answer to it.
    NoAnswer,
    /// The request is modified differently now, so the recorded answer does not apply.
    OtherRequest,
    /// The verdict depends on state from calls during a gap, or from calls that were not sampled.
    Gap,
    /// The verdict depends on state from earlier messages whose own verdict is unknown.
    EarlierUnknown,
    /// A user resolved the message at a breakpoint.
    Breakpoint,
    /// The message was translated between revisions, and the tape lacks the form that the rules would see.
    Translated,
    /// Follow-up round of a call, or the result of a task.
    FurtherRound,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMessage => "the message is not on the tape",
            Self::Lack(lack) => return lack.fmt(f),
            Self::Webhook => "a webhook would be asked, and its answer is not on the tape",
            Self::NoAnswerToHold => "what ended the wait of the message is not on the tape",
            Self::NoAnswer => "the request is let through now, and its answer is not on the tape",
            Self::OtherRequest => {
                "the request is changed now in another way, and the answer to that is not on the tape"
            }
            Self::Gap => "it depends on calls that are not on the tape",
            Self::EarlierUnknown => "it depends on earlier messages about which the verdict is not known",
            Self::Breakpoint => "a person dealt with the message at a breakpoint",
            Self::Translated => "the tape does not have the message as the client's revision has it",
            Self::FurtherRound => "rounds of a call after the first and results of tasks are not judged again",
        })
    }
}
