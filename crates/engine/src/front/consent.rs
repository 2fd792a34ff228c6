//! Consent of the caller, asked for in its own client in the form of its revision. Nothing of the call has reached a
//! backend yet.
//!
//! ```text
//! old era   held ─► elicitation/create ─► answered: the walk resumes · too late: expired · exchange over: dropped
//! new era   held ─► input_required, which ends the exchange ─► the call is repeated, and judged with the answer in it
//! ```
//!
//! A client that declared no form elicitation, or has no stream to ask on, is not asked. An approver is asked instead
//! if that is configured; otherwise the call is refused.

use super::input_requests::timed_out;
use super::judging::InstantVerdict;
use super::questions::PendingQuestion;
use super::sending::Delivery;
use super::{Context, FrontMachine, MAX_ASKED};
use crate::bridge::{self, capabilities, questions};
use crate::chain::consent::{self, Consent, KEY};
use crate::chain::{ConsentOf, HoldAnswer, HoldQuestion};
use crate::command::{Command, MessageOnHold};
use crate::keys::{ExchangeId, StreamId};
use bytes::Bytes;
use signalbox_wire::{Envelope, Era, Kind, RawId, builder, json, method};
use std::sync::Arc;

/// Reason why a caller cannot be asked.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum Unaskable {
    #[error("it declared no elicitation by form")]
    Undeclared,
    #[error("it has no stream open on which it could be asked")]
    NoStream,
    #[error("too many questions wait for it")]
    TooMany,
    #[error("its revision has no form for the question")]
    NoForm,
}

/// Form in which the question is asked.
enum QuestionForm {
    /// A request in the middle of the call.
    Request { stream: StreamId, params: Bytes },
    /// The answer to the call, which the client then repeats.
    Round,
}

impl FrontMachine {
    /// Asks the caller of a held call for its consent.
    pub(super) fn ask_caller(
        &mut self,
        id: ExchangeId,
        consent: Arc<Consent>,
        held: Box<MessageOnHold>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Ok(message) = Envelope::parse(held.message.clone()) else {
            return self.resume_held(id, &HoldAnswer::Failed(Unaskable::NoForm.to_string()), ctx, out);
        };
        let params = consent::question(&consent, held.subject.as_deref(), held.backend.as_deref(), &message);
        match self.question_form(id, &message, &params) {
            Ok(QuestionForm::Request { stream, params }) => {
                self.request_consent(id, stream, &params, &consent, ctx, out)
            }
            Ok(QuestionForm::Round) => {
                let state = json::quote(&format!("{KEY}-{}-{id}", self.session));
                let entry = format!(r#"{{"method":"{}","params":{params}}}"#, method::ELICITATION_CREATE);
                let result = format!(
                    r#"{{"resultType":"input_required","inputRequests":{{"{KEY}":{entry}}},"requestState":{state}}}"#
                );
                // The interceptors start over when the client repeats the call.
                self.exchanges.take_held(id);
                self.show_questions(id, result.as_bytes(), None, ctx, out);
            }
            Err(_) if consent.of == ConsentOf::CallerOrApprover => {
                out.push(Command::Consult { exchange: id, question: HoldQuestion::Consent(consent), held });
            }
            Err(why) => self.resume_held(id, &HoldAnswer::Failed(why.to_string()), ctx, out),
        }
    }

    fn question_form(&self, id: ExchangeId, message: &Envelope, params: &str) -> Result<QuestionForm, Unaskable> {
        let exchange = self.exchanges.get(&id).ok_or(Unaskable::NoStream)?;
        let client = exchange.client.as_ref().or(self.client.as_ref()).ok_or(Unaskable::Undeclared)?;
        let declared = client.modern_capabilities(false);
        if !capabilities::allows(declared.as_bytes(), method::ELICITATION_CREATE, params.as_bytes()) {
            return Err(Unaskable::Undeclared);
        }
        if exchange.era == Era::Modern {
            // A later round carries the backend's `requestState`, which leaves no place for ours.
            let is_first = message.param("requestState").is_none() && message.param("inputResponses").is_none();
            return (is_first && bridge::may_ask(&exchange.method))
                .then_some(QuestionForm::Round)
                .ok_or(Unaskable::NoForm);
        }
        if self.pending_questions.len() >= MAX_ASKED {
            return Err(Unaskable::TooMany);
        }
        let stream = self.client_stream(Some(id)).ok_or(Unaskable::NoStream)?;
        let params = questions::to_legacy(method::ELICITATION_CREATE, params.as_bytes(), client.revision, "")
            .map_err(|_| Unaskable::NoForm)?;
        Ok(QuestionForm::Request { stream, params })
    }

    /// Sends the question in the middle of a call of the old era.
    fn request_consent(
        &mut self,
        id: ExchangeId,
        stream: StreamId,
        params: &[u8],
        consent: &Consent,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let number = self.next_question;
        self.next_question += 1;
        let request = builder::RequestBuilder::new(method::ELICITATION_CREATE)
            .id(RawId::number(number))
            .params_raw(params)
            .build();
        let passed = match self.judge_question(id, request, ctx, out) {
            Ok(passed) => passed,
            Err(end) => return self.end_by(id, super::operations::call_verdict(end), ctx, out),
        };
        let mut history = self.exchanges.take_input_history(id);
        let round = history.begin_round();
        self.exchanges.set_input_history(id, history);
        self.pending_questions.insert(number, PendingQuestion::Consent { exchange: id, round });
        self.send(Some(id), Delivery::midway(stream), passed, ctx, out);
        out.push(Command::Wake { exchange: id, after: consent.within, round: Some(round) });
    }

    /// Handles the client's answer to the question whether the call may run.
    pub(super) fn consent_answered(
        &mut self,
        id: ExchangeId,
        judged: InstantVerdict,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let by = exchange.caller.principal().as_str();
        let answer = match judged {
            InstantVerdict::Pass(message) if message.kind() == Kind::Response => {
                consent::answer(message.result().unwrap_or_default(), by)
            }
            // A user who cannot be asked has not agreed.
            InstantVerdict::Pass(_) => consent::answer(b"{}", by),
            InstantVerdict::Answered(result) => consent::answer(&result, by),
            end => return self.end_by(id, super::operations::call_verdict(end), ctx, out),
        };
        self.resume_held(id, &answer, ctx, out);
    }

    /// Expires a consent question. Returns false if the timer belongs to something else.
    pub(super) fn consent_expired(
        &mut self,
        id: ExchangeId,
        round: u32,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> bool {
        let is_meant = |one: &PendingQuestion| matches!(one, PendingQuestion::Consent { exchange, round: own } if (*exchange, *own) == (id, round));
        let Some(number) = self.pending_questions.iter().find(|(_, one)| is_meant(one)).map(|(number, _)| *number)
        else {
            return false;
        };
        self.pending_questions.remove(&number);
        if let Some(stream) = self.client_stream(Some(id)) {
            self.send(Some(id), Delivery::droppable(stream), timed_out(number), ctx, out);
        }
        self.resume_held(id, &HoldAnswer::Expired, ctx, out);
        true
    }
}
