//! Questions that a client of the new era gets as the answer to its call.

use super::ClientMessage;
use crate::chain::Phase;
use crate::command::Command;
use crate::fact::Outcome;
use crate::fault::{Fault, FaultKind};
use crate::front::holding::Continuation;
use crate::front::{Context, FrontMachine};
use crate::keys::ExchangeId;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Span, builder};

impl FrontMachine {
    /// Shows a client of the new era the questions of an old backend, under the backend's name.
    pub(in crate::front) fn show_signed(
        &mut self,
        id: ExchangeId,
        result: &Bytes,
        park: Option<u128>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if let Some(fault) = self.withdrawn_round(id, ctx) {
            self.fail(id, &fault, ctx, out);
            return out.extend(park.map(|park| Command::GiveUp { park }));
        }
        let backend = self.exchanges.get(&id).and_then(|exchange| exchange.backend.clone());
        let backend = backend.as_deref().unwrap_or_default();
        let mut edits = Edits::new();
        match ctx.asker(backend).sign_within(result, Span::new(0, result.len()), &mut edits) {
            Ok(()) => self.show_questions(id, &edits.apply(result), park, ctx, out),
            Err(no) => {
                self.fail(id, &no.fault(backend), ctx, out);
                out.extend(park.map(|park| Command::GiveUp { park }));
            }
        }
    }

    /// Shows a client of the new era the questions of an old backend or of the gateway. If they may not be shown, or
    /// the client is gone, the parked call is abandoned, because the client cannot resume it.
    pub(in crate::front) fn show_questions(
        &mut self,
        id: ExchangeId,
        result: &[u8],
        park: Option<u128>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return out.extend(park.map(|park| Command::GiveUp { park }));
        };
        exchange.asks = true;
        match Envelope::parse(builder::response(&exchange.client_id, result)) {
            Ok(message) => {
                let judged = self
                    .judge_questions(id, message, ctx, out)
                    .and_then(|message| self.judge_midway(id, Phase::Response, &message, ctx, out));
                if let Some(message) = judged {
                    let then = Continuation::Answer { status: 200, outcome: Outcome::Ok, own: false };
                    return self.answer(id, ClientMessage::judged(message.into_bytes()), &then, ctx, out);
                }
            }
            Err(_) => {
                let fault = Fault::new(FaultKind::Internal, "the questions of the backend do not form a valid message");
                self.fail(id, &fault, ctx, out);
            }
        }
        out.extend(park.map(|park| Command::GiveUp { park }));
    }
}
