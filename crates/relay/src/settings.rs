//! How the relay is set up.

use std::time::Duration;

/// How far the way from the legacy routes to MCP has been gone.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// Both are served.
    #[default]
    Dual,
    /// Both are served, and whoever uses the legacy routes is told that they will go.
    Deprecated,
    /// The legacy routes are gone.
    McpOnly,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::Dual, Self::Deprecated, Self::McpOnly];

    /// The word for it in configurations.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Dual => "dual",
            Self::Deprecated => "deprecated",
            Self::McpOnly => "mcp-only",
        }
    }

    /// What the document calls the features of this phase (C-18 to C-20).
    #[must_use]
    pub fn features(self) -> &'static [&'static str] {
        match self {
            Self::Dual => &["dual-protocol", "session-mapping", "tool-bridge"],
            Self::Deprecated => &["deprecation-warnings", "usage-metrics", "migration-guides"],
            Self::McpOnly => &["mcp-only", "performance-optimized"],
        }
    }
}

/// Which of CODAP's tools are listed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum ListedTools {
    /// The 33 of the document. The later ones can be called all the same.
    #[default]
    Document,
    /// The 34 later ones. Those of the document can be called all the same.
    Later,
    /// All of them.
    Both,
    /// None, and none can be called: pages bring their own.
    None,
}

impl ListedTools {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Document, Self::Later, Self::Both, Self::None];

    /// The word for it in configurations.
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

/// The settings.
#[derive(Clone, Debug)]
pub struct RelaySettings {
    /// The phase.
    pub phase: Phase,
    /// How long a session lives that nobody uses.
    pub ttl: Duration,
    /// Where pages and clients reach this gateway, without a slash at the end.
    pub public_url: String,
    /// The origins of pages that may use it from elsewhere.
    pub origins: Vec<String>,
    /// Which of CODAP's tools are listed.
    pub tools: ListedTools,
    /// Whether agents must prove who they are, besides having a code.
    pub proof_needed: bool,
    /// When the legacy routes go, as a day: `2027-06-30`.
    pub sunset: Option<String>,
    /// The limits.
    pub limits: RelayLimits,
}

/// The limits. Those per minute are of one address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelayLimits {
    /// New sessions.
    pub sessions_per_minute: u64,
    /// Calls by the legacy routes in one session.
    pub requests_per_minute: u64,
    /// Messages to the MCP endpoint.
    pub mcp_requests_per_minute: u64,
    /// Codes that are none.
    pub wrong_codes_per_minute: u64,
    /// Sessions at a time.
    pub max_sessions: usize,
    /// Requests of one session that wait for its page.
    pub queue: usize,
    /// The largest body of a legacy route, in bytes.
    pub body: usize,
    /// How long a page may take for a call.
    pub request_timeout: Duration,
    /// Time for which a legacy call is kept for its page, its answer included (CO-5).
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
            phase: Phase::Dual,
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
    /// The time to live in milliseconds.
    #[must_use]
    pub fn ttl_ms(&self) -> u64 {
        millis(self.ttl)
    }
}

/// A time in whole milliseconds.
#[must_use]
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
