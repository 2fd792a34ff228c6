//! Builds events from intents and facts. It owns no clock: every input carries its time.

mod decided;
mod known;

use crate::call_status::CallStatus;
use crate::event::{AuditEvent, EventType, Object, PROTOCOL, RiskLevel, SECURITY};
use crate::{arguments, risk, violation};
use decided::ExchangeDecisions;
use known::RecordCache;
use signalbox_engine::ExchangeId;
use signalbox_engine::audit::{Intent, IntentKind};
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::dialect;
use signalbox_engine::exchange::MethodName;
use signalbox_engine::fact::{Decision, FinishedFact, Outcome, RefusedFact, RefusedNotification};
use signalbox_engine::keys::KeyMap;
use signalbox_tape::redact::Redactor;
use signalbox_wire::{json, method};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Maximum number of exchanges in flight whose decisions are remembered.
pub const MAX_OPEN: usize = 65_536;
/// Maximum size of the arguments in a record, in bytes. Only the size of larger ones is recorded.
pub const MAX_ARGUMENTS: usize = 64 << 10;
/// Maximum number of characters of untrusted text.
const MAX_TEXT: usize = 500;
/// Maximum number of characters of such a text that are searched for secrets. The rest is left out.
const MAX_REDACTED: usize = 4_096;

/// Kinds of events to record.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct EventSelection {
    /// True to record calls of tools, and other requests to backends.
    pub tool_invocations: bool,
    /// True to record security violations.
    pub security_events: bool,
    /// True to record calls that exceed the threshold.
    pub performance_events: bool,
    /// True to record messages that violate the protocol.
    pub protocol_errors: bool,
}

/// Treatment of untrusted text: redaction, and the recording of arguments.
#[derive(Clone, Debug)]
pub struct TextPolicy {
    /// Redactor for untrusted text.
    pub redactor: Redactor,
    /// True if events contain arguments.
    pub payloads: bool,
}

impl TextPolicy {
    /// Returns the beginning of a text, redacted. Redaction comes first: no pattern matches half a secret.
    fn text(&self, text: &str, most: usize) -> String {
        let bounded = beginning(text, MAX_REDACTED);
        beginning(&self.redactor.text(bounded.to_owned()), most).to_owned()
    }

    /// Returns a method, redacted unless the gateway knows it: other names are the caller's text.
    fn method<'a>(&self, method: &'a MethodName) -> Cow<'a, str> {
        match method {
            Cow::Borrowed(known) => Cow::Borrowed(*known),
            Cow::Owned(method) => self.text(method, MAX_TEXT).into(),
        }
    }

    /// Returns the subject of a request, redacted. The name of a tool that exists is not the caller's text.
    fn subject<'a>(&self, name: &str, subject: &'a str) -> Cow<'a, str> {
        if name != method::TOOLS_CALL {
            return self.foreign_subject(name, subject).into();
        }
        let by_place = || arguments::redacted_subject(subject, &self.redactor, name);
        let kept = if self.redactor.has_path_rules() { by_place() } else { None };
        kept.map_or(subject.into(), Cow::Owned)
    }

    /// Returns the name of a subject that is the caller's text, redacted in its place in a request of this method.
    fn foreign_subject(&self, name: &str, subject: &str) -> String {
        let bounded = beginning(subject, MAX_REDACTED);
        match arguments::redacted_subject(bounded, &self.redactor, name) {
            Some(kept) => beginning(&kept, MAX_TEXT).to_owned(),
            None => self.text(bounded, MAX_TEXT),
        }
    }
}

/// Builds the events of one run, and tracks its exchanges in flight.
#[derive(Debug)]
pub struct EventBuilder {
    logged: EventSelection,
    words: TextPolicy,
    slow: Duration,
    run: AuditRun,
    /// One moment on the monotonic clock and on the wall clock, the latter as the time since 1970.
    anchor: (Instant, Duration),
    open: KeyMap<ExchangeId, OpenExchange>,
    known: RecordCache,
    texts: EventBuffers,
}

/// State of an exchange in flight.
#[derive(Default, Debug)]
struct OpenExchange {
    intended: bool,
    risk: Option<RiskLevel>,
    tool: Option<Box<str>>,
    decided: ExchangeDecisions,
}

/// Text buffers of the event being built, reused for the next one.
#[derive(Default, Debug)]
struct EventBuffers {
    user: String,
    details: String,
    id: String,
}

