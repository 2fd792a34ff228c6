//! Locks that outlive a panic.
//!
//! A thread that panics while it holds a lock poisons it. The gateway goes on: the panic ended one request and is reported on
//! its own, and what the lock guards is still needed by all others. So everybody takes a poisoned lock as if it were not.

use std::sync::{LockResult, PoisonError};

/// What can be done with the outcome of taking a lock.
pub trait LockResultExt<G> {
    /// The guard, whether or not the lock is poisoned.
    fn unpoisoned(self) -> G;
}

impl<G> LockResultExt<G> for LockResult<G> {
    fn unpoisoned(self) -> G {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    #[test]
    fn a_lock_is_taken_after_a_panic_of_its_holder() {
        let lock = Mutex::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut held = lock.lock().unpoisoned();
            *held = 2;
            std::panic::resume_unwind(Box::new("in the middle of it"));
        }));
        assert!(panicked.is_err() && lock.is_poisoned());
        assert_eq!(*lock.lock().unpoisoned(), 2);
    }
}
