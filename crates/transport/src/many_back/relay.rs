//! Forwards the events of one address of an HTTP backend.

use super::link::ManyLinkState;
use bytes::Bytes;
use signalbox_engine::back::{Outbound, ToBackend};
use signalbox_engine::breaker::CallResult;
use signalbox_engine::budget::Share;
use signalbox_engine::{BackendUser, Fault};
use signalbox_runtime::{BoxFuture, LinkEvents, RequestSender};
use signalbox_wire::{Envelope, Kind, RejectedMessage, batch, limits};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Receiver of the events of the link to one address.
pub(super) struct Relay {
    shared: Weak<ManyLinkState>,
    at: usize,
}

impl Relay {
    pub(super) fn new(shared: &Arc<ManyLinkState>, at: usize) -> Self {
        Self { shared: Arc::downgrade(shared), at }
    }

    /// Ends the request that a message answers, if any.
    fn match_answer(shared: &ManyLinkState, message: &Envelope, about: Option<u64>) {
        if matches!(message.kind(), Kind::Response | Kind::Error)
            && let Some(key) = message.id().and_then(|id| id.as_u64()).or(about)
        {
            shared.finish_request(key, CallResult::Answered);
        }
    }
}

impl LinkEvents for Relay {
    fn received(&self, bytes: Bytes, about: Option<u64>, status: Option<u16>) {
        let Some(shared) = self.shared.upgrade() else { return };
        if batch::is_array(&bytes) {
            // The receiver of the batch reports errors in it.
            for element in batch::split(&bytes, limits::BATCH).unwrap_or_default() {
                if let Ok(message) = Envelope::parse(element) {
                    Self::match_answer(&shared, &message, about);
                }
            }
            return shared.events.received(bytes, about, status);
        }
        match Envelope::parse(bytes.clone()) {
            Ok(message) => {
                Self::match_answer(&shared, &message, about);
                shared.events.message(message, about, status);
            }
            Err(_) => shared.events.received(bytes, about, status),
        }
    }

    fn message(&self, message: Envelope, about: Option<u64>, status: Option<u16>) {
        let Some(shared) = self.shared.upgrade() else { return };
        Self::match_answer(&shared, &message, about);
        shared.events.message(message, about, status);
    }

    fn event(&self, message: Envelope, about: Option<u64>, status: Option<u16>, id: &str) {
        let Some(shared) = self.shared.upgrade() else { return };
        Self::match_answer(&shared, &message, about);
        shared.events.event(message, about, status, id);
    }

    fn room(&self) -> Option<BoxFuture<()>> {
        self.shared.upgrade()?.events.room()
    }

    fn user(&self) -> Option<BackendUser> {
        self.shared.upgrade()?.events.user()
    }

    fn asker(&self, key: u64) -> RequestSender {
        self.shared.upgrade().map_or(RequestSender::Gone, |shared| shared.events.asker(key))
    }

    fn share(&self) -> Option<Arc<Share>> {
        self.shared.upgrade()?.events.share()
    }

    fn failed(&self, key: u64, fault: Fault) {
        if let Some(shared) = self.shared.upgrade() {
            shared.failed(key, fault);
        }
    }

    fn is_wanted(&self, key: u64) -> bool {
        self.shared.upgrade().is_some_and(|shared| shared.events.is_wanted(key))
    }

    fn retried(&self, key: u64) {
        if let Some(shared) = self.shared.upgrade() {
            shared.events.retried(key);
        }
    }

    fn parted(&self, key: u64, retry: Option<Duration>) {
        if let Some(shared) = self.shared.upgrade() {
            shared.events.parted(key, retry);
        }
    }

    fn expired(&self, message: ToBackend) {
        let Some(shared) = self.shared.upgrade() else { return };
        if let Some(key) = message.key() {
            shared.finish_request(key, CallResult::Answered);
        }
        shared.events.expired(message);
    }

    fn doubted(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.events.doubted();
        }
    }

    fn asks(&self, message: Outbound) -> ToBackend {
        match self.shared.upgrade() {
            Some(shared) => shared.events.asks(message),
            None => message.leave_untold(0),
        }
    }

    fn told(&self, answer: &Bytes) {
        if let Some(shared) = self.shared.upgrade() {
            shared.events.told(answer);
        }
    }

    fn garbage(&self, why: &RejectedMessage) {
        if let Some(shared) = self.shared.upgrade() {
            shared.events.garbage(why);
        }
    }

    fn dropped(&self, reason: &'static str) {
        if let Some(shared) = self.shared.upgrade() {
            shared.events.dropped(reason);
        }
    }

    fn lost(&self, why: String) {
        tracing::debug!(address = self.at, %why, "the link to an address is gone");
        if let Some(shared) = self.shared.upgrade() {
            shared.events.lost(why);
        }
    }
}
