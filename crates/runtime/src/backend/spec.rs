//! Configuration of a backend: timeouts, failure handling, process lifetime.

use signalbox_engine::BreakerRules;
use signalbox_engine::back::Wish;
use signalbox_engine::health::PingRules;
use signalbox_wire::Limits;
use std::time::Duration;

/// Configuration of a backend.
pub struct BackendSpec {
    /// Maximum time that a call may go without a sign of life.
    pub timeout: Duration,
    /// Time limit for the start and the handshake.
    pub start_timeout: Duration,
    /// Maximum number of processes.
    pub max_children: usize,
    /// Era to speak, or automatic.
    pub wish: Wish,
    /// Limits of the strict scan. `None` if messages pass unscanned.
    pub strict: Option<Limits>,
    pub failing: FailureRules,
    pub lifetime: Lifetime,
    /// Times at which the backend may ask clients for sampling and elicitation.
    pub questions: QuestionTime,
    /// Digest of the program and everything else that the lists depend on. Saved lists with another digest are not
    /// used.
    pub source: u64,
    /// Tool filter: returns true if a tool of this name is offered to clients.
    pub allows: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// Times at which a legacy backend may ask a client for sampling and elicitation. A modern backend can only ask in
/// answer to a call, and roots may be requested at any time.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum QuestionTime {
    /// While a call or a task of the client runs at the backend.
    #[default]
    DuringCalls,
    /// While the client's session is open.
    Anytime,
}

/// Failure handling of a backend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureRules {
    /// Circuit breaker. `None` disables it.
    pub breaker: Option<BreakerRules>,
    /// Ping settings. `None` disables pings.
    pub ping: Option<PingRules>,
    /// Maximum number of retries of a call that the backend has certainly not processed.
    pub retries: u32,
    /// Maximum number of calls that wait for the backend to start, or for a connection to it.
    pub max_queue: usize,
    /// Time after a restart in which few calls are allowed.
    pub slow_start: Duration,
    /// Number of restarts after which a process counts as failed. `None` for no limit.
    pub max_restarts: Option<u32>,
}

impl Default for FailureRules {
    fn default() -> Self {
        Self {
            breaker: Some(BreakerRules::default()),
            ping: Some(PingRules::default()),
            retries: 2,
            max_queue: 1024,
            slow_start: Duration::from_secs(3),
            max_restarts: Some(5),
        }
    }
}

/// Time of the first start of a process.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum StartPolicy {
    #[default]
    Eager,
    /// At the first call. Also once before that if the lists are unknown.
    FirstUse,
}

/// Lifetime of a backend's process. Ignored for a backend without a process.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Lifetime {
    pub start: StartPolicy,
    /// Idle time after which a process is stopped. `None` keeps it running.
    pub idle_stop: Option<Duration>,
}
