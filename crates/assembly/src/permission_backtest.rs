//! Tries permissions and limits on recorded calls: which of them would now be denied, allowed or held for consent.
//!
//! Only tool calls are judged. The past decision comes from the tape, the present one from the configuration, with the
//! arguments and the time of the call. Roles come from the configuration and the keys of the data folder; roles that a
//! token carried are not on a tape. Limits count all requests of the tapes in their recorded order and at their
//! recorded times, and start unused.

use crate::permission_trial::{PermissionTrial, TrialCaller, TrialDecision};
use signalbox_engine::catalog::ListKind;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, DecisionEntry, Entry, MessageEntry, MessageKind};
use signalbox_govern::CallLimits;
use signalbox_tape::Bodies;
use signalbox_wire::{Envelope, json, method};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Bytes of earlier bodies kept to resolve later ones that refer to them.
const REMEMBERED: usize = 8 << 20;
/// Maximum number of open calls. Calls beyond it are not judged.
const MAX_OPEN: usize = 100_000;
/// Maximum number of examples per kind of difference.
const MAX_EXAMPLES: usize = 5;

/// Past or present decision about a call.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum BacktestDecision {
    /// The call goes on.
    Allow,
    /// The call waits for consent.
    Ask,
    /// The call is refused, or answered like an unknown name.
    Deny,
}

impl BacktestDecision {
    /// Returns the decision's name in reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    fn of(verdict: &str) -> Self {
        match verdict {
            "allow" => Self::Allow,
            "ask" => Self::Ask,
            _ => Self::Deny,
        }
    }
}

/// Calls with the same past and present decision.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Decisions {
    pub count: u64,
    /// Examples, as tape and exchange.
    pub examples: Vec<(String, u64)>,
}

/// Result of a backtest.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PermissionReport {
    /// Number of judged calls.
    pub calls: u64,
    /// Number of calls that cannot be judged: the tape lacks their original arguments, or their tool is no longer
    /// known.
    pub unknown: u64,
    /// Calls by past decision, present decision, and the role or policy behind the present one.
    pub decisions: BTreeMap<(BacktestDecision, BacktestDecision, String), Decisions>,
}

impl PermissionReport {
    /// Returns the number of calls that would be decided differently.
    #[must_use]
    pub fn changed(&self) -> u64 {
        let others = self.decisions.iter().filter(|((then, now, _), _)| then != now);
        others.map(|(_, decisions)| decisions.count).sum()
    }
}

/// Call whose end has not been read yet.
#[derive(Debug)]
struct Open {
    then: BacktestDecision,
    /// Present decision; `None` if it cannot be determined.
    now: Option<TrialDecision>,
    /// Limit that would refuse the call.
    limit: Option<&'static str>,
}

/// Backtest of one configuration's permissions and limits.
pub struct PermissionBacktest {
    trial: PermissionTrial,
    limits: CallLimits,
    /// Instant that stands for the beginning of 1970.
    epoch: Instant,
    report: PermissionReport,
}

impl PermissionBacktest {
    /// Creates a backtest with these permissions and limits.
    #[must_use]
    pub fn new(trial: PermissionTrial, limits: CallLimits) -> Self {
        Self { trial, limits, epoch: Instant::now(), report: PermissionReport::default() }
    }

    /// Returns the result so far.
    #[must_use]
    pub fn report(&self) -> &PermissionReport {
        &self.report
    }

