//! The exclusive use of one connection for one call.
//!
//! An old server at the end of a pipe does not say which call a question is about, so a client that can be asked has the
//! pipe for itself until its call is over, the time it is parked included.

use crate::backend::Backend;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Held while a call runs; dropping it lets the next one in.
pub struct ExclusiveUse {
    busy: Arc<AtomicBool>,
    backend: Weak<Backend>,
}

impl ExclusiveUse {
    /// Takes the connection, unless somebody has it.
    #[must_use]
    pub fn take(busy: &Arc<AtomicBool>, backend: &Arc<Backend>) -> Option<Self> {
        let taken = busy.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        taken.then(|| Self { busy: Arc::clone(busy), backend: Arc::downgrade(backend) })
    }
}

impl Drop for ExclusiveUse {
    fn drop(&mut self) {
        self.busy.store(false, Ordering::Release);
        // Whoever drops it may hold the lock of the connection, so the next call is looked for from a task.
        let (Some(backend), Ok(runtime)) = (self.backend.upgrade(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        if backend.may_have_waiting() {
            runtime.spawn(async move { backend.retry_waiting() });
        }
    }
}
