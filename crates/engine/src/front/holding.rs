//! Messages held by an interceptor, and how they continue once its question is answered.

use super::exchanges::Stage;
use super::judging::{ClearedRequest, ClientMessage};
use super::params::Params;
use super::requests::Search;
use super::sending::Delivery;
use super::{Context, FrontMachine};
use crate::chain::{ConsentOf, Hold, HoldAnswer, HoldQuestion, HoldResponse, Phase, Resume};
use crate::command::{Command, MessageOnHold};
use crate::fact::Outcome;
use crate::keys::ExchangeId;
use crate::profile::ClientProfile;
use signalbox_wire::{Envelope, Era, builder, method};
use std::sync::Arc;

/// Next step for a message after the interceptors pass it.
#[derive(Clone, Debug)]
pub(super) enum Continuation {
    /// Route the request to a backend.
    Route(Arc<ClientProfile>),
    /// Answer a list from the catalog.
    List,
    /// Answer the request in the gateway.
    Here,
    /// Send the answer to the client.
    Answer {
        /// HTTP status of the answer.
        status: u16,
        /// Outcome to record for the exchange.
        outcome: Outcome,
        /// True if the answer is the gateway's own.
        own: bool,
    },
    /// Put the result of a task's call back into the answer that carries it.
    Within {
        /// Answer that carries the result.
        whole: Envelope,
        /// Next step for that answer.
        then: Box<Continuation>,
    },
}

impl Continuation {
    /// Adapts the step to a modified answer. The backend's status is kept only if the error is the same.
    pub(super) fn changed(self, before: &Envelope, message: &Envelope, era: Era) -> Self {
        use super::answers::error_code;
        match self {
            Self::Answer { status, own, .. } => {
                let given = Some(status).filter(|_| error_code(before) == error_code(message));
                let status = super::answers::http_status(era, message, message.bytes(), given);
                Self::Answer { status, outcome: Outcome::of(message), own }
            }
            other => other,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        match self {
            Self::Answer { own: true, .. } => Phase::FromGateway,
            Self::Answer { .. } | Self::Within { .. } => Phase::Response,
            Self::Here => Phase::ToGateway,
            Self::Route(_) | Self::List => Phase::Request,
        }
    }
}

/// Request or answer held by an interceptor.
#[derive(Debug)]
pub(super) struct SuspendedWalk {
    message: Envelope,
    then: Continuation,
    /// Number of interceptors that let the message pass before the hold.
    passed: usize,
    /// Position of the interceptor that holds it.
    cursor: u32,
    /// True if a person or a webhook decides.
    asks: bool,
}

impl FrontMachine {
    #[allow(clippy::too_many_arguments, reason = "the parts of a message that waits, each needed once")]
    pub(super) fn hold(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        then: Continuation,
        hold: Hold,
        passed: usize,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let as_call = matches!(then, Continuation::Within { .. }).then(|| self.as_call(id)).flatten();
        let Some(exchange) = as_call.as_ref().or_else(|| self.exchanges.get(&id)) else { return };
        let message = hold.message.unwrap_or(message);
        let held = MessageOnHold {
            phase: then.phase(),
            method: exchange.method.clone(),
            subject: exchange.subject.clone(),
            own_name: exchange.own_name.clone(),
            backend: exchange.backend.clone(),
            caller: exchange.caller.clone(),
            since: ctx.now,
            message: message.bytes().clone(),
            gives_progress: exchange.progress_token.is_some(),
        };
        let asks = hold.question.asks();
        let waiting = SuspendedWalk { message, then, passed, cursor: hold.cursor, asks };
        self.exchanges.enter(id, Stage::Held(Box::new(waiting)));
        match hold.question {
            HoldQuestion::Consent(consent) if consent.of != ConsentOf::Approver => {
                self.ask_caller(id, consent, Box::new(held), ctx, out);
            }
            question => out.push(Command::Consult { exchange: id, question, held: Box::new(held) }),
        }
    }

    /// Resumes the chain at the interceptor that asked, with the answer to its question.
    pub(super) fn resume_held(
        &mut self,
        id: ExchangeId,
        answer: &HoldAnswer,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(held) = self.exchanges.take_held(id) else { return };
        let told = HoldResponse { cursor: held.cursor, answer };
        let resume = Some(Resume { passed: held.passed, told });
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.consulted |= held.asks;
        }
        match held.then {
            Continuation::Within { whole, then } => {
                self.judge_task_result(id, held.message, whole, *then, resume, ctx, out);
            }
            then @ Continuation::Answer { .. } => self.judge_message(id, held.message, then, resume, ctx, out),
            then => self.judge_request(id, held.message, then, resume, ctx, out),
        }
    }

    /// Carries out the next step of a request that passed.
    pub(super) fn proceed(
        &mut self,
        id: ExchangeId,
        cleared: ClearedRequest,
        then: Continuation,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let message = cleared.message();
        match then {
            Continuation::Route(client) => {
                let params = Params::read(message);
                match self.find(id, message, &params, Search::BehindSignIn, ctx) {
                    Ok(found) => {
                        // The interceptors may have turned it into a request for another entry, which has not been
                        // judged yet.
                        let moved = self.update_route(id, message, &params, &found);
                        self.note_completed_template(id, message, &found.route.name);
                        let goes_on = (!moved || self.judge_changed(id, message, ctx, out))
                            && self.judge_completion(id, message, ctx, out);
                        if goes_on {
                            self.forward(id, cleared, &params, found, client, ctx, out);
                            self.send_copies(id, ctx, out);
                        }
                    }
                    Err(fault) => self.fail(id, &fault, ctx, out),
                }
            }
            Continuation::List => {
                self.send_copies(id, ctx, out);
                self.list(id, message, ctx, out);
            }
            Continuation::Here => {
                self.send_copies(id, ctx, out);
                self.answer_here(id, message, ctx, out);
            }
            // Answers continue where they were judged.
            Continuation::Answer { .. } | Continuation::Within { .. } => {}
        }
    }

    /// Reports progress to a client whose call is held, so that it does not time out.
    pub(super) fn report_hold(&mut self, id: ExchangeId, text: &str, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if !self.exchanges.stage(id).is_some_and(Stage::is_held) {
            return;
        }
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(token) = exchange.progress_token.as_ref().filter(|_| exchange.stream_open) else { return };
        // Whole seconds, and more than the last time: progress may only grow.
        let seconds = ctx.now.saturating_duration_since(exchange.started).as_secs();
        exchange.held_progress = seconds.max(exchange.held_progress + 1);
        let bytes = builder::Notification::new(method::PROGRESS)
            .param_raw("progressToken", token.token())
            .param_raw("progress", exchange.held_progress.to_string())
            .param_str("message", text)
            .build();
        let way = Delivery::droppable(exchange.stream);
        self.send(Some(id), way, ClientMessage::own(bytes), ctx, out);
    }
}

impl HoldQuestion {
    /// Returns true if a person or a webhook decides.
    fn asks(&self) -> bool {
        !matches!(self, Self::Pause(_) | Self::Work(_))
    }

    /// Returns the word for this question in recorded decisions.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pause(_) => "pause",
            Self::Person { .. } | Self::Consent(_) => "person",
            Self::Webhook { .. } => "webhook",
            Self::Work(_) => "work",
        }
    }
}
