//! Questions of a new backend to an old client. The client receives them as requests in the middle of its call, and its
//! answers are collected until all have arrived.

use super::exchanges::Stage;
use super::judging::ClientMessage;
use super::questions::PendingQuestion;
use super::sending::Delivery;
use super::{Context, FrontMachine, MAX_ASKED};
use crate::bridge::{self, capabilities, questions};
use crate::command::Command;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use crate::profile::ClientProfile;
use bytes::Bytes;
use signalbox_wire::{Envelope, Kind, RawId, Revision, builder, json, method};

/// Maximum number of question rounds per call.
pub const MAX_ROUNDS: u32 = 16;
/// Maximum length of a backend's text quoted in a message.
const MAX_NAME: usize = 200;

/// Questions that the backend asked the client during one exchange.
#[derive(Default, Debug)]
pub(super) struct InputHistory {
    rounds: u32,
    /// URL elicitations sent to the client. It is told that they are complete when the call ends.
    urls: Vec<String>,
}

/// The client's answers to one round of questions, collected until none is missing.
#[derive(Debug)]
pub(super) struct InputResponses {
    round: u32,
    missing: usize,
    /// Each answer, with the key of its question as a JSON string token.
    given: Vec<(Bytes, Bytes)>,
}

impl InputHistory {
    /// Starts the next round and returns its number.
    pub fn begin_round(&mut self) -> u32 {
        self.rounds += 1;
        self.rounds
    }
}

impl InputResponses {
    /// Returns the number of the round within the exchange, starting at 1.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Returns true if no answer is missing.
    pub fn are_complete(&self) -> bool {
        self.missing == 0
    }

    /// Returns the answers as an `inputResponses` object.
    pub fn to_object(&self) -> Vec<u8> {
        let mut object = b"{".to_vec();
        for (index, (key, answer)) in self.given.iter().enumerate() {
            if index > 0 {
                object.push(b',');
            }
            object.extend_from_slice(key);
            object.push(b':');
            object.extend_from_slice(answer);
        }
        object.push(b'}');
        object
    }
}

impl FrontMachine {
    /// Returns the `inputRequests` of an exchange's backend in the form in which its client is asked.
    pub(super) fn signed_requests(&self, id: ExchangeId, requests: &[u8], ctx: &Context<'_>) -> Result<Bytes, Fault> {
        let backend = self.exchanges.get(&id).and_then(|exchange| exchange.backend.as_deref()).unwrap_or_default();
        ctx.asker(backend).sign_all(requests).map_err(|no| no.fault(backend))
    }

