//! Immutable set of backends: read without a lock, and replaced as a whole.

use crate::backend::Backend;
use std::ops::Deref;
use std::sync::Arc;

/// Set of backends. Dereferences to the backends in configured order.
#[derive(Default)]
pub struct Backends {
    ordered: Vec<Arc<Backend>>,
    /// Indices into `ordered`, sorted by name. For the few backends of a gateway, binary search is cheaper than
    /// hashing.
    by_name: Vec<usize>,
    /// Backends that a reload has removed or replaced, and that still finish their calls.
    retiring: Vec<Arc<Backend>>,
}

impl Backends {
    /// Creates a set. If two backends have the same name, lookups find the first.
    #[must_use]
    pub fn new(ordered: Vec<Arc<Backend>>) -> Self {
        let mut by_name: Vec<usize> = (0..ordered.len()).collect();
        by_name.sort_by(|left, right| ordered[*left].name.cmp(&ordered[*right].name));
        by_name.dedup_by(|later, earlier| ordered[*later].name == ordered[*earlier].name);
        Self { ordered, by_name, retiring: Vec::new() }
    }

    /// Adds the retiring backends.
    #[must_use]
    pub(crate) fn with_retiring(mut self, retiring: Vec<Arc<Backend>>) -> Self {
        self.retiring = retiring;
        self
    }

    /// Returns the backends that accept no further call and finish theirs.
    #[must_use]
    pub fn retiring(&self) -> &[Arc<Backend>] {
        &self.retiring
    }

    /// Returns every backend that may have calls: configured and retiring ones.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.ordered.iter().chain(&self.retiring)
    }

    /// Returns the backends of this name, the configured one first, then the retiring ones.
    pub(crate) fn named(&self, name: &str) -> impl Iterator<Item = &Arc<Backend>> {
        self.get(name).into_iter().chain(self.retiring.iter().filter(move |backend| &*backend.name == name))
    }

    /// Returns the configured backend of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Backend>> {
        let found = self.by_name.binary_search_by(|place| (*self.ordered[*place].name).cmp(name)).ok()?;
        self.ordered.get(self.by_name[found])
    }
}

impl Deref for Backends {
    type Target = [Arc<Backend>];

    fn deref(&self) -> &Self::Target {
        &self.ordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::nowhere::backend;

    #[test]
    fn each_backend_is_found_by_its_name_and_the_order_is_kept() {
        let all = ["web", "files", "a", "zoo", "files2"].map(backend);
        let set = Backends::new(all.to_vec());
        for (place, one) in all.iter().enumerate() {
            assert!(Arc::ptr_eq(&set[place], one));
            assert!(set.get(&one.name).is_some_and(|found| Arc::ptr_eq(found, one)), "{}", one.name);
        }
        for other in ["", "file", "files3", "zz"] {
            assert!(set.get(other).is_none(), "{other}");
        }
    }

    #[test]
    fn of_two_backends_with_one_name_the_first_is_found() {
        let (first, second) = (backend("a"), backend("a"));
        let set = Backends::new(vec![backend("b"), Arc::clone(&first), second]);
        assert!(set.get("a").is_some_and(|found| Arc::ptr_eq(found, &first)));
        assert_eq!(set.len(), 3);
    }
}
