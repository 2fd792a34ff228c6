//! Breakpoints: conditions for messages that are held for a person. They are set and cleared while the gateway runs.

use signalbox_engine::chain::{
    self, Case, Hold, HoldQuestion, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict,
};
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{NamePattern, SubjectNames};
use signalbox_wire::glob::{self, Wildcards};
use signalbox_wire::{Limits, method};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Maximum number of breakpoints.
pub const MAX_BREAKPOINTS: usize = 64;
/// Maximum length of a pattern in bytes.
pub const MAX_PATTERN: usize = 256;
/// Default time for which a message is held. The MCP SDKs give a call up after 60 s.
pub const WITHIN: Duration = Duration::from_secs(50);
/// Maximum time for which a message may be held.
pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Condition for messages to hold. Without a tool and a method it matches every tool call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breakpoint {
    /// Pattern for the name of the tool, as clients know it.
    pub tool: Option<String>,
    /// Pattern for the method.
    pub method: Option<String>,
    /// Number of messages to hold before the breakpoint is cleared.
    pub next: Option<u32>,
    /// Phase to hold: requests or answers.
    pub phase: Phase,
    /// Maximum time for which a message is held.
    pub within: Duration,
}

impl Default for Breakpoint {
    fn default() -> Self {
        Self { tool: None, method: None, next: None, phase: Phase::Request, within: WITHIN }
    }
}

/// Reason why a breakpoint cannot be set or cleared.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BreakpointError {
    /// The limit is reached.
    #[error("{MAX_BREAKPOINTS} breakpoints are set, which is the limit; clear some with `signalbox hold clear`")]
    TooMany,
    /// A pattern is empty or too long.
    #[error("a pattern needs 1 to {} characters", MAX_PATTERN)]
    Pattern,
    /// The breakpoint would hold nothing.
    #[error("`next` must be at least 1")]
    Nothing,
    /// The time limit is zero, or longer than [`LONGEST`].
    #[error("a message may be held from 1 ms to {} hours", LONGEST.as_secs() / 3600)]
    Within,
    /// The phase is not one that can be held: notifications do not wait.
    #[error("only requests and answers can be held")]
    Phase,
    /// No breakpoint has this number.
    #[error("there is no breakpoint {0}; see `signalbox hold list`")]
    Unknown(u64),
}

/// Breakpoint in force, with its number and its condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActiveBreakpoint {
    /// Number of the breakpoint in this process.
    pub id: u64,
    /// Condition of the breakpoint.
    pub breakpoint: Breakpoint,
    /// Number of messages that it has held.
    pub hits: u64,
}

/// All breakpoints of a gateway.
#[derive(Debug)]
pub struct Breakpoints {
    /// Number of active breakpoints. If it is zero, a message costs one read of this.
    set: AtomicUsize,
    inner: Mutex<BreakpointTable>,
    limits: Limits,
}

#[derive(Debug, Default)]
struct BreakpointTable {
    last: u64,
    by_id: BTreeMap<u64, ActiveBreakpoint>,
}

impl Breakpoints {
    /// Creates an empty set. Edited messages must keep `limits`.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { set: AtomicUsize::new(0), inner: Mutex::default(), limits }
    }

    /// Sets a breakpoint and gives it a number.
    ///
    /// # Errors
    /// If the breakpoint is invalid, or there are too many.
    pub fn set(&self, breakpoint: Breakpoint) -> Result<ActiveBreakpoint, BreakpointError> {
        check(&breakpoint)?;
        let mut inner = self.lock();
        if inner.by_id.len() >= MAX_BREAKPOINTS {
            return Err(BreakpointError::TooMany);
        }
        inner.last += 1;
        let set = ActiveBreakpoint { id: inner.last, breakpoint, hits: 0 };
        inner.by_id.insert(set.id, set.clone());
        self.count(&inner);
        Ok(set)
    }

    /// Returns the active breakpoints, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<ActiveBreakpoint> {
        self.lock().by_id.values().cloned().collect()
    }

    /// Clears a breakpoint. The messages that it holds stay held.
    ///
    /// # Errors
    /// If no breakpoint has this number.
    pub fn clear(&self, id: u64) -> Result<ActiveBreakpoint, BreakpointError> {
        let mut inner = self.lock();
        let cleared = inner.by_id.remove(&id).ok_or(BreakpointError::Unknown(id));
        self.count(&inner);
        cleared
    }

    /// Clears all breakpoints and returns their number.
    pub fn clear_all(&self) -> usize {
        let mut inner = self.lock();
        let all = std::mem::take(&mut inner.by_id).len();
        self.count(&inner);
        all
    }

    /// Returns the limits that edited messages must keep.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    fn count(&self, inner: &BreakpointTable) {
        self.set.store(inner.by_id.len(), Ordering::Relaxed);
    }

    /// Returns the first breakpoint that matches this message, and counts the hit.
    fn meet(&self, case: &Case<'_>) -> Option<ActiveBreakpoint> {
        // A message that cannot be held must not use up a breakpoint for the next call.
        let exchange = case.exchange.filter(|_| case.can_wait)?;
        let mut inner = self.lock();
        let names = exchange.subject_names();
        let meets = |set: &&mut ActiveBreakpoint| set.breakpoint.fits(case.phase, &exchange.method, names.as_ref());
        // A request that answers the backend's questions continues an earlier call and does not count as the next one.
        let fresh = case.phase != Phase::Request || case.round <= 1;
        let met = inner.by_id.values_mut().find(|set| (fresh || set.breakpoint.next.is_none()) && meets(set))?;
        met.hits += 1;
        if let Some(next) = &mut met.breakpoint.next {
            *next = next.saturating_sub(1);
        }
        let met = met.clone();
        if met.breakpoint.next == Some(0) {
            inner.by_id.remove(&met.id);
            self.count(&inner);
        }
        Some(met)
    }

    fn lock(&self) -> MutexGuard<'_, BreakpointTable> {
        self.inner.lock().unpoisoned()
    }
}

