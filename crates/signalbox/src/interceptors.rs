//! The one ordered list of interceptors that every exchange passes.

use signalbox_engine::Chain;
use signalbox_runtime::Breakpoints;
use std::sync::Arc;

/// The chain, asked from top to bottom for requests and from bottom to top for answers.
#[must_use]
pub fn chain(breakpoints: &Arc<Breakpoints>) -> Chain {
    Chain::new(vec![
        // A person's edit of a request is judged by all that follow, and of an answer a person sees what all made of it.
        Arc::clone(breakpoints) as _,
    ])
}
