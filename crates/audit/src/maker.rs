//! Makes events of what the gateway is about to do and has done. It owns no clock: times come with what it is told.

mod decided;

use crate::event::{AuditEvent, EventType, Object, PROTOCOL, RiskLevel, SECURITY};
use crate::status::Status;
use crate::{risk, violation};
use decided::Decided;
use signalbox_engine::audit::Intent;
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::fact::{Finished, Outcome, RefusedFact};
use signalbox_engine::keys::KeyMap;
use signalbox_engine::{Caller, ExchangeId, Fact};
use signalbox_tape::redact::Redactor;
use signalbox_wire::{json, method};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most exchanges of which it is remembered what was decided while they are in flight.
pub const MAX_OPEN: usize = 65_536;
/// Most bytes of arguments in a record; larger ones are left out, with their size.
pub const MAX_ARGUMENTS: usize = 64 << 10;
/// Most characters of a text that others chose.
const MAX_TEXT: usize = 500;

/// Which events are written down.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Logged {
    /// Calls.
    pub tool_invocations: bool,
    /// Violations.
    pub security_events: bool,
    /// Calls that took long.
    pub performance_events: bool,
    /// Messages that cannot be served.
    pub protocol_errors: bool,
}

/// Makes events.
#[derive(Debug)]
pub struct Maker {
    logged: Logged,
    payloads: Option<Redactor>,
    slow: Duration,
    run: AuditRun,
    /// A moment on both clocks.
    anchor: (Instant, u64),
    open: KeyMap<ExchangeId, Open>,
}

/// What is known of an exchange in flight.
#[derive(Default, Debug)]
struct Open {
    intended: bool,
    risk: Option<RiskLevel>,
    tool: Option<Box<str>>,
    /// Who intended it, and how that is written.
    user: Option<(Caller, Arc<str>)>,
    decided: Decided,
}

impl Maker {
    /// A maker for exchanges of this run. Arguments are in its events only if there is a redactor for them.
    #[must_use]
    pub fn new(
        logged: Logged,
        payloads: Option<Redactor>,
        slow: Duration,
        run: AuditRun,
        anchor: (Instant, u64),
    ) -> Self {
        Self { logged, payloads, slow, run, anchor, open: KeyMap::default() }
    }

    /// The event of something that is about to leave.
    pub fn intent(&mut self, intent: &Intent, at: u64) -> AuditEvent {
        let mut decided = Decided::default();
        intent.decisions.iter().for_each(|decision| decided.take(decision));
        let risk = risk::of_call(intent.definition.as_deref(), &intent.caller);
        let mut details = Object::new();
        details.text("phase", if intent.is_copy { "copy" } else { "intent" });
        about(&mut details, &intent.method, intent.subject.as_deref(), Some(&intent.backend));
        details.text("decision", "allow");
        decided.write(&mut details);
        self.arguments(intent, &mut details);
        let user_context = user_context(&intent.caller, Some(intent.session.0));
        if !intent.is_copy && (self.open.len() < MAX_OPEN || self.open.contains_key(&intent.exchange)) {
            let open = self.open.entry(intent.exchange).or_default();
            (open.intended, open.risk, open.tool) = (true, Some(risk), intent.subject.clone());
            open.user = Some((intent.caller.clone(), Arc::clone(&user_context)));
        }
        AuditEvent {
            timestamp: at,
            event_type: kind(&intent.method),
            source: PROTOCOL,
            user_context,
            details: details.finish(),
            risk_level: risk,
            correlation_id: Some(self.run.id(intent.exchange)),
        }
    }

