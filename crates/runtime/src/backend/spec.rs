//! The configuration of a backend: time limits, what is done when it fails, when its process runs.

use signalbox_engine::BreakerRules;
use signalbox_engine::back::Wish;
use signalbox_engine::health::PingRules;
use signalbox_wire::Limits;
use std::time::Duration;

/// The configuration of a backend.
pub struct BackendSpec {
    /// How long a call may go without a sign of life.
    pub timeout: Duration,
    /// How long the handshake may take.
    pub start_timeout: Duration,
    /// Most processes at a time.
    pub max_children: usize,
    /// Which era to speak.
    pub wish: Wish,
    /// The bounds of the strict scan; `None` if messages pass unscanned.
    pub strict: Option<Limits>,
    /// What is done when it fails.
    pub failing: FailureRules,
    /// When its process runs.
    pub lifetime: Lifetime,
    /// When it may ask clients for sampling and elicitation.
    pub questions: QuestionTime,
    /// A digest of the program and everything else that its lists depend on. Saved lists with another digest are not its own.
    pub source: u64,
    /// Whether a tool of this name is offered to clients.
    pub allows: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// When a backend of the old era may ask a client for sampling and elicitation. One of the new era can only ask in answer
/// to a call, and roots may be asked for at any time.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum QuestionTime {
    /// While a call or a task of that client runs there.
    #[default]
    DuringCalls,
    /// Whenever the client's session is open.
    Anytime,
}

/// What is done when a backend fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureRules {
    /// When the breaker refuses calls; `None` for no breaker.
    pub breaker: Option<BreakerRules>,
    /// When it is pinged; `None` for never.
    pub ping: Option<PingRules>,
    /// How often a call is retried that the backend has certainly not processed.
    pub retries: u32,
    /// Most calls that wait for it to start, or for a connection to it.
    pub max_queue: usize,
    /// How long it gets few calls at a time after a restart.
    pub slow_start: Duration,
    /// How often a process is restarted before it counts as failed; `None` for no limit.
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

/// When a process is started for the first time.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Start {
    /// With the gateway.
    #[default]
    Eager,
    /// At the first call, and once before that if its lists are not known.
    FirstUse,
}

/// When the process of a backend runs. Means nothing for a backend without a process.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Lifetime {
    /// When it is started.
    pub start: Start,
    /// How long a process may be unused before it is stopped; `None` if it keeps running.
    pub idle_stop: Option<Duration>,
}
