//! Answers resource reads from the cache, if a modern backend allowed caching.

use crate::gateway::Gateway;
use crate::session::Session;
use bytes::Bytes;
use signalbox_engine::bridge::RevisionPair;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::read_cache::{CacheTerms, Generation, ReadCache};
use signalbox_engine::{Call, Event, ExchangeId, Principal, bridge};
use signalbox_wire::{Edits, Envelope, RawId, Revision, builder, json, method};
use std::sync::{Arc, Mutex, MutexGuard};

/// Cached resource reads of a gateway.
#[derive(Default)]
pub struct SharedReadCache(Mutex<ReadCache>);

impl SharedReadCache {
    fn lock(&self) -> MutexGuard<'_, ReadCache> {
        self.0.lock().unpoisoned()
    }

    /// Caches a result under its terms.
    pub fn keep(
        &self,
        session: &Session,
        backend: &Arc<str>,
        uri: &str,
        result: &Bytes,
        terms: CacheTerms,
        asked: Generation,
    ) {
        self.lock().keep(backend, uri, &session.principal, result, terms, asked, crate::clock::now());
    }

    /// Returns the generation of a resource, which every change of it advances.
    #[must_use]
    pub fn generation(&self, backend: &str, uri: &str) -> Generation {
        self.lock().generation(backend, uri)
    }

    /// Removes a resource that has changed.
    pub fn forget(&self, backend: &str, uri: &str) {
        self.lock().forget(backend, uri);
    }

    /// Removes the entries of a principal alone.
    pub fn forget_principal(&self, principal: &Principal) {
        self.lock().forget_principal(principal);
    }

    /// Removes the entries of a backend.
    pub fn forget_backend(&self, backend: &str) {
        self.lock().forget_backend(backend);
    }
}

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
        session.handle(Event::Kept { exchange, message, edits });
        true
    }
}
