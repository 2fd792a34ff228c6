//! Messages that an interceptor holds until a question is answered: by a person, by a webhook, or by the passing of time.

use crate::session::Session;
use crate::webhooks::WebhookError;
use bytes::Bytes;
use signalbox_engine::chain::{Consent, HoldAnswer, HoldQuestion};
use signalbox_engine::command::Held;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Event, ExchangeId, Limit, Principal, SessionKey};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Most messages that may wait for a person at a time.
pub const MAX_HELD: usize = 1_000;
/// Most of them for one caller.
pub const MAX_HELD_EACH: usize = MAX_HELD / 4;
/// How often a client that asked for progress is told that its call waits.
const TELL_EVERY: Duration = Duration::from_secs(5);
const ENDING: &str = "the gateway is shutting down";

/// Why a held message could not be answered for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HoldError {
    /// There is none of this number: it was answered for, its time ran out, or its client left.
    #[error("no message is held as {0}; see `signalbox hold list`")]
    Unknown(u64),
}

/// A message that waits for a person.
#[derive(Clone, Debug)]
pub struct HeldMessage {
    /// Its number in this process.
    pub id: u64,
    /// The id of its session, if its client has one.
    pub session: String,
    /// The number of that session.
    pub session_key: SessionKey,
    /// Its exchange within that session.
    pub exchange: ExchangeId,
    /// Why it is held.
    pub reason: Arc<str>,
    /// The consent that it needs, if that is why.
    pub consent: Option<Arc<Consent>>,
    /// When its time runs out.
    pub until: Instant,
    /// The message and what is known of it.
    pub held: Arc<Held>,
}

struct Waiting {
    shown: HeldMessage,
    key: (SessionKey, ExchangeId),
    answer: oneshot::Sender<HoldAnswer>,
}

/// Makes what a web address is told of calls that need consent.
pub trait HoldNotices: Send + Sync {
    /// What is told of this one, if anything.
    fn notice(&self, held: &HeldMessage) -> Option<HoldNotice>;
}

/// What a web address is told of a held call.
#[derive(Clone, Debug)]
pub struct HoldNotice {
    /// The address.
    pub url: Arc<str>,
    /// JSON.
    pub body: Bytes,
    /// Token that the address is shown, if it wants one.
    pub bearer: Option<Arc<str>>,
}

/// The messages of one gateway that wait for a person.
#[derive(Default)]
pub struct Holds {
    waiting: Mutex<HeldTable>,
    notices: OnceLock<Arc<dyn HoldNotices>>,
}

#[derive(Default)]
struct HeldTable {
    next: u64,
    by_id: BTreeMap<u64, Waiting>,
    /// How many holds ended in each way, by its word.
    settled: BTreeMap<&'static str, u64>,
    /// The gateway ends, and nothing is held any more.
    ended: bool,
}

