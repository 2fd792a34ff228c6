//! Owners of plain names: the backend that listed a name first.
//!
//! A name does not change hands: not when its owner is down, nor when it stops listing it, nor when another backend lists
//! it too. It is free again when its owner leaves the configuration. Only while nobody has been shown a name does it go to
//! the earliest backend of the configuration, so that it does not depend on which backend starts faster.

use crate::keys::TextMap;
use std::sync::Arc;

/// Number of names that may stay claimed though nobody lists them, beyond as many as are listed.
const MAX_KEPT: usize = 10_000;

#[derive(Clone, Debug)]
struct Claim {
    backend: Arc<str>,
    /// Somebody may have seen the name.
    given: bool,
}

/// The owners of the plain names of one kind.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    owners: TextMap<Box<str>, Claim>,
    /// Names that nobody has been shown yet.
    fresh: Vec<Box<str>>,
}

impl Claims {
    /// The backend that owns this plain name.
    #[must_use]
    pub fn owner(&self, name: &str) -> Option<&Arc<str>> {
        self.owners.get(name).map(|claim| &claim.backend)
    }

    /// Claims a name that a backend lists. `earlier` says whether the backend comes before another one in the
    /// configuration.
    pub fn claim(&mut self, name: &str, backend: &Arc<str>, earlier: impl Fn(&str) -> bool) {
        match self.owners.get_mut(name) {
            None => {
                self.owners.insert(name.into(), Claim { backend: Arc::clone(backend), given: false });
                self.fresh.push(name.into());
            }
            Some(claim) if !claim.given && earlier(&claim.backend) => claim.backend = Arc::clone(backend),
            Some(_) => {}
        }
    }

    /// Gives a name to a backend, whoever owned it.
    pub fn give(&mut self, name: &str, backend: &Arc<str>) {
        self.owners.insert(name.into(), Claim { backend: Arc::clone(backend), given: true });
    }

    /// Marks every name as possibly seen by a client.
    pub fn settle(&mut self) {
        for name in self.fresh.drain(..) {
            if let Some(claim) = self.owners.get_mut(&name) {
                claim.given = true;
            }
        }
    }

    /// Frees the names of backends that are not configured any more.
    pub fn keep(&mut self, configured: impl Fn(&str) -> bool) {
        self.owners.retain(|_, claim| configured(&claim.backend));
        self.fresh.retain(|name| self.owners.contains_key(name));
    }

    /// Frees names that their owners no longer list, if there are too many of them, so that a backend cannot fill the
    /// memory with ever new names.
    pub fn bound(&mut self, listed: usize, lists: impl Fn(&str, &str) -> bool) {
        if self.owners.len() > 2 * listed + MAX_KEPT {
            self.owners.retain(|name, claim| lists(&claim.backend, name));
            self.fresh.retain(|name| self.owners.contains_key(name));
        }
    }

    /// All names with their owners.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<str>)> {
        self.owners.iter().map(|(name, claim)| (&**name, &claim.backend))
    }
}
