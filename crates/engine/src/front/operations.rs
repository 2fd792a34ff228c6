//! Rounds of one call of the new era. A round is matched to its call, and its questions and answers are judged.

use super::judging::InstantVerdict;
use super::params::Params;
use super::{Context, FrontMachine};
use crate::chain::{Phase, Verdict};
use crate::command::Command;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use crate::operations::{OperationRound, StateOrigin, StateSubject};
use signalbox_wire::{Edits, Envelope, RawId, Span, builder, json};

/// Returns true for a result that asks the client for more input.
pub(super) fn asks_for_input(message: &Envelope) -> bool {
    message.result_member("resultType").is_some_and(|span| span.of(message.bytes()) == b"\"input_required\"")
}

impl FrontMachine {
    /// Finds the call that a request continues. A request that repeats a used state becomes a call of its own.
    ///
    /// # Errors
    /// Returns a fault if the state was given to another caller.
    pub(super) fn place_round(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        params: &Params,
        ctx: &Context<'_>,
    ) -> Result<(), Fault> {
        let Some(state) = params.state.map(|span| span.of(message.bytes())) else { return Ok(()) };
        let Some(exchange) = self.exchanges.get_mut(&id) else { return Ok(()) };
        let named = params.name.or(params.uri).and_then(|span| json::string(span.of(message.bytes())));
        let name = named.as_deref().unwrap_or_default();
        let subject = StateSubject { method: message.method().unwrap_or_default(), name };
        match ctx.operations.take(exchange.caller.principal(), state, subject) {
            StateOrigin::Fresh(place) => {
                exchange.operation = place.operation;
                exchange.round = place.round.saturating_add(1);
                exchange.consulted = place.consulted;
                Ok(())
            }
            StateOrigin::Spent | StateOrigin::Unknown => Ok(()),
            StateOrigin::Foreign => {
                let text = "params.requestState was not given to this caller by this gateway, or was changed";
                Err(Fault::new(FaultKind::InvalidParams, text))
            }
        }
    }

    /// Remembers the state with which the client will repeat the call.
    pub(super) fn note_round(&self, id: ExchangeId, answer: &bytes::Bytes, ctx: &Context<'_>) {
        let Some(exchange) = self.exchanges.get(&id).filter(|exchange| exchange.asks) else { return };
        let Ok(message) = Envelope::parse(answer.clone()) else { return };
        if let Some(state) = message.result_member("requestState").filter(|_| asks_for_input(&message)) {
            let (operation, round, consulted) = (exchange.operation, exchange.round, exchange.consulted);
            let place = OperationRound { operation, round, consulted };
            let name = exchange.asked_name.as_deref().or(exchange.subject.as_deref()).unwrap_or_default();
            let subject = StateSubject { method: &exchange.method, name };
            ctx.operations.note(exchange.caller.principal(), state.of(message.bytes()), subject, place);
        }
    }

    /// Judges each question in a result. If one is refused, the call ends.
    pub(super) fn judge_questions(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Option<Envelope> {
        // The questions of a task are in the answer to `tasks/get`.
        let asks = asks_for_input(&message) || self.exchanges.task_subject(id).is_some();
        if !ctx.chain.looks_at(Phase::ServerAsks) || !asks {
            return Some(message);
        }
        match message.result_member("inputRequests") {
            Some(whole) => self.judge_parts(id, message, Phase::ServerAsks, whole, ctx, out),
            None => Some(message),
        }
    }

    /// Judges each answer in a request of the new era. If one is refused, the call ends.
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
        match Params::read(&message).responses {
            Some(whole) => self.judge_parts(id, message, Phase::ClientAnswers, whole, ctx, out),
            None => Some(message),
        }
    }

    /// Judges each member of the object at `whole` as if it were a message of its own. A member that cannot be read as
    /// one ends the call, because the interceptors could not judge it.
    fn judge_parts(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        phase: Phase,
        whole: Span,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Option<Envelope> {
        let object = whole.of(message.bytes());
        let mut edits = Edits::new();
        for member in json::members(object) {
            let Some(part) = Part::read(phase, member.value.of(object)) else {
                self.fail(id, &unreadable(phase), ctx, out);
                return None;
            };
            let place = part.place.map(|span| span.shift(whole.start + member.value.start));
            match (self.consult_at_once(phase, (Some(id), None), &part.message, ctx, out), place) {
                (InstantVerdict::Pass(judged), Some(place)) if judged.bytes() != part.message.bytes() => {
                    edits.replace(place, part.changed(&judged));
                }
                (InstantVerdict::Pass(_), _) => {}
                (InstantVerdict::Answered(result), Some(place)) if phase == Phase::ClientAnswers => {
                    edits.replace(place, result)
                }
                (end, _) => {
                    self.end_by(id, call_verdict(end), ctx, out);
                    return None;
                }
            }
        }
        if edits.is_empty() {
            return Some(message);
        }
        let changed = Envelope::parse(edits.apply(message.bytes())).ok();
        if changed.is_none() {
            self.fail(id, &unreadable(phase), ctx, out);
        }
        changed
    }
}

/// Question or answer inside another message.
struct Part {
    message: Envelope,
    /// Span that interceptors may change; `None` if the member was omitted.
    place: Option<Span>,
}

impl Part {
    fn read(phase: Phase, raw: &[u8]) -> Option<Self> {
        let id = RawId::number(0);
        if phase == Phase::ClientAnswers {
            let message = Envelope::parse(builder::response(&id, raw)).ok()?;
            return Some(Self { message, place: Some(Span::new(0, raw.len())) });
        }
        let name = json::string(json::member(raw, "method")?.of(raw))?;
        let place = json::member(raw, "params");
        let params = place.map_or(&b"{}"[..], |span| span.of(raw));
        let message = Envelope::parse(builder::RequestBuilder::new(&name).id(id).params_raw(params).build()).ok()?;
        Some(Self { message, place })
    }

    fn changed<'a>(&self, judged: &'a Envelope) -> &'a [u8] {
        judged.params().or_else(|| judged.result()).unwrap_or(b"{}")
    }
}

fn unreadable(phase: Phase) -> Fault {
    match phase {
        Phase::ClientAnswers => {
            Fault::new(FaultKind::InvalidParams, "params.inputResponses holds something that is not an answer")
        }
        _ => Fault::new(FaultKind::BackendGarbage, "the backend asks something that is not a question"),
    }
}

/// Converts the verdict on a part of a call into the verdict on the call.
pub(super) fn call_verdict(verdict: InstantVerdict) -> Verdict {
    match verdict {
        InstantVerdict::Pass(message) => Verdict::Modify(message),
        InstantVerdict::Answered(result) => Verdict::Reply(result),
        InstantVerdict::Failed(error) => Verdict::Error(error),
        InstantVerdict::Refused(fault) => Verdict::Refuse(fault),
    }
}
