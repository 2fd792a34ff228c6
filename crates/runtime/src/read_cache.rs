//! Resource reads that modern backends allowed the gateway to cache, shared by its sessions.

use bytes::Bytes;
use signalbox_engine::Principal;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::read_cache::{CacheTerms, Generation, ReadCache};
use std::sync::{Arc, Mutex, MutexGuard};

/// Cached resource reads of a gateway.
#[derive(Default)]
pub struct SharedReadCache(Mutex<ReadCache>);

impl SharedReadCache {
    pub(crate) fn lock(&self) -> MutexGuard<'_, ReadCache> {
        self.0.lock().unpoisoned()
    }

    /// Caches a result under its terms.
    pub fn keep(
        &self,
        principal: &Principal,
        backend: &Arc<str>,
        uri: &str,
        result: &Bytes,
        terms: CacheTerms,
        asked: Generation,
    ) {
        self.lock().keep(backend, uri, principal, result, terms, asked, crate::clock::now());
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
