//! Intents: what the audit log records of a call before it leaves for a backend.

use super::Session;
use crate::gateway::Gateway;
use bytes::Bytes;
use signalbox_engine::audit::{Intent, IntentKind, IntentWrite};
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::command::Listen;
use signalbox_engine::exchange::MethodName;
use signalbox_engine::front::{AuthorizedFollow, carries_content};
use signalbox_engine::{Call, Caller, Command, Context, ExchangeId, Fact};
use signalbox_wire::{json, method};
use smallvec::SmallVec;
use std::sync::Arc;
use std::task::{self, Poll, Waker};

/// Returns the result of the log if it is ready, which it is when the intent was written synchronously.
pub(super) fn poll_now(intended: &mut IntentWrite) -> Option<bool> {
    match intended.as_mut().poll(&mut task::Context::from_waker(Waker::noop())) {
        Poll::Ready(written) => Some(written),
        Poll::Pending => None,
    }
}

/// Returns the method of a client's notification that carries content.
fn method_of_content(notification: &[u8]) -> Option<MethodName> {
    let method = json::string(json::member(notification, "method")?.of(notification))?;
    carries_content(&method).then(|| MethodName::Owned(method.into_owned()))
}

/// Returns a result that is true once both are.
pub(super) fn both(first: Option<IntentWrite>, second: Option<IntentWrite>) -> Option<IntentWrite> {
    match (first, second) {
        (Some(first), Some(second)) => Some(Box::pin(async move { first.await && second.await })),
        (first, second) => first.or(second),
    }
}

/// Returns the name in a record for every backend of a session.
fn every_backend(ctx: &Context<'_>) -> Arc<str> {
    ctx.catalog.only().map_or_else(|| "*".into(), Arc::clone)
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
    /// any.
    pub(super) fn write_intents(&self, facts: &[Fact], commands: &[Command], ctx: &Context<'_>) -> Option<IntentWrite> {
        let log = self.gateway.audit.log.as_ref()?;
        let intent = |exchange: ExchangeId, backend: &Arc<str>, call: &Call, kind: IntentKind| {
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
                kind,
                message: call.envelope.bytes().clone(),
                definition: tool.and_then(|tool| ctx.catalog.own_definition(tool, backend, ctx.user)).cloned(),
                decisions,
            }
        };
        let mut intents = Vec::new();
        for command in commands {
            match command {
                Command::Forward { exchange, backend, call } => {
                    intents.push(intent(*exchange, backend, call, IntentKind::Call));
                }
                Command::Watch(watch) => {
                    intents.push(intent(watch.exchange, &watch.backend, &watch.call, IntentKind::Call));
                }
                Command::Fork { exchange, backend, call } => {
                    intents.push(intent((*exchange).unwrap_or(ExchangeId(0)), backend, call, IntentKind::Copy));
                }
                Command::Listen(Listen::Open { exchange, follow }) => {
                    intents.extend(self.listen_intents(*exchange, follow, ctx.caller.unwrap_or(&self.caller)));
                }
                Command::LogLevel { exchange, message, .. } => {
                    intents.push(self.level_intent(*exchange, message, facts, ctx));
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
            kind: IntentKind::Call,
            message: Bytes::new(),
            definition: None,
            // They are about all targets together, and the outcome has them.
            decisions: Vec::new(),
        };
        targets.map(intent).collect()
    }

    /// Returns the intent of a change of the session's log level, which every backend of the session may be told.
    fn level_intent(&self, exchange: ExchangeId, message: &Bytes, facts: &[Fact], ctx: &Context<'_>) -> Intent {
        let about = |fact: &Fact| match fact {
            Fact::Decision(decision) if decision.exchange == Some(exchange) => Some(Arc::clone(decision)),
            _ => None,
        };
        Intent {
            exchange,
            session: self.key,
            caller: ctx.caller.unwrap_or(&self.caller).clone(),
            method: method::LOGGING_SET_LEVEL.into(),
            subject: None,
            backend: every_backend(ctx),
            kind: IntentKind::Call,
            message: message.clone(),
            definition: None,
            decisions: facts.iter().filter_map(about).collect(),
        }
    }

    /// Returns the intent of a notification that carries content, if there is a log. Its backend is not known yet.
    pub(super) fn notification_intent(
        &self,
        facts: &[Fact],
        commands: &[Command],
        ctx: &Context<'_>,
    ) -> Option<Intent> {
        self.gateway.audit.log.as_ref()?;
        let told = |command: &Command| match command {
            Command::Tell { draft, .. } => Some(draft.message().clone()),
            _ => None,
        };
        let message = commands.iter().find_map(told)?;
        let method = method_of_content(&message)?;
        let about = |fact: &Fact| match fact {
            Fact::Decision(decision) if decision.exchange.is_none() => Some(Arc::clone(decision)),
            _ => None,
        };
        Some(Intent {
            exchange: ExchangeId(0),
            session: self.key,
            caller: ctx.caller.unwrap_or(&self.caller).clone(),
            method,
            subject: None,
            backend: every_backend(ctx),
            kind: IntentKind::Notification,
            message,
            definition: None,
            decisions: facts.iter().filter_map(about).collect(),
        })
    }

    /// Hands a notification to the audit log if the session has a connection that it can leave by, and drops it
    /// otherwise. Backends that get a connection in the meantime do not get it, because the record does not name them.
    /// Asks the backends for their connections, so the session must not be locked.
    pub(super) fn write_notification(
        &self,
        intent: Intent,
        commands: &mut SmallVec<[Command; 2]>,
    ) -> Option<IntentWrite> {
        let log = self.gateway.audit.log.as_ref()?;
        let told = commands.iter_mut().find_map(|command| match command {
            Command::Tell { except, .. } => Some(except),
            _ => None,
        });
        let except = told?;
        let peers = self.gateway.peers_of(self.key).into_iter().filter(|peer| peer.can_send());
        let mut reached: Vec<Arc<str>> = peers.map(|peer| peer.backend_name()).collect();
        reached.retain(|name| !except.contains(name));
        reached.sort_unstable();
        reached.dedup();
        let backend = match &reached[..] {
            [] => {
                self.gateway.counters.dropped("notification_without_connection");
                commands.retain(|command| !matches!(command, Command::Tell { .. }));
                return None;
            }
            [only] => Arc::clone(only),
            _ => "*".into(),
        };
        let others = self.gateway.backends().all().map(|backend| Arc::clone(&backend.name)).collect::<Vec<_>>();
        except.extend(others.into_iter().filter(|name| !reached.contains(name)));
        Some(log.intend(vec![Intent { backend, ..intent }]))
    }
}
