//! Notifications of the client on their way to backends.

use super::inward::in_params;
use super::{Asked, Context, FrontMachine, Lifecycle};
use crate::chain::Phase;
use crate::command::Command;
use crate::fact::Point;
use signalbox_wire::{Edits, Envelope, RawId, method};

impl FrontMachine {
    pub(super) fn client_notified(&mut self, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        self.message_fact(None, Point::ClientIn, message.bytes(), ctx, out);
        let Some(message) = &self.judge_notification(Phase::FromClient, (None, None), message, ctx, out) else {
            return;
        };
        match message.method().unwrap_or_default() {
            method::INITIALIZED => {
                if self.state == Lifecycle::Initializing {
                    self.state = Lifecycle::Operational;
                    out.push(Command::Operational);
                }
            }
            method::CANCELLED => self.client_cancelled(message, ctx, out),
            method::PROGRESS => self.question_progressed(message, out),
            _ if self.state == Lifecycle::Operational => {
                out.push(Command::Tell { backend: None, bytes: message.bytes().clone() });
            }
            _ => out.push(Command::Dropped("notification_before_ready")),
        }
    }

    fn client_cancelled(&mut self, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(span) = in_params(message, &["requestId"]) else {
            return out.push(Command::Dropped("stray_cancel"));
        };
        let id = RawId::from_token(message.bytes().slice(span.range()));
        let reason = in_params(message, &["reason"]).map(|span| message.bytes().slice(span.range()));
        let exchange = self.by_client_id.get(&id).copied();
        // `initialize` may not be cancelled, and what is over cannot be.
        match exchange.filter(|id| self.exchanges.get(id).is_some_and(|one| one.method != method::INITIALIZE)) {
            Some(exchange) => self.cancel(exchange, reason, ctx, out),
            None => out.push(Command::Dropped("stray_cancel")),
        }
    }

    /// The client tells how far it is with a backend's question.
    fn question_progressed(&mut self, message: &Envelope, out: &mut Vec<Command>) {
        let Some(span) = in_params(message, &["progressToken"]) else { return };
        let number = RawId::from_token(message.bytes().slice(span.range())).as_u64();
        let question = number.and_then(|number| self.asked.get(&number));
        let Some(Asked::Peer { peer, progress_token: Some(token), .. }) = question else {
            return out.push(Command::Dropped("stray_progress"));
        };
        let mut edits = Edits::new();
        edits.replace(span, token.token());
        out.push(Command::Respond { peer: *peer, bytes: edits.apply(message.bytes()) });
    }
}
