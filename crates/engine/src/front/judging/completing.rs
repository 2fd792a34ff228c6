//! URIs that a completion names: what its request makes of a resource or template, and what each proposed value makes
//! of it. Each is judged as if it were read, because a completion says what is there.

use crate::caller::Principal;
use crate::catalog::{EntryRef, ListKind};
use crate::chain::{Case, Phase, Ruling};
use crate::command::Command;
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::front::{CompletedTemplate, Context, FrontMachine};
use crate::keys::ExchangeId;
use signalbox_wire::{Envelope, builder, json, method};

impl FrontMachine {
    /// Fails a completion that names a URI which interceptors would not let its caller read. Returns false if it did.
    pub(in crate::front) fn judge_completion(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> bool {
        let refusal = self.exchanges.get(&id).and_then(|exchange| {
            let template = exchange.completed_template.as_ref()?;
            let argument = message.params().and_then(|params| {
                let span = json::path(params, &["argument", "value"])?;
                json::string(span.of(params))
            });
            // What is too much to try is never proposed.
            let uris = template.expansions(&argument.unwrap_or_default())?;
            let reads = Reads::of(exchange, &self.principal, ctx);
            uris.iter().find_map(|uri| reads.refusal(uri))
        });
        let Some((name, fault)) = refusal else { return true };
        self.decided(Some(id), "request", [(name, Ruling::of("refuse", fault.message.clone()).into())], ctx, out);
        self.fail(id, &fault, ctx, out);
        false
    }

    /// Reads the template of a completion from the request as it leaves.
    pub(in crate::front) fn note_completed_template(&mut self, id: ExchangeId, message: &Envelope, own_uri: &str) {
        let Some(exchange) = self.exchanges.get_mut(&id).filter(|exchange| exchange.completes_resource) else { return };
        let template = message.params().and_then(|params| CompletedTemplate::read(params, own_uri));
        exchange.completed_template = template.map(Box::new);
    }
}

/// Judges reads of resources of one backend, on behalf of the caller of an exchange.
pub(in crate::front) struct Reads<'a> {
    exchange: &'a Exchange,
    acts_for: &'a Principal,
    ctx: &'a Context<'a>,
}

impl<'a> Reads<'a> {
    pub(in crate::front) fn of(exchange: &'a Exchange, acts_for: &'a Principal, ctx: &'a Context<'a>) -> Self {
        Self { exchange, acts_for, ctx }
    }

    /// Returns false if nothing would ever be refused.
    pub(in crate::front) fn may_refuse(&self) -> bool {
        self.ctx.sight.is_some() || self.ctx.chain.looks_at(Phase::Request)
    }

    /// Returns true if the caller may use the resource with this URI of the backend.
    pub(in crate::front) fn allow(&self, uri: &str) -> bool {
        let backend = self.exchange.backend.as_deref().unwrap_or_default();
        let entry = EntryRef { kind: ListKind::Resources, backend, name: uri, definition: None };
        self.ctx.sight.is_none_or(|sight| sight.keeps(&entry)) && self.refusal(uri).is_none()
    }

    /// Returns the fault with which an interceptor would refuse to read this URI of the backend.
    fn refusal(&self, uri: &str) -> Option<(&'static str, Fault)> {
        let Self { exchange, acts_for, ctx } = self;
        if !ctx.chain.looks_at(Phase::Request) {
            return None;
        }
        let backend = exchange.backend.as_deref().unwrap_or_default();
        let exposed = ctx.catalog.exposed_uri(backend, uri).unwrap_or(uri.into());
        let request = builder::RequestBuilder::new(method::RESOURCES_READ).id(exchange.client_id.clone());
        let message = Envelope::parse(request.param_str("uri", &exposed).build()).ok()?;
        let read = Exchange {
            method: method::RESOURCES_READ.into(),
            subject: Some((*exposed).into()),
            asked_name: None,
            own_name: Some(uri.into()),
            completes_resource: false,
            completed_template: None,
            ..(*exchange).clone()
        };
        let client = exchange.client.as_ref();
        ctx.chain.would_refuse(&Case {
            phase: Phase::Request,
            message: &message,
            exchange: Some(&read),
            caller: &exchange.caller,
            acts_for,
            session: ctx.session,
            session_started: ctx.session_started,
            revision: client.map(|client| client.revision.as_str()),
            backend: Some(backend),
            definition: None,
            attempt: 1,
            round: 1,
            can_wait: true,
            by_task: false,
            task_tool: None,
            now: ctx.now,
            unix_ms: (ctx.unix_ms)(),
        })
    }
}
