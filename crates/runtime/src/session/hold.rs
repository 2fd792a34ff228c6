//! Answers to the questions for which interceptors hold a session's messages.

use super::Session;
use crate::holds::{HeldMessage, TELL_EVERY};
use crate::webhooks::WebhookError;
use signalbox_engine::chain::{Consent, HoldAnswer, HoldQuestion};
use signalbox_engine::command::MessageOnHold;
use signalbox_engine::{Event, ExchangeId, Limit};
use std::sync::Arc;
use std::time::Duration;

/// Gets the answer to an interceptor's question and passes it to the session.
pub(super) async fn consult(
    session: Arc<Session>,
    exchange: ExchangeId,
    question: HoldQuestion,
    held: Box<MessageOnHold>,
) {
    let answer = match question {
        HoldQuestion::Pause(time) => {
            // Only a weak reference is kept while waiting, so that a session that ends meanwhile is freed at once.
            drop(held);
            let waiting = Arc::downgrade(&session);
            drop(session);
            tokio::time::sleep(time).await;
            if let Some(session) = waiting.upgrade() {
                session.handle(Event::Consulted { exchange, answer: HoldAnswer::GoOn { by: None } });
            }
            return;
        }
        HoldQuestion::Work(work) => {
            // The session may end meanwhile; the answer then finds no exchange.
            let _turn = session.gateway.holds.work_turn().await;
            let _ = tokio::task::spawn_blocking(move || work.run()).await;
            HoldAnswer::GoOn { by: None }
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
            let asked = ApprovalRequest { reason, within, consent: None };
            let Some(answer) = ask_person(&session, exchange, asked, held).await else { return };
            answer
        }
        HoldQuestion::Consent(consent) => {
            let (reason, within) = (Arc::clone(&consent.reason), consent.within);
            let asked = ApprovalRequest { reason, within, consent: Some(consent) };
            let Some(answer) = ask_person(&session, exchange, asked, held).await else { return };
            answer
        }
    };
    session.handle(Event::Consulted { exchange, answer });
}

/// Question to a person about a held message.
struct ApprovalRequest {
    reason: Arc<str>,
    within: Duration,
    consent: Option<Arc<Consent>>,
}

/// Waits for a person, counts the outcome, and sends progress to the client meanwhile. Returns `None` if the exchange
/// has ended.
async fn ask_person(
    session: &Arc<Session>,
    exchange: ExchangeId,
    asked: ApprovalRequest,
    held: Box<MessageOnHold>,
) -> Option<HoldAnswer> {
    let answer = wait_for_person(session, exchange, asked, held).await?;
    session.gateway.holds.count(&answer);
    Some(answer)
}

async fn wait_for_person(
    session: &Arc<Session>,
    exchange: ExchangeId,
    asked: ApprovalRequest,
    held: Box<MessageOnHold>,
) -> Option<HoldAnswer> {
    let until = tokio::time::Instant::now() + asked.within;
    let tells = held.gives_progress;
    let text: Arc<str> = format!("held: {}", asked.reason).into();
    let holds = &session.gateway.holds;
    let message = HeldMessage {
        id: 0,
        session: session.external.to_string(),
        session_key: session.key,
        exchange,
        reason: asked.reason,
        consent: asked.consent,
        until: until.into_std(),
        held: held.into(),
    };
    let (shown, mut answered) = match holds.insert(message) {
        Ok(inserted) => inserted,
        Err(answer) => return Some(answer),
    };
    let id = shown.id;
    if let Some(notice) = holds.notice(&shown)
        && !session.gateway.webhooks.notify(notice, until)
    {
        session.gateway.counters.dropped("webhook");
    }
    // If the exchange ended before its message was in the table, nothing else would remove it.
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
            // A person who answers at this very moment is too late, and gets an error.
            return holds.settle(id, HoldAnswer::Expired).is_ok().then_some(HoldAnswer::Expired);
        }
        match tokio::time::timeout(left.min(TELL_EVERY), &mut answered).await {
            Ok(answer) => return answer.ok(),
            Err(_) if left > TELL_EVERY => tell(),
            Err(_) => {}
        }
    }
}
