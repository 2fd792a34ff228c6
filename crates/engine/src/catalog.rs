//! The catalog: the tools, prompts, resources and resource templates of all backends, shown to clients as those of one
//! server.
//!
//! [`Catalog`] is the mutable model. A [`Snapshot`] is its immutable copy that requests read: routes by name, pages of
//! lists, the combined capabilities of the backends.
//!
//! ```text
//! a backend's lists were read ─► set_view, replace_views ─┐
//! a backend is up or down ─────► set_listed ──────────────┼─► Catalog ── snapshot ──► Snapshot ─► page, tool, offer, ...
//! another configuration ───────► reconfigure, keep_tools ─┘
//! ```
//!
//! Lists are stored per backend and per view (era and capability set), because old servers offer different things to
//! different clients. A client whose own view is unknown sees the nearest one ([`BackendEntry::shown`]). A backend with
//! credentials per user has views for each principal, and a user neither sees nor reaches an entry that only other
//! users' views have.
//!
//! Every entry is reachable by its qualified name (`backend__name`, `backend+uri`). The plain name has one owner:
//!
//! ```text
//! free ── listed ──► claimed, goes to the backend that is configured first ── settle ──► owned
//!   ▲                                                                                      │
//!   └──────────────────────────── its backend leaves the configuration ────────────────────┘
//! ```
//!
//! Invariants:
//!
//! - An owned name does not change hands: not when its backend is down, stops listing it, or another backend lists it
//!   too. Only a backend with thousands of names that it no longer lists loses those.
//! - A backend that is down keeps its names and is omitted from lists.
//! - Entries are stored as the bytes that the backend sent, after a [`ListInspector`] looked at them. A client sees
//!   them with another name, URI or app page link where they are renamed, and without members that its era has no form
//!   for.
//! - The entries of a backend are listed in the order in which they were first seen, even if the backend reorders them,
//!   so that a cursor stays valid when the catalog changes between two pages.
//! - Views, remembered names and rendered pages are bounded, because clients and backends choose their number.
//!
//! A snapshot must never change its answers: it is shared between threads, and a new one replaces it as a whole. Its
//! only mutable parts are a cache of rendered pages and a flag that a name was shown.

mod claims;
mod credentials;
mod cursor;
mod item;
mod list_inspector;
mod names;
mod persist;
mod reconfigure;
mod snapshot;
mod template;
mod view;
mod view_bounds;
mod visibility;

pub use item::{Item, ItemError};
pub use list_inspector::ListInspector;
pub use names::NameStyle;
pub use persist::{PersistError, read as read_saved, write as write_saved};
pub use snapshot::{Page, Route, Snapshot, list_result};
pub use view::{ItemList, ListOwners, ListTerms, Selector, View, ViewKey};
pub use view_bounds::{MAX_PRIVATE_VIEWS, MAX_VIEWS, VIEW_BYTES, VIEW_SHARE};
pub use visibility::{Audience, CallerView, EntryRef, OpenToAll, Visibility};

use crate::backend_user::BackendUser;
use crate::caller::Principal;
use crate::chain::Ruling;
use crate::keys::TextMap;
use crate::profile::ServerProfile;
use claims::Claims;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The four lists of MCP.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ListKind {
    /// The tools, listed by `tools/list`.
    Tools,
    /// The prompts, listed by `prompts/list`.
    Prompts,
    /// The resources, listed by `resources/list`.
    Resources,
    /// The resource templates, listed by `resources/templates/list`.
    Templates,
}

impl ListKind {
    /// All four kinds, in the order of their discriminants.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// Returns the list that this method asks for.
    #[must_use]
    pub fn of_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// Returns the method that lists these entries.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// Returns the style of their qualified names.
    #[must_use]
    pub fn style(self) -> NameStyle {
        match self {
            Self::Tools | Self::Prompts => NameStyle::Name,
            Self::Resources | Self::Templates => NameStyle::Uri,
        }
    }

