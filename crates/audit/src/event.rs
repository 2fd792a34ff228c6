//! One thing that is written down.

use signalbox_wire::{json, timestamp};

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
    /// An administrator changed permissions or credentials, or read payloads.
    AdminAction,
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
    pub const ALL: [Self; 9] = [
        Self::ToolInvocation,
        Self::Request,
        Self::SecurityViolation,
        Self::BreakGlass,
        Self::AdminAction,
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
            Self::AdminAction => "admin_action",
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
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AuditEvent<'a> {
    /// When, in milliseconds since 1970.
    pub timestamp: u64,
    /// What kind of thing happened.
    pub event_type: EventType,
    /// Which part of the gateway tells of it.
    pub source: &'static str,
    /// Who caused it, as a JSON object.
    pub user_context: &'a str,
    /// More about it, as a JSON object.
    pub details: &'a str,
    /// How much harm it may mean.
    pub risk_level: RiskLevel,
    /// The audit id of the exchange that it belongs to.
    pub correlation_id: Option<&'a str>,
}

impl<'a> AuditEvent<'a> {
    /// An event of the log itself.
    #[must_use]
    pub fn own(timestamp: u64, event_type: EventType, details: &'a str, risk_level: RiskLevel) -> Self {
        let (user_context, correlation_id) = ("{}", None);
        Self { timestamp, event_type, source: AUDIT, user_context, details, risk_level, correlation_id }
    }

    /// Adds its members to an object that is being written.
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

/// An event that waits to be written, and belongs to no exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// When, in milliseconds since 1970.
    pub timestamp: u64,
    /// What kind of thing happened.
    pub event_type: EventType,
    /// Which part of the gateway tells of it.
    pub source: &'static str,
    /// Who caused it, as a JSON object.
    pub user_context: String,
    /// More about it, as a JSON object.
    pub details: String,
    /// How much harm it may mean.
    pub risk_level: RiskLevel,
}

impl Note {
    /// It, to be written.
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

/// Writes a JSON object to the end of a text, member by member.
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

    /// A member whose value is JSON already.
    pub fn raw(&mut self, name: &str, value: &str) {
        self.name(name).push_str(value);
    }

    /// A member that is a text.
    pub fn text(&mut self, name: &str, value: &str) {
        json::push_quoted(self.name(name), value);
    }

    /// A member that is a text, if there is one.
    pub fn maybe(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// A member that is a number.
    pub fn number(&mut self, name: &str, value: u64) {
        json::push_number(self.name(name), value);
    }

    /// A member that is an array of JSON values.
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
