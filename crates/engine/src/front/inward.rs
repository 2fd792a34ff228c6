//! Notifications of backends on their way to the client.

use super::exchanges::Stage;
use super::judging::REFUSED_NOTIFICATION;
use super::questions::PendingQuestion;
use super::sending::Delivery;
use super::task_ownership::TaskOwner;
use super::{Context, FrontMachine, Mode};
use crate::caller::Proof;
use crate::catalog::ListKind;
use crate::chain::Phase;
use crate::command::Command;
use crate::exchange::Exchange;
use crate::keys::{ExchangeId, PeerId, StreamId};
use crate::log_level::LogLevel;
use crate::notice_origin;
use crate::question_origin::{Asker, UnaskableQuestion};
use signalbox_wire::{Edits, Envelope, Era, RawId, json, meta, method};
use std::sync::Arc;

impl FrontMachine {
    /// Passes a backend's notification on.
    pub(super) fn notified(
        &mut self,
        backend: &Arc<str>,
        peer: PeerId,
        message: &Envelope,
        about: Option<ExchangeId>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if !ctx.sees_backend(backend) || self.is_withheld(backend, message, about, ctx) {
            return;
        }
        let client = about.and_then(|id| self.exchanges.get(&id)).and_then(|exchange| exchange.client.as_deref());
        let asker = ctx.asker(backend);
        let signed = match signed_notice(message, client.map_or(asker, |client| asker.of_client(client)), ctx) {
            Ok(signed) => signed,
            Err(UnaskableQuestion::Undeclared { .. }) => return out.push(Command::Dropped("undeclared_question")),
            Err(_) => return out.push(Command::Dropped("unaskable_question")),
        };
        let message = signed.as_ref().unwrap_or(message);
        let judged = self.judge_notification(Phase::FromBackend, (about, Some(backend)), message, ctx, out);
        let Ok(message) = &judged else { return out.push(Command::Dropped(REFUSED_NOTIFICATION)) };
        let mut edits = Edits::new();
        if let Some(listener) = about.filter(|id| self.exchanges.stage(*id).is_some_and(Stage::is_listening)) {
            return self.notify_listener(listener, backend, message, edits, ctx, out);
        }
        match message.method().unwrap_or_default() {
            method::PROGRESS => self.forward_progress(message, about, edits, ctx, out),
            method::MESSAGE => self.forward_log(message, about, &edits, ctx, out),
            method::RESOURCES_UPDATED => {
                let span = in_params(message, &["uri"]);
                let uri = span.and_then(|span| json::string(span.of(message.bytes())));
                if let (Some(span), Some(uri)) = (span, uri) {
                    let followed = self.followed.get(&(Arc::clone(backend), uri.as_ref().into())).map(|ours| &**ours);
                    if let Some(ours) = followed.or_else(|| ctx.catalog.renamed_uri(backend, &uri)) {
                        edits.replace(span, json::quote(ours));
                    }
                }
                // The id of the gateway's own listen request means nothing to the client.
                if let Some(own) = in_params(message, &["_meta"]) {
                    edits.remove_member(message.bytes(), own, meta::SUBSCRIPTION_ID);
                }
                self.pass(message, about, &edits, true, ctx, out);
            }
            method::CANCELLED => self.question_cancelled(peer, message, edits, ctx, out),
            _ => self.pass(message, about, &edits, false, ctx, out),
        }
    }

    /// Returns true for a notification about a resource that the caller followed and may no longer know of, or about a
    /// task that it may not know of.
    fn is_withheld(
        &self,
        backend: &Arc<str>,
        message: &Envelope,
        about: Option<ExchangeId>,
        ctx: &Context<'_>,
    ) -> bool {
        let text = |key: &str| in_params(message, &[key]).and_then(|span| json::string(span.of(message.bytes())));
        match message.method() {
            Some(method::RESOURCES_UPDATED) => {
                text("uri").is_some_and(|uri| !ctx.keeps(ListKind::Resources, backend, &uri))
            }
            Some(method::TASKS_STATUS | method::TASKS_CHANGED) => {
                let exchange = about.and_then(|id| self.exchanges.get(&id));
                let whose = exchange.map_or(TaskOwner { caller: &self.caller, era: Era::Legacy }, TaskOwner::of);
                text("taskId").is_none_or(|task| !self.shows_task(whose, backend, &task, ctx))
            }
            _ => false,
        }
    }

    fn forward_progress(
        &self,
        message: &Envelope,
        about: Option<ExchangeId>,
        mut edits: Edits,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let exchange = about.and_then(|id| self.exchanges.get(&id));
        let token = exchange.and_then(|exchange| exchange.progress_token.as_ref());
        let (Some(exchange), Some(token), Some(span)) = (exchange, token, in_params(message, &["progressToken"]))
        else {
            return out.push(Command::Dropped("stray_progress"));
        };
        if !exchange.stream_open {
            return out.push(Command::Dropped("client_gone"));
        }
        edits.replace(span, token.token());
        if exchange.held_progress > 0 {
            // The client has already been told the seconds of the hold, and progress may only grow, so they are added
            // to the backend's own.
            for member in ["progress", "total"] {
                let place = in_params(message, &[member]);
                let Some((span, own)) = place.and_then(|span| Some((span, number(span.of(message.bytes()))?))) else {
                    continue;
                };
                #[allow(clippy::cast_precision_loss, reason = "no call is held for so many seconds")]
                let sum = own + exchange.held_progress as f64;
                edits.replace(span, sum.to_string().as_bytes());
            }
        }
        self.send(about, Delivery::droppable(exchange.stream), Self::passed(message).edited(&edits), ctx, out);
    }

