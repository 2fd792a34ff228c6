//! What backends ask and tell, on its way to the client.

use super::{Asked, Context, FrontMachine, MAX_ASKED, Mode};
use crate::chain::Phase;
use crate::command::Command;
use crate::fault::{Fault, FaultKind};
use crate::keys::{ExchangeId, PeerId, StreamId};
use crate::limit::Limit;
use crate::log_level::LogLevel;
use signalbox_wire::{Edits, Envelope, Era, RawId, json, meta, method};
use std::sync::Arc;

impl FrontMachine {
    /// Passes a backend's question on under an id of ours.
    pub(super) fn asked(
        &mut self,
        peer: PeerId,
        message: &Envelope,
        about: Option<ExchangeId>,
        out: &mut Vec<Command>,
    ) {
        let Some(id) = message.id() else { return };
        let refusal = if self.asked.len() >= MAX_ASKED {
            out.push(Command::Refused(Limit::Questions));
            Some(Fault::new(FaultKind::Overloaded, "too many questions wait for this client"))
        } else {
            None
        };
        let stream = self.way_to_client(about);
        let (Some(stream), None) = (stream, &refusal) else {
            let fault = refusal.unwrap_or_else(|| {
                Fault::new(FaultKind::MethodNotFound, "the client has no stream open on which it could be asked")
            });
            return out.push(Command::RefuseQuestion { peer, id, fault });
        };
        let number = self.next_question;
        self.next_question += 1;
        let mut edits = Edits::new();
        if let Some(span) = message.id_span() {
            edits.replace(span, number.to_string().into_bytes());
        }
        let token = in_params(message, &["_meta", "progressToken"]);
        if let Some(span) = token {
            edits.replace(span, number.to_string().into_bytes());
        }
        let progress_token = token.map(|span| RawId::from_token(message.bytes().slice(span.range())));
        self.asked.insert(number, Asked::Peer { peer, id, progress_token, about });
        let bytes = edits.apply(message.bytes());
        out.push(Command::Send { stream, bytes, last: false, droppable: false, status: 200 });
    }

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
        self.backend_fact(about, backend, message.bytes(), ctx, out);
        let judged = self.judge_notification(Phase::FromBackend, (about, Some(backend)), message, ctx, out);
        let Some(message) = &judged else { return };
        let mut edits = Edits::new();
        if let Some(listener) = about.filter(|id| self.listeners.contains_key(id)) {
            return self.heard(listener, backend, message, edits, out);
        }
        match message.method().unwrap_or_default() {
            method::PROGRESS => self.progressed(message, about, edits, out),
            method::MESSAGE => self.logged(message, about, &edits, out),
            method::RESOURCES_UPDATED => {
                let span = in_params(message, &["uri"]);
                let uri = span.and_then(|span| json::string(span.of(message.bytes())));
                if let (Some(span), Some(uri)) = (span, uri) {
                    let followed = self.followed.get(&(Arc::clone(backend), uri.as_ref().into())).map(|ours| &**ours);
                    if let Some(ours) = followed.or_else(|| ctx.catalog.renamed_uri(backend, &uri)) {
                        edits.replace(span, json::quote(ours));
                    }
                }
                // The number of a listen request of ours means nothing to the client.
                if let Some(own) = in_params(message, &["_meta"]) {
                    edits.remove_member(message.bytes(), own, meta::SUBSCRIPTION_ID);
                }
                self.pass(message, about, &edits, true, out);
            }
            method::CANCELLED => self.question_cancelled(peer, message, edits, out),
            _ => self.pass(message, about, &edits, false, out),
        }
    }

    fn progressed(&mut self, message: &Envelope, about: Option<ExchangeId>, mut edits: Edits, out: &mut Vec<Command>) {
        let exchange = about.and_then(|id| self.exchanges.get(&id));
        let token = exchange.and_then(|exchange| exchange.progress_token.as_ref());
        let (Some(exchange), Some(token), Some(span)) = (exchange, token, in_params(message, &["progressToken"]))
        else {
            return out.push(Command::Dropped("stray_progress"));
        };
        if !exchange.stream_open {
            return out.push(Command::Dropped("client_gone"));
        }
        if exchange.progress > 0.0 {
            let number = in_params(message, &["progress"]).and_then(|span| number(span.of(message.bytes())));
            if number.is_some_and(|number| number <= exchange.progress) {
                // The client was told more while its call was held, and progress may only grow.
                return out.push(Command::Dropped("stale_progress"));
            }
        }
        edits.replace(span, token.token());
        let bytes = edits.apply(message.bytes());
        out.push(Command::Send { stream: exchange.stream, bytes, last: false, droppable: true, status: 200 });
    }

    fn logged(&mut self, message: &Envelope, about: Option<ExchangeId>, edits: &Edits, out: &mut Vec<Command>) {
        let level = in_params(message, &["level"])
            .and_then(|span| json::string(span.of(message.bytes())))
            .and_then(|name| LogLevel::parse(&name));
        let exchange = about.and_then(|id| self.exchanges.get(&id));
        let (wanted, modern) = match exchange.filter(|exchange| exchange.era == Era::Modern) {
            Some(exchange) => (exchange.log_level, true),
            None => (self.log_level, self.mode == Mode::Stateless),
        };
        // In the new era a request that names no level hears nothing; in the old one the server decides.
        if wanted.is_none() && modern || wanted.zip(level).is_some_and(|(wanted, level)| level < wanted) {
            return;
        }
        self.pass(message, about, edits, true, out);
    }

    /// The backend takes back a question; the client knows it under another id.
    fn question_cancelled(&mut self, peer: PeerId, message: &Envelope, mut edits: Edits, out: &mut Vec<Command>) {
        let Some(span) = in_params(message, &["requestId"]) else { return };
        let id = RawId::from_token(message.bytes().slice(span.range()));
        let same =
            |one: &Asked| matches!(one, Asked::Peer { peer: own, id: theirs, .. } if *own == peer && *theirs == id);
        let number = self.asked.iter().find(|(_, one)| same(one)).map(|(number, _)| *number);
        let Some(number) = number else { return out.push(Command::Dropped("stray_cancel")) };
        self.asked.remove(&number);
        edits.replace(span, number.to_string().into_bytes());
        self.pass(message, None, &edits, false, out);
    }

    fn pass(
        &self,
        message: &Envelope,
        about: Option<ExchangeId>,
        edits: &Edits,
        droppable: bool,
        out: &mut Vec<Command>,
    ) {
        match self.way_to_client(about) {
            Some(stream) => {
                let bytes = edits.apply(message.bytes());
                out.push(Command::Send { stream, bytes, last: false, droppable, status: 200 });
            }
            None => out.push(Command::Dropped("no_stream")),
        }
    }

    /// The stream of the call it is about, else the general one, else that of the newest call in flight.
    pub(super) fn way_to_client(&self, about: Option<ExchangeId>) -> Option<StreamId> {
        let of_call = about.and_then(|id| self.exchanges.get(&id)).filter(|exchange| exchange.stream_open);
        if let Some(exchange) = of_call {
            return Some(exchange.stream);
        }
        self.general.or_else(|| {
            let open = self.exchanges.values().filter(|exchange| exchange.stream_open);
            open.max_by_key(|exchange| exchange.id).map(|exchange| exchange.stream)
        })
    }
}

/// Where a member of `params` stands in the whole message.
pub(super) fn in_params(message: &Envelope, path: &[&str]) -> Option<signalbox_wire::Span> {
    let whole = message.params_span()?;
    json::path(message.params()?, path).map(|span| span.shift(whole.start))
}

fn number(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}
