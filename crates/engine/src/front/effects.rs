//! Side effects of interceptors: log lines, counters, webhook notifications, and copies to other backends.
//!
//! A copy is sent when the request itself continues: when it goes to its backend, or an interceptor answers it. The
//! operator chose the copy's destination, so the verdict on the request covers it and it needs no permission of its
//! own.

use super::rounds::refit;
use super::{Context, FrontMachine};
use crate::chain::Effect;
use crate::command::Command;
use crate::exchange::Call;
use crate::keys::ExchangeId;
use crate::profile::ClientProfile;
use signalbox_wire::{Envelope, method};
use std::sync::Arc;

/// Turns side effects into commands and returns the copies still to be sent.
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
    /// Sends the copies that interceptors requested while judging a request that now continues.
    pub(super) fn send_copies(&mut self, id: ExchangeId, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if !self.copies.is_empty() {
            let copies = self.copies.remove(&id).unwrap_or_default();
            self.copy(Some(id), copies, ctx, out);
        }
    }

    /// Stores copies until their request continues. They are dropped with it if it does not.
    pub(super) fn keep_copies(&mut self, id: ExchangeId, copies: Vec<Effect>) {
        if !copies.is_empty() && self.exchanges.contains_key(&id) {
            self.copies.entry(id).or_default().extend(copies);
        }
    }
}

/// Builds the copy of a request for another backend.
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
