//! The requests of one side that have no answer yet.

use signalbox_engine::ExchangeId;
use signalbox_engine::exchange::MethodName;
use signalbox_engine::keys::TextMap;
use signalbox_wire::{Era, RawId};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Most requests of one side that are remembered. Beyond, the oldest is given up.
pub const MAX_WAITING: usize = 10_000;
/// How long a request may stay without an answer before it is given up. Nothing happens to the request itself.
pub const UNANSWERED_AFTER: Duration = Duration::from_secs(3600);
/// How long the answer to a request that was cancelled is waited for.
pub const CANCELLED_FOR: Duration = Duration::from_secs(60);

/// A request.
#[derive(Clone, Debug)]
pub(super) struct AskedRequest {
    pub(super) exchange: ExchangeId,
    pub(super) era: Era,
    pub(super) method: MethodName,
    pub(super) subject: Option<Box<str>>,
    pub(super) at: Instant,
    pub(super) bytes: usize,
    pub(super) cancelled: bool,
    pub(super) until: Instant,
}

/// The requests of one side, by the ids it gave them.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    asked: TextMap<RawId, AskedRequest>,
    /// The ids in the order in which they were asked.
    order: BTreeMap<u64, RawId>,
}

impl Waiting {
    /// Remembers a request. Gives the one back that has to go for it: one that had the same id, or the oldest.
    pub(super) fn open(&mut self, id: RawId, asked: AskedRequest) -> Option<AskedRequest> {
        let same = self.close(&id);
        let gone = if same.is_none() && self.asked.len() >= MAX_WAITING { self.oldest() } else { same };
        self.order.insert(asked.exchange.0, id.clone());
        self.asked.insert(id, asked);
        gone
    }

    /// Takes out the request that has this id.
    pub(super) fn close(&mut self, id: &RawId) -> Option<AskedRequest> {
        let asked = self.asked.remove(id)?;
        self.order.remove(&asked.exchange.0);
        Some(asked)
    }

    /// Takes out the request of this exchange.
    pub(super) fn give_up(&mut self, exchange: ExchangeId) -> Option<AskedRequest> {
        let id = self.order.remove(&exchange.0)?;
        self.asked.remove(&id)
    }

    /// The side that asked does not want the answer any more.
    pub(super) fn cancel(&mut self, id: &RawId, now: Instant) -> Option<ExchangeId> {
        let asked = self.asked.get_mut(id)?;
        asked.cancelled = true;
        asked.until = asked.until.min(now + CANCELLED_FOR);
        Some(asked.exchange)
    }

    /// Takes out every request that has waited too long.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<AskedRequest> {
        let over: Vec<RawId> =
            self.order.values().filter(|id| self.asked.get(id).is_none_or(|one| one.until <= now)).cloned().collect();
        over.iter().filter_map(|id| self.close(id)).collect()
    }

    /// Takes everything out, in the order in which it was asked.
    pub(super) fn drain(&mut self) -> Vec<AskedRequest> {
        let order = std::mem::take(&mut self.order);
        order.values().filter_map(|id| self.asked.remove(id)).collect()
    }

    fn oldest(&mut self) -> Option<AskedRequest> {
        let (_, id) = self.order.pop_first()?;
        self.asked.remove(&id)
    }
}
