//! The one ordered list of interceptors that every exchange passes.

use signalbox_engine::Chain;
use signalbox_rules::Rules;
use signalbox_runtime::Breakpoints;
use std::sync::Arc;

/// The chain, asked from top to bottom for requests and from bottom to top for answers.
#[must_use]
pub fn chain(breakpoints: &Arc<Breakpoints>, rules: &Arc<Rules>) -> Chain {
    Chain::new(vec![
        // A person's edit of a request is judged by the rules too, and of an answer a person sees what they made of it.
        Arc::clone(breakpoints) as _,
        Arc::clone(rules) as _,
    ])
}
