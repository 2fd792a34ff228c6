//! Permissions tried on the past: which recorded calls they would now deny, allow, or have somebody asked about.
//!
//! Calls are those of tools. What was decided then is what the tape says; what would be decided now comes from the
//! configuration, with the arguments and the time of the call. Roles are those that the configuration and the keys of the data
//! folder give; roles that a token brought are not on a tape.

use crate::permission_trial::{PermissionTrial, Supposed};
use bytes::Bytes;
use signalbox_engine::catalog::ListKind;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, DecisionEntry, Entry, MessageEntry, MessageKind};
use signalbox_tape::Bodies;
use signalbox_wire::{Envelope, json, method};
use std::collections::{BTreeMap, HashMap};

/// Bytes of earlier bodies that later ones may be like.
const REMEMBERED: usize = 8 << 20;
/// Most calls that are open at once; beyond, further ones are not judged.
const MAX_OPEN: usize = 100_000;
/// Most examples of one kind of difference.
const MAX_EXAMPLES: usize = 5;

/// What was or would be decided about a call.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Decided {
    /// It goes on.
    Allow,
    /// Somebody is asked.
    Ask,
    /// It is refused, or answered like an unknown name.
    Deny,
}

impl Decided {
    /// The word for it.
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

/// Calls that are decided in the same way, then and now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Decisions {
    /// How many.
    pub count: u64,
    /// Some of them, by tape and exchange.
    pub examples: Vec<(String, u64)>,
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PermissionReport {
    /// Calls that were judged.
    pub calls: u64,
    /// Calls whose arguments the tape does not have as they were, or whose tool is not known any more.
    pub unknown: u64,
    /// By what was decided, what would be decided, and the role or policy that would decide.
    pub decisions: BTreeMap<(Decided, Decided, String), Decisions>,
}

impl PermissionReport {
    /// How many calls would be decided differently.
    #[must_use]
    pub fn changed(&self) -> u64 {
        let others = self.decisions.iter().filter(|((then, now, _), _)| then != now);
        others.map(|(_, decisions)| decisions.count).sum()
    }
}

#[derive(Debug)]
struct Open {
    principal: String,
    at: u64,
    message: Option<Bytes>,
    then: Decided,
}

/// Tries the permissions of a configuration on tapes.
pub struct PermissionBacktest {
    trial: PermissionTrial,
    report: PermissionReport,
}

impl PermissionBacktest {
    /// With these permissions.
    #[must_use]
    pub fn new(trial: PermissionTrial) -> Self {
        Self { trial, report: PermissionReport::default() }
    }

    /// What came of it.
    #[must_use]
    pub fn report(&self) -> &PermissionReport {
        &self.report
    }

    /// Judges the calls of a tape.
    ///
    /// # Errors
    /// What the entries are read with; what was read before counts.
    pub fn tape<E>(&mut self, tape: &str, entries: impl Iterator<Item = Result<Entry, E>>) -> Result<(), E> {
        let mut bodies = Bodies::remembering(REMEMBERED);
        let mut open: HashMap<u64, Open> = HashMap::new();
        for entry in entries {
            let entry = bodies.whole(entry?);
            let Some(exchange) = entry.exchange else { continue };
            match &entry.content {
                Content::Message(message) if is_call(message) && open.len() < MAX_OPEN => {
                    let body = match &message.body {
                        Body::Whole(bytes) if !message.redacted => Some(bytes.clone()),
                        _ => None,
                    };
                    let principal = entry.principal.to_string();
                    open.entry(exchange).or_insert(Open {
                        principal,
                        at: entry.at,
                        message: body,
                        then: Decided::Allow,
                    });
                }
                Content::Decisions(decisions) => {
                    if let Some(call) = open.get_mut(&exchange) {
                        decisions.iter().for_each(|decision| call.note(decision));
                    }
                }
                Content::Finished(finished) => {
                    if let Some(mut call) = open.remove(&exchange) {
                        // What nobody could see was answered before anybody was asked about it.
                        if finished.outcome == "unknown_tool" {
                            call.then = Decided::Deny;
                        }
                        self.judge(tape, exchange, &call, finished.subject.as_deref());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn judge(&mut self, tape: &str, exchange: u64, call: &Open, subject: Option<&str>) {
        let envelope = call.message.clone().and_then(|bytes| Envelope::parse(bytes).ok());
        let named = envelope.as_ref().and_then(|message| {
            let span = message.param("name")?;
            json::string(span.of(message.bytes())).map(std::borrow::Cow::into_owned)
        });
        let name = named.or_else(|| subject.map(ToOwned::to_owned));
        let (Some(message), Some(entry)) = (envelope, name.and_then(|name| self.trial.tool(&name))) else {
            self.report.unknown += 1;
            return;
        };
        let arguments = message.param("arguments").map(|span| span.of(message.bytes()));
        let who = Supposed { principal: call.principal.clone(), ..Supposed::default() };
        let tried = self.trial.decide(&who, ListKind::Tools, &entry, arguments, call.at / 1_000_000);
        let now = Decided::of(tried.verdict);
        self.report.calls += 1;
        let key = (call.then, now, tried.policy.unwrap_or_default());
        let decisions = self.report.decisions.entry(key).or_default();
        decisions.count += 1;
        if decisions.examples.len() < MAX_EXAMPLES {
            decisions.examples.push((tape.to_owned(), exchange));
        }
    }
}

impl Open {
    fn note(&mut self, decision: &DecisionEntry) {
        match (&*decision.by, &*decision.verdict) {
            ("permissions", "hold") => self.then = Decided::Ask,
            ("permissions", "deny") if self.then == Decided::Allow => self.then = Decided::Deny,
            ("switches", "refuse") => self.then = Decided::Deny,
            _ => {}
        }
    }
}

/// True for a call as its client sent it.
fn is_call(message: &MessageEntry) -> bool {
    message.point == Point::ClientIn
        && message.kind == MessageKind::Request
        && message.again.is_none()
        && message.method.as_deref() == Some(method::TOOLS_CALL)
}