    /// Returns the member of the result that holds the list.
    #[must_use]
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// Returns the server capability without which there is no such list.
    #[must_use]
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// Returns the member of an entry that names it.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// Lists that a change touched.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct ListChanges {
    /// True if `tools/list` may differ.
    pub tools: bool,
    /// True if `prompts/list` may differ.
    pub prompts: bool,
    /// True if `resources/list` or `resources/templates/list` may differ.
    pub resources: bool,
}

impl ListChanges {
    /// Returns true if any list may differ.
    #[must_use]
    pub fn any(self) -> bool {
        self.tools || self.prompts || self.resources
    }

    fn everything(view: &View) -> Self {
        Self {
            tools: !view.tools.is_empty(),
            prompts: !view.prompts.is_empty(),
            resources: !view.resources.is_empty() || !view.templates.is_empty(),
        }
    }

    /// Returns the changes of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }
}

/// State of one backend in the catalog.
#[derive(Clone, Debug)]
pub struct BackendEntry {
    /// Configured name of the backend.
    pub name: Arc<str>,
    /// False while the backend is down. It keeps its names but is omitted from lists.
    pub listed: bool,
    /// Lists read from the backend, by era and capability set.
    pub views: BTreeMap<ViewKey, Arc<View>>,
    /// Fingerprint of the program and settings that gave the lists. Another program may list something else under the
    /// same name.
    pub source: u64,
    /// True if the backend may show each principal something else. Each principal then sees only its own views, which
    /// are not saved and which clients may not share.
    pub private: bool,
    /// True if the backend may show each token of a principal something else. It is then also private.
    pub per_token: bool,
    /// True if each principal has a credential there that no other principal uses.
    pub own_credentials: bool,
    /// True if the backend is reachable only through its own endpoint. It then takes no plain names from other backends
    /// and has none among theirs.
    pub apart: bool,
    /// Assigns principals the lists of other principals, where they share them.
    owners: Option<Arc<dyn ListOwners>>,
    /// Keys of the views, least recently stored first.
    ages: Vec<ViewKey>,
    /// Rank of every entry ever listed, by kind, in the order of first appearance.
    ranks: [TextMap<Box<str>, u64>; 4],
    next_rank: u64,
    /// Shared ruling for requests routed here under the entry's own name.
    routed: Arc<Ruling>,
}

impl BackendEntry {
    fn new(name: Arc<str>) -> Self {
        let routed = Arc::new(Ruling::of("routed", format!("backend `{name}`")));
        let (views, ages, ranks) = Default::default();
        Self {
            name,
            listed: true,
            views,
            source: 0,
            private: false,
            per_token: false,
            own_credentials: false,
            apart: false,
            owners: None,
            ages,
            ranks,
            next_rank: 0,
            routed,
        }
    }

    /// Sorts lists by the order in which their entries were first seen.
    fn order(&mut self, view: &mut View) {
        for kind in ListKind::ALL {
            let ranks = &mut self.ranks[kind as usize];
            view.list_mut(kind).order(|key| match ranks.get(key) {
                Some(rank) => *rank,
                None => {
                    self.next_rank += 1;
                    ranks.insert(key.into(), self.next_rank);
                    self.next_rank
                }
            });
            let listed = self.views.values().map(|view| view.list(kind).len()).sum::<usize>() + view.list(kind).len();
            if ranks.len() > 2 * listed + MAX_RANKS {
                ranks.retain(|key, _| {
                    view.list(kind).named(key).is_some()
                        || self.views.values().any(|view| view.list(kind).named(key).is_some())
                });
            }
        }
    }

    /// Returns the names of all entries of one kind in any view, including app pages that tools link to.
    fn listed_names(&self, kind: ListKind) -> impl Iterator<Item = &str> {
        let listed = self.views.values().flat_map(move |view| view.list(kind)).map(|item| &*item.key);
        let tools = self.views.values().filter(move |_| kind == ListKind::Resources).flat_map(|view| &view.tools);
        listed.chain(tools.flat_map(Item::apps))
    }

