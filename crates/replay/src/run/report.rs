//! Report of a run.

use super::lineage::Lineage;
use crate::diff::Differences;
use crate::recorded_call::RecordedCall;
use std::time::Duration;

/// Outcome of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum ReplayVerdict {
    Same,
    Different(Differences),
    /// The answer is the same, but took too long.
    Slow {
        /// Duration in the recording.
        recorded: Duration,
        /// Duration in this run.
        took: Duration,
    },
    /// The call timed out.
    Unanswered,
    /// The call was not sent, because one of its values may refer to another object now.
    Unclear(String),
    /// An earlier call was not sent or not answered, so the answer cannot be the same.
    Depends {
        call: u64,
        /// Differences in the answer, or `None` if this call was not sent either.
        differences: Option<Differences>,
    },
    /// The call may write and was not sent. The recorded answer stands in for it.
    FromTape,
    /// The tape lacks data needed to send or compare the call.
    Hole(&'static str),
    Filtered,
    /// The runner performs the handshake itself.
    Handshake,
    /// The run stopped before this call, or the user passed it over.
    Skipped,
}

impl ReplayVerdict {
    /// Returns `true` if this verdict fails the run.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Different(_) | Self::Slow { .. } | Self::Unanswered | Self::Unclear(_))
    }

    /// Returns the name used in reports.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different(_) => "different",
            Self::Slow { .. } => "slow",
            Self::Unanswered => "unanswered",
            Self::Unclear(_) => "unclear",
            Self::Depends { .. } => "depends",
            Self::FromTape => "from_tape",
            Self::Hole(_) => "hole",
            Self::Filtered => "filtered",
            Self::Handshake => "handshake",
            Self::Skipped => "skipped",
        }
    }
}

/// Report of one call.
#[derive(Clone, PartialEq, Debug)]
pub struct CallReport {
    /// Number of its exchange.
    pub number: u64,
    /// Position on the tape.
    pub seq: u64,
    pub session: Option<u64>,
    pub method: String,
    /// Tool, prompt or URI.
    pub subject: Option<String>,
    pub verdict: ReplayVerdict,
    /// Duration in this run.
    pub took: Option<Duration>,
    /// Set if the user edited the request.
    pub edited: bool,
}

impl CallReport {
    pub(super) fn new(call: &RecordedCall, verdict: ReplayVerdict, took: Option<Duration>) -> Self {
        Self {
            number: call.number,
            seq: call.seq,
            session: call.session,
            method: call.method.to_string(),
            subject: call.subject.as_deref().map(ToOwned::to_owned),
            verdict,
            took,
            edited: false,
        }
    }

    /// Formats the call's number, method and subject.
    #[must_use]
    pub fn title(&self) -> String {
        let subject = self.subject.as_deref().map_or_else(String::new, |subject| format!(" {subject}"));
        let edited = if self.edited { " (edited)" } else { "" };
        format!("call {}: {}{subject}{edited}", self.number, self.method)
    }

    /// Returns the reasons for a failure, one line per difference. Empty if the call did not fail.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        match &self.verdict {
            ReplayVerdict::Different(differences) => lines_of(differences),
            ReplayVerdict::Slow { recorded, took } => {
                vec![format!("took {took:?}, and {recorded:?} when it was recorded")]
            }
            ReplayVerdict::Unanswered => vec!["no answer in time".to_owned()],
            ReplayVerdict::Unclear(why) => vec![format!("not sent: {why}")],
            _ => Vec::new(),
        }
    }

    /// Returns the reasons why the call depends on another one, if it does.
    #[must_use]
    pub fn dependence(&self) -> Vec<String> {
        match &self.verdict {
            ReplayVerdict::Depends { call, differences: None } => {
                vec![format!("not sent: it depends on call {call}, which was not sent or failed")]
            }
            ReplayVerdict::Depends { call, differences: Some(differences) } => {
                let mut lines = lines_of(differences);
                lines.insert(0, format!("it depends on call {call}, which was not sent"));
                lines
            }
            _ => Vec::new(),
        }
    }
}

/// Formats one line per difference.
fn lines_of(differences: &Differences) -> Vec<String> {
    let line = |difference: &crate::diff::Difference| {
        let shown = difference.shown();
        format!("{} {}: {} → {}", difference.pointer, difference.kind.word(), shown.recorded, shown.new)
    };
    let mut lines: Vec<String> = differences.list.iter().map(line).collect();
    if differences.more > 0 {
        lines.push(format!("and {} more differences", differences.more));
    }
    lines
}

#[derive(Clone, PartialEq, Default, Debug)]
pub struct RunReport {
    /// Calls in the order of the tape.
    pub calls: Vec<CallReport>,
    /// Number of notifications received.
    pub notifications: u64,
    /// Number of values that the server minted anew.
    pub rebound: usize,
    /// Trace of each value from an answer to later requests.
    pub lineage: Vec<Lineage>,
}

impl RunReport {
    /// Returns `true` if a call failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.calls.iter().any(|call| call.verdict.is_failure())
    }

    /// Returns `true` if calls were sent and none was answered.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        let was_sent = |call: &&CallReport| call.took.is_some();
        let mut sent = self.calls.iter().filter(was_sent).peekable();
        sent.peek().is_some() && sent.all(|call| call.verdict == ReplayVerdict::Unanswered)
    }

    /// Returns the failed calls.
    pub fn failures(&self) -> impl Iterator<Item = &CallReport> {
        self.calls.iter().filter(|call| call.verdict.is_failure())
    }

    /// Returns the number of calls whose verdict has this name.
    #[must_use]
    pub fn count(&self, word: &str) -> usize {
        self.calls.iter().filter(|call| call.verdict.word() == word).count()
    }
}
