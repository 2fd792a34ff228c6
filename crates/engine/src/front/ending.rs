//! Ends of exchanges: with an answer or a fault, or without either when the client cancels or disconnects.

use super::exchanges::OpenExchange;
use super::judging::ClientMessage;
use super::sending::Delivery;
use super::{Context, FrontMachine, Lifecycle, Mode};
use crate::chain::Ruling;
use crate::command::{Command, Listen};
use crate::fact::Outcome;
use crate::fault::{Fault, FaultKind};
use crate::keys::{ExchangeId, StreamId};
use bytes::Bytes;
use signalbox_wire::Era;
use std::sync::Arc;

impl FrontMachine {
    /// Ends an exchange and sends its answer.
    pub(super) fn finish(
        &mut self,
        id: ExchangeId,
        passed: ClientMessage,
        status: u16,
        outcome: Outcome,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let (passed, status) = self.translate_answer(exchange, passed, status, ctx);
        self.finish_translated(id, passed, status, outcome, ctx, out);
    }

    /// Ends an exchange with an answer that is already translated for the client.
    pub(super) fn finish_translated(
        &mut self,
        id: ExchangeId,
        passed: ClientMessage,
        status: u16,
        outcome: Outcome,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let way = exchange.stream_open.then(|| Delivery::last(exchange.stream, status));
        let finished = self.finished_fact(exchange, outcome, Some(passed.bytes()), ctx);
        match way {
            Some(way) => self.send(Some(id), way, passed, ctx, out),
            None => self.lose(Some(id), &passed, "client_gone", ctx, out),
        }
        self.take(id, out);
        out.push(finished);
    }

    /// Removes an exchange with everything that belongs to it, and withdraws the question it was held for.
    pub(super) fn take(&mut self, id: ExchangeId, out: &mut Vec<Command>) -> Option<Box<OpenExchange>> {
        let open = self.exchanges.remove(id)?;
        if !self.by_client_id.is_empty() {
            self.by_client_id.remove(&open.exchange.client_id);
        }
        if !self.pending_questions.is_empty() {
            self.pending_questions.retain(|_, asked| !asked.belongs_to(id));
        }
        if !self.copies.is_empty() {
            self.copies.remove(&id);
        }
        if open.stage.is_held() {
            out.push(Command::Withdraw { exchange: id });
        }
        Some(open)
    }

    pub(super) fn fail(&mut self, id: ExchangeId, fault: &Fault, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        if ctx.message_facts {
            let ruling = Ruling::of(fault.reason(), recorded_message(fault));
            self.decided(Some(id), "request", [("gateway", ruling.into())], ctx, out);
        }
        let (reply, status) = self.refusal(Some(exchange), Some(&exchange.client_id), exchange.era, fault, ctx);
        self.finish_translated(id, ClientMessage::own(reply), status, Outcome::Fault(fault.reason()), ctx, out);
    }

    /// Ends an exchange without an answer and tells the backend to stop.
    pub(super) fn cancel(&mut self, id: ExchangeId, reason: Option<Bytes>, ctx: &Context<'_>, out: &mut Vec<Command>) {
        self.abandon_task(id, out);
        let Some(open) = self.take(id, out) else { return };
        let OpenExchange { exchange, stage, .. } = &*open;
        // A listen request ends when its client closes it: that is no failure.
        let outcome = if stage.is_listening() { Outcome::Ok } else { Outcome::Cancelled };
        out.push(self.finished_fact(exchange, outcome, None, ctx));
        if stage.is_listening() {
            out.push(Command::Listen(Listen::Close { exchange: id }));
        } else if let Some(backend) = &exchange.backend {
            out.push(Command::Cancel { exchange: id, backend: Arc::clone(backend), reason });
        }
        // A pipe stays open. A pipe request with its own stream is part of a batch, which waits for that stream.
        if exchange.stream_open && (self.mode != Mode::Pipe || self.general != Some(exchange.stream)) {
            out.push(Command::End { stream: exchange.stream });
        }
    }

    /// Handles a lost stream: cancels its requests of the new era. Calls of the old era continue.
    pub(super) fn stream_lost(&mut self, stream: StreamId, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if self.general == Some(stream) {
            self.general = None;
        }
        self.answers_only.remove(&stream);
        let mut lost = Vec::new();
        for exchange in self.exchanges.values_mut().filter(|exchange| exchange.stream == stream) {
            exchange.stream_open = false;
            if exchange.era == Era::Modern {
                lost.push(exchange.id);
            }
        }
        for id in lost {
            self.cancel(id, None, ctx, out);
        }
    }

    pub(super) fn close(&mut self, ctx: &Context<'_>, out: &mut Vec<Command>) {
        self.state = Lifecycle::Closed;
        let mut open: Vec<ExchangeId> = self.exchanges.keys().collect();
        open.sort_unstable();
        for id in open {
            self.cancel(id, None, ctx, out);
        }
        self.pending_questions.clear();
    }
}

/// Returns the message of a fault for the record, without sign-in addresses: the first user to open one is signed in,
/// so readers of the record must not see it.
fn recorded_message(fault: &Fault) -> String {
    let is_sign_in = matches!(fault.kind, FaultKind::SignInNeeded | FaultKind::UrlElicitationRequired);
    if fault.kind == FaultKind::InvalidArguments {
        // What is wrong with them is in the ruling that says so, which not every reader of decisions sees.
        return "the arguments do not fit the schema of the tool".to_owned();
    }
    if !is_sign_in {
        return fault.message.clone();
    }
    let words = fault.message.split(' ').map(|word| if word.starts_with("http") { "[address]" } else { word });
    words.collect::<Vec<_>>().join(" ")
}