    /// Returns the lists shown to this kind of client: its own, or the nearest ones if those are unknown.
    #[must_use]
    pub fn shown(&self, selector: &Selector) -> Option<&Arc<View>> {
        let nearest = |fits: &dyn Fn(&ViewKey) -> bool| {
            self.views_for(selector.whose.as_ref()).find(|(key, _)| fits(key)).map(|(_, view)| view)
        };
        self.views
            .get(&*self.key_of(selector))
            .or_else(|| nearest(&|key| key.era == selector.era && key.caps.is_bare()))
            .or_else(|| nearest(&|key| key.era == selector.era))
            .or_else(|| nearest(&|key| key.caps == selector.caps))
            .or_else(|| nearest(&|key| key.caps.is_bare()))
            .or_else(|| nearest(&|_| true))
    }

    /// Returns the views that may be shown to a user.
    pub fn views_for(&self, whose: Option<&BackendUser>) -> impl Iterator<Item = (&ViewKey, &Arc<View>)> {
        let whose = whose.filter(|_| self.private).map(|whose| self.owner(whose).into_owned());
        self.views.iter().filter(move |(key, _)| key.whose == whose)
    }

    /// Returns the key of the lists read for exactly this kind of client.
    fn key_of<'a>(&self, selector: &'a Selector) -> Cow<'a, ViewKey> {
        match (self.private, selector.whose.as_ref().map(|whose| self.owner(whose))) {
            (_, None) | (true, Some(Cow::Borrowed(_))) => Cow::Borrowed(selector),
            (true, Some(Cow::Owned(owner))) => Cow::Owned(ViewKey { whose: Some(owner), ..selector.clone() }),
            (false, Some(_)) => Cow::Owned(ViewKey::shared(selector.era, selector.caps.clone())),
        }
    }

    /// Returns the owner of the lists shown to a user.
    fn owner<'a>(&self, whose: &'a BackendUser) -> Cow<'a, BackendUser> {
        let other = self.owners.as_ref().and_then(|owners| owners.owner(whose.principal()));
        match other {
            Some(other) => Cow::Owned(other.into()),
            None if self.per_token || !whose.has_token() => Cow::Borrowed(whose),
            None => Cow::Owned(whose.without_token()),
        }
    }
}

/// Maximum number of ranks remembered for unlisted names, beyond the number of listed ones.
const MAX_RANKS: usize = 10_000;

/// Mutable model of all lists.
#[derive(Clone, Debug)]
pub struct Catalog {
    backends: Vec<BackendEntry>,
    /// Maximum number of bytes for the lists of one backend, beyond those shown to all clients.
    view_bytes: usize,
    claims: [Claims; 4],
    generation: u64,
}

