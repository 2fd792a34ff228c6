//! Bounds on the views of a backend.
//!
//! A client may declare any capabilities, and an old backend is asked for its lists once per capability set. Equal
//! lists are stored once. Different ones are bounded in number and in bytes.

use super::{BackendEntry, ListKind, View, ViewKey};
use std::collections::HashSet;

/// Maximum number of views per backend, so that a client that invents capability sets cannot fill the memory.
pub const MAX_VIEWS: usize = 64;
/// Maximum number of views per private backend. The least recently stored ones are dropped, and read again when needed.
pub const MAX_PRIVATE_VIEWS: usize = 4096;

/// Default maximum number of bytes for the lists of one backend, beyond those shown to all clients.
pub const VIEW_BYTES: usize = crate::budget::DEFAULT / VIEW_SHARE;
/// Divisor of `gateway.memory` that gives the memory for such lists of one backend.
pub const VIEW_SHARE: usize = 4;

/// Number of recently stored views that a new one is compared with.
const COMPARED: usize = 8;

/// Returns true for the lists shown to all clients whose own are unknown.
fn is_common(key: &ViewKey) -> bool {
    key.whose.is_none() && key.caps.is_bare()
}

impl BackendEntry {
    /// Shares the entries of a view with equal lists of the views shown to all clients, or of recently stored ones.
    pub(super) fn share_lists(&self, view: &mut View) {
        let lately = self.ages.iter().rev().take(COMPARED).filter_map(|key| self.views.get(key));
        let common = self.views.iter().filter(|(key, _)| is_common(key)).map(|(_, view)| view);
        let known: Vec<_> = common.chain(lately).collect();
        for kind in ListKind::ALL {
            let list = view.list_mut(kind);
            let _ = known.iter().any(|known| list.share(known.list(kind)));
        }
    }

    /// Drops the least recently stored views until the lists shown to only some clients fit into `most` bytes. The view
    /// of `newest` stays, as do those of clients that declare nothing, because all others fall back to them.
    pub(super) fn trim(&mut self, newest: &ViewKey, most: usize) {
        let all = self.views.values().flat_map(|view| view.footprints());
        if all.map(|(_, bytes)| bytes).sum::<usize>() <= most {
            return;
        }
        let (mut seen, mut bytes) = (HashSet::new(), 0);
        for view in self.views.iter().filter(|(key, _)| is_common(key)).map(|(_, view)| view) {
            seen.extend(view.footprints().map(|(list, _)| list));
        }
        let mut dropped = HashSet::new();
        for key in self.ages.iter().rev().filter(|key| !is_common(key)) {
            let Some(view) = self.views.get(key) else { continue };
            bytes += view.footprints().filter(|(list, _)| seen.insert(*list)).map(|(_, bytes)| bytes).sum::<usize>();
            if bytes > most && key != newest {
                dropped.insert(key.clone());
            }
        }
        self.views.retain(|key, _| !dropped.contains(key));
        self.ages.retain(|key| !dropped.contains(key));
    }

    /// Makes room for one more view.
    pub(super) fn make_room(&mut self, key: &ViewKey) {
        let most = if self.private { MAX_PRIVATE_VIEWS } else { MAX_VIEWS };
        if self.views.len() < most || self.views.contains_key(key) {
            return;
        }
        let oldest = self.ages.iter().find(|known| self.private || !known.caps.is_bare()).cloned();
        if let Some(oldest) = oldest {
            self.views.remove(&oldest);
            self.ages.retain(|known| *known != oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bare, view};
    use super::super::{Catalog, ViewKey};
    use super::*;
    use crate::capset::CapSet;
    use signalbox_wire::Era;
    use std::sync::Arc;

    fn declares(number: usize) -> ViewKey {
        ViewKey::shared(Era::Legacy, CapSet::read(format!(r#"{{"sampling":{{"n":{number}}}}}"#).as_bytes()))
    }

    fn tool(name: &str, bytes: usize) -> String {
        format!(r#"{{"name":"{name}","description":"{}"}}"#, "x".repeat(bytes))
    }

    /// Distinct bytes of all lists of the only backend.
    fn held(catalog: &Catalog) -> usize {
        let mut seen = HashSet::new();
        let views = catalog.backends()[0].views.values();
        let lists = views.flat_map(|view| ListKind::ALL.map(|kind| view.list(kind).footprint()));
        lists.filter(|(list, _)| seen.insert(*list)).map(|(_, bytes)| bytes).sum()
    }

    #[test]
    fn equal_lists_of_invented_capability_sets_are_kept_once() {
        let mut catalog = Catalog::new([Arc::from("a")]);
        let (one, two) = (tool("one", 10_000), tool("two", 10_000));
        catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[&one, &two]));
        let before = held(&catalog);
        for number in 0..MAX_VIEWS - 1 {
            catalog.set_view("a", declares(number), view(ListKind::Tools, &[&two, &one]));
        }
        assert_eq!(catalog.backends()[0].views.len(), MAX_VIEWS);
        assert_eq!(held(&catalog), before);
    }

    #[test]
    fn differing_lists_of_invented_capability_sets_are_bounded_in_bytes() {
        let mut catalog = Catalog::new([Arc::from("a")]);
        catalog.set_view_bytes(100_000);
        catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[&tool("base", 200_000)]));
        let base = held(&catalog);
        for number in 0..40 {
            catalog.set_view("a", declares(number), view(ListKind::Tools, &[&tool(&format!("t{number}"), 10_000)]));
        }
        assert!(held(&catalog) - base <= 100_000, "{}", held(&catalog));
        let views = &catalog.backends()[0].views;
        assert!(views.contains_key(&declares(39)) && views.contains_key(&bare(Era::Legacy)));
        assert!(!views.contains_key(&declares(0)));
        // One that is larger than all of the room is still shown to those who asked for it.
        catalog.set_view("a", declares(99), view(ListKind::Tools, &[&tool("huge", 300_000)]));
        assert_eq!(catalog.backends()[0].views.len(), 2);
    }
}
