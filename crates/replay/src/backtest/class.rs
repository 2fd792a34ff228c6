//! How a verdict of now compares with the recorded one.

use super::outcome::{Kind, Outcome};
use signalbox_rules::Lack;
use std::fmt;

/// What becomes of a message now, compared with what became of it on the tape.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// The same.
    Same,
    /// It is refused now, and was not.
    Blocked,
    /// It is let through now, and was refused, answered or held.
    Allowed,
    /// It is changed now, and was not.
    Changed,
    /// It is changed, answered or refused as it was, but in another way.
    Differently,
    /// It goes on as it came now, and was changed.
    Unchanged,
    /// It waits for a person now, and did not.
    Held,
    /// It waits for another time than it did.
    Delayed,
    /// A mock or a cache answers it now, and did not.
    Answered,
    /// The tape does not tell what the verdict depends on.
    Unknown,
}

impl Class {
    /// All of them.
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

    /// The word for it.
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

    /// The class that has this word.
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

/// Why a verdict is not known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// The message is not on the tape, or not all of it.
    NoMessage,
    /// The rules need something else that is not on the tape.
    Lack(Lack),
    /// A webhook would be asked that was not asked the same on the tape.
    Webhook,
    /// What ended the wait of the message is not on the tape, or not all of it.
    NoAnswerToHold,
    /// The request is let through now, and there is no recorded answer to it.
    NoAnswer,
    /// The request is changed now in another way, so that the recorded answer is not the answer to it.
    OtherRequest,
    /// It depends on what was counted or kept while the tape was interrupted, or of calls that were not recorded.
    Gap,
    /// It depends on what was counted or kept of earlier messages, about which the verdict is not known.
    EarlierUnknown,
    /// Somebody dealt with the message at a breakpoint.
    Breakpoint,
    /// The message was translated between revisions, and the tape does not have it as the rules would see it.
    Translated,
    /// A further round of a call, or the result of a task.
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