impl Catalog {
    /// Creates an empty catalog of these backends, in their configured order.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        let backends = names.into_iter().map(BackendEntry::new).collect();
        Self { backends, view_bytes: VIEW_BYTES, claims: Default::default(), generation: 0 }
    }

    /// Sets the maximum number of bytes for the lists of one backend, beyond those shown to all clients. It applies to
    /// views stored from now on.
    pub fn set_view_bytes(&mut self, most: usize) {
        self.view_bytes = most;
    }

    /// Stores the lists that a backend gave to a connection of this view.
    pub fn set_view(&mut self, backend: &str, key: ViewKey, mut view: View) -> ListChanges {
        let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) else {
            return ListChanges::default();
        };
        entry.order(&mut view);
        // Clients of a new view have been shown the nearest one until now.
        let changed = match entry.shown(&key) {
            Some(known) => view.differs(known),
            None => ListChanges::everything(&view),
        };
        entry.make_room(&key);
        entry.share_lists(&mut view);
        entry.ages.retain(|known| *known != key);
        entry.ages.push(key.clone());
        entry.views.insert(key.clone(), Arc::new(view));
        entry.trim(&key, self.view_bytes);
        self.claim_all();
        self.generation += 1;
        changed
    }

    /// Drops the lists of this principal at a private backend.
    pub fn forget_views_of(&mut self, backend: &str, principal: &Principal) -> ListChanges {
        let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) else {
            return ListChanges::default();
        };
        let is_own = |key: &ViewKey| key.whose.as_ref().is_some_and(|whose| whose.principal() == principal);
        let keys: Vec<ViewKey> = entry.views.keys().filter(|key| is_own(key)).cloned().collect();
        let dropped: Vec<Arc<View>> = keys.iter().filter_map(|key| entry.views.remove(key)).collect();
        entry.ages.retain(|key| !is_own(key));
        self.generation += u64::from(!dropped.is_empty());
        dropped.iter().map(|view| ListChanges::everything(view)).fold(ListChanges::default(), ListChanges::or)
    }

    /// Sets the fingerprint of the program that gave a backend's lists.
    pub fn set_source(&mut self, backend: &str, source: u64) {
        if let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) {
            entry.source = source;
        }
    }

    /// Sets the assignment of list owners to principals.
    pub fn set_owners(&mut self, backend: &str, owners: Option<Arc<dyn ListOwners>>) {
        if let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) {
            entry.owners = owners;
        }
    }

    /// Sets whether a backend is reachable only through its own endpoint.
    pub fn set_apart(&mut self, backend: &str, apart: bool) {
        if let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) {
            entry.apart = apart;
        }
    }

    /// Assigns every listed name without an owner to the first backend that lists it.
    fn claim_all(&mut self) {
        for kind in ListKind::ALL {
            let claims = &mut self.claims[kind as usize];
            for (index, entry) in self.backends.iter().enumerate().filter(|(_, entry)| !entry.apart) {
                let earlier = |other: &str| self.backends[index..].iter().any(|later| *later.name == *other);
                entry.listed_names(kind).for_each(|name| claims.claim(name, &entry.name, earlier));
            }
            let listed = self.backends.iter().map(|entry| entry.listed_names(kind).count()).sum();
            let lists = |backend: &str, name: &str| {
                let entry = self.backends.iter().find(|entry| *entry.name == *backend);
                entry.is_some_and(|entry| entry.views.values().any(|view| view.list(kind).named(name).is_some()))
            };
            claims.bound(listed, lists);
        }
    }

    /// Fixes the owners of all names, because clients may have seen them.
    pub fn settle(&mut self) {
        self.claims.iter_mut().for_each(Claims::settle);
    }

    /// Shows or hides a backend's entries in lists.
    pub fn set_listed(&mut self, backend: &str, listed: bool) -> ListChanges {
        let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) else {
            return ListChanges::default();
        };
        if entry.listed == listed {
            return ListChanges::default();
        }
        entry.listed = listed;
        self.generation += 1;
        entry.views.values().map(|view| ListChanges::everything(view)).fold(ListChanges::default(), ListChanges::or)
    }

    /// Returns the state of each backend, in configured order.
    #[must_use]
    pub fn backends(&self) -> &[BackendEntry] {
        &self.backends
    }

    /// Returns an immutable copy of the current catalog.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.backends.clone(), &self.claims, self.generation)
    }
}

/// Combined capabilities of all backends, for `initialize` and `server/discover`.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Offer {
    /// True if any backend has tools.
    pub tools: bool,
    /// True if any backend has prompts.
    pub prompts: bool,
    /// True if any backend has resources.
    pub resources: bool,
    /// True if any backend supports subscriptions to resources.
    pub subscribe: bool,
    /// True if any backend completes arguments.
    pub completions: bool,
    /// True if any backend sends log messages.
    pub logging: bool,
    /// True if any backend runs tasks, in the form of either era.
    pub tasks: bool,
}

impl Offer {
    /// Returns all capabilities that the gateway can carry, offered while a backend is still unknown.
    #[must_use]
    pub fn full() -> Self {
        Self {
            tools: true,
            prompts: true,
            resources: true,
            subscribe: true,
            completions: true,
            logging: true,
            tasks: true,
        }
    }

    /// Adds the capabilities of one backend.
    pub fn add(&mut self, profile: &ServerProfile) {
        self.tools |= profile.has(&["tools"]);
        self.prompts |= profile.has(&["prompts"]);
        self.resources |= profile.has(&["resources"]);
        self.subscribe |= profile.has(&["resources", "subscribe"]);
        self.completions |= profile.has(&["completions"]);
        self.logging |= profile.has(&["logging"]);
        self.tasks |= profile.has(&["tasks"]) || profile.hosts_tasks();
    }
}

#[cfg(test)]
pub(crate) mod tests;
