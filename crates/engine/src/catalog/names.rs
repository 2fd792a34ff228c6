//! Names under which clients see the entries of several backends.
//!
//! Every entry is reachable by its qualified name, made of its backend's name and its own. The backend that listed a
//! name first also has the plain name; entries of the others are shown under their qualified names. A plain name that
//! equals the qualified name of another entry belongs to that entry. Each name is resolved by one lookup, so the cost
//! of a list is proportional to its length.

use crate::keys::TextMap;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Form of an entry's qualified name.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NameStyle {
    /// `backend__name`, for tools and prompts.
    Name,
    /// `backend+uri`, and `ui://backend+rest` for the pages of MCP Apps, which hosts recognise by their scheme.
    Uri,
}

const APP: &str = "ui://";

impl NameStyle {
    /// Returns the qualified name of an entry.
    #[must_use]
    pub fn qualify(self, backend: &str, name: &str) -> String {
        match (self, name.strip_prefix(APP)) {
            (Self::Name, _) => format!("{backend}__{name}"),
            (Self::Uri, Some(rest)) => format!("{APP}{backend}+{rest}"),
            (Self::Uri, None) => format!("{backend}+{name}"),
        }
    }

    /// Splits a name that may be qualified into backend and own name. No backend's name contains the separator.
    #[must_use]
    pub fn divide(self, text: &str) -> Option<(&str, std::borrow::Cow<'_, str>)> {
        match (self, text.strip_prefix(APP)) {
            (Self::Name, _) => text.split_once("__").map(|(backend, name)| (backend, name.into())),
            (Self::Uri, Some(rest)) => {
                rest.split_once('+').map(|(backend, rest)| (backend, format!("{APP}{rest}").into()))
            }
            (Self::Uri, None) => text.split_once('+').map(|(backend, uri)| (backend, uri.into())),
        }
    }
}

/// Names of one kind of entry, resolved in both directions.
#[derive(Clone, Debug)]
pub struct Names {
    style: NameStyle,
    backends: TextMap<Box<str>, usize>,
    /// Names listed by each backend.
    owned: Vec<HashSet<Box<str>, foldhash::fast::RandomState>>,
    /// Exposed name to (backend index, the backend's name).
    exposed: TextMap<Box<str>, (usize, Box<str>)>,
    /// (Backend index, the backend's name) to the exposed name, only where they differ.
    renamed: HashMap<usize, HashMap<Box<str>, Box<str>>>,
}

impl Names {
    /// Resolves the names of these entries. `first` returns the backend that listed a name first. A backend that stands
    /// `apart` has no plain names.
    pub fn new(
        style: NameStyle,
        backends: &[Arc<str>],
        owned: Vec<HashSet<Box<str>, foldhash::fast::RandomState>>,
        first: impl Fn(&str) -> Option<usize>,
        apart: impl Fn(usize) -> bool,
    ) -> Self {
        let indexes = backends.iter().enumerate().map(|(index, name)| (Box::from(&**name), index)).collect();
        let (exposed, renamed) = (TextMap::default(), HashMap::new());
        let mut names = Self { style, backends: indexes, owned: Vec::new(), exposed, renamed };
        names.owned = owned;
        let entries: Vec<(usize, Box<str>)> = names
            .owned
            .iter()
            .enumerate()
            .flat_map(|(index, own)| own.iter().map(move |name| (index, name.clone())))
            .collect();
        for (index, name) in entries {
            let plain = !apart(index) && first(&name).is_none_or(|owner| owner == index);
            if plain && names.qualified(&name).is_none() {
                names.exposed.insert(name.clone(), (index, name));
            } else {
                let ours: Box<str> = style.qualify(&backends[index], &name).into();
                names.renamed.entry(index).or_default().insert(name.clone(), ours.clone());
                names.exposed.insert(ours, (index, name));
            }
        }
        names
    }

