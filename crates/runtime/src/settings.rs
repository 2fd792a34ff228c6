//! The limits and durations of the runtime, with their defaults.

use crate::parked_calls::MAX_PARKED_BYTES_EACH;
use signalbox_engine::budget;
use signalbox_engine::fault::ErrorDetail;
use signalbox_wire::Limits;
use std::time::Duration;

/// The settings of a gateway.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The gateway's `serverInfo` and `clientInfo` object, as JSON.
    pub server_info: String,
    /// Instructions of the gateway itself for a model; may be empty.
    pub instructions: String,
    /// Limits of a message.
    pub limits: Limits,
    /// Most bytes of messages that the process holds.
    pub memory: usize,
    /// Whether messages pass the strict scan.
    pub strict: bool,
    /// How long a list waits for backends whose lists are unknown.
    pub first_list_wait: Duration,
    /// How long calls in flight may take to finish when their client, their backend or the gateway ends.
    pub drain: Duration,
    /// Most requests in flight in one session.
    pub max_in_flight: usize,
    /// Most front sessions.
    pub max_sessions: usize,
    /// Most front sessions of one principal.
    pub max_sessions_each: usize,
    /// Whether every caller has to prove who it is.
    pub require_proof: bool,
    /// How long a session may be idle.
    pub session_timeout: Duration,
    /// Most streams open in one session.
    pub max_streams: usize,
    /// How long a parked call waits for the input of its client.
    pub park_timeout: Duration,
    /// Most bytes of one principal's parked calls.
    pub max_parked_bytes: usize,
    /// What decides how much of a fault callers are told.
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
