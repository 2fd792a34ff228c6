//! The interceptors' say over every message: how they are asked, and how their verdict on a request, an answer or a
//! notification is carried out. Questions of a backend are part of its answer, and what the client says to them is part of a
//! request.

use super::holding::Then;
use super::rounds::refit;
use super::{Context, FrontMachine};
use crate::bridge::made_up;
use crate::chain::{Answer, Case, Effect, Outcome as Judged, Phase, Resume, Resumed, Rulings, Verdict};
use crate::command::Command;
use crate::exchange::Call;
use crate::fact::{Decision, Fact, Outcome};
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use crate::profile::ClientProfile;
use bytes::Bytes;
use signalbox_wire::{Envelope, Era, RawId, builder, method};
use std::sync::Arc;

/// How often one message that cannot wait may be wanted held.
const MAX_HOLDS: usize = 1100;

/// What a message that is judged belongs to.
pub(super) struct About<'a> {
    phase: Phase,
    exchange: Option<ExchangeId>,
    backend: Option<&'a str>,
    can_wait: bool,
}

impl About<'_> {
    /// A request or an answer as a whole, which can be held.
    fn whole(phase: Phase, exchange: ExchangeId) -> Self {
        Self { phase, exchange: Some(exchange), backend: None, can_wait: true }
    }
}

impl FrontMachine {
    /// Asks the interceptors about a message, writes down what they decided, and has done what they want done besides.
    pub(super) fn consult(
        &self,
        about: About<'_>,
        message: &Envelope,
        resume: Option<Resume<'_>>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Judged {
        let About { phase, exchange: id, backend, can_wait } = about;
        let exchange = id.and_then(|id| self.exchanges.get(&id));
        let client = exchange.and_then(|exchange| exchange.client.as_ref()).or(self.client.as_ref());
        let case = Case {
            phase,
            message,
            exchange,
            caller: exchange.map_or(&self.caller, |exchange| &exchange.caller),
            session: ctx.session,
            session_started: ctx.session_started,
            revision: client.map(|client| client.revision.as_str()),
            backend: backend.or_else(|| exchange.and_then(|exchange| exchange.backend.as_deref())),
            definition: None,
            attempt: 1,
            round: exchange.map_or(1, |exchange| exchange.round),
            can_wait,
            now: ctx.now,
            unix_ms: (ctx.unix_ms)(),
        };
        let mut judged = ctx.chain.judge(&case, resume);
        if !judged.effects.is_empty() {
            carry_out(std::mem::take(&mut judged.effects), id, client, ctx, out);
        }
        if !judged.rulings.is_empty() {
            self.decided(id, phase.word(), std::mem::take(&mut judged.rulings), ctx, out);
        }
        judged
    }

    /// Writes down what was decided, where somebody keeps what happens. What follows at once from a decision about the same
    /// message is written down with it.
    pub(super) fn decided(
        &self,
        exchange: Option<ExchangeId>,
        phase: &'static str,
        rulings: impl IntoIterator<Item = (&'static str, Rulings)>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if ctx.message_facts {
            if let Some(Command::Fact(Fact::Decision(last))) = out.last_mut()
                && last.exchange == exchange
                && last.phase == phase
                && let Some(last) = Arc::get_mut(last)
            {
                return last.rulings.extend(rulings);
            }
            out.push(Command::Fact(Fact::Decision(Arc::new(Decision {
                at: ctx.now,
                session: self.session,
                caller: self.caller_of(exchange).clone(),
                exchange,
                phase,
                rulings: rulings.into_iter().collect(),
            }))));
        }
    }

    /// Asks about a request that is to be routed, and brings it to its backend, its answer or its refusal.
    pub(super) fn judge_request(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        then: Then,
        resume: Option<Resume<'_>>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let judged = self.consult(About::whole(Phase::Request, id), &message, resume, ctx, out);
        match judged.verdict {
            Verdict::Pass => self.go_on(id, message, then, ctx, out),
            Verdict::Modify(message) => self.go_on(id, message, then, ctx, out),
            Verdict::Hold(hold) => self.hold(id, message, then, hold, judged.passed, ctx, out),
            end => self.end_by(id, end, ctx, out),
        }
    }