    /// Returns the entry of a qualified name.
    fn qualified<'a>(&self, text: &'a str) -> Option<(usize, std::borrow::Cow<'a, str>)> {
        let (backend, name) = self.style.divide(text)?;
        let index = *self.backends.get(backend)?;
        self.owned[index].contains(&*name).then_some((index, name))
    }

    /// Returns the entry of a name, exposed or qualified, as (backend index, the backend's name).
    #[must_use]
    pub fn owner<'a>(&'a self, name: &'a str) -> Option<(usize, std::borrow::Cow<'a, str>)> {
        match self.exposed.get(name) {
            Some((index, own)) => Some((*index, (&**own).into())),
            None => self.qualified(name),
        }
    }

    /// Returns true if the backend lists this name.
    #[must_use]
    pub fn has(&self, index: usize, name: &str) -> bool {
        self.owned.get(index).is_some_and(|own| own.contains(name))
    }

    /// Returns the exposed name, if it differs from the backend's own.
    #[must_use]
    pub fn renamed(&self, index: usize, name: &str) -> Option<&str> {
        self.renamed.get(&index)?.get(name).map(|ours| &**ours)
    }

    /// Returns the entries that clients see under a qualified name, as (backend index, the backend's name).
    pub fn all_renamed(&self) -> impl Iterator<Item = (usize, &str)> {
        self.renamed.iter().flat_map(|(index, names)| names.keys().map(|name| (*index, &**name)))
    }

    /// Returns the qualified names of all entries with this own name.
    #[must_use]
    pub fn candidates(&self, name: &str, backends: &[super::BackendEntry]) -> Vec<String> {
        let has = |index: &usize| self.owned[*index].contains(name);
        (0..self.owned.len()).filter(has).map(|index| self.style.qualify(&backends[index].name, name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(style: NameStyle, backends: &[&str], lists: &[&[&str]]) -> Names {
        let backends: Vec<Arc<str>> = backends.iter().map(|name| Arc::from(*name)).collect();
        let owned = lists.iter().map(|names| names.iter().map(|name| Box::from(*name)).collect()).collect();
        let first = |name: &str| lists.iter().position(|list| list.contains(&name));
        Names::new(style, &backends, owned, first, |_| false)
    }

    fn owner<'a>(names: &'a Names, name: &'a str) -> Option<(usize, String)> {
        names.owner(name).map(|(index, own)| (index, own.into_owned()))
    }

    /// Proves N-19, N-20 and N-21.
    #[test]
    fn the_first_owner_has_the_plain_name_and_every_qualified_name_is_taken() {
        let names = names(NameStyle::Name, &["a", "b"], &[&["echo", "one"], &["echo", "two"]]);
        assert_eq!(owner(&names, "echo"), Some((0, "echo".into())));
        assert_eq!(owner(&names, "a__echo"), Some((0, "echo".into())));
        assert_eq!(owner(&names, "b__echo"), Some((1, "echo".into())));
        assert_eq!(owner(&names, "b__two"), Some((1, "two".into())));
        assert_eq!(owner(&names, "b__one"), None);
        assert_eq!((names.renamed(0, "echo"), names.renamed(1, "echo")), (None, Some("b__echo")));
    }

    #[test]
    fn a_qualified_name_goes_before_an_entry_that_is_literally_called_so() {
        let names = names(NameStyle::Name, &["a", "b"], &[&["x", "b__x"], &["x"]]);
        assert_eq!(owner(&names, "b__x"), Some((1, "x".into())));
        assert_eq!(owner(&names, "a__b__x"), Some((0, "b__x".into())));
        assert_eq!(names.renamed(0, "b__x"), Some("a__b__x"));
    }

    /// 4,400 such names took more than a minute.
    #[test]
    fn names_that_look_like_qualified_ones_cost_no_more_than_others() {
        let own: Vec<String> =
            (0..20_000).map(|times| "e__".repeat(times % 200) + &format!("x{}", times / 200)).collect();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let names = names(NameStyle::Name, &["e"], &[&own]);
        assert_eq!(names.exposed.len(), own.len(), "each has a name of its own");
        for name in own.iter().take(500) {
            let exposed = names.renamed(0, name).unwrap_or(name);
            assert_eq!(owner(&names, exposed), Some((0, (*name).to_owned())));
        }
    }

    #[test]
    fn a_page_of_an_app_keeps_its_scheme() {
        let names = names(NameStyle::Uri, &["a", "b"], &[&["ui://x", "file:///x"], &["ui://x", "file:///x", "ui://y"]]);
        assert_eq!(owner(&names, "ui://x"), Some((0, "ui://x".into())));
        assert_eq!(owner(&names, "ui://b+x"), Some((1, "ui://x".into())));
        assert_eq!(owner(&names, "b+file:///x"), Some((1, "file:///x".into())));
        assert_eq!(names.renamed(1, "ui://x"), Some("ui://b+x"));
    }
}
