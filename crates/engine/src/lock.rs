//! Locks that survive a panic.
//!
//! A thread that panics while it holds a lock poisons it. The gateway continues: the panic ended one request and is
//! reported on its own, and all other threads still need the guarded data. So every thread ignores the poison.

use std::sync::{LockResult, PoisonError};

/// Extension of the result of taking a lock.
pub trait LockResultExt<G> {
    /// Returns the guard, even if the lock is poisoned.
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