    fn forward_log(
        &self,
        message: &Envelope,
        about: Option<ExchangeId>,
        edits: &Edits,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let level = in_params(message, &["level"])
            .and_then(|span| json::string(span.of(message.bytes())))
            .and_then(|name| LogLevel::parse(&name));
        let exchange = about.and_then(|id| self.exchanges.get(&id));
        let (wanted, modern) = match exchange.filter(|exchange| exchange.era == Era::Modern) {
            Some(exchange) => (exchange.log_level, true),
            None => (self.log_level, self.mode == Mode::Stateless),
        };
        // In the new era a request without a log level gets no log messages; in the old one the server decides.
        if wanted.is_none() && modern || wanted.zip(level).is_some_and(|(wanted, level)| level < wanted) {
            return;
        }
        self.pass(message, about, edits, true, ctx, out);
    }

    /// Cancels a backend's question at the client, which knows it under another id.
    fn question_cancelled(
        &mut self,
        peer: PeerId,
        message: &Envelope,
        mut edits: Edits,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(span) = in_params(message, &["requestId"]) else { return };
        let id = RawId::from_token(message.bytes().slice(span.range()));
        let same = |one: &PendingQuestion| matches!(one, PendingQuestion::Peer { peer: own, id: theirs, .. } if *own == peer && *theirs == id);
        let number = self.pending_questions.iter().find(|(_, one)| same(one)).map(|(number, _)| *number);
        let Some(number) = number else { return out.push(Command::Dropped("stray_cancel")) };
        self.pending_questions.remove(&number);
        edits.replace(span, number.to_string().into_bytes());
        self.pass(message, None, &edits, false, ctx, out);
    }

    fn pass(
        &self,
        message: &Envelope,
        about: Option<ExchangeId>,
        edits: &Edits,
        droppable: bool,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let passed = Self::passed(message).edited(edits);
        match self.client_stream(about) {
            Some(stream) => self.send(about, Delivery { droppable, ..Delivery::midway(stream) }, passed, ctx, out),
            None => self.lose(about, &passed, "no_stream", ctx, out),
        }
    }

    /// Returns the stream for a message to the client: that of the call it is about, else the general one, else that of
    /// the newest call in flight whose caller has the same rights. Streams that take only answers are never used.
    pub(super) fn client_stream(&self, about: Option<ExchangeId>) -> Option<StreamId> {
        let carries = |exchange: &&Exchange| exchange.stream_open && !self.answers_only.contains(&exchange.stream);
        let of_call = about.and_then(|id| self.exchanges.get(&id)).filter(carries);
        if let Some(exchange) = of_call {
            return Some(exchange.stream);
        }
        // Requests of one session may come with several credentials, and a weaker one must not hear what it may not
        // ask.
        let owner = about.and_then(|id| self.exchanges.get(&id)).map_or(&self.caller, |exchange| &exchange.caller);
        let may_hear = |exchange: &&Exchange| {
            owner.identity().proof == Proof::Unproved || exchange.caller.identity().has_rights_of(owner.identity())
        };
        self.general.or_else(|| {
            let open = self.exchanges.values().filter(carries).filter(may_hear);
            open.max_by_key(|exchange| exchange.id).map(|exchange| exchange.stream)
        })
    }
}

/// Rewrites a notification whose sender could be mistaken: one in the name of the gateway or of another backend, or a
/// task with questions. Returns `None` if it can stay as it is.
fn signed_notice(
    message: &Envelope,
    asker: Asker<'_>,
    ctx: &Context<'_>,
) -> Result<Option<Envelope>, UnaskableQuestion> {
    let mut edits = Edits::new();
    notice_origin::own_meta(asker.backend, message, &mut edits);
    match (message.method(), message.params_span()) {
        (Some(method::MESSAGE), _) => {
            let others = ctx.catalog.backends().iter().map(|entry| &*entry.name);
            notice_origin::rename_logger(asker.backend, others, message, &mut edits);
        }
        (Some(method::TASKS_CHANGED), Some(params)) => asker.sign_within(message.bytes(), params, &mut edits)?,
        _ => {}
    }
    if edits.is_empty() {
        return Ok(None);
    }
    Envelope::parse(edits.apply(message.bytes())).map(Some).map_err(|_| UnaskableQuestion::Shape)
}

/// Returns the span of a member of `params` in the whole message.
pub(super) fn in_params(message: &Envelope, path: &[&str]) -> Option<signalbox_wire::Span> {
    let whole = message.params_span()?;
    json::path(message.params()?, path).map(|span| span.shift(whole.start))
}

fn number(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}
