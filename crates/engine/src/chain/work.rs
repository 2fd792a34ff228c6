//! Work that is too long for a judgement under the session's lock.

use std::fmt;
use std::sync::Arc;

/// Work of an interceptor, which is done on a thread that may block. The interceptor keeps the result for the judgement
/// that resumes afterwards.
#[derive(Clone)]
pub struct Work(Arc<dyn Fn() + Send + Sync>);

impl Work {
    /// Creates work that calls this function once.
    #[must_use]
    pub fn new(work: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(work))
    }

    /// Does the work. Blocks until it is done.
    pub fn run(&self) {
        (self.0)();
    }
}

impl PartialEq for Work {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Work {}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}
