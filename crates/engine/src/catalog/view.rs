//! The lists that one backend gives to one kind of client.

use super::{Changed, Item, ListKind};
use crate::backend_user::BackendUser;
use crate::caller::Principal;
use crate::capset::CapSet;
use crate::profile::ServerProfile;
use signalbox_wire::Era;
use std::sync::Arc;
use std::time::Instant;

/// The kind of client that a list was given to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ViewKey {
    /// The era of the connection.
    pub era: Era,
    /// The capabilities it was opened with.
    pub caps: CapSet,
    /// Whose connection it was, if the backend may show each user something else. In a selector, who asks.
    pub whose: Option<BackendUser>,
}

impl ViewKey {
    /// The lists that everybody of this kind is shown.
    #[must_use]
    pub fn shared(era: Era, caps: CapSet) -> Self {
        Self { era, caps, whose: None }
    }
}

/// Says whose lists a principal is shown by a backend that may show each principal something else. Where many are shown
/// the same, they need not be read and kept for each.
pub trait ListOwners: Send + Sync + std::fmt::Debug {
    /// The owner of the lists; `None` for the principal itself.
    fn owner(&self, principal: &Principal) -> Option<Principal>;
}

/// The kind of client that asks.
pub type Selector = ViewKey;

/// The lists of one backend for one kind of client.
#[derive(Clone, Debug)]
pub struct View {
    /// What the backend said about itself on that connection.
    pub profile: Arc<ServerProfile>,
    /// Its tools.
    pub tools: ItemList,
    /// Its prompts.
    pub prompts: ItemList,
    /// Its resources.
    pub resources: ItemList,
    /// Its resource templates.
    pub templates: ItemList,
    /// How long each list may be kept, if the backend said so.
    terms: [Option<ListTerms>; 4],
}

/// How long a list may be kept, and whether everybody may see it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ListTerms {
    /// Until when.
    pub until: Instant,
    /// True if it is the same for every caller; otherwise it is only for the one who asked.
    pub public: bool,
}

/// The entries of one list in the order in which they are shown, with an index of their names.
///
/// Cloning shares the entries: most backends list the same for every capability set, and one copy
/// then serves all views.
#[derive(Clone, Debug, Default)]
pub struct ItemList(Arc<Entries>);

#[derive(Clone, Debug, Default)]
struct Entries {
    items: Vec<Item>,
    /// Indexes into `items`, sorted by key.
    by_key: Vec<u32>,
    /// Bytes that the entries take up.
    bytes: usize,
}

impl ItemList {
    /// A list of these items. Of two with the same key the first is kept.
    fn new(mut items: Vec<Item>) -> Self {
        let mut by_key: Vec<u32> = (0..u32::try_from(items.len()).unwrap_or(u32::MAX)).collect();
        let key = |place: u32| &*items[place as usize].key;
        by_key.sort_by(|a, b| key(*a).cmp(key(*b)).then(a.cmp(b)));
        let doubled = by_key.windows(2).any(|pair| key(pair[0]) == key(pair[1]));
        if doubled {
            let mut seen = std::collections::HashSet::new();
            items.retain(|item| seen.insert(item.key.clone()));
            return Self::new(items);
        }
        let bytes = items.iter().map(Item::bytes).sum();
        Self(Arc::new(Entries { items, by_key, bytes }))
    }

    /// The entry of this name.
    #[must_use]
    pub fn named(&self, key: &str) -> Option<&Item> {
        let item = |place: &u32| &self.0.items[*place as usize];
        let found = self.0.by_key.binary_search_by(|place| (*item(place).key).cmp(key)).ok()?;
        self.0.by_key.get(found).map(item)
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&Item) -> bool) {
        let mut items = self.take();
        items.retain(keep);
        *self = Self::new(items);
    }

    /// Ranks every entry, and sorts the list by rank.
    pub(super) fn order(&mut self, mut rank: impl FnMut(&str) -> u64) {
        let mut items = self.take();
        for item in &mut items {
            item.rank = rank(&item.key);
        }
        items.sort_by_key(|item| item.rank);
        *self = Self::new(items);
    }

    fn take(&mut self) -> Vec<Item> {
        Arc::unwrap_or_clone(std::mem::take(&mut self.0)).items
    }

    /// Takes over the entries of `known` if they are the same, so that they are in memory once. False if they differ.
    pub(super) fn share(&mut self, known: &Self) -> bool {
        let same = Arc::ptr_eq(&self.0, &known.0) || self.is_same(known);
        if same {
            self.0 = Arc::clone(&known.0);
        }
        same
    }

    /// True if both list the same entries, byte for byte, in the same order.
    fn is_same(&self, other: &Self) -> bool {
        self.0.bytes == other.0.bytes
            && self.len() == other.len()
            && self.iter().zip(other).all(|(one, two)| one.rank == two.rank && one.raw == two.raw)
    }

    /// Identifies the shared entries, with the bytes that they take up.
    pub(super) fn footprint(&self) -> (usize, usize) {
        (Arc::as_ptr(&self.0).addr(), self.0.bytes)
    }
}

impl std::ops::Deref for ItemList {
    type Target = [Item];

    fn deref(&self) -> &[Item] {
        &self.0.items
    }
}

impl<'a> IntoIterator for &'a ItemList {
    type Item = &'a Item;
    type IntoIter = std::slice::Iter<'a, Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.items.iter()
    }
}

impl View {
    /// A view without entries.
    #[must_use]
    pub fn empty(profile: Arc<ServerProfile>) -> Self {
        let (tools, prompts, resources, templates) = Default::default();
        Self { profile, tools, prompts, resources, templates, terms: [None; 4] }
    }

    /// How long a list may be kept, if the backend said so.
    #[must_use]
    pub fn terms(&self, kind: ListKind) -> Option<ListTerms> {
        self.terms[kind as usize]
    }

    /// Notes how long a list may be kept.
    pub fn set_terms(&mut self, kind: ListKind, terms: Option<ListTerms>) {
        self.terms[kind as usize] = terms;
    }

    /// One of the four lists.
    #[must_use]
    pub fn list(&self, kind: ListKind) -> &ItemList {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
        }
    }

    /// Replaces a list. Of two entries with the same key the first is kept.
    pub fn set(&mut self, kind: ListKind, items: Vec<Item>) {
        *self.list_mut(kind) = ItemList::new(items);
    }

    pub(super) fn list_mut(&mut self, kind: ListKind) -> &mut ItemList {
        match kind {
            ListKind::Tools => &mut self.tools,
            ListKind::Prompts => &mut self.prompts,
            ListKind::Resources => &mut self.resources,
            ListKind::Templates => &mut self.templates,
        }
    }

    /// Which lists differ from those of `other` in any byte.
    #[must_use]
    pub fn differs(&self, other: &Self) -> Changed {
        let differs = |kind: ListKind| {
            let (a, b) = (self.list(kind), other.list(kind));
            a.len() != b.len() || a.iter().zip(b).any(|(a, b)| a.raw != b.raw)
        };
        Changed {
            tools: differs(ListKind::Tools),
            prompts: differs(ListKind::Prompts),
            resources: differs(ListKind::Resources) || differs(ListKind::Templates),
        }
    }
}