    /// Asks about an answer as the client would get it, and sends what they make of it.
    pub(super) fn judge_answer(
        &mut self,
        id: ExchangeId,
        bytes: Bytes,
        status: u16,
        outcome: Outcome,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if !ctx.chain.looks_at(Phase::Response) {
            return self.finish(id, bytes, status, outcome, ctx, out);
        }
        match Envelope::parse(bytes) {
            Ok(message) => self.judge_message(id, message, Then::Answer { status, outcome }, None, ctx, out),
            Err(_) => self.fail(id, &Fault::new(FaultKind::Internal, "the answer is no message"), ctx, out),
        }
    }

    pub(super) fn judge_message(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        then: Then,
        resume: Option<Resume<'_>>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let judged = self.consult(About::whole(Phase::Response, id), &message, resume, ctx, out);
        match judged.verdict {
            Verdict::Pass => self.go_on(id, message, then, ctx, out),
            Verdict::Modify(message) => {
                let then = then.with_outcome(super::answers::outcome(&message));
                self.go_on(id, message, then, ctx, out);
            }
            Verdict::Hold(hold) => self.hold(id, message, then, hold, judged.passed, ctx, out),
            end => self.end_by(id, end, ctx, out),
        }
    }

    /// Ends an exchange as the interceptors want it.
    fn end_by(&mut self, id: ExchangeId, verdict: Verdict, ctx: &Context<'_>, out: &mut Vec<Command>) {
        self.inquiry_over(id, out);
        self.give_task_up(id, out);
        match verdict {
            Verdict::Reply(result) => {
                let result = self.fitted(id, result);
                self.reply(id, &result, ctx, out);
            }
            Verdict::Error(error) => self.reply_error(id, &error, ctx, out),
            Verdict::Refuse(fault) => self.fail(id, &fault, ctx, out),
            Verdict::Pass | Verdict::Modify(_) | Verdict::Hold(_) => {}
        }
    }

    /// A result that no backend gave, as the revision of the client has it.
    fn fitted(&self, id: ExchangeId, result: Bytes) -> Bytes {
        match self.exchanges.get(&id) {
            Some(exchange) if exchange.era == Era::Modern => made_up::complete(&exchange.method, &result),
            _ => result,
        }
    }

    fn reply_error(&mut self, id: ExchangeId, error: &[u8], ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let bytes = error_message(&exchange.client_id, error);
        self.finish(id, bytes, 200, Outcome::Fault("rule_error"), ctx, out);
    }

