//! Sign-ins that a backend requires before it runs a call. The client is asked to open an address, in the form of its
//! revision, and then the same call continues. Nothing of the call has reached the backend yet.
//!
//! A client of 2025-11-25 that supports URL elicitation is asked in the middle of its call, and the call is sent again
//! after its answer. A client of 2026-07-28 gets `input_required` and repeats the call. Any other client gets an error
//! with the address.

use super::exchanges::Stage;
use super::input_requests::InputRequest;
use super::judging::{AuthorizedCall, ClientMessage};
use super::params::Params;
use super::rounds::InputRound;
use super::sending::Delivery;
use super::{Context, FrontMachine};
use crate::bridge::{self, capabilities};
use crate::chain::{HoldAnswer, consent};
use crate::command::Command;
use crate::exchange::{Exchange, RoundSpans};
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use crate::log_level::LogLevel;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Era, Revision, builder, json, method};
use std::sync::Arc;

/// Key of the question, and prefix of the state with which a client repeats the call.
const KEY: &str = "signalbox-sign-in";

/// Member of a list's `_meta` that names the backends behind a sign-in, each with the address to open.
pub(super) const META: &str = "io.signalbox/sign_in";

impl FrontMachine {
    /// Asks for the sign-in that kept a call from reaching its backend.
    pub(super) fn sign_in(
        &mut self,
        id: ExchangeId,
        fault: &Fault,
        call: AuthorizedCall,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if !self.exchanges.contains_key(&id) {
            return out.push(Command::Dropped("late_answer"));
        }
        let params = question(fault);
        let client = Arc::clone(&call.client);
        let takes = capabilities::allows(
            client.modern_capabilities(false).as_bytes(),
            method::ELICITATION_CREATE,
            params.as_bytes(),
        );
        // A later round carries the backend's `requestState`, which leaves no place for ours.
        let askable = takes && bridge::may_ask(&call.method) && call.round.is_none();
        match call.era {
            Era::Modern if askable => {
                let state = format!("{KEY}-{}-{id}", self.session);
                let entry = format!(r#"{{"method":"{}","params":{params}}}"#, method::ELICITATION_CREATE);
                let result = format!(
                    r#"{{"resultType":"input_required","inputRequests":{{"{KEY}":{entry}}},"requestState":{}}}"#,
                    json::quote(&state)
                );
                self.show_questions(id, result.as_bytes(), None, ctx, out);
            }
            Era::Legacy if askable && client.revision.url_elicitation() => {
                let key = Bytes::from(json::quote(KEY));
                let wanted = InputRequest { key, method: method::ELICITATION_CREATE.into(), params: params.into() };
                match self.ask_client(id, vec![wanted], &client, Revision::LATEST_LEGACY, ctx, out) {
                    Ok(Some(responses)) => {
                        let round = InputRound::sign_in(call, responses);
                        self.exchanges.enter(id, Stage::AwaitingInput(Box::new(round)));
                    }
                    Ok(None) => {}
                    Err(_) => self.fail(id, fault, ctx, out),
                }
            }
            _ => self.fail(id, &for_revision(fault, client.revision), ctx, out),
        }
    }

    /// Fails a request that has nothing to show before the caller signs in, with the address to open. Returns false if
    /// no backend waits for a sign-in.
    pub(super) fn wants_sign_in(&mut self, id: ExchangeId, ctx: &Context<'_>, out: &mut Vec<Command>) -> bool {
        let Some((_, fault)) = ctx.behind_sign_ins().into_iter().next() else { return false };
        let exchange = self.exchanges.get(&id);
        let client = exchange.and_then(|exchange| exchange.client.as_ref()).or(self.client.as_ref());
        let revision = client.map_or(Revision::LATEST, |client| client.revision);
        self.fail(id, &for_revision(&fault, revision), ctx, out);
        true
    }

    /// Returns the backends that a list lacks because the caller has yet to sign in, as the JSON array of [`META`].
    /// Also warns the client in a log message if it takes those, once for each set of addresses.
    pub(super) fn warn_of_sign_ins(
        &mut self,
        id: ExchangeId,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Option<String> {
        let wanted = ctx.behind_sign_ins();
        if wanted.is_empty() {
            return None;
        }
        let entry = |(backend, fault): &(Arc<str>, Fault)| {
            format!(r#"{{"backend":{},"url":{}}}"#, json::quote(backend), String::from_utf8_lossy(address(fault)))
        };
        let all = format!("[{}]", wanted.iter().map(entry).collect::<Vec<_>>().join(","));
        let takes_logs = match self.exchanges.get(&id) {
            Some(exchange) if exchange.era == Era::Modern => {
                exchange.log_level.is_some_and(|least| least <= LogLevel::Warning)
            }
            _ => ctx.offer(&self.selector(id)).logging && self.log_level.is_none_or(|least| least <= LogLevel::Warning),
        };
        let way =
            self.client_stream(Some(id)).filter(|_| takes_logs && self.last_sign_in_warning != all && !self.governed);
        if let Some(stream) = way {
            for (_, fault) in &wanted {
                let bytes = builder::Notification::new(method::MESSAGE)
                    .param_str("level", LogLevel::Warning.as_str())
                    .param_str("logger", "signalbox")
                    .param_str("data", &fault.message)
                    .build();
                self.send(Some(id), Delivery::droppable(stream), ClientMessage::own(bytes), ctx, out);
            }
            self.last_sign_in_warning.clone_from(&all);
        }
        Some(all)
    }

    /// Handles the client's answer whether its user opens the address. If so, the call is judged again in its current
    /// form and sent again.
    pub(super) fn after_sign_in(
        &mut self,
        id: ExchangeId,
        mut call: AuthorizedCall,
        answers: &[u8],
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let exchange = self.exchanges.get_mut(&id).filter(|_| is_accepted(answers));
        let Some((exchange, backend)) = exchange.and_then(|one| one.backend.clone().map(|backend| (one, backend)))
        else {
            return self.fail(id, &declined_fault(), ctx, out);
        };
        // A client of the new era repeats the call as a later round, so this counts as one too: limits have counted the
        // call.
        exchange.round += 1;
        call.await_sign_in();
        if let Some(call) = self.judge_call(id, call.into_call(), ctx, out) {
            out.push(Command::Forward { exchange: id, backend, call });
        }
    }
}

/// Returns the round that a call belongs to. A call that returns from a sign-in or with its caller's consent counts as
/// the first round, and the gateway's question is removed from it.
pub(super) fn round_of(
    exchange: &Exchange,
    message: &Envelope,
    params: &Params,
    edits: &mut Edits,
) -> Result<Option<RoundSpans>, Fault> {
    let round = params.round().filter(|_| exchange.era == Era::Modern && bridge::may_ask(&exchange.method));
    let is_return = || is_return(message, params) || consent::is_return(message);
    let Some(whole) = message.params_span().filter(|_| round.is_some() && is_return()) else {
        return Ok(round);
    };
    edits.remove_member(message.bytes(), whole, "inputResponses");
    edits.remove_member(message.bytes(), whole, "requestState");
    match consent::returned(message, "") {
        // The interceptors that asked have checked that this call was asked about.
        Some(HoldAnswer::GoOn { .. }) => Ok(None),
        Some(_) => Err(Fault::new(FaultKind::Denied, "the caller did not agree to it")),
        None if params.responses.is_some_and(|span| is_accepted(span.of(message.bytes()))) => Ok(None),
        None => Err(declined_fault()),
    }
}

/// Returns true if a call returns from a sign-in.
pub(super) fn is_return(message: &Envelope, params: &Params) -> bool {
    let state = params.state.and_then(|span| json::string(span.of(message.bytes())));
    state.is_some_and(|state| state.starts_with(KEY))
}

/// Returns the fault for a caller who declined to sign in.
fn declined_fault() -> Fault {
    Fault::new(FaultKind::Refused, "the backend wants you to sign in, which was declined")
}

/// Returns true if the answers say that the user opens the address.
fn is_accepted(answers: &[u8]) -> bool {
    let answer = json::member(answers, KEY).map_or(&b""[..], |span| span.of(answers));
    let action = json::member(answer, "action").and_then(|span| json::string(span.of(answer)));
    action.is_some_and(|action| action == "accept")
}

/// Builds the params of the elicitation.
fn question(fault: &Fault) -> String {
    let message = json::quote(&fault.message);
    format!(r#"{{"mode":"url","message":{message},"url":{}}}"#, String::from_utf8_lossy(address(fault)))
}

/// Returns the address to open, as a JSON string token.
fn address(fault: &Fault) -> &[u8] {
    fault.data.iter().find(|(name, _)| *name == "url").map_or(&b"\"\""[..], |(_, value)| value)
}

/// Converts the fault for clients of 2025-11-25, which know an error that lists the addresses to open first.
fn for_revision(fault: &Fault, revision: Revision) -> Fault {
    if revision != Revision::V2025_11_25 {
        return fault.clone();
    }
    let params = question(fault);
    let id = format!(r#""elicitationId":{},"#, json::quote(KEY));
    let elicitation = format!("{{{id}{}", params.strip_prefix('{').unwrap_or_default());
    let fault = Fault { kind: FaultKind::UrlElicitationRequired, ..fault.clone() };
    fault.with_raw("elicitations", format!("[{elicitation}]").into_bytes())
}
