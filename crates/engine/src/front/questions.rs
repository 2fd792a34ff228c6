//! Questions of old backends to an old client in the middle of its session, and the client's answers. Both are
//! recorded, judged, and limited to what the client declared.

use super::inward::in_params;
use super::judging::{ClientMessage, InstantVerdict};
use super::sending::Delivery;
use super::withdrawn::QuestionSubject;
use super::{Context, FrontMachine, MAX_ASKED};
use crate::back::Draft;
use crate::bridge::capabilities;
use crate::chain::Phase;
use crate::command::Command;
use crate::fact::Point;
use crate::fault::{Fault, FaultKind};
use crate::keys::{ExchangeId, PeerId};
use crate::limit::Limit;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, RawId, builder, method};
use std::sync::Arc;

/// Question that the client has yet to answer.
#[derive(Clone, Debug)]
pub(super) enum PendingQuestion {
    /// Question of an old backend, on the stream of a call if known.
    Peer { peer: PeerId, id: RawId, progress_token: Option<RawId>, subject: QuestionSubject },
    /// Question of a backend of the new era in answer to a call; see [`super::input_requests`].
    Round { exchange: ExchangeId, key: Bytes, method: Box<str> },
    /// The gateway's question whether a call may run; see [`super::consent`].
    Consent { exchange: ExchangeId, round: u32 },
}

impl PendingQuestion {
    pub fn is_of(&self, peer: PeerId) -> bool {
        matches!(self, Self::Peer { peer: own, .. } if *own == peer)
    }

    /// Returns the exchange during which the question was asked.
    pub fn exchange(&self) -> Option<ExchangeId> {
        match self {
            Self::Peer { subject, .. } => subject.about,
            Self::Round { exchange, .. } | Self::Consent { exchange, .. } => Some(*exchange),
        }
    }

    /// Returns the backend that asked, if the exchange does not name it.
    pub fn backend(&self) -> Option<&Arc<str>> {
        match self {
            Self::Peer { subject, .. } => Some(&subject.backend),
            Self::Round { .. } | Self::Consent { .. } => None,
        }
    }

    /// Returns true if the question ends with this exchange.
    pub fn belongs_to(&self, id: ExchangeId) -> bool {
        match self {
            Self::Peer { subject, .. } => subject.about == Some(id),
            Self::Round { exchange, .. } | Self::Consent { exchange, .. } => *exchange == id,
        }
    }
}

impl FrontMachine {
    /// Passes a backend's question on under an id of the gateway.
    pub(super) fn backend_asked(
        &mut self,
        backend: &Arc<str>,
        peer: PeerId,
        message: &Envelope,
        about: Option<ExchangeId>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(id) = message.id() else { return };
        let refuse = |fault: &Fault| Command::Respond { peer, exchange: about, draft: Draft::refusal(&id, fault) };
        let subject = QuestionSubject::of(backend, about, message);
        if let Some(fault) = self.withdrawn_question(&subject, ctx) {
            out.push(Command::Dropped("withdrawn_question"));
            return out.push(refuse(&fault));
        }
        if self.pending_questions.len() >= MAX_ASKED {
            out.push(Command::Refused(Limit::Questions));
            let fault = Fault::new(FaultKind::Overloaded, "too many questions wait for this client");
            return out.push(refuse(&fault));
        }
        if let Some(fault) = self.undeclared_fault(message) {
            out.push(Command::Dropped("undeclared_question"));
            return out.push(refuse(&fault));
        }
        let message = match ctx.asker(backend).sign_request(message) {
            Ok(message) => message,
            Err(no) => {
                out.push(Command::Dropped("unaskable_question"));
                return out.push(refuse(&no.refusal()));
            }
        };
        let message = if ctx.chain.looks_at(Phase::ServerAsks) {
            let about = (about, Some(&**backend));
            match self.consult_at_once(Phase::ServerAsks, about, &message, ctx, out) {
                InstantVerdict::Pass(message) => message,
                InstantVerdict::Answered(result) => {
                    return out.push(answer(peer, about.0, builder::response(&id, &result)));
                }
                InstantVerdict::Failed(error) => {
                    let bytes = super::judging::error_message(&id, &error);
                    return out.push(answer(peer, about.0, bytes));
                }
                InstantVerdict::Refused(fault) => return out.push(refuse(&fault)),
            }
        } else {
            message
        };
        let Some(stream) = self.client_stream(about) else {
            out.push(Command::Dropped("no_stream"));
            let text = "the client has no stream open on which it could be asked";
            return out.push(refuse(&Fault::new(FaultKind::MethodNotFound, text)));
        };
        let number = self.next_question;
        self.next_question += 1;
        let mut edits = Edits::new();
        if let Some(span) = message.id_span() {
            edits.replace(span, number.to_string().into_bytes());
        }
        let token = in_params(&message, &["_meta", "progressToken"]);
        if let Some(span) = token {
            edits.replace(span, number.to_string().into_bytes());
        }
        let progress_token = token.map(|span| RawId::from_token(message.bytes().slice(span.range())));
        self.pending_questions.insert(number, PendingQuestion::Peer { peer, id, progress_token, subject });
        self.send(about, Delivery::midway(stream), Self::passed(&message).edited(&edits), ctx, out);
    }

