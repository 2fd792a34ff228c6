use super::{Budget, Charge, GENEROUS, MINIMUM, OverBudget, WEIGHED};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Owner of a share.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Holder {
    /// The process as a whole, when the entire budget is used up.
    Process,
    /// All sessions and connections of one caller.
    Caller,
    /// A session of a client.
    Session,
    /// A connection of a client.
    Connection,
    /// A backend with all its connections.
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

/// Bytes that the process holds for one caller, session, connection or backend.
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

    /// Returns the number of bytes in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Charges this many bytes, if there is room for `ahead` more: those of the message that this one will be turned
    /// into.
    ///
    /// # Errors
    /// Returns an error if this share, or its caller's, does not allow it.
    pub fn take(self: &Arc<Self>, bytes: usize, ahead: usize) -> Result<Charge, OverBudget> {
        self.charge(bytes, ahead)?;
        Ok(Charge::new(Arc::clone(self), bytes))
    }

    /// Charges a message derived from one that was read, for as long as any copy of it lives. Room was reserved when it
    /// was read; other messages may have taken it since, and then only a message above [`MINIMUM`] is refused.
    ///
    /// # Errors
    /// Same as [`take`](Self::take).
    pub fn hold(self: &Arc<Self>, message: Bytes) -> Result<Bytes, OverBudget> {
        if message.len() <= MINIMUM {
            return Ok(self.hold_anyway(message));
        }
        Ok(self.take(message.len(), 0)?.attach(message))
    }

    /// Charges a message even if the share does not allow it, because room was reserved before the message was built.
    #[must_use]
    pub fn hold_anyway(self: &Arc<Self>, message: Bytes) -> Bytes {
        if message.len() < WEIGHED {
            return message;
        }
        self.add(message.len());
        Charge::new(Arc::clone(self), message.len()).attach(message)
    }

    /// Returns true if the share exceeds its limit.
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

    /// Returns the holder whose limit is exceeded with `bytes` just added and `ahead` more to come.
    fn excess(&self, bytes: usize, ahead: usize) -> Option<Holder> {
        let (total, used) = (self.budget.total(), self.budget.used().saturating_add(ahead));
        if used > total {
            return Some(Holder::Process);
        }
        let own = self.used().saturating_add(ahead);
        // Many sessions share a backend, so a small message passes regardless of what the other sessions hold.
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
