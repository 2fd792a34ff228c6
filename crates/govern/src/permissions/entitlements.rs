//! The entitlements that were worked out already, so that a call looks its own up without copying anything.

use super::access::Entitlement;
use super::{MAX_ENTITLEMENTS, PermissionSet};
use hashbrown::HashTable;
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::standing::TrustLevel;
use signalbox_engine::{Caller, Proof};
use std::hash::{BuildHasher as _, Hash};
use std::sync::{Arc, Mutex};

/// The longest name whose entitlement is kept.
const MAX_KEPT_NAME: usize = 4096;

/// Everything about a caller that permissions tell apart.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(super) struct Traits<'a> {
    /// The version of the permissions that look at it. It was read before they were, so that what is made of old ones is never
    /// found under a new version.
    pub version: u64,
    /// Who it is, where that counts: its principal, how that was proved and how it calls.
    pub who: Option<(&'a str, TrustLevel, Proof, &'static str)>,
    /// True if scopes limit it. Without any it may do less than a caller that none limit.
    pub limited: bool,
    /// Its roles, groups, scopes and resources.
    pub words: [&'a [Box<str>]; 4],
}

impl<'a> Traits<'a> {
    /// Those of a caller. Somebody has a grant that is in force if `granted`.
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

/// One that is kept.
#[derive(Debug)]
struct Kept {
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

/// What was asked for.
#[derive(Copy, Clone, Debug)]
pub(super) struct Wanted<'a> {
    pub version: u64,
    pub set: &'a PermissionSet,
    pub granted: bool,
    pub caller: &'a Caller,
    pub entry: &'a EntryRef<'a>,
}

impl<'a> Wanted<'a> {
    fn traits(&self) -> Traits<'a> {
        Traits::of(self.version, self.set, self.granted, self.caller)
    }

    /// The definition, if anything depends on it.
    fn definition(&self) -> Option<&'a [u8]> {
        self.entry.definition.filter(|_| self.set.policies.is_some())
    }

    fn is_of(&self, kept: &Kept) -> bool {
        let entry = self.entry;
        kept.version == self.version
            && (kept.kind, &*kept.backend, &*kept.name) == (entry.kind, entry.backend, entry.name)
            && kept.definition.as_deref() == self.definition()
            && Traits::of(kept.version, self.set, kept.granted, &kept.caller) == self.traits()
    }
}

/// Those that are kept.
#[derive(Default, Debug)]
pub(super) struct Entitlements {
    table: Mutex<HashTable<Kept>>,
    hasher: foldhash::fast::RandomState,
}

impl Entitlements {
    /// The one that is wanted, which is made by `make` if it is not there.
    pub fn get(&self, wanted: &Wanted<'_>, make: impl FnOnce() -> Entitlement) -> Arc<Entitlement> {
        let entry = wanted.entry;
        let hash = self.hasher.hash_one((wanted.traits(), entry.kind, entry.backend, entry.name));
        let found = |table: &HashTable<Kept>| {
            table.find(hash, |kept| kept.hash == hash && wanted.is_of(kept)).map(|kept| Arc::clone(&kept.entitlement))
        };
        if let Some(kept) = found(&self.table.lock().unpoisoned()) {
            return kept;
        }
        let made = Arc::new(make());
        if entry.name.len() > MAX_KEPT_NAME || made.prepared.as_ref().is_some_and(|prepared| !prepared.is_small()) {
            return made;
        }
        let kept = Kept {
            hash,
            version: wanted.version,
            granted: wanted.granted,
            caller: wanted.caller.clone(),
            kind: entry.kind,
            backend: entry.backend.into(),
            name: entry.name.into(),
            definition: wanted.definition().map(Into::into),
            entitlement: Arc::clone(&made),
        };
        let mut table = self.table.lock().unpoisoned();
        if table.len() >= MAX_ENTITLEMENTS {
            table.clear();
        }
        if found(&table).is_none() {
            table.insert_unique(hash, kept, |kept| kept.hash);
        }
        made
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        self.table.lock().unpoisoned().clear();
    }
}