fn check(breakpoint: &Breakpoint) -> Result<(), BreakpointError> {
    let patterns = [&breakpoint.tool, &breakpoint.method];
    if patterns.into_iter().flatten().any(|pattern| pattern.is_empty() || pattern.len() > MAX_PATTERN) {
        return Err(BreakpointError::Pattern);
    }
    if breakpoint.next == Some(0) {
        return Err(BreakpointError::Nothing);
    }
    if breakpoint.within < Duration::from_millis(1) || breakpoint.within > LONGEST {
        return Err(BreakpointError::Within);
    }
    if !matches!(breakpoint.phase, Phase::Request | Phase::Response) {
        return Err(BreakpointError::Phase);
    }
    Ok(())
}

impl Breakpoint {
    fn fits(&self, phase: Phase, name: &str, subject: Option<&SubjectNames<'_>>) -> bool {
        let by_method = match &self.method {
            Some(pattern) => glob::fits(pattern, name, Wildcards::StarAndQuestion),
            None => name == method::TOOLS_CALL,
        };
        let tool = || match &self.tool {
            Some(pattern) => {
                name == method::TOOLS_CALL
                    && subject.is_some_and(|names| names.meet(false, &[NamePattern::of_names(pattern)]))
            }
            None => true,
        };
        self.phase == phase && by_method && tool()
    }

    /// Describes in words what the breakpoint holds.
    #[must_use]
    pub fn words(&self) -> String {
        let what = match (&self.tool, &self.method) {
            (Some(tool), _) => format!("calls of {tool}"),
            (None, Some(method)) => method.clone(),
            (None, None) => "tool calls".to_owned(),
        };
        let which = match self.next {
            Some(1) => "the next of ".to_owned(),
            Some(next) => format!("the next {next} of "),
            None => String::new(),
        };
        let answers = if self.phase == Phase::Response { "answers to " } else { "" };
        format!("{which}{answers}{what}")
    }
}

fn rule(id: u64) -> Arc<str> {
    format!("breakpoint-{id}").into()
}

impl Interceptor for Breakpoints {
    fn name(&self) -> &'static str {
        "breakpoints"
    }

    fn is_idle(&self) -> bool {
        self.set.load(Ordering::Relaxed) == 0
    }

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        if let Some(resumed) = resumed {
            return chain::settle(case, resumed.answer, Some(rule(resumed.cursor.into())), &self.limits);
        }
        if self.is_idle() {
            return Judgement::pass();
        }
        let Some(met) = self.meet(case) else { return Judgement::pass() };
        let reason = format!("breakpoint {}", met.id);
        let detail = format!("held for a person for at most {} ms", met.breakpoint.within.as_millis());
        let ruling = Ruling { rule: Some(rule(met.id)), verdict: "hold", detail, ..Ruling::default() };
        let question = HoldQuestion::Person { reason: reason.into(), within: met.breakpoint.within };
        let cursor = u32::try_from(met.id).unwrap_or(u32::MAX);
        let verdict = Verdict::Hold(Hold { question, cursor, message: None });
        Judgement { verdict, rulings: ruling.into(), effects: vec![] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::subject_names::style_of;

    fn fits(breakpoint: &Breakpoint, name: &str, subject: Option<&str>) -> bool {
        let names = subject.map(|subject| SubjectNames::new(style_of(name), subject.into(), None));
        breakpoint.fits(breakpoint.phase, name, names.as_ref())
    }

    #[test]
    fn a_breakpoint_is_met_by_tool_by_method_or_by_any_tool_call() {
        let any = Breakpoint::default();
        assert!(fits(&any, "tools/call", Some("x")) && !fits(&any, "tools/list", None));
        let tool = Breakpoint { tool: Some("read_*".into()), ..Breakpoint::default() };
        assert!(fits(&tool, "tools/call", Some("read_file")) && !fits(&tool, "tools/call", Some("write")));
        assert!(!fits(&tool, "prompts/get", Some("read_file")), "that is no tool");
        let method = Breakpoint { method: Some("resources/*".into()), ..Breakpoint::default() };
        assert!(fits(&method, "resources/read", Some("x://")) && !fits(&method, "tools/call", Some("x")));
        let tool = SubjectNames::new(style_of("tools/call"), "x".into(), None);
        assert!(!any.fits(Phase::Response, "tools/call", Some(&tool)));
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_there_is_a_limit() {
        let breakpoints = Breakpoints::new(Limits::default());
        let bad = |breakpoint| breakpoints.set(breakpoint).unwrap_err();
        assert_eq!(bad(Breakpoint { tool: Some(String::new()), ..Breakpoint::default() }), BreakpointError::Pattern);
        assert_eq!(bad(Breakpoint { next: Some(0), ..Breakpoint::default() }), BreakpointError::Nothing);
        assert_eq!(bad(Breakpoint { within: Duration::ZERO, ..Breakpoint::default() }), BreakpointError::Within);
        assert_eq!(bad(Breakpoint { phase: Phase::FromClient, ..Breakpoint::default() }), BreakpointError::Phase);
        for _ in 0..MAX_BREAKPOINTS {
            breakpoints.set(Breakpoint::default()).unwrap();
        }
        assert_eq!(bad(Breakpoint::default()), BreakpointError::TooMany);
        assert_eq!(breakpoints.clear(999), Err(BreakpointError::Unknown(999)));
        assert!(!breakpoints.is_idle());
        assert_eq!(breakpoints.clear_all(), MAX_BREAKPOINTS);
        assert!(breakpoints.is_idle());
    }
}
