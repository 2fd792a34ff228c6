//! Lists that one backend gives to one kind of client.

use super::{Item, ListChanges, ListKind};
use crate::backend_user::BackendUser;
use crate::caller::Principal;
use crate::capset::CapSet;
use crate::profile::ServerProfile;
use signalbox_wire::Era;
use std::sync::Arc;
use std::time::Instant;

/// Kind of client that a list was read for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ViewKey {
    /// Era of the connection.
    pub era: Era,
    /// Capabilities with which the connection was opened.
    pub caps: CapSet,
    /// User of the connection, if the backend may show each user something else. In a selector, the user that asks.
    pub whose: Option<BackendUser>,
}

impl ViewKey {
    /// Returns the key of the lists shared by all users with these capabilities.
    #[must_use]
    pub fn shared(era: Era, caps: CapSet) -> Self {
        Self { era, caps, whose: None }
    }
}

/// Assigns list owners to principals, for a private backend. Principals that are shown the same lists can share an
/// owner, so that the lists are read and stored once.
pub trait ListOwners: Send + Sync + std::fmt::Debug {
    /// Returns the owner of the principal's lists, or `None` if it is the principal itself.
    fn owner(&self, principal: &Principal) -> Option<Principal>;
}

/// Kind of client that asks.
pub type Selector = ViewKey;

/// Lists of one backend for one kind of client.
#[derive(Clone, Debug)]
pub struct View {
    /// Profile that the backend declared on that connection.
    pub profile: Arc<ServerProfile>,
    /// Tools that the backend lists.
    pub tools: ItemList,
    /// Prompts that the backend lists.
    pub prompts: ItemList,
    /// Resources that the backend lists.
    pub resources: ItemList,
    /// Resource templates that the backend lists.
    pub templates: ItemList,
    /// Cache terms of each list, if the backend gave any.
    terms: [Option<ListTerms>; 4],
    /// The lists as the backend sent them, if an inspector changed what clients see.
    sent: Option<Arc<View>>,
}

/// Cache terms of a list.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ListTerms {
    /// End of the time for which the list may be cached.
    pub until: Instant,
    /// True if the list is the same for every caller; otherwise only the caller that asked may cache it.
    pub public: bool,
}

/// Entries of one list in their order, with an index of their names.
///
/// Cloning shares the entries: most backends list the same for every capability set, and one copy then serves all
/// views.
#[derive(Clone, Debug, Default)]
pub struct ItemList(Arc<Entries>);

#[derive(Clone, Debug, Default)]
struct Entries {
    items: Vec<Item>,
    /// Indexes into `items`, sorted by key.
    by_key: Vec<u32>,
    /// Size of the entries in memory.
    bytes: usize,
}

impl ItemList {
    /// Creates a list of these items. Of two with the same key, the first wins.
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

    /// Returns the entry with this name.
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

    /// Shares the entries of `known` if they are the same, so that they are in memory once. Returns false if they
    /// differ.
    pub(super) fn share(&mut self, known: &Self) -> bool {
        let same = Arc::ptr_eq(&self.0, &known.0) || self.is_same(known);
        if same {
            self.0 = Arc::clone(&known.0);
        }
        same
    }

    /// Returns true if both list the same entries, byte for byte, in the same order.
    fn is_same(&self, other: &Self) -> bool {
        self.0.bytes == other.0.bytes
            && self.len() == other.len()
            && self.iter().zip(other).all(|(one, two)| one.rank == two.rank && one.raw == two.raw)
    }

    /// Returns the identity of the shared entries, and their size in bytes.
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
    /// Creates a view without entries.
    #[must_use]
    pub fn empty(profile: Arc<ServerProfile>) -> Self {
        let (tools, prompts, resources, templates) = Default::default();
        Self { profile, tools, prompts, resources, templates, terms: [None; 4], sent: None }
    }

    /// Returns the cache terms of a list, if the backend gave any.
    #[must_use]
    pub fn terms(&self, kind: ListKind) -> Option<ListTerms> {
        self.terms[kind as usize]
    }

    /// Sets the cache terms of a list.
    pub fn set_terms(&mut self, kind: ListKind, terms: Option<ListTerms>) {
        self.terms[kind as usize] = terms;
    }

    /// Returns the lists as the backend sent them, before an inspector changed them.
    #[must_use]
    pub fn sent(&self) -> &Self {
        self.sent.as_deref().unwrap_or(self)
    }

    /// Returns what clients see of these lists: `inspect` gets them as the backend sent them.
    #[must_use]
    pub fn inspected(&self, inspect: impl FnOnce(Self) -> Self) -> Self {
        let sent = self.sent().clone();
        let mut shown = inspect(sent.clone());
        let is_changed = shown.differs(&sent).any() || shown.profile.instructions != sent.profile.instructions;
        shown.sent = is_changed.then(|| Arc::new(sent));
        shown
    }

    /// Removes the tools that the backend may not offer.
    pub(super) fn keep_tools(&mut self, keep: &impl Fn(&str) -> bool) {
        self.tools.retain(|tool| keep(&tool.key));
        if let Some(sent) = &mut self.sent {
            Arc::make_mut(sent).tools.retain(|tool| keep(&tool.key));
        }
    }

    /// Returns the identity of each list in memory, and its size in bytes.
    pub(super) fn footprints(&self) -> impl Iterator<Item = (usize, usize)> {
        let of = |view: &Self| ListKind::ALL.map(|kind| view.list(kind).footprint());
        of(self).into_iter().chain(self.sent.iter().flat_map(move |sent| of(sent)))
    }

    /// Returns the list of this kind.
    #[must_use]
    pub fn list(&self, kind: ListKind) -> &ItemList {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
        }
    }

    /// Replaces a list. Of two entries with the same key, the first wins.
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

    /// Returns the lists that differ from those of `other` in any byte.
    #[must_use]
    pub fn differs(&self, other: &Self) -> ListChanges {
        let differs = |kind: ListKind| {
            let (a, b) = (self.list(kind), other.list(kind));
            a.len() != b.len() || a.iter().zip(b).any(|(a, b)| a.raw != b.raw)
        };
        ListChanges {
            tools: differs(ListKind::Tools),
            prompts: differs(ListKind::Prompts),
            resources: differs(ListKind::Resources) || differs(ListKind::Templates),
        }
    }
}
