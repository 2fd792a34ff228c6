use super::{Context, FrontMachine};
use crate::caller::Caller;
use crate::command::Command;
use crate::exchange::Exchange;
use crate::fact::{Fact, FinishedFact, MessageFact, Outcome, Point};
use crate::keys::ExchangeId;
use crate::trace;
use bytes::Bytes;
use std::sync::Arc;

impl FrontMachine {
    /// Returns the sender of an exchange's request, or else the opener of the session.
    pub(super) fn caller_of(&self, exchange: Option<ExchangeId>) -> &Caller {
        exchange.and_then(|id| self.exchanges.get(&id)).map_or(&self.caller, |exchange| &exchange.caller)
    }

    /// Records that a message passed a point.
    pub(super) fn message_fact(
        &self,
        exchange: Option<ExchangeId>,
        point: Point,
        bytes: &Bytes,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if ctx.message_facts {
            let caller = self.caller_of(exchange).clone();
            out.push(Command::Fact(Fact::Message(MessageFact {
                exchange,
                backend: exchange.and_then(|id| self.exchanges.get(&id)?.backend.clone()),
                number: ctx.numbers.message(),
                ..MessageFact::new(ctx.now, self.session, caller, point, bytes.clone())
            })));
        }
    }

    /// Records a client message that belongs to no call. `lost` is the reason why it has no effect, if it has none.
    pub(super) fn record_client_message(
        &self,
        exchange: Option<ExchangeId>,
        bytes: &Bytes,
        lost: Option<&'static str>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if ctx.message_facts {
            let caller = ctx.caller.unwrap_or(&self.caller).clone();
            out.push(Command::Fact(Fact::Message(MessageFact {
                exchange,
                number: ctx.numbers.message(),
                lost,
                ..MessageFact::new(ctx.now, self.session, caller, Point::ClientIn, bytes.clone())
            })));
        }
    }

    /// Builds the fact for the end of an exchange.
    pub(super) fn finished_fact(
        &self,
        exchange: &Exchange,
        outcome: Outcome,
        answer: Option<&Bytes>,
        ctx: &Context<'_>,
    ) -> Command {
        // A request that the gateway answers itself begins and ends with the same event, so `ctx.now` would make it
        // take no time.
        let now = if exchange.started == ctx.now { (ctx.clock)() } else { ctx.now };
        let finished = FinishedFact {
            at: now,
            session: self.session,
            caller: exchange.caller.clone(),
            exchange: exchange.id,
            era: exchange.era,
            method: exchange.method.clone(),
            subject: exchange.subject.clone(),
            backend: exchange.backend.clone(),
            client: exchange.client.clone(),
            operation: exchange.operation,
            round: exchange.round,
            outcome,
            took: now.saturating_duration_since(exchange.started),
            bytes_in: exchange.bytes_in,
            bytes_out: answer.map_or(0, Bytes::len),
            trace: trace::complete(exchange, self.client.as_ref(), answer),
            unreached: exchange.unreached.clone(),
        };
        ctx.chain.finished(&finished);
        if !exchange.asks {
            ctx.chain.call_ended(exchange.operation);
        }
        Command::Fact(Fact::Finished(Arc::new(finished)))
    }
}