impl EventBuffers {
    /// Writes the caller and its session.
    fn user(&mut self, user: &str, session: Option<u64>) {
        self.user.clear();
        self.user.push_str(user);
        if let Some(session) = session {
            self.user.push_str(",\"session\":");
            json::push_number(&mut self.user, session);
        }
        self.user.push('}');
    }

    fn id(&mut self, run: AuditRun, exchange: ExchangeId) {
        self.id.clear();
        run.push_id(exchange, &mut self.id);
    }

    /// Clears the details and opens a new object.
    fn details(&mut self) -> Object<'_> {
        self.details.clear();
        Object::new(&mut self.details)
    }
}

impl EventBuilder {
    /// Creates a maker for the exchanges of this run.
    #[must_use]
    pub fn new(
        words: TextPolicy,
        logged: EventSelection,
        slow: Duration,
        run: AuditRun,
        anchor: (Instant, Duration),
    ) -> Self {
        let (open, known, texts) = (KeyMap::default(), RecordCache::default(), EventBuffers::default());
        Self { logged, words, slow, run, anchor, open, known, texts }
    }

    /// Applies new settings. Exchanges in flight are kept.
    pub(crate) fn follow(&mut self, words: TextPolicy, logged: EventSelection, slow: Duration) {
        (self.words, self.logged, self.slow) = (words, logged, slow);
    }

    /// Sets the current time on both clocks. The wall clock may have been set, and events carry its present time.
    pub fn set_clocks(&mut self, anchor: (Instant, Duration)) {
        self.anchor = anchor;
    }

