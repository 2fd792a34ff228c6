//! Inspection of what backends list, before any client sees it.

use super::{View, ViewKey};

/// Looks at the lists of a backend whenever they were read, and may change what clients see of them.
///
/// It is asked off the worker threads, and always gets lists as the backend sent them, also those that an earlier run
/// saved.
pub trait ListInspector: Send + Sync {
    /// Returns the lists to store for this kind of client.
    fn inspect(&self, backend: &str, key: &ViewKey, view: View) -> View;
}