    /// Returns the fault for a question of a kind that the client did not declare.
    fn undeclared_fault(&self, message: &Envelope) -> Option<Fault> {
        let name = message.method().unwrap_or_default();
        let known = matches!(name, method::SAMPLING_CREATE_MESSAGE | method::ELICITATION_CREATE | method::ROOTS_LIST);
        let client = self.client.as_ref().filter(|_| known)?;
        let declared = client.modern_capabilities(false);
        if capabilities::allows(declared.as_bytes(), name, message.params().unwrap_or_default()) {
            return None;
        }
        let text = format!("the client did not declare that it can be asked `{name}`");
        Some(Fault::new(FaultKind::MethodNotFound, text))
    }

    /// Passes the client's answer to the backend that asked, under the backend's id.
    pub(super) fn client_answered(&mut self, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let number = message.id().and_then(|id| id.as_u64());
        let Some(question) = number.and_then(|number| self.pending_questions.remove(&number)) else {
            self.record_client_message(None, message.bytes(), Some("orphan"), ctx, out);
            return out.push(Command::Dropped("orphan_client_answer"));
        };
        self.message_fact(question.exchange(), Point::ClientIn, message.bytes(), ctx, out);
        let judged = if let Some(fault) = self.withdrawn_answer(&question, ctx) {
            out.push(Command::Dropped("withdrawn_answer"));
            InstantVerdict::Refused(fault)
        } else if ctx.chain.looks_at(Phase::ClientAnswers) {
            let about = (question.exchange(), question.backend().map(|name| &**name));
            self.consult_at_once(Phase::ClientAnswers, about, message, ctx, out)
        } else {
            InstantVerdict::Pass(message.clone())
        };
        match question {
            PendingQuestion::Peer { peer, id, subject, .. } => {
                let about = subject.about;
                let bytes = match judged {
                    InstantVerdict::Pass(message) => message.with_id(id.token()),
                    InstantVerdict::Answered(result) => builder::response(&id, &result),
                    InstantVerdict::Failed(error) => super::judging::error_message(&id, &error),
                    InstantVerdict::Refused(fault) => {
                        return out.push(Command::Respond {
                            peer,
                            exchange: about,
                            draft: Draft::refusal(&id, &fault),
                        });
                    }
                };
                out.push(answer(peer, about, bytes));
            }
            PendingQuestion::Round { exchange, key, method } => {
                let message = match judged {
                    InstantVerdict::Pass(message) => message,
                    InstantVerdict::Answered(result) => {
                        let Ok(message) = Envelope::parse(builder::response(&RawId::number(0), &result)) else {
                            return;
                        };
                        message
                    }
                    end => return self.end_by(exchange, super::operations::call_verdict(end), ctx, out),
                };
                self.input_answered(exchange, key, &method, &message, ctx, out);
            }
            PendingQuestion::Consent { exchange, .. } => self.consent_answered(exchange, judged, ctx, out),
        }
    }

    /// Judges a question of a new backend to an old client.
    ///
    /// # Errors
    /// Returns the end of the call, if the client may not be asked.
    pub(super) fn judge_question(
        &self,
        id: ExchangeId,
        request: Bytes,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<ClientMessage, InstantVerdict> {
        let bad = |_| {
            InstantVerdict::Refused(Fault::new(
                FaultKind::BackendGarbage,
                "a question of the backend is not a valid message",
            ))
        };
        let message = Envelope::parse(request).map_err(bad)?;
        if !ctx.chain.looks_at(Phase::ServerAsks) {
            return Ok(Self::passed(&message));
        }
        match self.consult_at_once(Phase::ServerAsks, (Some(id), None), &message, ctx, out) {
            InstantVerdict::Pass(message) => Ok(Self::passed(&message)),
            end => Err(end),
        }
    }
}

fn answer(peer: PeerId, exchange: Option<ExchangeId>, bytes: Bytes) -> Command {
    Command::Respond { peer, exchange, draft: Draft::word("", bytes) }
}