    /// Emits the event of a call about to be forwarded.
    pub fn intent(&mut self, intent: Intent, at: u64, emit: &mut impl FnMut(&AuditEvent<'_>)) {
        let mut decided = ExchangeDecisions::default();
        intent.decisions.iter().for_each(|decision| decided.take(decision));
        let risk = self.known.risk(intent.definition.as_deref(), &intent.caller);
        let mut texts = std::mem::take(&mut self.texts);
        let mut details = texts.details();
        let phase = match intent.kind {
            IntentKind::Call => "intent",
            IntentKind::Copy => "copy",
            IntentKind::Notification => "notification",
        };
        details.text("phase", phase);
        let subject = intent.subject.as_deref().map(|subject| self.words.subject(&intent.method, subject));
        about(&mut details, &self.words.method(&intent.method), subject.as_deref(), Some(&intent.backend));
        details.text("decision", "allow");
        decided.write(&self.words, &mut details, false);
        self.arguments(&intent, &mut details);
        details.finish();
        texts.user(&self.known.user(&intent.caller), Some(intent.session.0));
        texts.id(self.run, intent.exchange);
        // A notification is no exchange, so no other record has its id.
        let has_id = intent.kind != IntentKind::Notification;
        emit(&AuditEvent {
            timestamp: at,
            event_type: kind(&intent.method),
            source: PROTOCOL,
            user_context: &texts.user,
            details: &texts.details,
            risk_level: risk,
            correlation_id: has_id.then_some(&texts.id),
        });
        self.texts = texts;
        if intent.kind == IntentKind::Call && (self.open.len() < MAX_OPEN || self.open.contains_key(&intent.exchange)) {
            let open = self.open.entry(intent.exchange).or_default();
            (open.intended, open.risk, open.tool) = (true, Some(risk), intent.subject);
        }
    }

    /// Writes the redacted arguments of a call, if they are wanted.
    fn arguments(&self, intent: &Intent, details: &mut Object<'_>) {
        let TextPolicy { redactor, payloads: true } = &self.words else { return };
        let found = json::path(&intent.message, &["params", "arguments"]);
        let Some(arguments) = found.map(|span| intent.message.slice(span.range())) else { return };
        if arguments.len() > MAX_ARGUMENTS {
            return details.number("arguments_bytes", arguments.len() as u64);
        }
        if let Some(kept) = arguments::redacted(&arguments, redactor, &intent.method) {
            // Redaction may have left text that is not valid JSON.
            details.raw("arguments", &arguments::recorded(&kept));
        }
    }

    /// Stores a decision about an exchange for its outcome.
    pub fn decision(&mut self, decision: &Decision) {
        if let Some(exchange) = decision.exchange
            && (self.open.len() < MAX_OPEN || self.open.contains_key(&exchange))
        {
            self.open.entry(exchange).or_default().decided.take(decision);
        }
    }

    /// Emits the events of a finished exchange.
    pub fn finished(&mut self, finished: &FinishedFact, emit: &mut impl FnMut(&AuditEvent<'_>)) {
        let open = self.open.remove(&finished.exchange).unwrap_or_default();
        let unreached = finished.unreached.as_deref();
        let mut status = CallStatus::of(finished.outcome);
        let denied = open.decided.is_denial() || violation::of_absence(unreached).is_some();
        if denied && status == CallStatus::Error && !open.intended {
            status = if violation::is_switched_off(unreached) { CallStatus::Killed } else { CallStatus::Denied };
        }
        let known = open.risk.unwrap_or_else(|| self.known.risk(None, &finished.caller));
        let reason = match finished.outcome {
            Outcome::Fault(reason) => Some(reason),
            _ => None,
        };
        let mut texts = std::mem::take(&mut self.texts);
        texts.user(&self.known.user(&finished.caller), Some(finished.session.0));
        texts.id(self.run, finished.exchange);
        let timestamp = self.unix_ms(finished.at);
        let mut tell = |texts: &EventBuffers, event_type, source, risk_level| {
            emit(&AuditEvent {
                timestamp,
                event_type,
                source,
                user_context: &texts.user,
                details: &texts.details,
                risk_level,
                correlation_id: Some(&texts.id),
            });
        };
        let tool = name(finished, &open, &self.words);
        let (tool, method) = (tool.as_deref(), self.words.method(&finished.method));
        // Every rejected request gets a record, even if it was rejected before its subject was known.
        let told = open.intended || finished.subject.is_some() || reason.is_some();
        if self.logged.tool_invocations && told {
            outcome(finished, &open, status, tool, &self.words, texts.details());
            tell(&texts, kind(&finished.method), PROTOCOL, risk::of_outcome(known, status));
        }
        let violated = reason.and_then(violation::of).or(violation::of_absence(unreached));
        if let Some(violation) = violated.filter(|_| self.logged.security_events) {
            let mut details = texts.details();
            details.text("violation", violation.kind);
            details.maybe("reason", violation::reason_of_absence(unreached).or(reason));
            about(&mut details, &method, tool, finished.backend.as_deref());
            open.decided.write(&self.words, &mut details, true);
            details.finish();
            tell(&texts, EventType::SecurityViolation, SECURITY, violation.severity);
        }
        if let Some(reason) = reason.filter(|reason| violation::is_protocol_error(reason))
            && violated.is_none()
            && self.logged.protocol_errors
        {
            let mut details = texts.details();
            details.text("reason", reason);
            about(&mut details, &method, tool, finished.backend.as_deref());
            details.maybe("error", open.decided.detail(&self.words, true).as_deref());
            open.decided.mark(&mut details);
            details.finish();
            tell(&texts, EventType::ProtocolError, PROTOCOL, RiskLevel::Low);
        }
        // Without records of calls there are no intents either.
        let left = open.intended && !open.decided.is_answered_here();
        let ran = left || (!self.logged.tool_invocations && finished.backend.is_some() && !status.is_refusal());
        if finished.took >= self.slow && ran && self.logged.performance_events {
            let mut details = texts.details();
            details.text("warning", "slow_execution");
            details.number("latency_ms", millis(finished.took));
            details.number("threshold_ms", millis(self.slow));
            about(&mut details, &method, tool, finished.backend.as_deref());
            details.finish();
            tell(&texts, EventType::Performance, PROTOCOL, RiskLevel::Low);
        }
        self.texts = texts;
    }

    /// Emits the event of a message rejected before it became an exchange.
    pub fn refused(&mut self, refused: &RefusedFact, emit: &mut impl FnMut(&AuditEvent<'_>)) {
        let unreached = refused.unreached.as_deref();
        let violation = violation::of(refused.reason).or(violation::of_absence(unreached));
        let (event_type, source, risk_level) = match &violation {
            Some(violation) if self.logged.security_events => {
                (EventType::SecurityViolation, SECURITY, violation.severity)
            }
            None if self.logged.protocol_errors => (EventType::ProtocolError, PROTOCOL, RiskLevel::Low),
            // A refused notification has no outcome that would tell of it.
            _ if refused.notification.is_some() && self.logged.tool_invocations => {
                (EventType::Request, PROTOCOL, RiskLevel::Medium)
            }
            _ => return,
        };
        let mut texts = std::mem::take(&mut self.texts);
        let mut details = texts.details();
        details.maybe("violation", violation.map(|violation| violation.kind));
        let reason = violation::reason_of_absence(unreached).unwrap_or(refused.reason);
        details.text("reason", reason);
        let tool = unreached.map(|unreached| self.words.text(&unreached.name, MAX_TEXT));
        match refused.notification.as_deref() {
            Some(notification) => self.refused_notification(notification, tool.as_deref(), reason, &mut details),
            None => details.maybe("tool", tool.as_deref()),
        }
        details.text("error", &self.words.text(&refused.detail, MAX_TEXT));
        if let Some(status) = refused.status {
            details.number("http_status", u64::from(status));
        }
        details.finish();
        let session = refused.notification.as_ref().map(|_| refused.session.0);
        texts.user(&self.known.user(&refused.caller), session);
        if let Some(exchange) = refused.exchange {
            texts.id(self.run, exchange);
        }
        emit(&AuditEvent {
            timestamp: self.unix_ms(refused.at),
            event_type,
            source,
            user_context: &texts.user,
            details: &texts.details,
            risk_level,
            correlation_id: refused.exchange.map(|_| texts.id.as_str()),
        });
        self.texts = texts;
    }

    /// Writes the details of a notification that no backend gets.
    fn refused_notification(
        &self,
        notification: &RefusedNotification,
        tool: Option<&str>,
        reason: &'static str,
        details: &mut Object<'_>,
    ) {
        details.text("phase", "notification");
        about(details, &self.words.method(&notification.method), tool, Some(&notification.backend));
        let status = match CallStatus::of(Outcome::Fault(reason)) {
            CallStatus::Error if reason == violation::HIDDEN => CallStatus::Denied,
            status => status,
        };
        details.raw("forwarded", "false");
        details.text("status", status.word());
        details.text("decision", "deny");
        let mut decided = ExchangeDecisions::default();
        notification.decisions.iter().for_each(|decision| decided.take(decision));
        decided.write(&self.words, details, true);
    }

    fn unix_ms(&self, at: Instant) -> u64 {
        let (then, since_1970) = self.anchor;
        millis(match at.checked_duration_since(then) {
            Some(later) => since_1970.saturating_add(later),
            None => since_1970.saturating_sub(then.saturating_duration_since(at)),
        })
    }
}

/// Writes the details of the outcome of a call.
fn outcome(
    finished: &FinishedFact,
    open: &OpenExchange,
    status: CallStatus,
    own: Option<&str>,
    words: &TextPolicy,
    mut details: Object<'_>,
) {
    details.text("phase", "outcome");
    about(&mut details, &words.method(&finished.method), own, finished.backend.as_deref());
    let exposed = finished.subject.as_deref().map(|subject| words.subject(&finished.method, subject));
    details.maybe("exposed", exposed.as_deref().filter(|exposed| Some(*exposed) != own));
    let forwarded = open.intended && status != CallStatus::NotRecorded && !open.decided.is_answered_here();
    details.raw("forwarded", if forwarded { "true" } else { "false" });
    details.text("status", status.word());
    details.text("outcome", finished.outcome.label());
    details.number("latency_ms", millis(finished.took));
    details.number("bytes_in", finished.bytes_in as u64);
    details.number("bytes_out", finished.bytes_out as u64);
    if finished.round > 1 {
        details.number("round", u64::from(finished.round));
    }
    let denied = status.is_refusal() || finished.unreached.is_some();
    details.text("decision", if denied { "deny" } else { "allow" });
    let failed = matches!(finished.outcome, Outcome::Fault(_));
    if failed {
        details.maybe("error", open.decided.detail(words, failed).as_deref());
    }
    open.decided.write(words, &mut details, failed);
    details.finish();
}

/// Returns the subject of a call: the backend's name for it, else the caller's, redacted.
fn name<'a>(finished: &'a FinishedFact, open: &'a OpenExchange, words: &TextPolicy) -> Option<Cow<'a, str>> {
    match open.tool.as_deref().or(finished.subject.as_deref()) {
        Some(subject) => Some(words.subject(&finished.method, subject)),
        None => {
            let unreached = finished.unreached.as_deref();
            unreached.map(|unreached| words.foreign_subject(&finished.method, &unreached.name).into())
        }
    }
}

fn kind(name: &str) -> EventType {
    if matches!(name, method::TOOLS_CALL | dialect::INVOKE) { EventType::ToolInvocation } else { EventType::Request }
}

/// Writes the method, tool and backend of a call.
fn about(details: &mut Object<'_>, method: &str, tool: Option<&str>, backend: Option<&str>) {
    details.text("method", beginning(method, MAX_TEXT));
    if let Some(tool) = tool {
        details.text("tool", beginning(tool, MAX_TEXT));
    }
    details.maybe("backend", backend);
}

/// Returns the first `most` characters of a text.
fn beginning(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most).filter(|_| text.len() > most) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
