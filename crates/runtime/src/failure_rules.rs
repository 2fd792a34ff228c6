//! How a backend that fails is treated.

use signalbox_engine::BreakerRules;
use signalbox_engine::health::PingRules;
use std::time::Duration;

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
