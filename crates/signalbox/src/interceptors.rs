//! The one ordered list of interceptors that every exchange passes.

use signalbox_engine::Chain;
use signalbox_rules::Rules;
use std::sync::Arc;

/// The chain, asked from top to bottom for requests and from bottom to top for answers.
#[must_use]
pub fn chain(rules: &Arc<Rules>) -> Chain {
    Chain::new(vec![Arc::clone(rules) as _])
}
