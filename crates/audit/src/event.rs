//! Audit events and their JSON form.

use signalbox_wire::{json, timestamp};

/// Kind of an event.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum EventType {
    /// Call of a tool: its intent, its outcome, or a copy of it.
    ToolInvocation,
    /// Any other request for something that a backend offers.
    Request,
    /// Attempt at something that the caller is not permitted to do.
    SecurityViolation,
    /// Start or end of emergency access.
    BreakGlass,
    /// Change of permissions or credentials, or access to payloads, by an administrator.
    AdminAction,
    /// Call that took longer than the threshold.
    Performance,
    /// Message that violates the protocol.
    ProtocolError,
    /// Definition of a tool that differs from the approved one.
    DefinitionChanged,
    /// Signed position of the chain before this record.
    ChainHead,
    /// Records that could not be written.
    RecordsLost,
}

impl EventType {
    /// Every kind of event.
    pub const ALL: [Self; 10] = [
        Self::ToolInvocation,
        Self::Request,
        Self::SecurityViolation,
        Self::BreakGlass,
        Self::AdminAction,
        Self::Performance,
        Self::ProtocolError,
        Self::DefinitionChanged,
        Self::ChainHead,
        Self::RecordsLost,
    ];

    /// Returns its name in records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ToolInvocation => "tool_invocation",
            Self::Request => "request",
            Self::SecurityViolation => "security_violation",
            Self::BreakGlass => "break_glass",
            Self::AdminAction => "admin_action",
            Self::Performance => "performance",
            Self::ProtocolError => "protocol_error",
            Self::DefinitionChanged => "definition_changed",
            Self::ChainHead => "chain_head",
            Self::RecordsLost => "records_lost",
        }
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// Risk of an event, from lowest to highest.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RiskLevel {
    Low,
    Medium,
    High,
    /// Requires immediate attention by an operator.
    Critical,
}

impl RiskLevel {
    /// Every level, in ascending order.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// Returns its name in records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// Returns the level with this name.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == word)
    }

    /// Returns the next higher level, but never raises to `Critical`.
    #[must_use]
    pub fn raised(self) -> Self {
        match self {
            Self::Low => Self::Medium,
            Self::Medium | Self::High => Self::High,
            Self::Critical => Self::Critical,
        }
    }
}

/// Source of records about calls.
pub const PROTOCOL: &str = "mcp_protocol";
/// Source of records about violations.
pub const SECURITY: &str = "mcp_security";
/// Source of records about the log itself.
pub const AUDIT: &str = "mcp_audit";

/// Audit event (G-25). Structured members are JSON already.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AuditEvent<'a> {
    /// Time of the event, in milliseconds since 1970.
    pub timestamp: u64,
    pub event_type: EventType,
    /// Part of the gateway that reports the event.
    pub source: &'static str,
    /// Caller that caused the event, as a JSON object.
    pub user_context: &'a str,
    /// Details as a JSON object.
    pub details: &'a str,
    pub risk_level: RiskLevel,
    /// Audit id of the exchange that the event belongs to.
    pub correlation_id: Option<&'a str>,
}

impl<'a> AuditEvent<'a> {
    /// Creates an event of the log itself.
    #[must_use]
    pub fn own(timestamp: u64, event_type: EventType, details: &'a str, risk_level: RiskLevel) -> Self {
        let (user_context, correlation_id) = ("{}", None);
        Self { timestamp, event_type, source: AUDIT, user_context, details, risk_level, correlation_id }
    }

    /// Writes the members of the event into an open JSON object.
    pub(crate) fn write(&self, out: &mut String) {
        out.push_str("\"timestamp\":\"");
        timestamp::push_rfc3339_millis(out, self.timestamp);
        for (name, value) in [
            ("\",\"event_type\":\"", self.event_type.word()),
            ("\",\"source\":\"", self.source),
            ("\",\"user_context\":", self.user_context),
            (",\"details\":", self.details),
            (",\"risk_level\":\"", self.risk_level.word()),
            ("\",\"correlation_id\":", ""),
        ] {
            out.push_str(name);
            out.push_str(value);
        }
        match self.correlation_id {
            Some(id) => json::push_quoted(out, id),
            None => out.push_str("null"),
        }
    }
}

/// Queued event that belongs to no exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditNote {
    /// Time of the event, in milliseconds since 1970.
    pub timestamp: u64,
    pub event_type: EventType,
    /// Part of the gateway that reports the event.
    pub source: &'static str,
    /// Caller that caused the event, as a JSON object.
    pub user_context: String,
    /// Details as a JSON object.
    pub details: String,
    pub risk_level: RiskLevel,
}

impl AuditNote {
    /// Returns the event, borrowing its texts.
    #[must_use]
    pub fn event(&self) -> AuditEvent<'_> {
        AuditEvent {
            timestamp: self.timestamp,
            event_type: self.event_type,
            source: self.source,
            user_context: &self.user_context,
            details: &self.details,
            risk_level: self.risk_level,
            correlation_id: None,
        }
    }
}

/// Writer that appends a JSON object to a text, member by member.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    text: &'a mut String,
    is_empty: bool,
}

impl<'a> Object<'a> {
    pub fn new(text: &'a mut String) -> Self {
        text.push('{');
        Self { text, is_empty: true }
    }

    fn name(&mut self, name: &str) -> &mut String {
        self.text.push_str(if self.is_empty { "\"" } else { ",\"" });
        self.is_empty = false;
        self.text.push_str(name);
        self.text.push_str("\":");
        self.text
    }

    /// Writes a member whose value is JSON already.
    pub fn raw(&mut self, name: &str, value: &str) {
        self.name(name).push_str(value);
    }

    /// Writes a text member.
    pub fn text(&mut self, name: &str, value: &str) {
        json::push_quoted(self.name(name), value);
    }

    /// Writes a text member if there is a value.
    pub fn maybe(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// Writes a number member.
    pub fn number(&mut self, name: &str, value: u64) {
        json::push_number(self.name(name), value);
    }

    /// Writes an array member of JSON values.
    pub fn array(&mut self, name: &str, values: impl IntoIterator<Item = impl FnOnce(&mut String)>) {
        self.name(name).push('[');
        for (at, value) in values.into_iter().enumerate() {
            if at > 0 {
                self.text.push(',');
            }
            value(self.text);
        }
        self.text.push(']');
    }

    pub fn finish(self) {
        self.text.push('}');
    }
}
