//! What came of a run.

use super::lineage::Lineage;
use crate::diff::Differences;
use crate::recorded_call::RecordedCall;
use std::time::Duration;

/// What became of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// The answer is the recorded one.
    Same,
    /// The answer differs.
    Different(Differences),
    /// The answer is the same and took too long.
    Slow {
        /// How long it took in the recording.
        recorded: Duration,
        /// How long it took now.
        took: Duration,
    },
    /// There was no answer in time.
    Unanswered,
    /// It was not sent: a value of it may name another object now.
    Unclear(String),
    /// A call before it was not sent or not answered, so that it cannot be the same.
    Depends {
        /// The number of that call.
        call: u64,
        /// Differences of its answer; none if it was not sent either.
        differences: Option<Differences>,
    },
    /// It may change something and was not sent: the tape answers it.
    FromTape,
    /// The tape lacks what is needed to send or compare it.
    Hole(&'static str),
    /// A filter leaves it out.
    Filtered,
    /// It is part of the handshake, which the runner does by itself.
    Handshake,
    /// The run was stopped before it, or whoever controlled the run passed it over.
    Skipped,
}

impl Verdict {
    /// True if the run has failed by this.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Different(_) | Self::Slow { .. } | Self::Unanswered | Self::Unclear(_))
    }

    /// The word for it in reports.
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

/// One call of the tape in the report.
#[derive(Clone, PartialEq, Debug)]
pub struct CallReport {
    /// The number of its exchange.
    pub number: u64,
    /// Its place in the tape.
    pub seq: u64,
    /// Its session.
    pub session: Option<u64>,
    /// Its method.
    pub method: String,
    /// The tool, prompt or URI.
    pub subject: Option<String>,
    /// What became of it.
    pub verdict: Verdict,
    /// How long it took now.
    pub took: Option<Duration>,
    /// True if somebody edited its request.
    pub edited: bool,
}

impl CallReport {
    pub(super) fn new(call: &RecordedCall, verdict: Verdict, took: Option<Duration>) -> Self {
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

    /// What the call is, in words.
    #[must_use]
    pub fn title(&self) -> String {
        let subject = self.subject.as_deref().map_or_else(String::new, |subject| format!(" {subject}"));
        let edited = if self.edited { " (edited)" } else { "" };
        format!("call {}: {}{subject}{edited}", self.number, self.method)
    }

    /// Why it failed, a line for each difference; none if it did not.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        match &self.verdict {
            Verdict::Different(differences) => lines_of(differences),
            Verdict::Slow { recorded, took } => vec![format!("took {took:?}, and {recorded:?} when it was recorded")],
            Verdict::Unanswered => vec!["no answer in time".to_owned()],
            Verdict::Unclear(why) => vec![format!("not sent: {why}")],
            _ => Vec::new(),
        }
    }

    /// The reasons why it could not be compared, if it depends on other calls.
    #[must_use]
    pub fn dependence(&self) -> Vec<String> {
        match &self.verdict {
            Verdict::Depends { call, differences: None } => {
                vec![format!("not sent: it depends on call {call}, which was not sent or failed")]
            }
            Verdict::Depends { call, differences: Some(differences) } => {
                let mut lines = lines_of(differences);
                lines.insert(0, format!("it depends on call {call}, which was not sent"));
                lines
            }
            _ => Vec::new(),
        }
    }
}

/// A line for each difference.
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

/// All calls of a run.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct RunReport {
    /// The calls, in the order of the tape.
    pub calls: Vec<CallReport>,
    /// Notifications that came.
    pub notifications: u64,
    /// Values that the server minted anew.
    pub rebound: usize,
    /// The way of each value from an answer to later requests.
    pub lineage: Vec<Lineage>,
}

impl RunReport {
    /// True if a call failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.calls.iter().any(|call| call.verdict.is_failure())
    }

    /// True if calls were sent and none was answered.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        let was_sent = |call: &&CallReport| call.took.is_some();
        let mut sent = self.calls.iter().filter(was_sent).peekable();
        sent.peek().is_some() && sent.all(|call| call.verdict == Verdict::Unanswered)
    }

    /// The calls that failed.
    pub fn failures(&self) -> impl Iterator<Item = &CallReport> {
        self.calls.iter().filter(|call| call.verdict.is_failure())
    }

    /// How many calls have this word for a verdict.
    #[must_use]
    pub fn count(&self, word: &str) -> usize {
        self.calls.iter().filter(|call| call.verdict.word() == word).count()
    }
}
