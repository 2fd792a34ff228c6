//! What the machine tells those who keep what happens.

use super::{Context, FrontMachine};
use crate::command::Command;
use crate::exchange::Exchange;
use crate::fact::{Fact, Finished, Outcome, Point};
use crate::keys::ExchangeId;
use crate::trace;
use bytes::Bytes;
use std::sync::Arc;

impl FrontMachine {
    /// A message passed a point.
    pub(super) fn message_fact(
        &self,
        exchange: Option<ExchangeId>,
        point: Point,
        bytes: &Bytes,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if ctx.message_facts {
            out.push(Command::Fact(Fact::Message {
                at: ctx.now,
                session: self.session,
                principal: self.principal.clone(),
                exchange,
                point,
                backend: exchange.and_then(|id| self.exchanges.get(&id)?.backend.clone()),
                bytes: bytes.clone(),
            }));
        }
    }

    /// A backend said something besides an answer.
    pub(super) fn backend_fact(
        &self,
        exchange: Option<ExchangeId>,
        backend: &Arc<str>,
        bytes: &Bytes,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if ctx.message_facts {
            out.push(Command::Fact(Fact::Message {
                at: ctx.now,
                session: self.session,
                principal: self.principal.clone(),
                exchange,
                point: Point::BackendIn,
                backend: Some(Arc::clone(backend)),
                bytes: bytes.clone(),
            }));
        }
    }

    /// An exchange is over.
    pub(super) fn finished(
        &self,
        exchange: &Exchange,
        outcome: Outcome,
        answer: Option<&Bytes>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let finished = Finished {
            at: ctx.now,
            session: self.session,
            principal: self.principal.clone(),
            exchange: exchange.id,
            era: exchange.era,
            method: exchange.method.clone(),
            subject: exchange.subject.clone(),
            backend: exchange.backend.clone(),
            outcome,
            took: ctx.now.saturating_duration_since(exchange.started),
            bytes_in: exchange.bytes_in,
            bytes_out: answer.map_or(0, Bytes::len),
            trace: trace::finished(exchange, self.client.as_ref(), answer),
        };
        ctx.chain.finished(&finished);
        out.push(Command::Fact(Fact::Finished(Arc::new(finished))));
    }
}
