//! Questions that a backend of the new era puts by way of the gateway: the old client is asked by requests in the middle of
//! its call, as its revision knows it, and its answers are gathered until the last one is there.

use super::judging::Passed;
use super::questions::Asked;
use super::sending::Way;
use super::{Context, FrontMachine, MAX_ASKED};
use crate::bridge::{self, capabilities, questions};
use crate::command::Command;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use crate::profile::ClientProfile;
use bytes::Bytes;
use signalbox_wire::{Envelope, Kind, RawId, Revision, builder, json, method};

/// How often one call may ask.
pub const MAX_ROUNDS: u32 = 16;
/// How much of a backend's text is repeated in a message.
const MAX_NAME: usize = 200;

/// What a call has asked so far.
#[derive(Clone, Default, Debug)]
pub(super) struct Inquiry {
    open: usize,
    answers: Vec<(Bytes, Bytes)>,
    count: u32,
    /// Elicitations by URL that the client was asked for, to be called complete when the call is.
    urls: Vec<String>,
}

impl FrontMachine {
    /// Asks the client; says how many rounds of questions that makes, or nothing where the interceptors ended the call. With
    /// nothing to ask it only counts.
    pub(super) fn inquire(
        &mut self,
        id: ExchangeId,
        wanted: Vec<Wanted>,
        (client, backend): (&ClientProfile, Revision),
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<Option<u32>, Fault> {
        if self.asked.len() + wanted.len() > MAX_ASKED {
            return Err(Fault::new(FaultKind::Overloaded, "too many questions wait for this client"));
        }
        let mut inquiry = self.inquiries.remove(&id).unwrap_or_default();
        inquiry.count += 1;
        if inquiry.count > MAX_ROUNDS {
            let text = format!("the backend asked for input {MAX_ROUNDS} times in one call");
            return Err(Fault::new(FaultKind::BackendGarbage, text));
        }
        inquiry.open = wanted.len();
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
                inquiry.urls.push(mint);
            }
            let request = builder::Request::new(&one.method).id(RawId::number(number)).params_raw(&params).build();
            let passed = match self.judge_question(id, request, ctx, out) {
                Ok(passed) => passed,
                Err(end) => {
                    self.end_by(id, super::operations::ended(end), ctx, out);
                    return Ok(None);
                }
            };
            sends.push((number, Asked::Round { exchange: id, key: one.key, method: one.method.into() }, passed));
        }
        if !sends.is_empty() {
            let stream = self.way_to_client(Some(id)).ok_or_else(|| {
                Fault::new(FaultKind::NotBridged, "the client has no stream open on which it could be asked")
            })?;
            for (number, asked, passed) in sends {
                self.asked.insert(number, asked);
                self.send(Some(id), Way::midway(stream), passed, ctx, out);
            }
            out.push(Command::Wake { exchange: id, after: ctx.round_timeout, round: Some(inquiry.count) });
        }
        let count = inquiry.count;
        self.inquiries.insert(id, inquiry);
        Ok(Some(count))
    }

    /// True while an answer of the client is missing.
    pub(super) fn inquiring(&self, id: ExchangeId) -> bool {
        self.inquiries.get(&id).is_some_and(|inquiry| inquiry.open > 0)
    }

    /// The time for a round of questions is over. A client that has not answered is told to forget them, and its call ends.
    pub(super) fn inquiry_expired(&mut self, id: ExchangeId, round: u32, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if self.inquiries.get(&id).is_none_or(|inquiry| inquiry.open == 0 || inquiry.count != round) {
            return;
        }
        if let Some(stream) = self.way_to_client(Some(id)) {
            let open = self.asked.iter().filter(|(_, asked)| asked.belongs_to(id)).map(|(number, _)| *number);
            let mut open: Vec<u64> = open.collect();
            open.sort_unstable();
            for number in open {
                let bytes = builder::Notification::new(method::CANCELLED)
                    .param_raw("requestId", number.to_string())
                    .param_str("reason", "timed out")
                    .build();
                self.send(Some(id), Way::droppable(stream), Passed::own(bytes), ctx, out);
            }
        }
        self.give_task_up(id, out);
        let within = ctx.round_timeout.as_secs_f32();
        let text = format!("the client did not answer within {within} s what the backend wants to know");
        self.fail(id, &Fault::new(FaultKind::TimedOut, text), ctx, out);
    }

    /// The client answered one of the questions.
    pub(super) fn inquiry_answered(
        &mut self,
        id: ExchangeId,
        key: Bytes,
        name: &str,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(inquiry) = self.inquiries.get_mut(&id) else { return };
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
        inquiry.answers.push((key, answer));
        inquiry.open -= 1;
        if inquiry.open == 0 {
            self.next_round(id, ctx, out);
            self.tell_task(id, ctx, out);
        }
    }

    /// A tool says itself that it could not go on; other methods have no such result.
    fn refused_by_client(&mut self, id: ExchangeId, text: &str, ctx: &Context<'_>, out: &mut Vec<Command>) {
        self.give_task_up(id, out);
        let tool = self.exchanges.get(&id).is_some_and(|exchange| exchange.method == method::TOOLS_CALL);
        if tool {
            let result = format!(r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#, json::quote(text));
            return self.reply_own(id, result.as_bytes(), ctx, out);
        }
        self.fail(id, &Fault::new(FaultKind::Refused, text), ctx, out);
    }

    /// The answers as an `inputResponses` object. They are given once.
    pub(super) fn take_answers(&mut self, id: ExchangeId) -> Vec<u8> {
        let mut responses = b"{".to_vec();
        let answers = self.inquiries.get_mut(&id).map(|inquiry| std::mem::take(&mut inquiry.answers));
        for (index, (key, answer)) in answers.unwrap_or_default().into_iter().enumerate() {
            if index > 0 {
                responses.push(b',');
            }
            responses.extend_from_slice(&key);
            responses.push(b':');
            responses.extend_from_slice(&answer);
        }
        responses.push(b'}');
        responses
    }

    /// Tells a client that was sent to a URL that what it went there for is done.
    pub(super) fn inquiry_over(&self, id: ExchangeId, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let (Some(inquiry), Some(exchange)) = (self.inquiries.get(&id), self.exchanges.get(&id)) else { return };
        for elicitation in inquiry.urls.iter().filter(|_| exchange.stream_open) {
            let bytes = builder::Notification::new(method::ELICITATION_COMPLETE)
                .param_str("elicitationId", elicitation)
                .build();
            self.send(Some(id), Way::midway(exchange.stream), Passed::own(bytes), ctx, out);
        }
    }
}

/// A backend must ask a client only what the client says it can be asked.
fn not_declared(name: &str) -> Fault {
    let name: String = name.chars().take(MAX_NAME).collect();
    let text = format!("the backend wants `{name}` of a client that did not declare it can be asked that");
    Fault::new(FaultKind::BackendGarbage, text)
}

/// One question of a backend of the new era.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wanted {
    /// The key, as a JSON string token.
    pub key: Bytes,
    /// What is asked.
    pub method: String,
    /// How it is asked.
    pub params: Bytes,
}

/// What the backend wants to know, in the order it says so. `object` is the raw `inputRequests`.
pub(super) fn read_requests(object: &[u8]) -> Vec<Wanted> {
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
