//! Delivery of a backend's notifications and questions to sessions.

use super::Peer;
use crate::backend::{Backend, QuestionTime};
use crate::bridged_call_driver::{BridgedCallDriver, Waiter};
use crate::origin::Origin;
use crate::session::Session;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{Event, ExchangeId, Fault, FaultKind, bridge, question_origin};
use signalbox_wire::{Envelope, RawId, json, method};
use std::sync::Arc;
use std::time::Duration;

/// Time limit for the backend to change its log level.
const LEVEL_TIMEOUT: Duration = Duration::from_secs(10);

impl Peer {
    /// Sends the lowest log level that a session on this connection wants, unless it is set already.
    pub fn send_level(&self, level: LogLevel) {
        if let Some(params) = self.level_change(level) {
            let _ = self.own(Origin::Discard, method::LOGGING_SET_LEVEL, &params, LEVEL_TIMEOUT);
        }
    }

    /// Lowers the backend's log level before a modern request that wants log messages is sent.
    pub async fn lower_level(&self, level: LogLevel) {
        let params = {
            let mut inner = self.lock();
            inner.floor = Some(inner.floor.map_or(level, |floor| floor.min(level)));
            drop(inner);
            self.level_change(level)
        };
        if let Some(params) = params {
            let _ = self.ask(method::LOGGING_SET_LEVEL, &params, LEVEL_TIMEOUT).await;
        }
    }

    /// Returns true if the backend already sends messages of this level, or never sends any.
    #[must_use]
    pub fn hears(&self, level: LogLevel) -> bool {
        let inner = self.lock();
        let logging = inner.machine.profile().is_some_and(|profile| profile.has(&["logging"]));
        !logging || inner.level.is_some_and(|known| known <= level)
    }

