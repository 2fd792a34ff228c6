//! Limits and durations of the runtime, with their defaults.

use signalbox_engine::budget;
use signalbox_engine::fault::ErrorDetail;
use signalbox_wire::Limits;
use std::time::Duration;

/// Maximum size of the parked calls of one principal in bytes.
pub const MAX_PARKED_BYTES_EACH: usize = 64 << 20;
/// Maximum time for which a task is remembered. Also the default.
pub(crate) const MAX_STAY: Duration = Duration::from_secs(24 * 3600);

/// Settings of a gateway.
#[derive(Clone, Debug)]
pub struct Settings {
    /// JSON object that the gateway sends as `serverInfo` and `clientInfo`.
    pub server_info: String,
    /// Instructions of the gateway itself for a model. May be empty.
    pub instructions: String,
    /// Limits of a message.
    pub limits: Limits,
    /// Maximum number of message bytes that the process holds.
    pub memory: usize,
    /// Enables the strict scan of messages.
    pub strict: bool,
    /// Maximum wait of a list request for backends whose lists are unknown.
    pub first_list_wait: Duration,
    /// Time for calls in flight to finish when their client, their backend or the gateway ends.
    pub drain: Duration,
    /// Maximum number of requests in flight in one session.
    pub max_in_flight: usize,
    /// Maximum number of client sessions.
    pub max_sessions: usize,
    /// Maximum number of client sessions of one principal.
    pub max_sessions_each: usize,
    /// Requires every caller to prove its identity.
    pub require_proof: bool,
    /// Maximum idle time of a session.
    pub session_timeout: Duration,
    /// Maximum number of open streams in one session.
    pub max_streams: usize,
    /// Maximum time that a parked call waits for the input of its client.
    pub park_timeout: Duration,
    /// Maximum size of one principal's parked calls in bytes.
    pub max_parked_bytes: usize,
    /// Amount of detail that callers get about a fault.
    pub error_detail: ErrorDetail,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            server_info: format!(r#"{{"name":"signalbox","version":"{}"}}"#, env!("CARGO_PKG_VERSION")),
            instructions: String::new(),
            limits: Limits::default(),
            memory: budget::DEFAULT,
            strict: true,
            first_list_wait: Duration::from_secs(30),
            drain: Duration::from_secs(10),
            max_in_flight: 1024,
            max_sessions: 10_000,
            max_sessions_each: usize::MAX,
            require_proof: false,
            session_timeout: Duration::from_secs(3600),
            max_streams: 64,
            park_timeout: Duration::from_secs(300),
            max_parked_bytes: MAX_PARKED_BYTES_EACH,
            error_detail: ErrorDetail::Full,
        }
    }
}
