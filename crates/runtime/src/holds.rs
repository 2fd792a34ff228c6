//! Messages that an interceptor holds until a question is answered by a person, by a webhook, or by the end of a pause.

use crate::webhooks::HoldNotice;
use signalbox_engine::chain::{Consent, HoldAnswer};
use signalbox_engine::command::MessageOnHold;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{ExchangeId, Principal, SessionKey};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

/// Maximum number of messages that wait for a person.
pub const MAX_HELD: usize = 1_000;
/// Maximum number of messages of one caller that wait for a person.
pub const MAX_HELD_EACH: usize = MAX_HELD / 4;
/// Interval of progress notifications to a client that asked for progress while its call is held.
pub(crate) const TELL_EVERY: Duration = Duration::from_secs(5);
const ENDING: &str = "the gateway is shutting down";

/// Error of an answer to a held message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HoldError {
    /// No message has this number: it was answered, it expired, or its client left.
    #[error("no message is held as {0}; see `signalbox hold list`")]
    Unknown(u64),
}

/// A message that waits for a person.
#[derive(Clone, Debug)]
pub struct HeldMessage {
    /// Number of the message in this process.
    pub id: u64,
    /// Id of its session, if the client has one.
    pub session: String,
    /// Key of the session.
    pub session_key: SessionKey,
    /// Exchange within the session.
    pub exchange: ExchangeId,
    /// Reason for the hold.
    pub reason: Arc<str>,
    /// Consent that the message needs, if that is the reason.
    pub consent: Option<Arc<Consent>>,
    /// Time at which the hold expires.
    pub until: Instant,
    /// The message and its context.
    pub held: Arc<MessageOnHold>,
}

struct PendingHold {
    shown: HeldMessage,
    key: (SessionKey, ExchangeId),
    answer: oneshot::Sender<HoldAnswer>,
}

/// Builds the webhook notifications for calls that need consent.
pub trait HoldNotices: Send + Sync {
    /// Returns the notification for this message, if one is configured.
    fn notice(&self, held: &HeldMessage) -> Option<HoldNotice>;
}

/// Messages of one gateway that wait for a person.
#[derive(Default)]
pub struct Holds {
    waiting: Mutex<HeldTable>,
    work: WorkTurns,
    notices: OnceLock<Arc<dyn HoldNotices>>,
}

/// Turns for work of interceptors, one for each core.
struct WorkTurns(Semaphore);

impl Default for WorkTurns {
    fn default() -> Self {
        Self(Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)))
    }
}

#[derive(Default)]
struct HeldTable {
    next: u64,
    by_id: BTreeMap<u64, PendingHold>,
    /// Number of finished holds by outcome.
    settled: BTreeMap<&'static str, u64>,
    /// Set at shutdown. Nothing is held from then on.
    ended: bool,
}

/// Reason why no further message can be held.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum HoldsFull {
    #[error("{} messages of yours wait for a person already, which is the limit for one caller", MAX_HELD_EACH)]
    OfCaller,
    #[error("{} messages of all callers wait for a person already, which is the limit of the gateway", MAX_HELD)]
    OfGateway,
}

impl HeldTable {
    fn check_room(&self, caller: &Principal) -> Result<(), HoldsFull> {
        let own = self.by_id.values().filter(|one| one.shown.held.caller.principal() == caller);
        if own.count() >= MAX_HELD_EACH {
            return Err(HoldsFull::OfCaller);
        }
        if self.by_id.len() >= MAX_HELD { Err(HoldsFull::OfGateway) } else { Ok(()) }
    }
}

impl Holds {
    /// Sets the source of webhook notifications for calls that need consent. Only the first one is used.
    pub fn notify_by(&self, notices: Arc<dyn HoldNotices>) {
        // A second source would belong to the same gateway and build the same notifications.
        let _ = self.notices.set(notices);
    }

