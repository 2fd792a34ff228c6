//! Lookup and cancellation of requests in flight.

use super::{BackMachine, Draft, Outbound, Purpose, itoa};
use crate::call_index::CallIndex;
use crate::keys::ExchangeId;
use signalbox_wire::{Era, builder, method};

impl<O: Clone> BackMachine<O> {
    /// Returns the key of the first request whose origin fits.
    pub fn key_of(&self, fits: impl Fn(&O) -> bool) -> Option<u64> {
        self.calls.find(|purpose| matches!(purpose, Purpose::Call { origin, .. } if fits(origin)))
    }

    /// Returns the key of the request that belongs to an exchange, found by `index`; `of` reads the exchange from an
    /// origin.
    pub fn key_in(
        &self,
        index: &mut CallIndex,
        exchange: ExchangeId,
        of: impl Fn(&O) -> Option<ExchangeId>,
    ) -> Option<u64> {
        index.find(&self.calls, exchange, |purpose| match purpose {
            Purpose::Call { origin, .. } => of(origin),
            Purpose::Handshake(_) => None,
        })
    }

    /// Returns the origin of the request with this key, and the task it waits for.
    #[must_use]
    pub fn request_at(&self, key: u64) -> Option<(&O, Option<&str>)> {
        match &self.calls.get(key)?.origin {
            Purpose::Call { origin, task, .. } => Some((origin, task.as_deref())),
            Purpose::Handshake(_) => None,
        }
    }

    /// Returns the task that the first request with a fitting origin waits for.
    pub fn task_of(&self, fits: impl Fn(&O) -> bool) -> Option<Box<str>> {
        let (_, task) = self.request_at(self.key_of(fits)?)?;
        task.map(Box::from)
    }

    /// Gives up the first request whose origin fits. Returns its key, and the notification to send unless the transport
    /// cancels by closing the connection.
    pub fn cancel(&mut self, fits: impl Fn(&O) -> bool, reason: Option<&[u8]>) -> Option<(Option<Outbound>, u64)> {
        let key = self.key_of(fits)?;
        Some(self.cancel_at(key, reason))
    }

    /// Gives up the request with this key.
    pub fn cancel_at(&mut self, key: u64, reason: Option<&[u8]>) -> (Option<Outbound>, u64) {
        self.calls.give_up(key);
        (self.cancellation(key, reason), key)
    }

    /// Builds the cancellation. In the new era an HTTP request is cancelled by dropping its connection instead.
    pub(super) fn cancellation(&self, key: u64, reason: Option<&[u8]>) -> Option<Outbound> {
        let modern = self.profile.as_ref().is_some_and(|profile| profile.era() == Era::Modern);
        if modern && self.mirror_headers {
            return None;
        }
        let mut note = builder::Notification::new(method::CANCELLED).param_raw("requestId", itoa(key));
        if let Some(reason) = reason {
            note = note.param_raw("reason", reason);
        }
        Some(self.tell(Draft::word(method::CANCELLED, note.build())))
    }
}
