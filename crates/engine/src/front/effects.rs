//! Side effects of interceptors: log lines, counters, notifications of webhooks, and copies to other backends.
//!
//! A copy leaves when the request itself goes on: when it is sent to its backend, or answered by an interceptor. Where it goes is the
//! operator's word, so the verdict on the request governs it, and no permission of its own.

use super::rounds::refit;
use super::{Context, FrontMachine};
use crate::chain::Effect;
use crate::command::Command;
use crate::exchange::Call;
use crate::keys::ExchangeId;
use crate::profile::ClientProfile;
use signalbox_wire::{Envelope, method};
use std::sync::Arc;

/// Turns side effects into commands, and gives the copies back that are to be sent.
pub(super) fn run_effects(effects: Vec<Effect>, out: &mut Vec<Command>) -> Vec<Effect> {
    let is_fork = |effect: &Effect| matches!(effect, Effect::Fork { .. });
    if !effects.iter().any(is_fork) {
        out.push(Command::Effects(effects));
        return Vec::new();
    }
    let (forks, others): (Vec<_>, Vec<_>) = effects.into_iter().partition(is_fork);
    if !others.is_empty() {
        out.push(Command::Effects(others));
    }
    forks
}

impl FrontMachine {
    /// Sends the copies of a request that goes on, which interceptors wanted while it was judged.
    pub(super) fn send_copies(&mut self, id: ExchangeId, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if !self.copies.is_empty() {
            let copies = self.copies.remove(&id).unwrap_or_default();
            self.copy(Some(id), copies, ctx, out);
        }
    }

    /// Keeps copies until their request goes on. They are forgotten with it if it does not.
    pub(super) fn keep_copies(&mut self, id: ExchangeId, copies: Vec<Effect>) {
        if !copies.is_empty() && self.exchanges.contains_key(&id) {
            self.copies.entry(id).or_default().extend(copies);
        }
    }
}

/// The copy of a request, for another backend.
pub(super) fn copied_call(message: Envelope, client: &Arc<ClientProfile>, ctx: &Context<'_>) -> Option<Call> {
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
    Some(call)
}