    /// Waits until work of an interceptor may be done.
    pub(crate) async fn work_turn(&self) -> Option<SemaphorePermit<'_>> {
        self.work.0.acquire().await.ok()
    }

    /// Returns the held messages, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<HeldMessage> {
        self.lock().by_id.values().map(|waiting| waiting.shown.clone()).collect()
    }

    /// Returns the number of finished holds by outcome.
    #[must_use]
    pub fn settled(&self) -> BTreeMap<&'static str, u64> {
        self.lock().settled.clone()
    }

    /// Answers a held message on behalf of a person.
    ///
    /// # Errors
    /// If no message has this number.
    pub fn settle(&self, id: u64, answer: HoldAnswer) -> Result<HeldMessage, HoldError> {
        let waiting = self.lock().by_id.remove(&id).ok_or(HoldError::Unknown(id))?;
        let shown = waiting.shown.clone();
        // The receiver is gone if the hold expired at this very moment.
        waiting.answer.send(answer).map_err(|_| HoldError::Unknown(id))?;
        Ok(shown)
    }

    /// Returns the held message of this number.
    ///
    /// # Errors
    /// If there is none.
    pub fn get(&self, id: u64) -> Result<HeldMessage, HoldError> {
        self.lock().by_id.get(&id).map(|waiting| waiting.shown.clone()).ok_or(HoldError::Unknown(id))
    }

    /// Refuses all held messages and all later ones, because the gateway shuts down.
    pub(crate) fn end(&self) {
        let waiting = {
            let mut inner = self.lock();
            inner.ended = true;
            std::mem::take(&mut inner.by_id)
        };
        for one in waiting.into_values() {
            // Fails only if the message got another answer at this very moment.
            let _ = one.answer.send(HoldAnswer::Refused { by: None, reason: ENDING.to_owned() });
        }
    }

    /// Removes the message of an exchange that has ended.
    pub(crate) fn withdraw(&self, session: SessionKey, exchange: ExchangeId) {
        let mut inner = self.lock();
        inner.by_id.retain(|_, waiting| waiting.key != (session, exchange));
    }

    /// Holds a message and gives it its number.
    ///
    /// # Errors
    /// The answer to the message, if it cannot be held.
    pub(crate) fn insert(
        &self,
        message: HeldMessage,
    ) -> Result<(HeldMessage, oneshot::Receiver<HoldAnswer>), HoldAnswer> {
        let (answer, answered) = oneshot::channel();
        let mut inner = self.lock();
        if inner.ended {
            return Err(HoldAnswer::Refused { by: None, reason: ENDING.to_owned() });
        }
        inner.check_room(message.held.caller.principal()).map_err(|full| HoldAnswer::Failed(full.to_string()))?;
        inner.next += 1;
        let (id, key) = (inner.next, (message.session_key, message.exchange));
        let shown = HeldMessage { id, ..message };
        inner.by_id.insert(id, PendingHold { shown: shown.clone(), key, answer });
        Ok((shown, answered))
    }

    /// Returns the notification for a message that waits for consent, if one is configured.
    pub(crate) fn notice(&self, held: &HeldMessage) -> Option<HoldNotice> {
        self.notices.get().filter(|_| held.consent.is_some()).and_then(|by| by.notice(held))
    }

    pub(crate) fn count(&self, answer: &HoldAnswer) {
        *self.lock().settled.entry(word(answer)).or_default() += 1;
    }

    fn lock(&self) -> MutexGuard<'_, HeldTable> {
        self.waiting.lock().unpoisoned()
    }
}

fn word(answer: &HoldAnswer) -> &'static str {
    match answer {
        HoldAnswer::GoOn { .. } => "released",
        HoldAnswer::Edited { .. } => "edited",
        HoldAnswer::Result { .. } => "answered",
        HoldAnswer::Refused { .. } => "refused",
        HoldAnswer::Expired => "expired",
        HoldAnswer::Webhook { .. } => "webhook",
        HoldAnswer::Failed(_) => "failed",
        HoldAnswer::Overloaded(_) => "overloaded",
    }
}
