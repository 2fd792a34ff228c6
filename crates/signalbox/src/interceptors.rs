//! The one ordered list of interceptors that every exchange passes.

use signalbox_engine::Chain;

/// The chain, asked from top to bottom for requests and from bottom to top for answers. Nothing governs yet.
#[must_use]
pub fn chain() -> Chain {
    Chain::new(vec![])
}
