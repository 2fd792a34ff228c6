//! Names of the tools of each backend, and of all others, which a text of that backend should not speak of.

use crate::instructions::NameSet;
use arc_swap::ArcSwap;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Names as a text of one backend is judged by them.
#[derive(Debug, Default)]
pub(crate) struct BackendNames {
    /// Tools of the backend itself.
    pub own: BTreeSet<Box<str>>,
    /// Tools of other backends that it does not have itself.
    pub of_others: NameSet,
}

/// Names of tools by backend. Readers get a snapshot.
#[derive(Debug, Default)]
pub(crate) struct ToolNames(ArcSwap<HashMap<Box<str>, Arc<BackendNames>>>);

impl ToolNames {
    /// Returns the names for a text of this backend.
    pub fn of(&self, backend: &str) -> Arc<BackendNames> {
        self.0.load().get(backend).cloned().unwrap_or_default()
    }

    /// Returns the names of the tools of all other backends.
    pub fn of_others(&self, backend: &str) -> Vec<Box<str>> {
        let all = self.0.load();
        all.iter().filter(|(name, _)| ***name != *backend).flat_map(|(_, names)| names.own.iter().cloned()).collect()
    }

    /// Replaces the names of one backend by those of the list that was read last.
    pub fn set(&self, backend: &str, tools: BTreeSet<Box<str>>) {
        if self.0.load().get(backend).is_some_and(|known| known.own == tools) {
            return;
        }
        self.0.rcu(|known| {
            let mut all: BTreeMap<&str, &BTreeSet<Box<str>>> =
                known.iter().map(|(name, names)| (&**name, &names.own)).collect();
            all.insert(backend, &tools);
            let names = |(name, own): (&&str, &&BTreeSet<Box<str>>)| {
                let others = all.iter().filter(|(other, _)| *other != name).flat_map(|(_, tools)| tools.iter());
                let of_others = NameSet::new(others.filter(|tool| !own.contains(*tool)).map(|tool| &**tool));
                let own = BTreeSet::clone(own);
                (Box::from(*name), Arc::new(BackendNames { own, of_others }))
            };
            all.iter().map(names).collect::<HashMap<_, _>>()
        });
    }
}
