//! The unanswered requests of one side.

use signalbox_engine::ExchangeId;
use signalbox_engine::exchange::MethodName;
use signalbox_engine::keys::TextMap;
use signalbox_wire::{Era, RawId};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum number of unanswered requests per side. Beyond it, the oldest is given up.
pub const MAX_WAITING: usize = 10_000;
/// Time after which a request without an answer is given up. The request itself is not affected.
pub const UNANSWERED_AFTER: Duration = Duration::from_secs(3600);
/// Maximum wait for the answer to a cancelled request.
pub const CANCELLED_FOR: Duration = Duration::from_secs(60);

/// A request that waits for its answer.
#[derive(Clone, Debug)]
pub(super) struct OpenRequest {
    pub(super) exchange: ExchangeId,
    pub(super) era: Era,
    pub(super) method: MethodName,
    pub(super) subject: Option<Box<str>>,
    pub(super) at: Instant,
    pub(super) bytes: usize,
    pub(super) cancelled: bool,
    pub(super) until: Instant,
}

/// The unanswered requests of one side, by their ids.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    requests: TextMap<RawId, OpenRequest>,
    /// Ids in the order of the requests.
    order: BTreeMap<u64, RawId>,
}

impl OpenRequests {
    /// Adds a request. Returns the one it replaces: one with the same id, or the oldest if there are too many.
    pub(super) fn open(&mut self, id: RawId, request: OpenRequest) -> Option<OpenRequest> {
        let same = self.close(&id);
        let gone = if same.is_none() && self.requests.len() >= MAX_WAITING { self.oldest() } else { same };
        self.order.insert(request.exchange.0, id.clone());
        self.requests.insert(id, request);
        gone
    }

    /// Removes the request with this id.
    pub(super) fn close(&mut self, id: &RawId) -> Option<OpenRequest> {
        let request = self.requests.remove(id)?;
        self.order.remove(&request.exchange.0);
        Some(request)
    }

    /// Removes the request of this exchange.
    pub(super) fn give_up(&mut self, exchange: ExchangeId) -> Option<OpenRequest> {
        let id = self.order.remove(&exchange.0)?;
        self.requests.remove(&id)
    }

    /// Marks a request as cancelled by its sender.
    pub(super) fn cancel(&mut self, id: &RawId, now: Instant) -> Option<ExchangeId> {
        let request = self.requests.get_mut(id)?;
        request.cancelled = true;
        request.until = request.until.min(now + CANCELLED_FOR);
        Some(request.exchange)
    }

    /// Removes every request that has waited too long.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<OpenRequest> {
        let over: Vec<RawId> = self
            .order
            .values()
            .filter(|id| self.requests.get(id).is_none_or(|one| one.until <= now))
            .cloned()
            .collect();
        over.iter().filter_map(|id| self.close(id)).collect()
    }

    /// Removes all requests, in their order.
    pub(super) fn drain(&mut self) -> Vec<OpenRequest> {
        let order = std::mem::take(&mut self.order);
        order.values().filter_map(|id| self.requests.remove(id)).collect()
    }

    fn oldest(&mut self) -> Option<OpenRequest> {
        let (_, id) = self.order.pop_first()?;
        self.requests.remove(&id)
    }
}
