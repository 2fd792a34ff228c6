//! Rounds of input: a new backend answers a call with questions, and is called again with the answers of the old
//! client.

use super::exchanges::Stage;
use super::input_requests::{InputResponses, read_requests};
use super::judging::AuthorizedCall;
use super::params::Params;
use super::{Context, FrontMachine};
use crate::bridge::CallProgress;
use crate::chain::Phase;
use crate::command::Command;
use crate::exchange::Call;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Revision, json};
use std::time::Duration;

/// Delay before the next round if the backend asks nothing, multiplied by the number of the round.
const PAUSE: Duration = Duration::from_millis(200);

/// Call whose backend answered `input_required`.
#[derive(Debug)]
pub(super) struct InputRound {
    call: AuthorizedCall,
    /// The backend's `requestState`, which is returned with the answers.
    state: Option<Bytes>,
    responses: InputResponses,
    /// True if the gateway asked because of a sign-in. The backend has not seen the call.
    signs_in: bool,
}

impl InputRound {
    /// Creates the round of a call that waits until its caller has signed in.
    pub fn sign_in(call: AuthorizedCall, responses: InputResponses) -> Self {
        Self { call, state: None, responses, signs_in: true }
    }

    pub fn responses(&self) -> &InputResponses {
        &self.responses
    }

    pub fn responses_mut(&mut self) -> &mut InputResponses {
        &mut self.responses
    }
}

impl FrontMachine {
    /// Handles an answer that does not end a call, or has a form that the client does not expect.
    #[allow(clippy::too_many_arguments, reason = "the parts of an answer, each needed once")]
    pub(super) fn unfinished(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        reach: CallProgress,
        call: AuthorizedCall,
        backend: Revision,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if !self.exchanges.contains_key(&id) {
            return out.push(Command::Dropped("late_answer"));
        }
        let done = match reach {
            CallProgress::Input => self.ask(id, message, call, backend, ctx, out),
            CallProgress::Task => self.task_made(id, message, call, backend, ctx, out),
            CallProgress::Whole => self.no_task_made(id, message, &call, backend, ctx, out),
        };
        if let Err(fault) = done {
            self.fail(id, &fault, ctx, out);
        }
    }

    fn ask(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        call: AuthorizedCall,
        backend: Revision,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        if let Some(fault) = self.withdrawn_round(id, ctx) {
            return Err(fault);
        }
        let Some(message) = self.judge_midway(id, Phase::Response, message, ctx, out) else { return Ok(()) };
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            // A result that depends on one client's answers must not be cached for others.
            exchange.read = None;
        }
        let result = message.result().unwrap_or_default();
        let state = json::member(result, "requestState").map(|span| Bytes::copy_from_slice(span.of(result)));
        let wanted = match json::member(result, "inputRequests") {
            Some(span) => read_requests(&self.signed_requests(id, span.of(result), ctx)?),
            None => Vec::new(),
        };
        if wanted.is_empty() && state.is_none() {
            return Err(Fault::new(FaultKind::BackendGarbage, "the backend wants input but does not say which"));
        }
        let Some(responses) = self.ask_client(id, wanted, &call.client, backend, ctx, out)? else { return Ok(()) };
        if responses.are_complete() {
            out.push(Command::Wake { exchange: id, after: PAUSE * responses.round(), round: None });
        }
        self.exchanges
            .enter(id, Stage::AwaitingInput(Box::new(InputRound { call, state, responses, signs_in: false })));
        Ok(())
    }

    /// Handles a timer: the time limit of a round, the delay before the next round, or the poll interval of a task.
    pub(super) fn timer_fired(
        &mut self,
        id: ExchangeId,
        round: Option<u32>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if let Some(round) = round {
            return self.input_expired(id, round, ctx, out);
        }
        match self.exchanges.stage(id) {
            Some(Stage::AwaitingInput(round)) if round.responses.are_complete() => self.next_round(id, ctx, out),
            Some(Stage::PollingTask(_)) => self.poll_again(id, ctx, out),
            _ => {}
        }
    }

    /// Starts the next round, with the client's answers.
    pub(super) fn next_round(&mut self, id: ExchangeId, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(round) = self.exchanges.take_input_round(id) else { return };
        if round.signs_in {
            let answers = round.responses.to_object();
            return self.after_sign_in(id, round.call, &answers, ctx, out);
        }
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(backend) = exchange.backend.clone() else { return };
        exchange.round += 1;
        match self.repeated_call(id, round) {
            Ok(call) => {
                if let Some(call) = self.judge_call(id, call, ctx, out) {
                    out.push(Command::Forward { exchange: id, backend, call });
                }
            }
            Err(fault) => self.fail(id, &fault, ctx, out),
        }
    }

    /// Builds the call as if the client had made it with its answers, so that it is judged and translated as a whole.
    fn repeated_call(&self, id: ExchangeId, round: InputRound) -> Result<Box<Call>, Fault> {
        let bad = || Fault::new(FaultKind::Internal, "the next round of the call could not be made");
        let mut call = round.call.into_call();
        let (base, params) = (call.envelope.bytes(), call.envelope.params_span().ok_or_else(bad)?);
        let mut edits = Edits::new();
        edits.set_member(base, params, "inputResponses", &round.responses.to_object());
        match &round.state {
            Some(state) => edits.set_member(base, params, "requestState", state),
            None => edits.remove_member(base, params, "requestState"),
        }
        let message = Envelope::parse(edits.apply(base)).map_err(|_| bad())?;
        let subject = self.exchanges.get(&id).and_then(|exchange| exchange.subject.as_deref());
        refit(&mut call, message, subject);
        // Marks it as a later round, so that it is not answered from the cache.
        call.round = Params::read(&call.envelope).round();
        Ok(call)
    }
}

/// Replaces the message of a call. The new message names the subject as the client does.
pub(super) fn refit(call: &mut Call, message: Envelope, subject: Option<&str>) {
    call.envelope = message;
    call.edits = Edits::new();
    let params = Params::read(&call.envelope);
    if let (Some(span), Some(name)) = (params.name.or(params.uri), call.name.as_deref())
        && subject != Some(name)
    {
        call.edits.replace(span, json::quote(name));
    }
    call.progress = params.progress_token();
}
