//! Under which names entries are exposed when several backends have the same one.
//!
//! Names are computed over everything that any configured backend was ever known to have, so that a name does not flip
//! when a backend goes down or a client sees fewer tools.

use crate::keys::TextMap;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Exposed names of one kind of entry.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Exposed name to (backend index, name under the backend).
    exposed: TextMap<Box<str>, (usize, Box<str>)>,
    /// (backend index, name under the backend) to the exposed name, only where they differ.
    renamed: HashMap<usize, HashMap<Box<str>, Box<str>>>,
}

impl Names {
    /// Prefixes every name that two backends have with the backend's own name, for all of them. A prefixed name that
    /// hits a third tool's plain name pushes that one to its prefixed form too.
    pub fn prefix_all(backends: &[Arc<str>], owned: &[BTreeSet<Box<str>>]) -> Self {
        let mut owners: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, names) in owned.iter().enumerate() {
            for name in names {
                owners.entry(name).or_default().push(index);
            }
        }
        let mut prefixed: BTreeSet<(usize, &str)> = owners
            .iter()
            .filter(|(_, who)| who.len() > 1)
            .flat_map(|(name, who)| who.iter().map(move |index| (*index, *name)))
            .collect();
        loop {
            let taken: BTreeSet<String> =
                prefixed.iter().map(|(index, name)| format!("{}__{name}", backends[*index])).collect();
            let pushed: Vec<(usize, &str)> = owners
                .iter()
                .filter(|(name, _)| taken.contains(**name))
                .flat_map(|(name, who)| who.iter().map(move |index| (*index, *name)))
                .filter(|pair| !prefixed.contains(pair))
                .collect();
            if pushed.is_empty() {
                break;
            }
            prefixed.extend(pushed);
        }
        let mut names = Self::default();
        for (name, who) in &owners {
            for index in who {
                let ours = prefixed.contains(&(*index, *name)).then(|| format!("{}__{name}", backends[*index]));
                names.add(*index, name, ours);
            }
        }
        names
    }

    /// Leaves the first backend's URI as it is and writes later ones as `BACKEND+URI`.
    pub fn first_plain(backends: &[Arc<str>], owned: &[BTreeSet<Box<str>>]) -> Self {
        let mut names = Self::default();
        for (index, uris) in owned.iter().enumerate() {
            for uri in uris {
                let taken = names.exposed.contains_key(uri);
                names.add(index, uri, taken.then(|| format!("{}+{uri}", backends[index])));
            }
        }
        names
    }

    fn add(&mut self, index: usize, name: &str, ours: Option<String>) {
        match ours {
            Some(ours) => {
                let ours: Box<str> = ours.into();
                self.renamed.entry(index).or_default().insert(name.into(), ours.clone());
                self.exposed.insert(ours, (index, name.into()));
            }
            None => {
                self.exposed.insert(name.into(), (index, name.into()));
            }
        }
    }

    /// Whose entry an exposed name is, and what that backend calls it.
    #[must_use]
    pub fn owner(&self, exposed: &str) -> Option<(usize, &str)> {
        self.exposed.get(exposed).map(|(index, name)| (*index, &**name))
    }

    /// The exposed name, where it is not the backend's own.
    #[must_use]
    pub fn renamed(&self, index: usize, name: &str) -> Option<&str> {
        self.renamed.get(&index)?.get(name).map(|ours| &**ours)
    }

    /// True where this backend has any entry under another name than its own.
    #[must_use]
    pub fn renames(&self, index: usize) -> bool {
        self.renamed.contains_key(&index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(lists: &[&[&str]]) -> Vec<BTreeSet<Box<str>>> {
        lists.iter().map(|names| names.iter().map(|name| Box::from(*name)).collect()).collect()
    }

    fn backends(names: &[&str]) -> Vec<Arc<str>> {
        names.iter().map(|name| Arc::from(*name)).collect()
    }

    #[test]
    fn n20_a_name_of_two_backends_is_prefixed_for_both_and_reaches_each_under_its_own() {
        let names = Names::prefix_all(&backends(&["a", "b"]), &owned(&[&["echo", "one"], &["echo", "two"]]));
        assert_eq!(names.owner("a__echo"), Some((0, "echo")));
        assert_eq!(names.owner("b__echo"), Some((1, "echo")));
        assert_eq!(names.owner("echo"), None);
        assert_eq!(names.owner("one"), Some((0, "one")));
        assert_eq!(names.renamed(1, "echo"), Some("b__echo"));
        assert_eq!(names.renamed(1, "two"), None);
    }

    #[test]
    fn a_prefixed_name_never_hides_a_plain_one() {
        let names = Names::prefix_all(&backends(&["a", "b", "c"]), &owned(&[&["x", "b__x"], &["x"], &[]]));
        assert_eq!(names.owner("b__x"), Some((1, "x")));
        assert_eq!(names.owner("a__b__x"), Some((0, "b__x")));
        assert_eq!(names.owner("a__x"), Some((0, "x")));
    }

    #[test]
    fn a_uri_of_two_backends_is_plain_for_the_first() {
        let names = Names::first_plain(&backends(&["a", "b"]), &owned(&[&["ui://x"], &["ui://x", "ui://y"]]));
        assert_eq!(names.owner("ui://x"), Some((0, "ui://x")));
        assert_eq!(names.owner("b+ui://x"), Some((1, "ui://x")));
        assert_eq!(names.renamed(1, "ui://x"), Some("b+ui://x"));
        assert!(names.renames(1) && !names.renames(0));
    }
}
