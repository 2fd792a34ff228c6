//! Rounds of one call of the new era: told apart from new calls, judged for what they ask and answer.

use super::judging::Spoken;
use super::params::Params;
use super::{Context, FrontMachine};
use crate::chain::{Phase, Verdict};
use crate::command::Command;
use crate::fault::Fault;
use crate::keys::ExchangeId;
use crate::operations::Place;
use signalbox_wire::{Edits, Envelope, RawId, builder, json};

/// True for a result that asks the client for more.
pub(super) fn asks_for_input(message: &Envelope) -> bool {
    message.result_member("resultType").is_some_and(|span| span.of(message.bytes()) == b"\"input_required\"")
}

impl FrontMachine {
    /// Finds the call that a request goes on with.
    pub(super) fn place_round(&mut self, id: ExchangeId, message: &Envelope, params: &Params, ctx: &Context<'_>) {
        let Some(state) = params.state.map(|span| span.of(message.bytes())) else { return };
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if let Some(place) = ctx.operations.find(exchange.caller.principal(), state) {
            exchange.operation = place.operation;
            exchange.round = place.round.saturating_add(1);
            exchange.consulted = place.consulted;
        }
    }

    /// Remembers what the client will come back with.
    pub(super) fn note_round(&self, id: ExchangeId, answer: &bytes::Bytes, ctx: &Context<'_>) {
        let Some(exchange) = self.exchanges.get(&id).filter(|exchange| exchange.asks) else { return };
        let Ok(message) = Envelope::parse(answer.clone()) else { return };
        if let Some(state) = message.result_member("requestState").filter(|_| asks_for_input(&message)) {
            let (operation, round, consulted) = (exchange.operation, exchange.round, exchange.consulted);
            let place = Place { operation, round, consulted };
            ctx.operations.note(exchange.caller.principal(), state.of(message.bytes()), place);
        }
    }

    /// Asks the interceptors about each question in a result that asks for input. Where one may not be asked, the call is
    /// over.
    pub(super) fn judge_questions(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Option<Envelope> {
        if !ctx.chain.looks_at(Phase::ServerAsks) || !asks_for_input(&message) {
            return Some(message);
        }
        let Some(whole) = message.result_member("inputRequests") else { return Some(message) };
        let object = whole.of(message.bytes());
        let mut edits = Edits::new();
        for member in json::members(object) {
            let request = member.value.of(object);
            let part = |name: &str| json::member(request, name).map(|span| span.of(request));
            let Some(name) = part("method").and_then(json::string) else { continue };
            let params = part("params").unwrap_or(b"{}");
            let question = builder::Request::new(&name).id(RawId::number(0)).params_raw(params).build();
            let Ok(question) = Envelope::parse(question) else { continue };
            match self.consult_at_once(Phase::ServerAsks, (Some(id), None), &question, ctx, out) {
                Spoken::Goes(judged) => {
                    let span = json::member(request, "params").map(|span| span.shift(whole.start + member.value.start));
                    if let (Some(span), Some(params)) = (span, judged.params().filter(|new| *new != params)) {
                        edits.replace(span, params);
                    }
                }
                end => {
                    self.end_by(id, ended(end), ctx, out);
                    return None;
                }
            }
        }
        if edits.is_empty() {
            return Some(message);
        }
        Envelope::parse(edits.apply(message.bytes())).ok()
    }

    /// Asks the interceptors about each answer that a request of the new era carries. Where one may not be given, the call
    /// is over.
    pub(super) fn judge_responses(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Option<Envelope> {
        if !ctx.chain.looks_at(Phase::ClientAnswers) {
            return Some(message);
        }
        let Some(whole) = Params::read(&message).responses else { return Some(message) };
        let object = whole.of(message.bytes());
        let mut edits = Edits::new();
        for member in json::members(object) {
            let result = member.value.of(object);
            let Ok(answer) = Envelope::parse(builder::response(&RawId::number(0), result)) else { continue };
            match self.consult_at_once(Phase::ClientAnswers, (Some(id), None), &answer, ctx, out) {
                Spoken::Goes(judged) => {
                    if let Some(judged) = judged.result().filter(|new| *new != result) {
                        edits.replace(member.value.shift(whole.start), judged);
                    }
                }
                Spoken::Answered(result) => edits.replace(member.value.shift(whole.start), result),
                end => {
                    self.end_by(id, ended(end), ctx, out);
                    return None;
                }
            }
        }
        if edits.is_empty() {
            return Some(message);
        }
        Envelope::parse(edits.apply(message.bytes())).ok()
    }
}

/// How a call ends of which a part may not go on.
pub(super) fn ended(spoken: Spoken) -> Verdict {
    match spoken {
        Spoken::Goes(message) => Verdict::Modify(message),
        Spoken::Answered(result) => Verdict::Reply(result),
        Spoken::Failed(error) => Verdict::Error(error),
        Spoken::Refused(fault) => Verdict::Refuse(Fault { ..fault }),
    }
}
