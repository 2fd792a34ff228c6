//! What a backend asks and tells without being asked, and who hears it.

use super::Peer;
use crate::origin::Origin;
use crate::session::Session;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{Event, ExchangeId, SessionKey};
use signalbox_wire::{Envelope, builder, json, method};
use std::sync::Arc;
use std::time::Duration;

impl Peer {
    /// Notes that a session follows a resource, or no longer does. True where the backend must be told.
    pub fn watch(&self, session: SessionKey, uri: &str, on: bool) -> bool {
        let mut inner = self.lock();
        if on {
            inner.watchers.entry(uri.into()).or_default().insert(session);
            return true;
        }
        let Some(sessions) = inner.watchers.get_mut(uri) else { return true };
        sessions.remove(&session);
        let nobody = sessions.is_empty();
        if nobody {
            inner.watchers.remove(uri);
        }
        nobody
    }

    /// Forgets a session that has ended.
    pub fn forget(&self, session: SessionKey) {
        let mut inner = self.lock();
        inner.levels.remove(&session);
        inner.watchers.retain(|_, sessions| {
            sessions.remove(&session);
            !sessions.is_empty()
        });
    }

    /// Tells the backend the lowest level that any session on this connection wants.
    pub fn set_level(&self, session: SessionKey, level: LogLevel) {
        let lowest = {
            let mut inner = self.lock();
            let before = inner.levels.values().min().copied();
            inner.levels.insert(session, level);
            let lowest = inner.levels.values().min().copied();
            let logging = inner.machine.profile().is_some_and(|profile| profile.has(&["logging"]));
            lowest.filter(|lowest| logging && Some(*lowest) != before)
        };
        if let Some(lowest) = lowest {
            let params = format!(r#""level":"{}""#, lowest.as_str());
            let _ = self.own(Origin::Nobody, method::LOGGING_SET_LEVEL, &params, Duration::from_secs(10));
        }
    }

    pub(super) fn notified(self: &Arc<Self>, about: Option<Origin>, message: Envelope) {
        let Some(backend) = self.backend.upgrade() else { return };
        let name = message.method().unwrap_or_default();
        if matches!(name, method::TOOLS_LIST_CHANGED | method::PROMPTS_LIST_CHANGED | method::RESOURCES_LIST_CHANGED) {
            return backend.lists_changed(self, name);
        }
        let event = |message: Envelope, about: Option<ExchangeId>| Event::Notified {
            backend: Arc::clone(&backend.name),
            peer: self.id,
            message,
            about,
        };
        if let Some((session, exchange)) = about.as_ref().and_then(Origin::exchange) {
            return session.handle(event(message, Some(exchange)));
        }
        if let Some(owner) = &self.owner {
            return owner.handle(event(message, None));
        }
        let listeners = self.listeners(&message);
        if listeners.is_empty() {
            backend.count_stray("notification");
        }
        for (session, exchange) in listeners {
            session.handle(event(message.clone(), exchange));
        }
    }

    /// Who hears a notification of a shared connection that belongs to no request: those who follow the resource; for a
    /// log message the only caller in flight, else every session that set a level.
    fn listeners(&self, message: &Envelope) -> Vec<(Arc<Session>, Option<ExchangeId>)> {
        let Some(backend) = self.backend.upgrade() else { return Vec::new() };
        let inner = self.lock();
        let keys: Vec<SessionKey> = match message.method().unwrap_or_default() {
            method::RESOURCES_UPDATED => {
                let params = message.params().unwrap_or_default();
                let uri = json::member(params, "uri").and_then(|span| json::string(span.of(params)));
                let watchers = uri.and_then(|uri| inner.watchers.get(&*uri));
                watchers.into_iter().flatten().copied().collect()
            }
            method::MESSAGE => {
                let mut callers = inner.machine.waiting().filter_map(|origin| origin.exchange());
                if let (Some((session, exchange)), None) = (callers.next(), callers.next()) {
                    return vec![(Arc::clone(session), Some(exchange))];
                }
                inner.levels.keys().copied().collect()
            }
            _ => Vec::new(),
        };
        drop(inner);
        keys.into_iter().filter_map(|key| Some((backend.session(key)?, None))).collect()
    }

    pub(super) fn asked(&self, about: Option<Origin>, message: Envelope) {
        let exchange = about.as_ref().and_then(Origin::exchange).map(|(_, exchange)| exchange);
        match &self.owner {
            Some(owner) => owner.handle(Event::Asked { peer: self.id, message, about: exchange }),
            None => {
                // A shared connection was opened without any capability, so the question is out of order.
                if let Some(id) = message.id() {
                    let text = "the client declared no capability for this request";
                    self.tell(method::PING, builder::error(Some(&id), -32601, text, None));
                }
            }
        }
    }
}
