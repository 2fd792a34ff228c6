//! How a backend that fails is treated.

use signalbox_engine::BreakerRules;

/// Everything that can be set about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureRules {
    /// When calls are kept from it; none where they never are.
    pub breaker: Option<BreakerRules>,
}

impl Default for FailureRules {
    fn default() -> Self {
        Self { breaker: Some(BreakerRules::default()) }
    }
}
