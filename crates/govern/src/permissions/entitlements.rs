//! Cache of entitlements, so that a call looks its own up without copying.

use super::access::Entitlement;
use super::{MAX_ENTITLEMENTS, PermissionSet};
use hashbrown::HashTable;
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::standing::TrustLevel;
use signalbox_engine::{Caller, Proof};
use std::hash::{BuildHasher as _, Hash};
use std::sync::{Arc, Mutex};

/// Maximum length of a name whose entitlement is cached.
const MAX_KEPT_NAME: usize = 4096;

/// All properties of a caller that permissions distinguish.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(super) struct Traits<'a> {
    /// Version of the permissions. It is read before the permissions are, so that an entitlement of old ones is never
    /// found under a new version.
    pub version: u64,
    /// Principal, trust, proof and transport, if a rule distinguishes them. All four can change the verdict.
    pub who: Option<(&'a str, TrustLevel, Proof, &'static str)>,
    /// True if the caller has scopes, even an empty list: that allows less than having none.
    pub limited: bool,
    /// Roles, groups, scopes and resources.
    pub words: [&'a [Box<str>]; 4],
}

impl<'a> Traits<'a> {
    /// Collects the traits of a caller. `granted` is true if any grant is in force.
    pub fn of(version: u64, set: &'a PermissionSet, granted: bool, caller: &'a Caller) -> Self {
        let identity = caller.identity();
        let standing = identity.standing.as_deref();
        let resources = standing.map_or(&[][..], |standing| &standing.resources);
        let groups = standing.map_or(&[][..], |standing| &standing.groups);
        let scopes = standing.and_then(|standing| standing.scopes.as_deref());
        let counts = granted || set.policies.is_some() || !set.callers.is_empty() || !resources.is_empty();
        let who = || (identity.principal.as_str(), identity.trust(), identity.proof, identity.transport);
        let words = [set.roles_of(caller), groups, scopes.unwrap_or_default(), resources];
        Self { version, who: counts.then(who), limited: scopes.is_some(), words }
    }
}

#[derive(Debug)]
struct CachedEntitlement {
    hash: u64,
    version: u64,
    granted: bool,
    caller: Caller,
    kind: ListKind,
    backend: Box<str>,
    name: Box<str>,
    definition: Option<Box<[u8]>>,
    entitlement: Arc<Entitlement>,
}

/// Key of a lookup.
#[derive(Copy, Clone, Debug)]
pub(super) struct EntitlementQuery<'a> {
    pub version: u64,
    pub set: &'a PermissionSet,
    pub granted: bool,
    pub caller: &'a Caller,
    pub entry: &'a EntryRef<'a>,
}

impl<'a> EntitlementQuery<'a> {
    fn traits(&self) -> Traits<'a> {
        Traits::of(self.version, self.set, self.granted, self.caller)
    }

    /// Returns the definition, if any rule depends on it.
    fn definition(&self) -> Option<&'a [u8]> {
        self.entry.definition.filter(|_| self.set.policies.is_some())
    }

    fn is_of(&self, cached: &CachedEntitlement) -> bool {
        let entry = self.entry;
        cached.version == self.version
            && (cached.kind, &*cached.backend, &*cached.name) == (entry.kind, entry.backend, entry.name)
            && cached.definition.as_deref() == self.definition()
            && Traits::of(cached.version, self.set, cached.granted, &cached.caller) == self.traits()
    }
}

/// Bounded cache of entitlements.
#[derive(Default, Debug)]
pub(super) struct Entitlements {
    table: Mutex<HashTable<CachedEntitlement>>,
    hasher: foldhash::fast::RandomState,
}

impl Entitlements {
    /// Returns the entitlement for `query`. Calls `make` if it is not cached.
    pub fn get(&self, query: &EntitlementQuery<'_>, make: impl FnOnce() -> Entitlement) -> Arc<Entitlement> {
        let entry = query.entry;
        let hash = self.hasher.hash_one((query.traits(), entry.kind, entry.backend, entry.name));
        let found = |table: &HashTable<CachedEntitlement>| {
            table
                .find(hash, |cached| cached.hash == hash && query.is_of(cached))
                .map(|cached| Arc::clone(&cached.entitlement))
        };
        if let Some(cached) = found(&self.table.lock().unpoisoned()) {
            return cached;
        }
        let made = Arc::new(make());
        if entry.name.len() > MAX_KEPT_NAME || made.prepared.as_ref().is_some_and(|prepared| !prepared.is_small()) {
            return made;
        }
        let cached = CachedEntitlement {
            hash,
            version: query.version,
            granted: query.granted,
            caller: query.caller.clone(),
            kind: entry.kind,
            backend: entry.backend.into(),
            name: entry.name.into(),
            definition: query.definition().map(Into::into),
            entitlement: Arc::clone(&made),
        };
        let mut table = self.table.lock().unpoisoned();
        if table.len() >= MAX_ENTITLEMENTS {
            table.clear();
        }
        if found(&table).is_none() {
            table.insert_unique(hash, cached, |cached| cached.hash);
        }
        made
    }

    pub fn clear(&self) {
        self.table.lock().unpoisoned().clear();
    }
}
