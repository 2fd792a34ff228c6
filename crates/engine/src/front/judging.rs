//! Judging: every message is shown to the interceptors, and their verdict on a request, an answer or a notification is
//! carried out. Questions of a backend are judged as part of its answer, and the client's answers as part of a request.

mod at_once;
mod authorized_call;
mod client_message;
mod completing;
mod following;
mod shown_questions;

pub(super) use at_once::InstantVerdict;
pub use authorized_call::{AuthorizedCall, AuthorizedFollow};
pub(super) use authorized_call::{ClearedRequest, IdleChain};
pub(super) use client_message::ClientMessage;
pub(super) use completing::Reads;

use super::effects::{copied_call, run_effects};
use super::holding::Continuation;
use super::rounds::refit;
use super::{Context, FrontMachine, Lifecycle};
use crate::bridge;
use crate::chain::consent;
use crate::chain::{Case, ChainJudgement, Effect, Phase, Resume, Rulings, Verdict};
use crate::command::Command;
use crate::exchange::{Call, Exchange};
use crate::fact::{Decision, Fact, Outcome};
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use bytes::Bytes;
use signalbox_wire::{Envelope, Era, RawId, builder, method};
use std::sync::Arc;

/// Interceptors that judge a message.
#[derive(Copy, Clone, PartialEq, Eq)]
enum InterceptorScope {
    All,
    /// Interceptors that judge requests for unknown names.
    Unknown,
    /// Interceptors that judge changed requests.
    Change,
    /// Interceptors that judge parts of requests.
    Part,
    /// Interceptors that judge replies.
    Reply,
}

/// Context of a judged message.
pub(super) struct JudgedContext<'a> {
    phase: Phase,
    exchange: Option<ExchangeId>,
    /// Request to judge in place of the exchange's own.
    instead: Option<&'a Exchange>,
    backend: Option<&'a str>,
    can_wait: bool,
    by_task: bool,
    scope: InterceptorScope,
}

impl<'a> JudgedContext<'a> {
    /// Describes a request or an answer as a whole, which can be held.
    fn whole(phase: Phase, exchange: ExchangeId) -> Self {
        let (exchange, scope) = (Some(exchange), InterceptorScope::All);
        Self { phase, exchange, instead: None, backend: None, can_wait: true, by_task: false, scope }
    }

    /// Describes a request for an entry that does not exist as far as its caller may know.
    pub(super) fn unknown(exchange: ExchangeId) -> Self {
        Self { scope: InterceptorScope::Unknown, can_wait: false, ..Self::whole(Phase::Request, exchange) }
    }

    /// Describes the result of a call that arrives through the task it created.
    pub(super) fn task_result(exchange: ExchangeId) -> Self {
        Self { by_task: true, ..Self::whole(Phase::Response, exchange) }
    }

    /// Describes a request that interceptors have turned into another one.
    fn changed(exchange: ExchangeId) -> Self {
        Self { scope: InterceptorScope::Change, can_wait: false, ..Self::whole(Phase::Request, exchange) }
    }

    /// Describes a part of the request, which is judged as `instead` would be.
    fn part(exchange: ExchangeId, instead: &'a Exchange) -> Self {
        Self { instead: Some(instead), scope: InterceptorScope::Part, ..Self::changed(exchange) }
    }
}

