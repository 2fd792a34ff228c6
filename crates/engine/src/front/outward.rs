//! Notifications of the client on their way to backends.

use super::inward::in_params;
use super::judging::REFUSED_NOTIFICATION;
use super::questions::PendingQuestion;
use super::unreached::{NotificationRefusal, carries_content};
use super::{Context, FrontMachine, Lifecycle};
use crate::back::Draft;
use crate::catalog::{EntryRef, ListKind};
use crate::chain::Phase;
use crate::command::Command;
use crate::exchange::is_foreign;
use crate::fault::{Fault, FaultKind};
use crate::keys::StreamId;
use signalbox_wire::{Edits, Envelope, Era, RawId, method};

/// Returns true if the caller may send backends a notification that MCP does not define. It goes to every backend of
/// the session, so a caller with limited rights may send it only if the session has a single backend and a tool of that
/// name there would be visible to the caller.
fn may_notify(name: &str, ctx: &Context<'_>) -> bool {
    let Some(sight) = ctx.sight else { return true };
    let keeps = |backend: &str| sight.keeps(&EntryRef { kind: ListKind::Tools, backend, name, definition: None });
    ctx.catalog.only().is_some_and(|only| keeps(only))
}

impl FrontMachine {
    pub(super) fn client_notified(&mut self, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if !message.method().is_some_and(|name| name.starts_with("notifications/")) {
            // A request without an id would bypass all checks on requests.
            self.record_client_message(None, message.bytes(), Some("request_without_id"), ctx, out);
            self.record_refusal_without_exchange(
                message,
                "request_without_id",
                "a request has an id, and this one has none",
                ctx,
                out,
            );
            return out.push(Command::Dropped("request_without_id"));
        }
        self.record_client_message(None, message.bytes(), ctx.refusal.map(Fault::reason), ctx, out);
        if let Some(fault) = ctx.refusal {
            let refusal = NotificationRefusal::by(fault, fault.reason());
            return self.refuse_notification(message, refusal, ctx, out);
        }
        let message = &match self.judge_notification(Phase::FromClient, (None, None), message, ctx, out) {
            Ok(judged) => judged,
            Err(fault) => {
                let refusal = NotificationRefusal::by(&fault, REFUSED_NOTIFICATION);
                return self.refuse_notification(message, refusal, ctx, out);
            }
        };
        match message.method().unwrap_or_default() {
            method::INITIALIZED => {
                if self.state == Lifecycle::Initializing {
                    self.state = Lifecycle::Operational;
                    out.push(Command::Operational);
                }
            }
            method::CANCELLED => self.client_cancelled(message, ctx, out),
            method::PROGRESS => self.question_progressed(message, ctx, out),
            name if is_foreign(name) && !may_notify(name, ctx) => {
                let refusal = NotificationRefusal::unseen(name, ctx, "foreign_notification");
                self.refuse_notification(message, refusal, ctx, out);
            }
            name if self.state == Lifecycle::Operational => {
                let except = ctx.hidden_backends();
                let sees_none = !except.is_empty() && except.len() == ctx.catalog.backends().len();
                if sees_none && carries_content(name) {
                    let refusal = NotificationRefusal::unseen(name, ctx, "hidden_notification");
                    return self.refuse_notification(message, refusal, ctx, out);
                }
                let draft = Draft::word("", message.bytes().clone());
                out.push(Command::Tell { draft, except });
            }
            _ => {
                let fault = Fault::new(FaultKind::NotInitialized, "the session has not begun");
                let refusal = NotificationRefusal::by(&fault, "notification_before_ready");
                self.refuse_notification(message, refusal, ctx, out);
            }
        }
    }

    fn client_cancelled(&mut self, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(span) = in_params(message, &["requestId"]) else {
            return out.push(Command::Dropped("stray_cancel"));
        };
        let id = RawId::from_token(message.bytes().slice(span.range()));
        let reason = in_params(message, &["reason"]).map(|span| message.bytes().slice(span.range()));
        let exchange = self.by_client_id.get(&id).copied();
        // `initialize` may not be cancelled, and finished requests cannot be.
        match exchange.filter(|id| self.exchanges.get(id).is_some_and(|one| one.method != method::INITIALIZE)) {
            Some(exchange) => self.cancel(exchange, reason, ctx, out),
            None => out.push(Command::Dropped("stray_cancel")),
        }
    }

    /// Passes on the client's progress on a backend's question.
    fn question_progressed(&self, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(span) = in_params(message, &["progressToken"]) else { return };
        let number = RawId::from_token(message.bytes().slice(span.range())).as_u64();
        let question = number.and_then(|number| self.pending_questions.get(&number));
        let Some(PendingQuestion::Peer { peer, progress_token: Some(token), subject, .. }) = question else {
            return out.push(Command::Dropped("stray_progress"));
        };
        if self.withdrawn_question(subject, ctx).is_some() {
            return out.push(Command::Dropped("withdrawn_answer"));
        }
        let mut edits = Edits::new();
        edits.replace(span, token.token());
        let draft = Draft::word(method::PROGRESS, edits.apply(message.bytes()));
        out.push(Command::Respond { peer: *peer, exchange: subject.about, draft });
    }

    /// Refuses input that is not a valid message or not acceptable.
    pub(super) fn unreadable(
        &self,
        stream: StreamId,
        id: Option<&RawId>,
        era: Era,
        fault: &Fault,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if ctx.message_facts {
            self.refused_fact(None, fault.reason(), fault.message.clone(), None, ctx, out);
        }
        self.send_fault(stream, id, era, fault, ctx, out);
    }
}
