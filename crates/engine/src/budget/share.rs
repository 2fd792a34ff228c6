//! Whose bytes they are.

use super::{Budget, Charge, GENEROUS, MINIMUM, OverBudget, WEIGHED};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a budget is shared out by.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Holder {
    /// All of it.
    Process,
    /// Everything of one caller.
    Caller,
    /// One session.
    Session,
    /// One connection.
    Connection,
    /// One backend.
    Backend,
}

impl Holder {
    pub(super) fn phrase(self) -> &'static str {
        match self {
            Self::Process => "altogether",
            Self::Caller => "for this caller",
            Self::Session => "for this session",
            Self::Connection => "for this connection",
            Self::Backend => "for this backend",
        }
    }
}

/// What one caller, session, connection or backend makes the process hold.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    holder: Holder,
    parent: Option<Arc<Share>>,
    used: AtomicUsize,
}

impl Share {
    pub(super) fn new(budget: &Arc<Budget>, holder: Holder, parent: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { budget: Arc::clone(budget), holder, parent, used: 0.into() })
    }

    /// What it holds now, in bytes.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Charges so many bytes, where there is room for `ahead` more: those of the message that will be made of this one.
    ///
    /// # Errors
    /// Where this share, or that of its caller, does not allow it.
    pub fn take(self: &Arc<Self>, bytes: usize, ahead: usize) -> Result<Charge, OverBudget> {
        self.charge(bytes, ahead)?;
        Ok(Charge::new(Arc::clone(self), bytes))
    }

    /// Charges a message for as long as any copy of it lives.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn hold(self: &Arc<Self>, message: Bytes) -> Result<Bytes, OverBudget> {
        if message.len() < WEIGHED {
            return Ok(message);
        }
        Ok(self.take(message.len(), 0)?.attach(message))
    }

    /// Charges a message though the share may not allow it: room for it was asked for before it was made.
    #[must_use]
    pub fn hold_anyway(self: &Arc<Self>, message: Bytes) -> Bytes {
        if message.len() < WEIGHED {
            return message;
        }
        self.add(message.len());
        Charge::new(Arc::clone(self), message.len()).attach(message)
    }

    /// True where it holds more than it may take on.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.excess(MINIMUM + 1, 0).is_some()
    }

    pub(super) fn charge(&self, bytes: usize, ahead: usize) -> Result<(), OverBudget> {
        self.add(bytes);
        match self.excess(bytes, ahead) {
            None => Ok(()),
            Some(holder) => {
                self.release(bytes);
                Err(OverBudget(holder))
            }
        }
    }

    pub(super) fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn add(&self, bytes: usize) {
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.used.fetch_add(bytes, Ordering::Relaxed);
        }
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whose share is exceeded, with so many bytes that were just added and `ahead` more.
    fn excess(&self, bytes: usize, ahead: usize) -> Option<Holder> {
        let (total, used) = (self.budget.total(), self.budget.used().saturating_add(ahead));
        if used > total {
            return Some(Holder::Process);
        }
        let own = self.used().saturating_add(ahead);
        // Sessions share a backend, so that what is small passes whoever else uses it.
        let small = if self.holder == Holder::Backend { bytes } else { own };
        if small <= MINIMUM {
            return None;
        }
        let most = (total - used).saturating_mul(GENEROUS);
        let Some(parent) = &self.parent else { return (own > most).then_some(self.holder) };
        match most.checked_sub(parent.used().saturating_add(ahead)) {
            None => Some(parent.holder),
            Some(room) => (own > room).then_some(self.holder),
        }
    }
}
