//! What a backend asks and tells without being asked, and who hears it.

use super::Peer;
use crate::origin::Origin;
use crate::session::Session;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{Event, ExchangeId};
use signalbox_wire::{Envelope, builder, json, method};
use std::sync::Arc;
use std::time::Duration;

impl Peer {
    /// Tells the backend the lowest log level that anyone on this connection wants, unless it knows.
    pub fn send_level(&self, level: LogLevel) {
        {
            let mut inner = self.lock();
            let logging = inner.machine.profile().is_some_and(|profile| profile.has(&["logging"]));
            if !logging || !inner.machine.is_ready() || inner.level.replace(level) == Some(level) {
                return;
            }
        }
        let params = format!(r#""level":"{}""#, level.as_str());
        let _ = self.own(Origin::Nobody, method::LOGGING_SET_LEVEL, &params, Duration::from_secs(10));
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
        let sessions = match message.method().unwrap_or_default() {
            method::RESOURCES_UPDATED => {
                let params = message.params().unwrap_or_default();
                let uri = json::member(params, "uri").and_then(|span| json::string(span.of(params)));
                uri.map(|uri| backend.watchers(&uri, &self.principal)).unwrap_or_default()
            }
            method::MESSAGE => {
                let inner = self.lock();
                let mut callers = inner.machine.waiting().filter_map(Origin::exchange);
                if let (Some((session, exchange)), None) = (callers.next(), callers.next()) {
                    return vec![(Arc::clone(session), Some(exchange))];
                }
                drop(callers);
                drop(inner);
                backend.log_readers(&self.principal)
            }
            _ => Vec::new(),
        };
        sessions.into_iter().map(|session| (session, None)).collect()
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
