//! Configuration of the relay.

use std::time::Duration;

/// Phase of the migration from the legacy routes to MCP.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum MigrationPhase {
    #[default]
    Dual,
    /// Both are served. Responses of the legacy routes announce their removal.
    Deprecated,
    /// The legacy routes are gone.
    McpOnly,
}

impl MigrationPhase {
    /// All phases, in order.
    pub const ALL: [Self; 3] = [Self::Dual, Self::Deprecated, Self::McpOnly];

    /// Returns the name in configurations.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Dual => "dual",
            Self::Deprecated => "deprecated",
            Self::McpOnly => "mcp-only",
        }
    }

    /// Returns the feature names that the relay's specification assigns to this phase.
    #[must_use]
    pub fn features(self) -> &'static [&'static str] {
        match self {
            Self::Dual => &["dual-protocol", "session-mapping", "tool-bridge"],
            Self::Deprecated => &["deprecation-warnings", "usage-metrics", "migration-guides"],
            Self::McpOnly => &["mcp-only", "performance-optimized"],
        }
    }
}

/// Selection of CODAP's tools that are listed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum ListedTools {
    /// The 33 original tools. The later ones can still be called.
    #[default]
    Document,
    /// The 34 later tools. The original ones can still be called.
    Later,
    Both,
    /// None, and none can be called: pages register their own.
    None,
}

impl ListedTools {
    pub const ALL: [Self; 4] = [Self::Document, Self::Later, Self::Both, Self::None];

    /// Returns the name in configurations.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Later => "later",
            Self::Both => "both",
            Self::None => "none",
        }
    }
}

/// Settings of a relay.
#[derive(Clone, Debug)]
pub struct RelaySettings {
    /// Phase of the migration.
    pub phase: MigrationPhase,
    /// Lifetime of an unused session.
    pub ttl: Duration,
    /// Base URL for pages and clients, without a trailing slash.
    pub public_url: String,
    /// Origins of other sites whose pages may use the relay.
    pub origins: Vec<String>,
    /// Selection of CODAP's tools that are listed.
    pub tools: ListedTools,
    /// True if agents must authenticate in addition to having a code.
    pub proof_needed: bool,
    /// Date of removal of the legacy routes, as `2027-06-30`.
    pub sunset: Option<String>,
    pub limits: RelayLimits,
}

/// Limits of a relay. Rates per minute apply to each address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelayLimits {
    /// Rate of new sessions.
    pub sessions_per_minute: u64,
    /// Rate of legacy calls in one session.
    pub requests_per_minute: u64,
    /// Rate of messages to the MCP endpoint.
    pub mcp_requests_per_minute: u64,
    /// Rate of wrong codes.
    pub wrong_codes_per_minute: u64,
    /// Maximum number of open sessions.
    pub max_sessions: usize,
    /// Maximum number of requests of one session that wait for its page.
    pub queue: usize,
    /// Maximum size of the body of a legacy request, in bytes.
    pub body: usize,
    /// Timeout of a call at a page.
    pub request_timeout: Duration,
    /// Time a legacy call is kept for its page, including its answer.
    pub request_ttl: Duration,
}

impl Default for RelayLimits {
    fn default() -> Self {
        Self {
            sessions_per_minute: 30,
            requests_per_minute: 60,
            mcp_requests_per_minute: 200,
            wrong_codes_per_minute: 10,
            max_sessions: 10_000,
            queue: 100,
            body: 8 << 20,
            request_timeout: Duration::from_secs(30),
            request_ttl: Duration::from_secs(30),
        }
    }
}

impl Default for RelaySettings {
    fn default() -> Self {
        Self {
            phase: MigrationPhase::Dual,
            ttl: Duration::from_secs(600),
            public_url: "http://127.0.0.1:8080".to_owned(),
            origins: Vec::new(),
            tools: ListedTools::Document,
            proof_needed: false,
            sunset: None,
            limits: RelayLimits::default(),
        }
    }
}

impl RelaySettings {
    /// Returns the lifetime of a session in milliseconds.
    #[must_use]
    pub fn ttl_ms(&self) -> u64 {
        millis(self.ttl)
    }
}

/// Converts a duration to whole milliseconds.
#[must_use]
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