/// Why no further message is held.
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
    /// Has web addresses told of calls that need consent. Only the first one counts.
    pub fn notify_by(&self, notices: Arc<dyn HoldNotices>) {
        // The second one is of the same gateway, and would tell the same.
        let _ = self.notices.set(notices);
    }

    /// The messages that wait, the oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<HeldMessage> {
        self.lock().by_id.values().map(|waiting| waiting.shown.clone()).collect()
    }

    /// How many holds ended in each way.
    #[must_use]
    pub fn settled(&self) -> BTreeMap<&'static str, u64> {
        self.lock().settled.clone()
    }

    /// Takes a person's answer for a held message.
    ///
    /// # Errors
    /// If no message of this number waits.
    pub fn settle(&self, id: u64, answer: HoldAnswer) -> Result<HeldMessage, HoldError> {
        let waiting = self.lock().by_id.remove(&id).ok_or(HoldError::Unknown(id))?;
        let shown = waiting.shown.clone();
        // Nobody receives it if the time ran out at this very moment.
        waiting.answer.send(answer).map_err(|_| HoldError::Unknown(id))?;
        Ok(shown)
    }

    /// The message of this number.
    ///
    /// # Errors
    /// If none waits.
    pub fn get(&self, id: u64) -> Result<HeldMessage, HoldError> {
        self.lock().by_id.get(&id).map(|waiting| waiting.shown.clone()).ok_or(HoldError::Unknown(id))
    }

    /// Refuses all held messages, and those that would be held later, since the gateway ends.
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

    /// Forgets the message of an exchange that nobody waits for any more.
    pub(crate) fn withdraw(&self, session: SessionKey, exchange: ExchangeId) {
        let mut inner = self.lock();
        inner.by_id.retain(|_, waiting| waiting.key != (session, exchange));
    }

    fn insert(
        &self,
        session: &Session,
        exchange: ExchangeId,
        (asked, until): (Asked, Instant),
        held: Arc<Held>,
    ) -> Result<(HeldMessage, oneshot::Receiver<HoldAnswer>), HoldAnswer> {
        let (answer, answered) = oneshot::channel();
        let mut inner = self.lock();
        if inner.ended {
            return Err(HoldAnswer::Refused { by: None, reason: ENDING.to_owned() });
        }
        inner.check_room(held.caller.principal()).map_err(|full| HoldAnswer::Failed(full.to_string()))?;
        inner.next += 1;
        let id = inner.next;
        let shown = HeldMessage {
            id,
            session: session.external.to_string(),
            session_key: session.key,
            exchange,
            reason: asked.reason,
            consent: asked.consent,
            until,
            held,
        };
        inner.by_id.insert(id, Waiting { shown: shown.clone(), key: (session.key, exchange), answer });
        Ok((shown, answered))
    }

    fn count(&self, answer: &HoldAnswer) {
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

/// Gets the answer to an interceptor's question, and hands it to the session.
pub(crate) async fn consult(session: Arc<Session>, exchange: ExchangeId, question: HoldQuestion, held: Box<Held>) {
    let answer = match question {
        HoldQuestion::Pause(time) => {
            // Only a weak reference waits, so that a session that ends meanwhile is freed at once.
            drop(held);
            let waiting = Arc::downgrade(&session);
            drop(session);
            tokio::time::sleep(time).await;
            if let Some(session) = waiting.upgrade() {
                session.handle(Event::Consulted { exchange, answer: HoldAnswer::GoOn { by: None } });
            }
            return;
        }
        HoldQuestion::Webhook { url, body, within } => {
            match session.gateway.webhooks.ask(held.caller.principal(), &url, body, within).await {
                Ok((status, body)) => HoldAnswer::Webhook { status, body },
                Err(error @ WebhookError::NoTurn) => {
                    session.gateway.counters.refused(Limit::Webhooks);
                    HoldAnswer::Overloaded(error.to_string())
                }
                Err(error) => HoldAnswer::Failed(error.to_string()),
            }
        }
        HoldQuestion::Person { reason, within } => {
            let asked = Asked { reason, within, consent: None };
            let Some(answer) = ask_person(&session, exchange, asked, held).await else { return };
            answer
        }
        HoldQuestion::Consent(consent) => {
            let (reason, within) = (Arc::clone(&consent.reason), consent.within);
            let asked = Asked { reason, within, consent: Some(consent) };
            let Some(answer) = ask_person(&session, exchange, asked, held).await else { return };
            answer
        }
    };
    session.handle(Event::Consulted { exchange, answer });
}

/// What a person is asked.
struct Asked {
    reason: Arc<str>,
    within: Duration,
    consent: Option<Arc<Consent>>,
}

/// Waits for a person, counts how that ended, and sends the client progress meanwhile. `None` if nobody waits for the answer any more.
async fn ask_person(session: &Arc<Session>, exchange: ExchangeId, asked: Asked, held: Box<Held>) -> Option<HoldAnswer> {
    let answer = wait_for_person(session, exchange, asked, held).await?;
    session.gateway.holds.count(&answer);
    Some(answer)
}

async fn wait_for_person(
    session: &Arc<Session>,
    exchange: ExchangeId,
    asked: Asked,
    held: Box<Held>,
) -> Option<HoldAnswer> {
    let until = tokio::time::Instant::now() + asked.within;
    let tells = held.gives_progress;
    let text: Arc<str> = format!("held: {}", asked.reason).into();
    let holds = &session.gateway.holds;
    let (shown, mut answered) = match holds.insert(session, exchange, (asked, until.into_std()), held.into()) {
        Ok(inserted) => inserted,
        Err(answer) => return Some(answer),
    };
    let id = shown.id;
    let notice = holds.notices.get().filter(|_| shown.consent.is_some()).and_then(|by| by.notice(&shown));
    if let Some(notice) = notice
        && !session.gateway.webhooks.notify(notice, until)
    {
        session.gateway.counters.dropped("webhook");
    }
    // If the exchange ended before its message was in the list, nobody else will remove it.
    if !session.waits_for(exchange) {
        holds.withdraw(session.key, exchange);
    }
    let tell = || {
        if tells {
            session.handle(Event::StillHeld { exchange, text: Arc::clone(&text) });
        }
    };
    tell();
    loop {
        let left = until.saturating_duration_since(tokio::time::Instant::now());
        if left.is_zero() {
            // A person who answers at this very moment is too late, and is told so.
            return holds.settle(id, HoldAnswer::Expired).is_ok().then_some(HoldAnswer::Expired);
        }
        match tokio::time::timeout(left.min(TELL_EVERY), &mut answered).await {
            Ok(answer) => return answer.ok(),
            Err(_) if left > TELL_EVERY => tell(),
            Err(_) => {}
        }
    }
}
