//! Intents: what the audit log records of a call before it leaves for a backend.

use super::Session;
use crate::gateway::Gateway;
use bytes::Bytes;
use signalbox_engine::audit::{Intent, IntentWrite};
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::command::Listen;
use signalbox_engine::front::AuthorizedFollow;
use signalbox_engine::{Call, Caller, Command, Context, ExchangeId, Fact};
use signalbox_wire::method;
use std::sync::Arc;
use std::task::{self, Poll, Waker};

/// Returns the result of the log if it is ready, which it is when the intent was written synchronously.
pub(super) fn poll_now(intended: &mut IntentWrite) -> Option<bool> {
    match intended.as_mut().poll(&mut task::Context::from_waker(Waker::noop())) {
        Poll::Ready(written) => Some(written),
        Poll::Pending => None,
    }
}

impl Gateway {
    /// Returns the run that the audit ids of this gateway's exchanges belong to.
    #[must_use]
    pub fn audit_run(&self) -> AuditRun {
        self.audit.run
    }
}

impl Session {
    /// Hands the calls that are about to leave for backends to the audit log. Returns `None` without a log or without
    /// calls.
    pub(super) fn write_intents(&self, facts: &[Fact], commands: &[Command], ctx: &Context<'_>) -> Option<IntentWrite> {
        let log = self.gateway.audit.log.as_ref()?;
        let intent = |exchange: ExchangeId, backend: &Arc<str>, call: &Call, is_copy: bool| {
            let about = |fact: &Fact| match fact {
                Fact::Decision(decision) if decision.exchange == Some(exchange) => Some(Arc::clone(decision)),
                _ => None,
            };
            let decisions: Vec<_> = facts.iter().filter_map(about).collect();
            let caller = decisions.first().map_or(ctx.caller.unwrap_or(&self.caller), |decision| &decision.caller);
            let tool = call.name.as_deref().filter(|_| call.method == method::TOOLS_CALL);
            Intent {
                exchange,
                session: self.key,
                caller: caller.clone(),
                method: call.method.clone(),
                subject: call.name.clone(),
                backend: Arc::clone(backend),
                is_copy,
                message: call.envelope.bytes().clone(),
                definition: tool.and_then(|tool| ctx.catalog.own_definition(tool, backend, ctx.user)).cloned(),
                decisions,
            }
        };
        let mut intents = Vec::new();
        for command in commands {
            match command {
                Command::Forward { exchange, backend, call } => intents.push(intent(*exchange, backend, call, false)),
                Command::Watch(watch) => intents.push(intent(watch.exchange, &watch.backend, &watch.call, false)),
                Command::Fork { exchange, backend, call } => {
                    intents.push(intent((*exchange).unwrap_or(ExchangeId(0)), backend, call, true));
                }
                Command::Listen(Listen::Open { exchange, follow }) => {
                    intents.extend(self.listen_intents(*exchange, follow, ctx.caller.unwrap_or(&self.caller)));
                }
                _ => {}
            }
        }
        (!intents.is_empty()).then(|| log.intend(intents))
    }

    /// Returns an intent for each resource and task that a listen request follows at a backend.
    fn listen_intents(&self, exchange: ExchangeId, follow: &AuthorizedFollow, caller: &Caller) -> Vec<Intent> {
        let targets = follow.resources().iter().chain(follow.tasks());
        let intent = |(backend, target): &(Arc<str>, Box<str>)| Intent {
            exchange,
            session: self.key,
            caller: caller.clone(),
            method: method::SUBSCRIPTIONS_LISTEN.into(),
            subject: Some(target.clone()),
            backend: Arc::clone(backend),
            is_copy: false,
            message: Bytes::new(),
            definition: None,
            // They are about all targets together, and the outcome has them.
            decisions: Vec::new(),
        };
        targets.map(intent).collect()
    }
}