    /// Judges the calls of a tape.
    ///
    /// # Errors
    /// Returns the first error of `entries`. Calls before it are counted.
    pub fn tape<E>(&mut self, tape: &str, entries: impl Iterator<Item = Result<Entry, E>>) -> Result<(), E> {
        let mut bodies = Bodies::remembering(REMEMBERED);
        let mut open: HashMap<u64, Open> = HashMap::new();
        for entry in entries {
            let entry = bodies.whole(entry?);
            let Some(exchange) = entry.exchange else { continue };
            match &entry.content {
                Content::Message(message) if is_request(message) => {
                    let call = self.came(&entry, message);
                    if let Some(call) = call.filter(|_| open.len() < MAX_OPEN) {
                        open.entry(exchange).or_insert(call);
                    }
                }
                Content::Decisions(decisions) => {
                    if let Some(call) = open.get_mut(&exchange) {
                        decisions.iter().for_each(|decision| call.note(decision));
                    }
                }
                Content::Finished(finished) => {
                    if let Some(mut call) = open.remove(&exchange) {
                        // Hidden tools are rejected before the permissions decide, so the tape has no decision.
                        if finished.outcome == "unknown_tool" {
                            call.then = BacktestDecision::Deny;
                        }
                        self.count(tape, exchange, call);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Counts a request against the limits, and judges it if it is a tool call.
    fn came(&self, entry: &Entry, message: &MessageEntry) -> Option<Open> {
        let (Body::Whole(bytes), principal) = (&message.body, entry.principal.to_string()) else { return None };
        let envelope = Envelope::parse(bytes.clone()).ok()?;
        let is_call = message.method.as_deref() == Some(method::TOOLS_CALL);
        let named = envelope.param("name").and_then(|span| json::string(span.of(envelope.bytes())));
        let tool = named.filter(|_| is_call).and_then(|name| self.trial.tool(&name));
        let now = tool.as_deref().map(|tool| {
            let arguments = envelope.param("arguments").map(|span| span.of(envelope.bytes()));
            let who = TrialCaller { principal: principal.clone(), ..TrialCaller::default() };
            self.trial.decide(&who, ListKind::Tools, tool, arguments, entry.at / 1_000_000)
        });
        let is_seen = now.as_ref().is_some_and(|tried| tried.verdict != "hide");
        let key = is_call.then(|| match tool.as_deref().filter(|_| is_seen).and_then(|tool| tool.split_once('/')) {
            Some((backend, name)) => CallLimits::tool_key(backend, name),
            None => CallLimits::unknown_tool_key(),
        });
        let at = self.epoch + Duration::from_nanos(entry.at);
        let limit = match CallLimits::counts(message.method.as_deref()) {
            true => self.limits.take(&principal, key.as_deref(), at).err().map(|used_up| used_up.scope.word()),
            false => None,
        };
        // Redacted arguments cannot be judged.
        let now = now.filter(|_| !message.redacted);
        is_call.then_some(Open { then: BacktestDecision::Allow, now, limit })
    }

    fn count(&mut self, tape: &str, exchange: u64, call: Open) {
        let (now, by) = match (call.limit, call.now) {
            (Some(limit), _) => (BacktestDecision::Deny, format!("limit:{limit}")),
            (None, Some(tried)) => (BacktestDecision::of(tried.verdict), tried.policy.unwrap_or_default()),
            (None, None) => {
                self.report.unknown += 1;
                return;
            }
        };
        self.report.calls += 1;
        let decisions = self.report.decisions.entry((call.then, now, by)).or_default();
        decisions.count += 1;
        if decisions.examples.len() < MAX_EXAMPLES {
            decisions.examples.push((tape.to_owned(), exchange));
        }
    }
}

impl Open {
    fn note(&mut self, decision: &DecisionEntry) {
        match (&*decision.by, &*decision.verdict) {
            ("permissions", "hold") => self.then = BacktestDecision::Ask,
            ("permissions", "deny") if self.then == BacktestDecision::Allow => self.then = BacktestDecision::Deny,
            ("switches" | "limits", "refuse") => self.then = BacktestDecision::Deny,
            _ => {}
        }
    }
}

/// Returns `true` for a request in the form in which its client sent it.
fn is_request(message: &MessageEntry) -> bool {
    message.point == Point::ClientIn && message.kind == MessageKind::Request && message.again.is_none()
}