    /// Asks the client, and returns the answers to wait for; none are missing if nothing was asked. Returns `None` if
    /// the interceptors ended the call.
    pub(super) fn ask_client(
        &mut self,
        id: ExchangeId,
        wanted: Vec<InputRequest>,
        client: &ClientProfile,
        backend: Revision,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<Option<InputResponses>, Fault> {
        if self.pending_questions.len() + wanted.len() > MAX_ASKED {
            return Err(Fault::new(FaultKind::Overloaded, "too many questions wait for this client"));
        }
        let mut history = self.exchanges.take_input_history(id);
        if history.begin_round() > MAX_ROUNDS {
            let text = format!("the backend asked for input {MAX_ROUNDS} times in one call");
            return Err(Fault::new(FaultKind::BackendGarbage, text));
        }
        let responses = InputResponses { round: history.rounds, missing: wanted.len(), given: Vec::new() };
        let mut sends = Vec::with_capacity(wanted.len());
        for one in wanted {
            let number = self.next_question;
            self.next_question += 1;
            let mint = format!("{}-{number}", self.session);
            let params = questions::to_legacy(&one.method, &one.params, client.revision, &mint)
                .map_err(|lost| bridge::not_bridged(lost.feature, client.revision, backend))?;
            if !capabilities::allows(client.modern_capabilities(false).as_bytes(), &one.method, &one.params) {
                return Err(not_declared(&one.method));
            }
            if one.method == method::ELICITATION_CREATE && json::member(&params, "elicitationId").is_some() {
                history.urls.push(mint);
            }
            let request =
                builder::RequestBuilder::new(&one.method).id(RawId::number(number)).params_raw(&params).build();
            let passed = match self.judge_question(id, request, ctx, out) {
                Ok(passed) => passed,
                Err(end) => {
                    self.end_by(id, super::operations::call_verdict(end), ctx, out);
                    return Ok(None);
                }
            };
            sends.push((
                number,
                PendingQuestion::Round { exchange: id, key: one.key, method: one.method.into() },
                passed,
            ));
        }
        if !sends.is_empty() {
            let stream = self.client_stream(Some(id)).ok_or_else(|| {
                Fault::new(FaultKind::NotBridged, "the client has no stream open on which it could be asked")
            })?;
            for (number, asked, passed) in sends {
                self.pending_questions.insert(number, asked);
                self.send(Some(id), Delivery::midway(stream), passed, ctx, out);
            }
            out.push(Command::Wake { exchange: id, after: ctx.round_timeout, round: Some(responses.round) });
        }
        self.exchanges.set_input_history(id, history);
        Ok(Some(responses))
    }

    /// Expires a round of questions: cancels the open ones at the client and fails the call.
    pub(super) fn input_expired(&mut self, id: ExchangeId, round: u32, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if self.consent_expired(id, round, ctx, out) {
            return;
        }
        let responses = self.exchanges.input_responses(id);
        if responses.is_none_or(|responses| responses.are_complete() || responses.round != round) {
            return;
        }
        if let Some(stream) = self.client_stream(Some(id)) {
            let open =
                self.pending_questions.iter().filter(|(_, asked)| asked.belongs_to(id)).map(|(number, _)| *number);
            let mut open: Vec<u64> = open.collect();
            open.sort_unstable();
            for number in open {
                self.send(Some(id), Delivery::droppable(stream), timed_out(number), ctx, out);
            }
        }
        self.abandon_task(id, out);
        let within = ctx.round_timeout.as_secs_f32();
        let text = format!("the client did not answer the backend's questions within {within} s");
        self.fail(id, &Fault::new(FaultKind::TimedOut, text), ctx, out);
    }

    /// Handles the client's answer to one of the questions.
    pub(super) fn input_answered(
        &mut self,
        id: ExchangeId,
        key: Bytes,
        name: &str,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(responses) = self.exchanges.input_responses_mut(id) else { return };
        let answer = match message.result() {
            Some(result) if message.kind() == Kind::Response => questions::answer_to_modern(name, result),
            // A user who cannot be asked counts as not answering; other questions have no such result.
            _ if name == method::ELICITATION_CREATE => Bytes::from_static(br#"{"action":"cancel"}"#),
            _ => {
                let error = message.error().unwrap_or_default();
                let why = json::member(error, "message").and_then(|span| json::string(span.of(error)));
                let text = format!("the client refused `{name}`: {}", why.as_deref().unwrap_or("no reason given"));
                return self.refused_by_client(id, &text, ctx, out);
            }
        };
        responses.given.push((key, answer));
        responses.missing -= 1;
        if !responses.are_complete() {
            return;
        }
        match self.exchanges.stage(id) {
            Some(Stage::PollingTask(_)) => self.update_task(id, ctx, out),
            _ => self.next_round(id, ctx, out),
        }
    }

    /// Ends a call whose question the client refused: a tool call with an error result, other methods with a fault.
    fn refused_by_client(&mut self, id: ExchangeId, text: &str, ctx: &Context<'_>, out: &mut Vec<Command>) {
        self.abandon_task(id, out);
        let tool = self.exchanges.get(&id).is_some_and(|exchange| exchange.method == method::TOOLS_CALL);
        if tool {
            let result = format!(r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#, json::quote(text));
            return self.reply_own(id, result.as_bytes(), ctx, out);
        }
        self.fail(id, &Fault::new(FaultKind::Refused, text), ctx, out);
    }

    /// Tells the client that its URL elicitations are complete.
    pub(super) fn input_over(&self, id: ExchangeId, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some((exchange, history)) = self.exchanges.input_history(id) else { return };
        for elicitation in history.urls.iter().filter(|_| exchange.stream_open) {
            let bytes = builder::Notification::new(method::ELICITATION_COMPLETE)
                .param_str("elicitationId", elicitation)
                .build();
            self.send(Some(id), Delivery::midway(exchange.stream), ClientMessage::own(bytes), ctx, out);
        }
    }
}

/// Builds the notification that tells the client that its answer to a question is no longer awaited.
pub(super) fn timed_out(number: u64) -> ClientMessage {
    let told = builder::Notification::new(method::CANCELLED)
        .param_raw("requestId", number.to_string())
        .param_str("reason", "timed out");
    ClientMessage::own(told.build())
}

/// Builds the fault for a backend that asks for something the client did not declare.
fn not_declared(name: &str) -> Fault {
    let name: String = name.chars().take(MAX_NAME).collect();
    let text = format!("the backend asks for `{name}`, which the client did not declare");
    Fault::new(FaultKind::BackendGarbage, text)
}

/// One question of a backend of the new era.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct InputRequest {
    /// Key of the question, as a JSON string token.
    pub key: Bytes,
    /// Method that the client is asked to perform.
    pub method: String,
    /// Raw `params` of the question.
    pub params: Bytes,
}

/// Reads the raw `inputRequests` object, in order.
pub(super) fn read_requests(object: &[u8]) -> Vec<InputRequest> {
    let read = |member: json::JsonMember| {
        let request = member.value.of(object);
        let method = json::member(request, "method").and_then(|span| json::string(span.of(request)))?;
        let params = json::member(request, "params").map_or(&b"{}"[..], |span| span.of(request));
        Some(InputRequest {
            key: Bytes::copy_from_slice(member.key.of(object)),
            method: method.into_owned(),
            params: Bytes::copy_from_slice(params),
        })
    };
    json::members(object).filter_map(read).collect()
}