    /// The arguments of a call, where they are wanted, without secrets.
    fn arguments(&self, intent: &Intent, details: &mut Object) {
        let Some(redactor) = &self.payloads else { return };
        let found = json::path(&intent.message, &["params", "arguments"]);
        let Some(arguments) = found.map(|span| intent.message.slice(span.range())) else { return };
        if arguments.len() > MAX_ARGUMENTS {
            return details.number("arguments_bytes", arguments.len() as u64);
        }
        let (kept, _) = redactor.bytes(&arguments);
        let text = String::from_utf8_lossy(&kept);
        // One record is one line, and what was taken out may have left something that is no JSON.
        match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(value) => details.raw("arguments", &value.to_string()),
            Err(_) => details.text("arguments", &text),
        }
    }

    /// The events of a fact.
    pub fn fact(&mut self, fact: &Fact, out: &mut Vec<AuditEvent>) {
        match fact {
            Fact::Decision(decision) => {
                if let Some(exchange) = decision.exchange
                    && (self.open.len() < MAX_OPEN || self.open.contains_key(&exchange))
                {
                    self.open.entry(exchange).or_default().decided.take(decision);
                }
            }
            Fact::Finished(finished) => self.finished(finished, out),
            Fact::Refused(refused) => self.refused(refused, out),
            Fact::Message(_) | Fact::Lost(_) | Fact::Session(_) | Fact::SessionEnded { .. } => {}
        }
    }

    fn finished(&mut self, finished: &Finished, out: &mut Vec<AuditEvent>) {
        let open = self.open.remove(&finished.exchange).unwrap_or_default();
        let mut status = Status::of(finished.outcome);
        if open.decided.is_denial() && status == Status::Error && !open.intended {
            status = Status::Denied;
        }
        let known = open.risk.unwrap_or_else(|| risk::of_call(None, &finished.caller));
        let reason = match finished.outcome {
            Outcome::Fault(reason) => Some(reason),
            _ => None,
        };
        let user_context = match &open.user {
            Some((caller, written)) if *caller == finished.caller => Arc::clone(written),
            _ => user_context(&finished.caller, Some(finished.session.0)),
        };
        let event = |event_type, source, details, risk_level| AuditEvent {
            timestamp: self.unix_ms(finished.at),
            event_type,
            source,
            user_context: Arc::clone(&user_context),
            details,
            risk_level,
            correlation_id: Some(self.run.id(finished.exchange)),
        };
        let tool = open.tool.as_deref().or(finished.subject.as_deref());
        if self.logged.tool_invocations && (open.intended || finished.subject.is_some()) {
            let details = outcome(finished, &open, status);
            out.push(event(kind(&finished.method), PROTOCOL, details, risk::of_outcome(known, status)));
        }
        if let Some(violation) = reason.and_then(violation::of).filter(|_| self.logged.security_events) {
            let mut details = Object::new();
            details.text("violation", violation.kind);
            details.maybe("reason", reason);
            about(&mut details, &finished.method, tool, finished.backend.as_deref());
            open.decided.write(&mut details);
            out.push(event(EventType::SecurityViolation, SECURITY, details.finish(), violation.severity));
        }
        if let Some(reason) = reason.filter(|reason| violation::is_protocol_error(reason))
            && self.logged.protocol_errors
        {
            let mut details = Object::new();
            details.text("reason", reason);
            about(&mut details, &finished.method, tool, finished.backend.as_deref());
            details.maybe("error", open.decided.detail().as_deref());
            out.push(event(EventType::ProtocolError, PROTOCOL, details.finish(), RiskLevel::Low));
        }
        if finished.took >= self.slow && open.intended && self.logged.performance_events {
            let mut details = Object::new();
            details.text("warning", "slow_execution");
            details.number("latency_ms", millis(finished.took));
            details.number("threshold_ms", millis(self.slow));
            about(&mut details, &finished.method, tool, finished.backend.as_deref());
            out.push(event(EventType::Performance, PROTOCOL, details.finish(), RiskLevel::Low));
        }
    }

    fn refused(&self, refused: &RefusedFact, out: &mut Vec<AuditEvent>) {
        let mut details = Object::new();
        let (event_type, source, risk_level) = match violation::of(refused.reason) {
            Some(violation) if self.logged.security_events => {
                details.text("violation", violation.kind);
                (EventType::SecurityViolation, SECURITY, violation.severity)
            }
            None if self.logged.protocol_errors => (EventType::ProtocolError, PROTOCOL, RiskLevel::Low),
            _ => return,
        };
        details.text("reason", refused.reason);
        details.text("error", &refused.detail);
        if let Some(status) = refused.status {
            details.number("http_status", u64::from(status));
        }
        out.push(AuditEvent {
            timestamp: self.unix_ms(refused.at),
            event_type,
            source,
            user_context: user_context(&refused.caller, None),
            details: details.finish(),
            risk_level,
            correlation_id: None,
        });
    }

    fn unix_ms(&self, at: Instant) -> u64 {
        let (then, unix) = self.anchor;
        match at.checked_duration_since(then) {
            Some(later) => unix.saturating_add(millis(later)),
            None => unix.saturating_sub(millis(then.saturating_duration_since(at))),
        }
    }
}

/// The details of how a call ended.
fn outcome(finished: &Finished, open: &Open, status: Status) -> String {
    let mut details = Object::new();
    details.text("phase", "outcome");
    let own = open.tool.as_deref().or(finished.subject.as_deref());
    about(&mut details, &finished.method, own, finished.backend.as_deref());
    details.maybe("exposed", finished.subject.as_deref().filter(|subject| Some(*subject) != own));
    let forwarded = open.intended && status != Status::NotRecorded;
    details.raw("forwarded", if forwarded { "true" } else { "false" });
    details.text("status", status.word());
    details.text("outcome", finished.outcome.label());
    details.number("latency_ms", millis(finished.took));
    details.number("bytes_in", finished.bytes_in as u64);
    details.number("bytes_out", finished.bytes_out as u64);
    if finished.round > 1 {
        details.number("round", u64::from(finished.round));
    }
    details.text("decision", if status.is_refusal() { "deny" } else { "allow" });
    if let Outcome::Fault(_) = finished.outcome {
        details.maybe("error", open.decided.detail().as_deref());
    }
    open.decided.write(&mut details);
    details.finish()
}

fn kind(name: &str) -> EventType {
    if name == method::TOOLS_CALL { EventType::ToolInvocation } else { EventType::Request }
}

/// What a call is about.
fn about(details: &mut Object, method: &str, tool: Option<&str>, backend: Option<&str>) {
    details.text("method", shortened(method));
    if let Some(tool) = tool {
        details.text("tool", shortened(tool));
    }
    details.maybe("backend", backend);
}

fn shortened(text: &str) -> &str {
    match text.char_indices().nth(MAX_TEXT).filter(|_| text.len() > MAX_TEXT) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Who calls (G-25).
fn user_context(caller: &Caller, session: Option<u64>) -> Arc<str> {
    let identity = caller.identity();
    let mut context = Object::new();
    context.text("principal", identity.principal.as_str());
    context.text("trust_level", identity.trust().word());
    let roles = identity.standing.iter().flat_map(|standing| &standing.roles);
    context.array("roles", roles.map(|role| move |out: &mut String| json::push_quoted(out, role)));
    context.text("proof", identity.proof.word());
    context.maybe("address", identity.address.map(|address| address.to_string()).as_deref());
    context.text("transport", identity.transport);
    if let Some(session) = session {
        context.number("session", session);
    }
    context.finish().into()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
