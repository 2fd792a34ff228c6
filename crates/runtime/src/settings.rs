//! The bounds and durations the runtime works with.

use crate::backend_callers::BackendCallers;
use crate::parked_calls::MAX_PARKED_BYTES_EACH;
use signalbox_engine::budget;
use signalbox_wire::Limits;
use std::time::Duration;

/// Everything that can be set, with its default.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Our own `serverInfo`/`clientInfo` object, as JSON.
    pub server_info: String,
    /// What the gateway itself has to tell a model; empty for nothing.
    pub instructions: String,
    /// Bounds on messages.
    pub limits: Limits,
    /// Most bytes of messages that the process holds.
    pub memory: usize,
    /// Governed messages pass the strict scan.
    pub strict: bool,
    /// How long a list waits for backends whose lists are unknown.
    pub first_list_wait: Duration,
    /// How long calls in flight may take to finish when their client, their backend or the gateway ends.
    pub drain: Duration,
    /// Most requests in flight in one session.
    pub max_in_flight: usize,
    /// Most front sessions.
    pub max_sessions: usize,
    /// How long a session may be idle.
    pub session_timeout: Duration,
    /// Most streams open in one session.
    pub max_streams: usize,
    /// How long a call that waits for input of a client of the new era waits for it.
    pub park_timeout: Duration,
    /// Most bytes of one principal's calls that wait like that.
    pub max_parked_bytes: usize,
    /// Who may use which backends.
    pub callers: BackendCallers,
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
            session_timeout: Duration::from_secs(3600),
            max_streams: 64,
            park_timeout: Duration::from_secs(300),
            max_parked_bytes: MAX_PARKED_BYTES_EACH,
            callers: BackendCallers::default(),
        }
    }
}
