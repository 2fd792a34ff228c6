//! Rounds of questions: a backend of the new era answers a call with what it wants to know, and the old client is asked
//! by requests in the middle of its call, as its revision knows it.

use super::{Asked, Context, FrontMachine, MAX_ASKED};
use crate::bridge::{self, Reach, questions};
use crate::command::Command;
use crate::exchange::Call;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use bytes::Bytes;
use signalbox_wire::{Envelope, Kind, RawId, Revision, builder, json, method};
use std::sync::Arc;
use std::time::Duration;

/// How often one call may ask.
pub const MAX_ROUNDS: u32 = 16;
/// The wait before a backend that wants nothing but another call is called again, times the number of the round.
const PAUSE: Duration = Duration::from_millis(200);

/// A call whose backend wants more.
#[derive(Clone, Debug)]
pub(super) struct Round {
    call: Box<Call>,
    state: Option<Bytes>,
    open: usize,
    answers: Vec<(Bytes, Bytes)>,
    count: u32,
    /// Elicitations by URL that the client was asked for, to be called complete when the call is.
    urls: Vec<String>,
}

impl FrontMachine {
    /// Tells a client that was sent to a URL that what it went there for is done.
    pub(super) fn round_over(&self, id: ExchangeId, out: &mut Vec<Command>) {
        let (Some(round), Some(exchange)) = (self.rounds.get(&id), self.exchanges.get(&id)) else { return };
        for elicitation in round.urls.iter().filter(|_| exchange.stream_open) {
            let bytes = builder::Notification::new(method::ELICITATION_COMPLETE)
                .param_str("elicitationId", elicitation)
                .build();
            out.push(Command::Send { stream: exchange.stream, bytes, last: false, droppable: false, status: 200 });
        }
    }

    /// The backend wants more before it answers.
    #[allow(clippy::too_many_arguments, reason = "the parts of an answer, each needed once")]
    pub(super) fn unfinished(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        reach: Reach,
        call: Box<Call>,
        backend: Revision,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if !self.exchanges.contains_key(&id) {
            return out.push(Command::Dropped("late_answer"));
        }
        let asked = match reach {
            Reach::Input => self.ask(id, message, call, backend, out),
            Reach::Task | Reach::Whole => Err(bridge::not_bridged("a task", call.client.revision, backend)),
        };
        if let Err(fault) = asked {
            self.fail(id, &fault, ctx, out);
        }
    }

    fn ask(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        call: Box<Call>,
        backend: Revision,
        out: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let result = message.result().unwrap_or_default();
        let state = json::member(result, "requestState").map(|span| Bytes::copy_from_slice(span.of(result)));
        let wanted = read_requests(result);
        let earlier = self.rounds.remove(&id);
        let count = earlier.as_ref().map_or(0, |round| round.count) + 1;
        if count > MAX_ROUNDS {
            let text = format!("the backend asked for input {MAX_ROUNDS} times in one call");
            return Err(Fault::new(FaultKind::BackendGarbage, text));
        }
        if wanted.is_empty() && state.is_none() {
            return Err(Fault::new(FaultKind::BackendGarbage, "the backend wants input but does not say which"));
        }
        if self.asked.len() + wanted.len() > MAX_ASKED {
            return Err(Fault::new(FaultKind::Overloaded, "too many questions wait for this client"));
        }
        let revision = call.client.revision;
        let open = wanted.len();
        let urls = earlier.map(|round| round.urls).unwrap_or_default();
        let mut round = Round { call, state, open, answers: Vec::new(), count, urls };
        let mut sends = Vec::with_capacity(open);
        for one in wanted {
            let number = self.next_question;
            self.next_question += 1;
            let mint = format!("{}-{number}", self.session);
            let params = questions::to_legacy(&one.method, &one.params, revision, &mint)
                .map_err(|lost| bridge::not_bridged(lost.feature, revision, backend))?;
            if one.method == method::ELICITATION_CREATE && json::member(&params, "elicitationId").is_some() {
                round.urls.push(mint);
            }
            let request = builder::Request::new(&one.method).id(RawId::number(number)).params_raw(&params).build();
            sends.push((number, Asked::Round { exchange: id, key: one.key, method: one.method.into() }, request));
        }
        if sends.is_empty() {
            out.push(Command::Wake { exchange: id, after: PAUSE * count });
        } else {
            let stream = self.way_to_client(Some(id)).ok_or_else(|| {
                Fault::new(FaultKind::NotBridged, "the client has no stream open on which it could be asked")
            })?;
            for (number, asked, bytes) in sends {
                self.asked.insert(number, asked);
                out.push(Command::Send { stream, bytes, last: false, droppable: false, status: 200 });
            }
        }
        self.rounds.insert(id, round);
        Ok(())
    }

