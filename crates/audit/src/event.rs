//! One thing that is written down.

use signalbox_wire::{json, timestamp};
use std::fmt::Write as _;
use std::sync::Arc;

/// What kind of thing it is.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum EventType {
    /// A call of a tool: its intent, its outcome, or a copy of it.
    ToolInvocation,
    /// Any other request about something that a backend has.
    Request,
    /// Somebody tried what it may not do.
    SecurityViolation,
    /// Somebody may use everything for a while, or no longer.
    BreakGlass,
    /// A call took long.
    Performance,
    /// A message was none that can be served.
    ProtocolError,
    /// The place of the chain before this record, signed.
    ChainHead,
    /// Records that could not be written.
    RecordsLost,
}

impl EventType {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ToolInvocation,
        Self::Request,
        Self::SecurityViolation,
        Self::BreakGlass,
        Self::Performance,
        Self::ProtocolError,
        Self::ChainHead,
        Self::RecordsLost,
    ];

    /// Its name in records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ToolInvocation => "tool_invocation",
            Self::Request => "request",
            Self::SecurityViolation => "security_violation",
            Self::BreakGlass => "break_glass",
            Self::Performance => "performance",
            Self::ProtocolError => "protocol_error",
            Self::ChainHead => "chain_head",
            Self::RecordsLost => "records_lost",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// How much harm it may mean, from the least to the most.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RiskLevel {
    /// None to speak of.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// Somebody has to look at it now.
    Critical,
}

impl RiskLevel {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// Its name in records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// The level of this name.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == word)
    }

    /// The next higher level, but no alarm.
    #[must_use]
    pub fn raised(self) -> Self {
        match self {
            Self::Low => Self::Medium,
            Self::Medium | Self::High => Self::High,
            Self::Critical => Self::Critical,
        }
    }
}

/// The source of records about calls.
pub const PROTOCOL: &str = "mcp_protocol";
/// The source of records about violations.
pub const SECURITY: &str = "mcp_security";
/// The source of records about the log itself.
pub const AUDIT: &str = "mcp_audit";

/// One event (G-25). What has a structure of its own is JSON already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEvent {
    /// When, in milliseconds since 1970.
    pub timestamp: u64,
    /// What kind of thing happened.
    pub event_type: EventType,
    /// Which part of the gateway tells of it.
    pub source: &'static str,
    /// Who caused it, as a JSON object.
    pub user_context: Arc<str>,
    /// More about it, as a JSON object.
    pub details: String,
    /// How much harm it may mean.
    pub risk_level: RiskLevel,
    /// The audit id of the exchange that it belongs to.
    pub correlation_id: Option<String>,
}

impl AuditEvent {
    /// An event of the log itself.
    #[must_use]
    pub fn own(timestamp: u64, event_type: EventType, details: String, risk_level: RiskLevel) -> Self {
        let (user_context, correlation_id) = ("{}".into(), None);
        Self { timestamp, event_type, source: AUDIT, user_context, details, risk_level, correlation_id }
    }

    /// Adds its members to an object that is being written.
    pub(crate) fn write(&self, out: &mut String) {
        out.push_str("\"timestamp\":\"");
        out.push_str(&timestamp::rfc3339_millis(self.timestamp));
        out.push_str("\",\"event_type\":\"");
        out.push_str(self.event_type.word());
        out.push_str("\",\"source\":\"");
        out.push_str(self.source);
        out.push_str("\",\"user_context\":");
        out.push_str(&self.user_context);
        out.push_str(",\"details\":");
        out.push_str(&self.details);
        out.push_str(",\"risk_level\":\"");
        out.push_str(self.risk_level.word());
        out.push_str("\",\"correlation_id\":");
        match &self.correlation_id {
            Some(id) => json::push_quoted(out, id),
            None => out.push_str("null"),
        }
    }
}

/// Writes a JSON object member by member.
#[derive(Debug)]
pub(crate) struct Object(String);

impl Object {
    pub fn new() -> Self {
        let mut text = String::with_capacity(512);
        text.push('{');
        Self(text)
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
    }

    /// A member whose value is JSON already.
    pub fn raw(&mut self, name: &str, value: &str) {
        self.name(name);
        self.0.push_str(value);
    }

    /// A member that is a text.
    pub fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        json::push_quoted(&mut self.0, value);
    }

    /// A member that is a text, if there is one.
    pub fn maybe(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// A member that is a number.
    pub fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        let _ = write!(self.0, "{value}");
    }

    /// A member that is an array of JSON values.
    pub fn array(&mut self, name: &str, values: impl IntoIterator<Item = impl FnOnce(&mut String)>) {
        self.name(name);
        self.0.push('[');
        for (at, value) in values.into_iter().enumerate() {
            if at > 0 {
                self.0.push(',');
            }
            value(&mut self.0);
        }
        self.0.push(']');
    }

    pub fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
