//! Lists show what the permissions in force let a caller see.

use super::entitlements::Traits;
use super::{Access, Permissions};
use signalbox_engine::Caller;
use signalbox_engine::catalog::{Audience, EntryRef, Visibility};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

impl Visibility for Permissions {
    fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) && !self.labels.demand_permissions()
    }

    fn audience(&self, caller: &Caller) -> Audience {
        let (version, set) = self.current();
        let Traits { version, who, limited, words } =
            Traits::of(version, &set, !self.grants.load().0.is_empty(), caller);
        let mut key = String::with_capacity(128);
        let _ = write!(key, "{version:x}");
        if let Some((principal, trust, proof, transport)) = who {
            let _ = write!(key, "\0{principal}\0{}\0{}\0{transport}", trust.word(), proof.word());
        }
        if limited {
            key.push_str("\0limited");
        }
        for words in words {
            key.push('\x01');
            words.iter().for_each(|word| {
                key.push_str(word);
                key.push('\x02');
            });
        }
        Audience(key.into())
    }

    fn shows_backend(&self, caller: &Caller, backend: &str) -> bool {
        let set = self.set.load();
        let off = set.switches.of_backend(backend).is_some() || self.manual.load().of_backend(backend).is_some();
        !off && self.reveals_backend(caller, backend)
    }

    fn lists(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        let (version, set) = self.current();
        if self.off(&set, entry).is_some() {
            return false;
        }
        let entitlement = self.entitlement(version, &set, caller, entry);
        entitlement.is_listed() || (set.shadow && entitlement.access != Access::Closed)
    }

    fn reveals(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        let (version, set) = self.current();
        let entitlement = self.entitlement(version, &set, caller, entry);
        entitlement.is_listed() || ((set.reveal || set.shadow) && entitlement.access != Access::Closed)
    }

    fn is_off(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        self.is_switched_off(caller) || self.off(&self.set.load(), entry).is_some()
    }
}