    /// The client answered one of the questions.
    pub(super) fn round_answered(
        &mut self,
        id: ExchangeId,
        key: Bytes,
        name: &str,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(round) = self.rounds.get_mut(&id) else { return };
        let answer = match message.result() {
            Some(result) if message.kind() == Kind::Response => questions::answer_to_modern(name, result),
            // A user who cannot be asked has not answered; there is no such way out for the other questions.
            _ if name == method::ELICITATION_CREATE => Bytes::from_static(br#"{"action":"cancel"}"#),
            _ => {
                let error = message.error().unwrap_or_default();
                let why = json::member(error, "message").and_then(|span| json::string(span.of(error)));
                let text = format!("the client refused `{name}`: {}", why.as_deref().unwrap_or("no reason given"));
                return self.refused_by_client(id, &text, ctx, out);
            }
        };
        round.answers.push((key, answer));
        round.open -= 1;
        if round.open == 0 {
            self.next_round(id, out);
        }
    }

    /// A tool says itself that it could not go on; other methods have no such result.
    fn refused_by_client(&mut self, id: ExchangeId, text: &str, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let tool = self.exchanges.get(&id).is_some_and(|exchange| exchange.method == method::TOOLS_CALL);
        if tool {
            let result = format!(r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#, json::quote(text));
            return self.reply(id, result.as_bytes(), ctx, out);
        }
        self.fail(id, &Fault::new(FaultKind::Refused, text), ctx, out);
    }

    /// The pause before a call that needs no answer is over.
    pub(super) fn woken(&mut self, id: ExchangeId, out: &mut Vec<Command>) {
        if self.rounds.get(&id).is_some_and(|round| round.open == 0) {
            self.next_round(id, out);
        }
    }

    /// Calls again, with everything the backend wanted.
    fn next_round(&mut self, id: ExchangeId, out: &mut Vec<Command>) {
        let backend = self.exchanges.get(&id).and_then(|exchange| exchange.backend.clone());
        let (Some(round), Some(backend)) = (self.rounds.get_mut(&id), backend) else { return };
        let mut call = round.call.clone();
        let base = call.envelope.bytes();
        let Some(params) = call.envelope.params_span() else { return };
        let mut responses = b"{".to_vec();
        for (index, (key, answer)) in round.answers.drain(..).enumerate() {
            if index > 0 {
                responses.push(b',');
            }
            responses.extend_from_slice(&key);
            responses.push(b':');
            responses.extend_from_slice(&answer);
        }
        responses.push(b'}');
        call.edits.set_member(base, params, "inputResponses", &responses);
        match &round.state {
            Some(state) => call.edits.set_member(base, params, "requestState", state),
            None => call.edits.remove_member(base, params, "requestState"),
        }
        out.push(Command::Forward { exchange: id, backend: Arc::clone(&backend), call });
    }
}

struct Wanted {
    /// The key, as a JSON string token.
    key: Bytes,
    method: String,
    params: Bytes,
}

/// What the backend wants to know, in the order it says so.
fn read_requests(result: &[u8]) -> Vec<Wanted> {
    let Some(span) = json::member(result, "inputRequests") else { return Vec::new() };
    let object = span.of(result);
    let read = |member: json::Member| {
        let request = member.value.of(object);
        let method = json::member(request, "method").and_then(|span| json::string(span.of(request)))?;
        let params = json::member(request, "params").map_or(&b"{}"[..], |span| span.of(request));
        Some(Wanted {
            key: Bytes::copy_from_slice(member.key.of(object)),
            method: method.into_owned(),
            params: Bytes::copy_from_slice(params),
        })
    };
    json::members(object).filter_map(read).collect()
}
