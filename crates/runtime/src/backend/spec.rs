//! What is configured of a backend.

use signalbox_engine::BreakerRules;
use signalbox_engine::back::Wish;
use signalbox_engine::health::PingRules;
use signalbox_wire::Limits;
use std::time::Duration;

/// What is configured of a backend.
pub struct BackendSpec {
    /// How long a call may be silent.
    pub timeout: Duration,
    /// How long the handshake may take.
    pub start_timeout: Duration,
    /// Most processes at a time.
    pub max_children: usize,
    /// Which era to speak.
    pub wish: Wish,
    /// The bounds of the strict scan; none where messages pass unscanned.
    pub strict: Option<Limits>,
    /// How it is treated when it fails.
    pub failing: FailureRules,
    /// From when to when its process runs.
    pub lifetime: Lifetime,
    /// A mark of the program and of all that its lists depend on. Lists kept under another mark are not its own.
    pub source: u64,
    /// Which tools are let through.
    pub allows: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// Everything that can be set about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureRules {
    /// When calls are kept from it; none where they never are.
    pub breaker: Option<BreakerRules>,
    /// When it is asked whether it is still there; none where it never is.
    pub ping: Option<PingRules>,
    /// How often what has surely not been processed is sent again.
    pub retries: u32,
    /// Most calls that wait for it to start, or for a connection to it.
    pub max_queue: usize,
    /// For how long after a restart it gets few calls at a time.
    pub slow_start: Duration,
    /// How often a process is started again before it has failed; none where that never ends.
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

/// What sets its process going for the first time.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Start {
    /// The gateway's own start.
    #[default]
    Eager,
    /// The first call. Where its lists are not known, it is started once before to learn them.
    FirstUse,
}

/// From when to when its process runs. A backend without a process of ours is not concerned.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Lifetime {
    /// What sets it going.
    pub start: Start,
    /// How long a process may be unused before it is stopped; none where it stays.
    pub idle_stop: Option<Duration>,
}
