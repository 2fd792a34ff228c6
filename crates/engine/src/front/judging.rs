//! The interceptors' say over what comes in the middle of a call: questions are part of an answer, and what the client
//! says to them is part of a request.

use super::{Context, FrontMachine};
use crate::chain::Verdict;
use crate::command::Command;
use crate::exchange::Call;
use crate::fact::Outcome;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use signalbox_wire::{Edits, Envelope, builder};

impl FrontMachine {
    /// Asks about what a backend wants to know. None where the exchange has been answered in another way.
    ///
    /// # Errors
    /// The fault that the call is to end with.
    pub(super) fn judged(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<Option<Envelope>, Fault> {
        let Some(exchange) = self.exchanges.get(&id) else { return Ok(None) };
        let mut edits = Edits::new();
        match ctx.chain.response(exchange, message, &mut edits, ctx.now) {
            Verdict::Pass | Verdict::Modify(_) => {}
            Verdict::Reply(result) => {
                self.give_task_up(id, out);
                self.reply(id, &result, ctx, out);
                return Ok(None);
            }
            Verdict::Refuse(fault) => return Err(fault),
        }
        if edits.is_empty() {
            return Ok(Some(message.clone()));
        }
        let bad = |_| Fault::new(FaultKind::Internal, "what an interceptor made of the questions is no message");
        Envelope::parse(edits.apply(message.bytes())).map(Some).map_err(bad)
    }

    /// Asks about a request that carries what the client was asked for. Where it may not go, the exchange is over.
    pub(super) fn passes(
        &mut self,
        id: ExchangeId,
        call: &mut Call,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> bool {
        let Some(exchange) = self.exchanges.get(&id) else { return false };
        match ctx.chain.request(exchange, &call.envelope, &mut call.edits, ctx.now) {
            Verdict::Pass | Verdict::Modify(_) => return true,
            Verdict::Reply(result) => {
                self.give_task_up(id, out);
                self.reply(id, &result, ctx, out);
            }
            Verdict::Refuse(fault) => {
                self.give_task_up(id, out);
                self.fail(id, &fault, ctx, out);
            }
        }
        false
    }

    /// Shows a client of the new era what an old backend wants to know. Where it may not be shown, or nobody is there to see
    /// it, nobody will come back for the call that waits.
    pub(super) fn show_questions(
        &mut self,
        id: ExchangeId,
        result: &[u8],
        park: Option<u128>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(exchange) = self.exchanges.get(&id) else {
            return out.extend(park.map(|park| Command::GiveUp { park }));
        };
        let bad = |_| Fault::new(FaultKind::Internal, "the questions of the backend are no message");
        let message = Envelope::parse(builder::response(&exchange.client_id, result)).map_err(bad);
        match message.and_then(|message| self.judged(id, &message, ctx, out)) {
            Ok(Some(message)) => return self.finish(id, message.bytes().clone(), 200, Outcome::Ok, ctx, out),
            Ok(None) => {}
            Err(fault) => self.fail(id, &fault, ctx, out),
        }
        out.extend(park.map(|park| Command::GiveUp { park }));
    }
}