impl FrontMachine {
    /// Asks the interceptors about a message, records their decisions, and runs their side effects. Requested copies
    /// stay in the judgement: they are sent only if the message itself continues.
    pub(super) fn consult(
        &self,
        about: JudgedContext<'_>,
        message: &Envelope,
        resume: Option<Resume<'_>>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> ChainJudgement {
        let JudgedContext { phase, exchange: id, instead, backend, can_wait, by_task, scope } = about;
        let as_call = id.filter(|_| by_task).and_then(|id| self.as_call(id));
        let exchange = instead.or(as_call.as_ref()).or_else(|| id.and_then(|id| self.exchanges.get(&id)));
        let client = exchange.and_then(|exchange| exchange.client.as_ref()).or(self.client.as_ref());
        let case = Case {
            phase,
            message,
            exchange,
            caller: exchange.map_or(&self.caller, |exchange| &exchange.caller),
            acts_for: &self.principal,
            session: ctx.session,
            session_started: ctx.session_started,
            revision: client.map(|client| client.revision.as_str()),
            backend: backend.or_else(|| exchange.and_then(|exchange| exchange.backend.as_deref())),
            definition: exchange.and_then(|exchange| definition(exchange, ctx)),
            attempt: exchange.map_or(1, |exchange| exchange.attempt),
            round: exchange.map_or(1, |exchange| exchange.round),
            can_wait,
            by_task,
            task_tool: id.and_then(|id| self.task_tool(id)),
            now: ctx.now,
            unix_ms: (ctx.unix_ms)(),
        };
        let mut judged = match scope {
            InterceptorScope::All => ctx.chain.judge(&case, resume),
            InterceptorScope::Unknown => ctx.chain.judge_unknown(&case),
            InterceptorScope::Change => ctx.chain.judge_changed(&case),
            InterceptorScope::Part => ctx.chain.judge_part(&case),
            InterceptorScope::Reply => ctx.chain.judge_reply(&case),
        };
        if !judged.effects.is_empty() {
            let effects = std::mem::take(&mut judged.effects);
            if !is_repeated(&case) {
                judged.effects = run_effects(effects, out);
            }
        }
        if !judged.rulings.is_empty() {
            let word = if by_task { "task result" } else { phase.word() };
            self.decided(id, word, std::mem::take(&mut judged.rulings), ctx, out);
        }
        judged
    }

    /// Records decisions, if facts are recorded. Consecutive decisions about the same message are merged.
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

    /// Judges a request, and routes, answers, holds or refuses it.
    pub(super) fn judge_request(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        then: Continuation,
        resume: Option<Resume<'_>>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let phase = then.phase();
        if resume.is_none() && !ctx.chain.looks_at(phase) {
            return self.proceed(id, ClearedRequest::judged(message), then, ctx, out);
        }
        let judged = self.consult(JudgedContext::whole(phase, id), &message, resume, ctx, out);
        self.keep_copies(id, judged.effects);
        match judged.verdict {
            Verdict::Pass => self.proceed(id, ClearedRequest::judged(message), then, ctx, out),
            Verdict::Modify(message) => self.proceed(id, ClearedRequest::judged(message), then, ctx, out),
            Verdict::Hold(hold) => self.hold(id, message, then, hold, judged.passed, ctx, out),
            end => {
                if matches!(end, Verdict::Reply(_)) {
                    self.send_copies(id, ctx, out);
                }
                self.end_by(id, end, ctx, out);
            }
        }
    }

