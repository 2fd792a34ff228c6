//! Inspection of what backends list, before any client sees it.

use super::{View, ViewKey};

/// Looks at the lists of a backend whenever they were read, and may change what clients see of them.
///
/// It is asked off the worker threads. It sees lists of an earlier run too, which were inspected before they were saved,
/// so its changes must be idempotent.
pub trait ListInspector: Send + Sync {
    /// Returns the lists to store for this kind of client.
    fn inspect(&self, backend: &str, key: &ViewKey, view: View) -> View;
}
