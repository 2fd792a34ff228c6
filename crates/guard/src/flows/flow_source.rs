//! Call that returned a text.

use std::sync::Arc;

/// Call that returned a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowSource {
    /// Ordinal of the call in its scope, which is shown as "call 3".
    pub call: u64,
    /// Tool that was called, as `backend/name`.
    pub tool: Arc<str>,
    /// Classes of the tool, one bit for each.
    pub classes: u32,
}
