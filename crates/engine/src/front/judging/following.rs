//! Targets of a listen request. Each resource and task that it names is judged as if it were requested alone.

use super::{AuthorizedFollow, JudgedContext};
use crate::catalog::Route;
use crate::chain::{Phase, Verdict};
use crate::command::Command;
use crate::exchange::Exchange;
use crate::fault::{Fault, FaultKind};
use crate::front::{Context, FrontMachine};
use crate::keys::ExchangeId;
use signalbox_wire::{Envelope, builder, method};
use std::sync::Arc;

impl FrontMachine {
    /// Adds a resource to follow if the caller could subscribe to it. A part of a request cannot be held for a
    /// question.
    pub(in crate::front) fn judge_resource(
        &self,
        id: ExchangeId,
        uri: &str,
        route: &Route,
        follow: &mut AuthorizedFollow,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> bool {
        let may = !ctx.chain.looks_at(Phase::Request) || self.may_subscribe(id, uri, route, ctx, out);
        if may {
            follow.resource(route);
        }
        may
    }

    fn may_subscribe(
        &self,
        id: ExchangeId,
        uri: &str,
        route: &Route,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> bool {
        let Some(exchange) = self.exchanges.get(&id) else { return false };
        let request = builder::RequestBuilder::new(method::RESOURCES_SUBSCRIBE).id(exchange.client_id.clone());
        let Ok(message) = Envelope::parse(request.param_str("uri", uri).build()) else { return false };
        let alone = Exchange {
            method: method::RESOURCES_SUBSCRIBE.into(),
            subject: Some(uri.into()),
            asked_name: None,
            own_name: Some(route.name.clone()),
            backend: Some(Arc::clone(&route.backend)),
            ..exchange.clone()
        };
        let judged = self.consult(JudgedContext::part(id, &alone), &message, None, ctx, out);
        let refused = match judged.verdict {
            Verdict::Pass => return true,
            Verdict::Refuse(fault) => fault,
            _ => Fault::new(FaultKind::Refused, "a part of a request is not changed, held or answered"),
        };
        self.not_followed(id, method::RESOURCES_SUBSCRIBE, uri, Some(&refused), ctx, out);
        false
    }

    /// Adds a task to follow if the caller may know of it.
    pub(in crate::front) fn judge_task(
        &self,
        id: ExchangeId,
        task: &str,
        follow: &mut AuthorizedFollow,
        ctx: &Context<'_>,
    ) -> Option<Route> {
        let route = self.task_route(id, task, ctx)?;
        follow.task(&route);
        Some(route)
    }
}