    /// What is left of a notification: as it is, as the interceptors made it, or nothing.
    pub(super) fn judge_notification(
        &self,
        phase: Phase,
        about: (Option<ExchangeId>, Option<&str>),
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Option<Envelope> {
        if ctx.chain.is_idle() {
            return Some(message.clone());
        }
        match self.consult_at_once(phase, about, message, ctx, out) {
            Verdict::Modify(message) => Some(message),
            Verdict::Error(_) | Verdict::Refuse(_) => {
                out.push(Command::Dropped("refused_notification"));
                None
            }
            Verdict::Pass | Verdict::Reply(_) | Verdict::Hold(_) => Some(message.clone()),
        }
    }

    /// Asks about a message that cannot wait. Whoever wants to hold it is told to go on, so that those behind are asked too.
    fn consult_at_once(
        &self,
        phase: Phase,
        about: (Option<ExchangeId>, Option<&str>),
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Verdict {
        let go_on = Answer::GoOn { by: None };
        let (mut changed, mut resume) = (None, None);
        for _ in 0..MAX_HOLDS {
            let current = changed.as_ref().unwrap_or(message);
            let (exchange, backend) = about;
            let about = About { phase, exchange, backend, can_wait: false };
            let judged = self.consult(about, current, resume, ctx, out);
            match judged.verdict {
                Verdict::Hold(hold) => {
                    resume =
                        Some(Resume { passed: judged.passed, told: Resumed { cursor: hold.cursor, answer: &go_on } });
                    changed = hold.message.or(changed);
                }
                Verdict::Pass => return changed.map_or(Verdict::Pass, Verdict::Modify),
                end => return end,
            }
        }
        Verdict::Refuse(Fault::new(
            FaultKind::Internal,
            "too many interceptors want to hold a message that cannot wait",
        ))
    }

    /// Asks about what comes in the middle of a call, which does not wait: it was, or will be, held as a whole.
    pub(super) fn judge_midway(
        &mut self,
        id: ExchangeId,
        phase: Phase,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Option<Envelope> {
        if !self.exchanges.contains_key(&id) {
            return None;
        }
        if ctx.chain.is_idle() {
            return Some(message.clone());
        }
        match self.consult_at_once(phase, (Some(id), None), message, ctx, out) {
            Verdict::Pass => Some(message.clone()),
            Verdict::Modify(message) => Some(message),
            end => {
                self.end_by(id, end, ctx, out);
                None
            }
        }
    }

    /// Asks about a request that carries what the client was asked for. Where it may not go, the exchange is over.
    pub(super) fn passes(
        &mut self,
        id: ExchangeId,
        call: &mut Call,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> bool {
        let Some(message) = self.judge_midway(id, Phase::Request, &call.envelope, ctx, out) else { return false };
        if message.bytes() != call.envelope.bytes() {
            let name = self.exchanges.get(&id).and_then(|exchange| exchange.subject.clone());
            refit(call, message, name.as_deref());
        }
        true
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
        match Envelope::parse(builder::response(&exchange.client_id, result)) {
            Ok(message) => {
                if let Some(message) = self.judge_midway(id, Phase::Response, &message, ctx, out) {
                    return self.finish(id, message.bytes().clone(), 200, Outcome::Ok, ctx, out);
                }
            }
            Err(_) => {
                let fault = Fault::new(FaultKind::Internal, "the questions of the backend are no message");
                self.fail(id, &fault, ctx, out);
            }
        }
        out.extend(park.map(|park| Command::GiveUp { park }));
    }
}

/// Has done what interceptors want done besides.
fn carry_out(
    effects: Vec<Effect>,
    exchange: Option<ExchangeId>,
    client: Option<&Arc<ClientProfile>>,
    ctx: &Context<'_>,
    out: &mut Vec<Command>,
) {
    let is_fork = |effect: &Effect| matches!(effect, Effect::Fork { .. });
    if !effects.iter().any(is_fork) {
        return out.push(Command::Effects(effects));
    }
    let (forks, others): (Vec<_>, Vec<_>) = effects.into_iter().partition(is_fork);
    for effect in forks {
        if let (Effect::Fork { backend, message }, Some(client)) = (effect, client) {
            out.extend(fork(backend, message, exchange, client, ctx));
        }
    }
    if !others.is_empty() {
        out.push(Command::Effects(others));
    }
}

fn fork(
    backend: Arc<str>,
    message: Envelope,
    exchange: Option<ExchangeId>,
    client: &Arc<ClientProfile>,
    ctx: &Context<'_>,
) -> Option<Command> {
    let mut call = Call::copy_of(message, Arc::clone(client))?;
    let subject = call.name.clone().unwrap_or_default();
    let route = match &*call.method {
        method::TOOLS_CALL => ctx.catalog.tool(&subject),
        method::PROMPTS_GET => ctx.catalog.prompt(&subject),
        method::RESOURCES_READ => ctx.catalog.resource(&subject),
        _ => None,
    };
    // Another backend knows the subject by the name it has at its own, not by the one that clients see.
    if let Some(route) = route.filter(|route| route.renamed) {
        call.name = Some(route.name);
        let message = call.envelope.clone();
        refit(&mut call, message, Some(&subject));
    }
    Some(Command::Fork { exchange, backend, call: Box::new(call) })
}

fn error_message(id: &RawId, error: &[u8]) -> Bytes {
    let mut bytes = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    bytes.extend_from_slice(id.token());
    bytes.extend_from_slice(br#","error":"#);
    bytes.extend_from_slice(error);
    bytes.push(b'}');
    bytes.into()
}
