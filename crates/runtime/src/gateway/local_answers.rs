//! Requests that the gateway answers without a request to a backend: cached reads, and requests about tasks of legacy
//! backends.

use super::Gateway;
use crate::session::Session;
use signalbox_engine::bridge::RevisionPair;
use signalbox_engine::local_answer::LocalAnswer;
use signalbox_engine::{AuthorizedCall, Call, Event, ExchangeId, Fault, FaultKind, bridge};
use signalbox_wire::{Edits, Envelope, RawId, Revision, builder, json, method};
use std::sync::Arc;

impl Gateway {
    /// Answers a read from the cache. Returns false if the backend has to be asked.
    pub(crate) fn answer_read(
        &self,
        session: &Arc<Session>,
        exchange: ExchangeId,
        backend: &Arc<str>,
        call: &Call,
    ) -> bool {
        let plain = call.method == method::RESOURCES_READ && call.round.is_none();
        let Some(uri) = call.name.as_deref().filter(|_| plain) else { return false };
        let found = self.reads.lock().get(backend, uri, &session.principal, crate::clock::now());
        let Some((result, left)) = found else { return false };
        // The remaining time is written into the result, so that no client caches it for longer.
        let mut aged = Edits::new();
        if let Some(ttl) = json::member(&result, "ttlMs") {
            aged.replace(ttl, left.as_millis().to_string());
        }
        let message = builder::response(&RawId::number(0), &aged.apply(&result));
        let Ok(message) = Envelope::parse(message) else { return false };
        let (mut edits, mut rewritten) = (Edits::new(), Vec::new());
        let revisions = RevisionPair { client: call.client.revision, backend: Revision::LATEST };
        if bridge::answer(&call.method, revisions, &message, &mut edits, &mut rewritten).is_err() {
            return false;
        }
        session.handle(Event::Kept { exchange, source: LocalAnswer::CachedRead, message, edits });
        true
    }

    /// Handles a modern client's request about a task of a legacy backend.
    pub(crate) fn task_request(&self, session: &Arc<Session>, exchange: ExchangeId, call: &AuthorizedCall) {
        let name = call.name.as_deref().unwrap_or_default();
        match self.tasks.hosted(&session.principal, name) {
            Some(task) => task.request((Arc::clone(session), exchange), call),
            None => {
                let shown: String = name.chars().take(200).collect();
                let fault = Fault::new(FaultKind::InvalidParams, format!("Unknown task: {shown}"));
                session.handle(Event::Failed { exchange, fault });
            }
        }
    }
}
