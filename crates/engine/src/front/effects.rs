//! Side effects of interceptors: log lines, counters, notifications of webhooks, and copies to other backends.

use super::Context;
use super::rounds::refit;
use crate::chain::Effect;
use crate::command::Command;
use crate::exchange::Call;
use crate::keys::ExchangeId;
use crate::profile::ClientProfile;
use signalbox_wire::{Envelope, method};
use std::sync::Arc;

/// Turns side effects into commands.
pub(super) fn run_effects(
    effects: Vec<Effect>,
    exchange: Option<ExchangeId>,
    client: Option<&Arc<ClientProfile>>,
    ctx: &Context<'_>,
    out: &mut Vec<Command>,
) {
    let is_fork = |effect: &Effect| matches!(effect, Effect::Fork { .. });
    if !effects.iter().any(is_fork) {
        return out.push(Command::Effects(effects));
    }
    let (forks, others): (Vec<_>, Vec<_>) = effects.into_iter().partition(is_fork);
    for effect in forks {
        if let (Effect::Fork { backend, message }, Some(client)) = (effect, client) {
            out.extend(fork(backend, message, exchange, client, ctx));
        }
    }
    if !others.is_empty() {
        out.push(Command::Effects(others));
    }
}

fn fork(
    backend: Arc<str>,
    message: Envelope,
    exchange: Option<ExchangeId>,
    client: &Arc<ClientProfile>,
    ctx: &Context<'_>,
) -> Option<Command> {
    let mut call = Call::copy_of(message, Arc::clone(client))?;
    let subject = call.name.clone().unwrap_or_default();
    let route = match &*call.method {
        method::TOOLS_CALL => ctx.catalog.tool(&subject),
        method::PROMPTS_GET => ctx.catalog.prompt(&subject),
        method::RESOURCES_READ => ctx.catalog.resource(&subject),
        _ => None,
    };
    // The other backend knows the subject by its own name, not by the exposed one.
    if let Some(route) = route.filter(|route| route.renamed) {
        call.name = Some(route.name);
        let message = call.envelope.clone();
        refit(&mut call, message, Some(&subject));
    }
    Some(Command::Fork { exchange, backend, call: Box::new(call) })
}
