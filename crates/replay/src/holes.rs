//! Counts what a replay cannot use of a tape. Every command that reads a tape shows these counts.

use crate::counted::counted;
use crate::recorded_call::RecordedCall;
use signalbox_engine::record::{Content, Entry};
use signalbox_tape::TapeSource;
use std::fmt;

/// Missing or altered parts of a tape.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Holes {
    /// Sampling settings of the tape, if it was sampled.
    pub sampled: Option<String>,
    /// Description of the missing part of an incomplete file.
    pub torn: Option<String>,
    /// Facts lost during recording.
    pub lost: u64,
    /// Calls whose request was not recorded, so they cannot be matched.
    pub left: u64,
    /// Calls whose request was redacted, so they cannot be matched.
    pub redacted_requests: u64,
    /// Calls without a recorded answer.
    pub unanswered: u64,
    /// Calls whose answer was redacted. They are played with the redaction marks in place of the values.
    pub redacted_answers: u64,
}

impl Holes {
    /// Reads sampling and completeness from the head of a tape.
    #[must_use]
    pub fn of_tape(source: &TapeSource) -> Self {
        let sampling = Some(source.info().sampling.clone()).filter(|words| !words.is_empty() && words != "all");
        Self { sampled: sampling, torn: source.missing().map(ToOwned::to_owned), ..Self::default() }
    }

    /// Adds the lost facts if the entry is a gap.
    pub fn look(&mut self, entry: &Entry) {
        if let Content::Gap(gap) = &entry.content {
            self.lost += gap.facts;
        }
    }

    /// Counts the missing parts of a call.
    pub fn count(&mut self, call: &RecordedCall) {
        if call.redacted {
            self.redacted_requests += 1;
        } else if call.key.is_none() {
            self.left += 1;
        }
        match &call.answer {
            Some(answer) if answer.bytes.is_some() => self.redacted_answers += u64::from(answer.redacted),
            _ => self.unanswered += 1,
        }
    }

    /// Returns `true` if nothing is missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Holes {
    /// Writes one line for each kind of hole.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(sampling) = &self.sampled {
            writeln!(f, "the tape was sampled ({sampling}): calls may be missing")?;
        }
        if let Some(torn) = &self.torn {
            writeln!(f, "{torn}")?;
        }
        // Count, noun, and the rest of the line in singular and plural.
        let counts = [
            (
                self.lost,
                "fact",
                "was lost while it was recorded: calls may be missing",
                "were lost while it was recorded: calls may be missing",
            ),
            (
                self.left,
                "call",
                "cannot be found: its request was not recorded in full",
                "cannot be found: their requests were not recorded in full",
            ),
            (
                self.redacted_requests,
                "call",
                "cannot be found: its request was redacted",
                "cannot be found: their requests were redacted",
            ),
            (
                self.unanswered,
                "call",
                "cannot be played: it has no answer on the tape",
                "cannot be played: they have no answer on the tape",
            ),
            (
                self.redacted_answers,
                "answer",
                "was redacted and is played as it was recorded",
                "were redacted and are played as they were recorded",
            ),
        ];
        counts.iter().filter(|(count, ..)| *count > 0).try_for_each(|(count, what, of_one, of_several)| {
            writeln!(f, "{} {}", counted(*count, what), if *count == 1 { of_one } else { of_several })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hole_is_counted_in_the_singular() {
        let one =
            Holes { lost: 1, left: 1, redacted_requests: 1, unanswered: 1, redacted_answers: 1, ..Holes::default() };
        let lines = [
            "1 fact was lost while it was recorded: calls may be missing",
            "1 call cannot be found: its request was not recorded in full",
            "1 call cannot be found: its request was redacted",
            "1 call cannot be played: it has no answer on the tape",
            "1 answer was redacted and is played as it was recorded",
        ];
        assert_eq!(one.to_string().lines().collect::<Vec<_>>(), lines);
        let two =
            Holes { lost: 2, left: 2, redacted_requests: 2, unanswered: 2, redacted_answers: 2, ..Holes::default() };
        let lines = [
            "2 facts were lost while it was recorded: calls may be missing",
            "2 calls cannot be found: their requests were not recorded in full",
            "2 calls cannot be found: their requests were redacted",
            "2 calls cannot be played: they have no answer on the tape",
            "2 answers were redacted and are played as they were recorded",
        ];
        assert_eq!(two.to_string().lines().collect::<Vec<_>>(), lines);
    }
}
