//! Owners of plain names. The owner is the backend that listed a name first.
//!
//! A name does not change hands: not when its owner is down or stops listing it, nor when another backend lists it too.
//! It becomes free when its owner leaves the configuration. Until a client has seen the name, it goes to the earliest
//! backend in the configuration, so that the result does not depend on which backend starts faster.

use crate::keys::TextMap;
use std::sync::Arc;

/// Maximum number of claims on names that no backend lists, beyond the number of listed ones.
const MAX_UNLISTED: usize = 10_000;

#[derive(Clone, Debug)]
struct Claim {
    backend: Arc<str>,
    /// True if a client may have seen the name.
    settled: bool,
}

/// Owners of the plain names of one kind.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    owners: TextMap<Box<str>, Claim>,
    /// Names that no client has seen yet.
    fresh: Vec<Box<str>>,
}

impl Claims {
    /// Returns the backend that owns this plain name.
    #[must_use]
    pub fn owner(&self, name: &str) -> Option<&Arc<str>> {
        self.owners.get(name).map(|claim| &claim.backend)
    }

    /// Claims a name that a backend lists. `earlier` returns true if the backend comes before another one in the
    /// configuration.
    pub fn claim(&mut self, name: &str, backend: &Arc<str>, earlier: impl Fn(&str) -> bool) {
        match self.owners.get_mut(name) {
            None => {
                self.owners.insert(name.into(), Claim { backend: Arc::clone(backend), settled: false });
                self.fresh.push(name.into());
            }
            Some(claim) if !claim.settled && earlier(&claim.backend) => claim.backend = Arc::clone(backend),
            Some(_) => {}
        }
    }

    /// Assigns a name to a backend, replacing any owner.
    pub fn give(&mut self, name: &str, backend: &Arc<str>) {
        self.owners.insert(name.into(), Claim { backend: Arc::clone(backend), settled: true });
    }

    /// Marks every name as possibly seen by a client.
    pub fn settle(&mut self) {
        for name in self.fresh.drain(..) {
            if let Some(claim) = self.owners.get_mut(&name) {
                claim.settled = true;
            }
        }
    }

    /// Frees the names of backends that are no longer configured.
    pub fn keep(&mut self, configured: impl Fn(&str) -> bool) {
        self.owners.retain(|_, claim| configured(&claim.backend));
        self.fresh.retain(|name| self.owners.contains_key(name));
    }

    /// Frees names that their owners no longer list, if there are too many of them, so that a backend cannot fill the
    /// memory with ever new names.
    pub fn bound(&mut self, listed: usize, lists: impl Fn(&str, &str) -> bool) {
        if self.owners.len() > 2 * listed + MAX_UNLISTED {
            self.owners.retain(|name, claim| lists(&claim.backend, name));
            self.fresh.retain(|name| self.owners.contains_key(name));
        }
    }

    /// Returns all names with their owners.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<str>)> {
        self.owners.iter().map(|(name, claim)| (&**name, &claim.backend))
    }
}