    /// Judges a request again after interceptors turned it into one for another entry. Returns false if it was refused,
    /// which ends it.
    pub(super) fn judge_changed(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> bool {
        match self.consult(JudgedContext::changed(id), message, None, ctx, out).verdict {
            Verdict::Pass => true,
            end => {
                self.end_by(id, end, ctx, out);
                false
            }
        }
    }

    /// Judges an answer in the form the client would get, and sends the result.
    pub(super) fn judge_answer(
        &mut self,
        id: ExchangeId,
        bytes: Bytes,
        then: Continuation,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if !ctx.chain.looks_at(then.phase()) && !ctx.chain.looks_at(Phase::ServerAsks) {
            return self.answer(id, ClientMessage::judged(bytes), &then, ctx, out);
        }
        match Envelope::parse(bytes) {
            Ok(message) => match self.task_result(id, &message) {
                Some(part) => self.judge_task_result(id, part, message, then, None, ctx, out),
                None => self.judge_message(id, message, then, None, ctx, out),
            },
            Err(_) => self.fail(id, &Fault::new(FaultKind::Internal, "the answer is not a valid message"), ctx, out),
        }
    }

    pub(super) fn judge_message(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        then: Continuation,
        resume: Option<Resume<'_>>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        // The questions in a held answer were judged before it was held.
        let message = match resume {
            None => match self.judge_questions(id, message, ctx, out) {
                Some(message) => message,
                None => return,
            },
            Some(_) => message,
        };
        let judged = self.consult(JudgedContext::whole(then.phase(), id), &message, resume, ctx, out);
        match judged.verdict {
            Verdict::Pass => self.answer(id, ClientMessage::judged(message.into_bytes()), &then, ctx, out),
            Verdict::Modify(changed) => {
                let era = self.exchanges.get(&id).map_or(Era::Legacy, |exchange| exchange.era);
                let then = then.changed(&message, &changed, era);
                self.answer(id, ClientMessage::judged(changed.into_bytes()), &then, ctx, out);
            }
            Verdict::Hold(hold) => self.hold(id, message, then, hold, judged.passed, ctx, out),
            end => self.end_by(id, end, ctx, out),
        }
    }

    fn answer(
        &mut self,
        id: ExchangeId,
        passed: ClientMessage,
        then: &Continuation,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if let Some(fault) = self.withdrawn_task(id, ctx) {
            return self.fail(id, &fault, ctx, out);
        }
        if let Continuation::Answer { status, outcome, .. } = then {
            self.note_round(id, passed.bytes(), ctx);
            self.finish(id, passed, *status, *outcome, ctx, out);
        }
    }

    /// Ends an exchange by a verdict of the interceptors.
    pub(super) fn end_by(&mut self, id: ExchangeId, verdict: Verdict, ctx: &Context<'_>, out: &mut Vec<Command>) {
        self.input_over(id, ctx, out);
        self.abandon_task(id, out);
        if self.exchanges.get(&id).is_some_and(|exchange| exchange.method == method::INITIALIZE) {
            // The client was refused, and may initialize again.
            self.state = Lifecycle::Created;
            self.client = None;
        }
        match verdict {
            Verdict::Reply(result) => {
                let result = self.complete_for_client(id, result);
                let Some(exchange) = self.exchanges.get(&id) else { return };
                let reply = builder::response(&exchange.client_id, &result);
                match self.judge_reply(id, reply, ctx, out) {
                    Ok(reply) => self.finish(id, ClientMessage::judged(reply), 200, Outcome::Ok, ctx, out),
                    Err(fault) => self.fail(id, &fault, ctx, out),
                }
            }
            Verdict::Error(error) => self.reply_error(id, &error, ctx, out),
            Verdict::Refuse(fault) => self.fail(id, &fault, ctx, out),
            Verdict::Pass | Verdict::Modify(_) | Verdict::Hold(_) => {}
        }
    }

    /// Shows an interceptor's reply to the interceptors that judge replies: it may contain a backend's data, as cached
    /// results do.
    fn judge_reply(
        &self,
        id: ExchangeId,
        reply: Bytes,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<Bytes, Fault> {
        if !ctx.chain.judges_replies() {
            return Ok(reply);
        }
        let unreadable = |_| Fault::new(FaultKind::Refused, "a rule gave a result that cannot be read");
        let message = Envelope::parse(reply.clone()).map_err(unreadable)?;
        let about = JudgedContext {
            scope: InterceptorScope::Reply,
            can_wait: false,
            ..JudgedContext::whole(Phase::Response, id)
        };
        match self.consult(about, &message, None, ctx, out).verdict {
            Verdict::Pass => Ok(reply),
            Verdict::Modify(message) => Ok(message.into_bytes()),
            Verdict::Refuse(fault) => Err(fault),
            _ => Err(Fault::new(FaultKind::Refused, "a result was withheld")),
        }
    }

    /// Completes an interceptor's result for the client's revision.
    fn complete_for_client(&self, id: ExchangeId, result: Bytes) -> Bytes {
        match self.exchanges.get(&id) {
            Some(exchange) if exchange.era == Era::Modern => bridge::complete_result(&exchange.method, &result),
            _ => result,
        }
    }

    fn reply_error(&mut self, id: ExchangeId, error: &[u8], ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let passed = ClientMessage::judged(error_message(&exchange.client_id, error));
        self.finish(id, passed, 200, Outcome::Fault("rule_error"), ctx, out);
    }

    /// Judges a notification. Returns it as the interceptors pass it.
    ///
    /// # Errors
    /// If they drop it.
    pub(super) fn judge_notification(
        &self,
        phase: Phase,
        about: (Option<ExchangeId>, Option<&str>),
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<Envelope, Fault> {
        if !ctx.chain.looks_at(phase) {
            return Ok(message.clone());
        }
        match self.consult_at_once(phase, about, message, ctx, out) {
            InstantVerdict::Pass(message) => Ok(message),
            InstantVerdict::Answered(_) => Ok(message.clone()),
            InstantVerdict::Refused(_) | InstantVerdict::Failed(_) if is_vital(message) => Ok(message.clone()),
            InstantVerdict::Refused(fault) => Err(fault),
            InstantVerdict::Failed(_) => Err(Fault::new(FaultKind::Refused, "a rule answered with an error")),
        }
    }

    /// Wraps a backend's notification that passed [`Self::judge_notification`], ready to be sent.
    pub(super) fn passed(message: &Envelope) -> ClientMessage {
        ClientMessage::judged(message.bytes().clone())
    }

    /// Judges a call that continues with the client's input or after a wait. If it is refused, the exchange ends.
    pub(super) fn judge_call(
        &mut self,
        id: ExchangeId,
        mut call: Box<Call>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Option<AuthorizedCall> {
        let message = self.judge_midway(id, Phase::Request, &call.envelope, ctx, out)?;
        if message.bytes() != call.envelope.bytes() {
            let name = self.exchanges.get(&id).and_then(|exchange| exchange.subject.clone());
            refit(&mut call, message, name.as_deref());
        }
        Some(AuthorizedCall::judged(call))
    }

    /// Judges a request that the gateway answers or translates itself. If it is refused, the exchange ends.
    pub(super) fn judge_here(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Option<ClearedRequest> {
        self.judge_midway(id, Phase::Request, message, ctx, out)?;
        Some(ClearedRequest::judged(message.clone()))
    }

    /// Sends copies of a request that continues.
    pub(super) fn copy(&self, id: Option<ExchangeId>, copies: Vec<Effect>, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let exchange = id.and_then(|id| self.exchanges.get(&id));
        let client = exchange.and_then(|exchange| exchange.client.as_ref()).or(self.client.as_ref());
        for effect in copies {
            if let (Effect::Fork { backend, message }, Some(client)) = (effect, client)
                && let Some(call) = copied_call(message, client, ctx)
            {
                let call = AuthorizedCall::judged(Box::new(call));
                out.push(Command::Fork { exchange: id, backend, call });
            }
        }
    }
}

/// Word that the metrics count refused notifications under.
pub(super) const REFUSED_NOTIFICATION: &str = "refused_notification";

/// Returns true for notifications that no rule may drop: without them a session never begins, or a request never ends.
fn is_vital(message: &Envelope) -> bool {
    matches!(message.method(), Some(method::CANCELLED | method::INITIALIZED))
}

/// Returns the definition of the tool that an exchange calls, as its backend sent it.
fn definition<'a>(exchange: &Exchange, ctx: &Context<'a>) -> Option<&'a Bytes> {
    let (tool, backend) = (exchange.subject.as_deref()?, exchange.backend.as_deref()?);
    (exchange.method == method::TOOLS_CALL).then(|| ctx.catalog.definition(tool, backend, ctx.user)).flatten()
}

/// Returns true for messages of a call whose side effects have already run: a later round of a request, and an answer
/// that only asks for consent. A round that brings the consent does not count, because the call got no further without
/// it.
fn is_repeated(case: &Case<'_>) -> bool {
    match case.phase {
        Phase::Request => case.round > 1 && !consent::is_return(case.message),
        Phase::Response => super::operations::asks_for_input(case.message),
        _ => false,
    }
}

pub(super) fn error_message(id: &RawId, error: &[u8]) -> Bytes {
    let mut bytes = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    bytes.extend_from_slice(id.token());
    bytes.extend_from_slice(br#","error":"#);
    bytes.extend_from_slice(error);
    bytes.push(b'}');
    bytes.into()
}