    /// Returns the params of the request that sets the level, if one is needed.
    fn level_change(&self, level: LogLevel) -> Option<String> {
        let mut inner = self.lock();
        let level = inner.floor.map_or(level, |floor| floor.min(level));
        let logging = inner.machine.profile().is_some_and(|profile| profile.has(&["logging"]));
        if !logging || !inner.machine.is_ready() || inner.level.replace(level) == Some(level) {
            return None;
        }
        Some(format!(r#""level":"{}""#, level.as_str()))
    }

    pub(super) fn notified(self: &Arc<Self>, about: Option<Origin>, message: Envelope) {
        let Some(backend) = self.backend.upgrade() else { return };
        let name = message.method().unwrap_or_default();
        if matches!(name, method::TOOLS_LIST_CHANGED | method::PROMPTS_LIST_CHANGED | method::RESOURCES_LIST_CHANGED) {
            return backend.lists_changed(self, name);
        }
        self.tasks.observe_state(message.params());
        if name == method::RESOURCES_UPDATED
            && let (Some(gateway), Some(uri)) = (backend.gateway(), uri_of(&message))
        {
            gateway.reads.forget(&backend.name, &uri);
        }
        if name == method::TASKS_STATUS && self.owner().is_none() {
            return self.task_changed(&backend, &message);
        }
        if name == method::RESOURCES_UPDATED && !self.is_followed(&backend, about.as_ref(), &message) {
            return backend.count_stray("resource_update");
        }
        match about {
            Some(Origin::BridgedCall(_)) if name == method::CANCELLED => return self.question_withdrawn(&message),
            Some(Origin::BridgedCall(call)) => return call.notified(message),
            Some(Origin::Watches(number)) if name == method::SUBSCRIPTIONS_ACKNOWLEDGED => {
                return self.watch_acknowledged(number);
            }
            Some(Origin::Watches(number)) if !self.is_watching(number) => return,
            Some(Origin::Listen(session, exchange)) if name == method::SUBSCRIPTIONS_ACKNOWLEDGED => {
                return backend.follow_acknowledged(&(session, exchange), &message);
            }
            Some(Origin::Exchange(session, exchange, _) | Origin::Listen(session, exchange)) => {
                return session.handle(self.notice(&backend.name, message, Some(exchange)));
            }
            _ => {}
        }
        if name == method::CANCELLED && self.owner().is_none() {
            return self.question_withdrawn(&message);
        }
        if let Some(owner) = self.owner() {
            // The session may have continued with another token, which must not see messages for this one.
            return match owner.is_user(&self.user) {
                true => owner.handle(self.notice(&backend.name, message, None)),
                false => backend.count_stray("notification"),
            };
        }
        if let Some(call) = self.only_bridged_call().filter(|_| name == method::MESSAGE) {
            return call.notified(message);
        }
        if name == method::RESOURCES_UPDATED
            && uri_of(&message).is_some_and(|uri| backend.coalesce_change(self, &uri, &message))
        {
            return;
        }
        let listeners = self.listeners(&message);
        if listeners.is_empty() {
            backend.count_stray("notification");
        }
        for (session, exchange) in listeners {
            session.handle(self.notice(&backend.name, message.clone(), exchange));
        }
    }

    /// Returns false for a change of a resource that its session does not follow. If the change names no session, the
    /// followers are looked up later.
    fn is_followed(&self, backend: &Backend, about: Option<&Origin>, message: &Envelope) -> bool {
        let session = about.and_then(Origin::exchange).map(|(session, _)| session);
        let Some(session) = session.as_ref().or(self.owner()) else { return true };
        uri_of(message).is_some_and(|uri| backend.is_followed_by(session.key, &uri))
    }

    pub(super) fn notice(&self, backend: &Arc<str>, message: Envelope, about: Option<ExchangeId>) -> Event {
        Event::Notified { backend: Arc::clone(backend), peer: self.id, message, about }
    }

    /// Returns the sessions that get an unsolicited notification of a shared connection: those that follow the
    /// resource. A log message goes to the only caller in flight, or else to every session that has set a level.
    fn listeners(&self, message: &Envelope) -> Vec<(Arc<Session>, Option<ExchangeId>)> {
        let Some(backend) = self.backend.upgrade() else { return Vec::new() };
        let sessions = match message.method().unwrap_or_default() {
            method::RESOURCES_UPDATED => {
                let Some(uri) = uri_of(message) else { return Vec::new() };
                let followers = backend.followers(&uri, &self.user);
                let mut all: Vec<_> = followers.into_iter().map(|(session, id)| (session, Some(id))).collect();
                all.extend(backend.watchers(&uri, &self.user).into_iter().map(|session| (session, None)));
                return all;
            }
            method::MESSAGE => {
                let callers: Vec<Waiter> = self.lock().machine.waiting().filter_map(Origin::exchange).take(2).collect();
                if let [(session, exchange)] = &callers[..] {
                    return vec![(Arc::clone(session), Some(*exchange))];
                }
                backend.log_readers(&self.user)
            }
            _ => Vec::new(),
        };
        sessions.into_iter().map(|session| (session, None)).collect()
    }

    pub(super) fn asked(&self, about: Option<Origin>, message: Envelope) {
        if let Some(task) = self.task_asking(about.as_ref(), &message) {
            task.asked(&message);
            return self.notify_followers(&task);
        }
        let bridged_call = match &about {
            Some(Origin::BridgedCall(call)) => Some(Arc::clone(call)),
            Some(_) => None,
            None => self.only_bridged_call(),
        };
        if let Some(call) = bridged_call {
            return call.asked(&message);
        }
        let exchange = about.as_ref().and_then(Origin::exchange).map(|(_, exchange)| exchange);
        match (self.owner(), message.id()) {
            (Some(owner), _) if self.may_ask(owner, &message) => {
                let backend = Arc::clone(&self.name);
                owner.handle(Event::Asked { backend, peer: self.id, message, about: exchange });
            }
            (_, Some(id)) => {
                // No client declared the capability, or no call is in flight that could carry the question.
                if let Some(backend) = self.backend.upgrade() {
                    backend.count_stray("question");
                }
                let party = about.as_ref().map(Origin::party).unwrap_or_default();
                self.refuse_caller(about, &message);
                let text = "no client can be asked this now: the question belongs to no call that could carry it";
                let mut inner = self.lock();
                inner.machine.question_closed(&id, crate::clock::now());
                let refusal = inner.machine.refuse(&id, &Fault::new(FaultKind::MethodNotFound, text));
                let _ = self.transmit_for(&mut inner, refusal, &party);
            }
            (_, None) => {}
        }
    }

    /// Returns true if the session may be asked now: it waits for a call or a task of its own, so its user knows why.
    fn may_ask(&self, owner: &Session, message: &Envelope) -> bool {
        let Some(backend) = self.backend.upgrade() else { return false };
        !question_origin::needs_call(message.method().unwrap_or_default())
            || backend.spec().questions == QuestionTime::Anytime
            || self.has_calls()
            || self.asks_about_task(owner, message)
    }

    /// Fails the call of a modern client that did not declare the capability for a question, and names the capability.
    fn refuse_caller(&self, about: Option<Origin>, message: &Envelope) {
        let caller = about.or_else(|| {
            let inner = self.lock();
            let mut calls = inner.machine.waiting().filter(|origin| origin.is_call());
            calls.next().filter(|_| calls.next().is_none()).cloned()
        });
        let Some((session, exchange)) = caller.and_then(|origin| origin.exchange()) else { return };
        let (name, params) = (message.method().unwrap_or_default(), message.params().unwrap_or_default());
        let fault = bridge::undeclared(name, params).filter(|_| session.has_not_declared(exchange, name, params));
        let Some(fault) = fault else { return };
        let _ = self.cancel(&session, exchange, None, false) || self.cancel(&session, exchange, None, true);
        session.handle(Event::Failed { exchange, fault });
    }

    /// Withdraws a question that the backend asked during a call.
    fn question_withdrawn(&self, message: &Envelope) {
        let params = message.params().unwrap_or_default();
        let Some(span) = json::member(params, "requestId") else { return };
        let id = RawId::from_token(bytes::Bytes::copy_from_slice(span.of(params)));
        let asking: Vec<Origin> = self.lock().machine.waiting().cloned().collect();
        for origin in asking {
            match origin {
                Origin::BridgedCall(call) => call.withdrawn(&id),
                Origin::Hosted(task, _) => task.withdrawn(&id),
                _ => {}
            }
        }
    }

    /// Returns the call that a message without an address must belong to: the one in flight, if there is exactly one.
    fn only_bridged_call(&self) -> Option<Arc<BridgedCallDriver>> {
        let inner = self.lock();
        let mut calls = inner.machine.waiting().filter(|origin| origin.is_call());
        match (calls.next(), calls.next()) {
            (Some(only), None) => only.bridged_call(),
            _ => None,
        }
    }
}

fn uri_of(message: &Envelope) -> Option<String> {
    let params = message.params()?;
    let span = json::member(params, "uri")?;
    json::string(span.of(params)).map(std::borrow::Cow::into_owned)
}
