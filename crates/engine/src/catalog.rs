//! The catalog: all tools, prompts, resources and resource templates of all backends, shown to clients as one server's.
//!
//! [`Catalog`] is the model that changes; a [`Snapshot`] is the immutable picture of it that requests read: routes by
//! name, pages of lists, the capabilities that backends offer between them.
//!
//! ```text
//! a backend's lists were read ─► set_view, replace_views ─┐
//! a backend is up or down ─────► set_listed ──────────────┼─► Catalog ── snapshot ──► Snapshot ─► page, tool, offer, ...
//! another configuration ───────► reconfigure, keep_tools ─┘
//! ```
//!
//! Lists are kept per backend and per view (era and capability set), because old servers offer different things to
//! different clients. A client whose own view is not known is shown the nearest one ([`BackendEntry::shown`]). A
//! backend with credentials per user has views of each principal, and a user neither sees nor reaches an entry that
//! only the views of others have.
//!
//! Every entry is reached by its qualified name (`backend__name`, `backend+uri`). The plain name has one owner:
//!
//! ```text
//! free ── listed ──► claimed, goes to the backend that is configured first ── settle ──► owned
//!   ▲                                                                                      │
//!   └──────────────────────────── its backend leaves the configuration ────────────────────┘
//! ```
//!
//! Invariants:
//!
//! - An owned name does not change hands: not when its backend is down, stops listing it, or another one lists it too. Only
//!   a backend that has listed thousands of names which it lists no more loses those.
//! - A backend that is down keeps its names and is left out of lists.
//! - Entries are kept as the bytes that the backend sent. A client is shown them with another name, URI or link to an app's
//!   page where they are renamed, and without what its era has no form for.
//! - The entries of a backend are shown in the order in which they were first seen, whatever order it lists them in later,
//!   so that a cursor stays good when the catalog changes between two pages.
//! - Views, remembered names and rendered pages are bounded, because clients and backends choose how many there are.
//!
//! A snapshot must never change what it answers: it is shared between threads, and a new one takes its place as a
//! whole. Its only mutable parts are a cache of rendered pages and a flag that a name was shown.

mod claims;
mod cursor;
mod item;
mod names;
mod persist;
mod reconfigure;
mod snapshot;
mod template;
mod view;
mod view_bounds;
mod visibility;

pub use item::{Item, ItemError};
pub use names::Style;
pub use persist::{PersistError, read as read_saved, write as write_saved};
pub use snapshot::{Page, Route, Snapshot, list_result};
pub use view::{ItemList, ListOwners, ListTerms, Selector, View, ViewKey};
pub use view_bounds::{MAX_PRIVATE_VIEWS, MAX_VIEWS, VIEW_BYTES, VIEW_SHARE};
pub use visibility::{Audience, EntryRef, OpenToAll, Sight, Visibility};

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
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
}

impl ListKind {
    /// Every list.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The list that this method asks for.
    #[must_use]
    pub fn of_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The method that lists these.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// How the qualified names of these are written.
    #[must_use]
    pub fn style(self) -> Style {
        match self {
            Self::Tools | Self::Prompts => Style::Name,
            Self::Resources | Self::Templates => Style::Uri,
        }
    }

    /// The member of the result that holds the list.
    #[must_use]
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The server capability without which there is no such list.
    #[must_use]
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// The member of an entry that names it.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// Which lists a change touched.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Changed {
    /// `tools/list` may differ.
    pub tools: bool,
    /// `prompts/list` may differ.
    pub prompts: bool,
    /// `resources/list` or the templates may differ.
    pub resources: bool,
}

impl Changed {
    /// True if anything may differ.
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

    fn or(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }
}

/// What is known of one backend.
#[derive(Clone, Debug)]
pub struct BackendEntry {
    /// Its configured name.
    pub name: Arc<str>,
    /// False while it is down: it keeps its names but is left out of lists.
    pub listed: bool,
    /// The lists it gave, by era and capability set.
    pub views: BTreeMap<ViewKey, Arc<View>>,
    /// A fingerprint of the program and settings that gave them. Another one may list something else under the same
    /// name.
    pub source: u64,
    /// True if it may show each principal something else: each sees its own views alone, they are saved nowhere, and
    /// clients may not share them.
    pub private: bool,
    /// True if it may show each token of a principal something else; it is then private.
    pub per_token: bool,
    /// True if it is reached by a way of its own alone: it has no plain names among those of others, and
    /// takes none from them.
    pub apart: bool,
    /// Whose lists each principal is shown, where that is not its own.
    owners: Option<Arc<dyn ListOwners>>,
    /// The views from the least to the most recently stored.
    ages: Vec<ViewKey>,
    /// The rank of every entry it ever listed, by kind, in the order in which they were first seen.
    ranks: [TextMap<Box<str>, u64>; 4],
    next_rank: u64,
    /// Shared ruling for requests routed here under their own name.
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

    /// The names of everything of one kind that it lists in any view, including app pages that its tools link to.
    fn owned(&self, kind: ListKind) -> impl Iterator<Item = &str> {
        let listed = self.views.values().flat_map(move |view| view.list(kind)).map(|item| &*item.key);
        let tools = self.views.values().filter(move |_| kind == ListKind::Resources).flat_map(|view| &view.tools);
        listed.chain(tools.flat_map(Item::apps))
    }

    /// The lists this kind of client is shown; the nearest ones if its own are not known.
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

    /// The views that a user may be shown.
    pub fn views_for(&self, whose: Option<&BackendUser>) -> impl Iterator<Item = (&ViewKey, &Arc<View>)> {
        let whose = whose.filter(|_| self.private).map(|whose| self.owner(whose).into_owned());
        self.views.iter().filter(move |(key, _)| key.whose == whose)
    }

    /// The key of the lists that were read for exactly this kind of client.
    fn key_of<'a>(&self, selector: &'a Selector) -> Cow<'a, ViewKey> {
        match (self.private, selector.whose.as_ref().map(|whose| self.owner(whose))) {
            (_, None) | (true, Some(Cow::Borrowed(_))) => Cow::Borrowed(selector),
            (true, Some(Cow::Owned(owner))) => Cow::Owned(ViewKey { whose: Some(owner), ..selector.clone() }),
            (false, Some(_)) => Cow::Owned(ViewKey::shared(selector.era, selector.caps.clone())),
        }
    }

    /// Whose lists a user is shown.
    fn owner<'a>(&self, whose: &'a BackendUser) -> Cow<'a, BackendUser> {
        let other = self.owners.as_ref().and_then(|owners| owners.owner(whose.principal()));
        match other {
            Some(other) => Cow::Owned(other.into()),
            None if self.per_token || !whose.has_token() => Cow::Borrowed(whose),
            None => Cow::Owned(whose.without_token()),
        }
    }
}

/// Number of ranks that may be remembered for names no longer listed, beyond as many as are listed.
const MAX_RANKS: usize = 10_000;

/// The model of all lists.
#[derive(Clone, Debug)]
pub struct Catalog {
    backends: Vec<BackendEntry>,
    /// Bytes that the lists of one backend may take up beyond those that all clients are shown.
    view_bytes: usize,
    claims: [Claims; 4],
    generation: u64,
}

impl Catalog {
    /// An empty catalog of these backends, in their configured order.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        let backends = names.into_iter().map(BackendEntry::new).collect();
        Self { backends, view_bytes: VIEW_BYTES, claims: Default::default(), generation: 0 }
    }

    /// Sets how many bytes the lists of one backend may take up beyond those that all clients are shown. Holds for
    /// views stored from now on.
    pub fn set_view_bytes(&mut self, most: usize) {
        self.view_bytes = most;
    }

    /// Stores the lists that a backend gave to a connection of this view.
    pub fn set_view(&mut self, backend: &str, key: ViewKey, mut view: View) -> Changed {
        let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) else {
            return Changed::default();
        };
        entry.order(&mut view);
        // Clients of a new view were shown the nearest one until now.
        let changed = match entry.shown(&key) {
            Some(known) => view.differs(known),
            None => Changed::everything(&view),
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

    /// Drops the lists of this principal at a backend that shows each its own.
    pub fn forget_views_of(&mut self, backend: &str, principal: &Principal) -> Changed {
        let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) else {
            return Changed::default();
        };
        let is_own = |key: &ViewKey| key.whose.as_ref().is_some_and(|whose| whose.principal() == principal);
        let dropped: Vec<Arc<View>> = entry.views.extract_if(.., |key, _| is_own(key)).map(|(_, view)| view).collect();
        entry.ages.retain(|key| !is_own(key));
        self.generation += u64::from(!dropped.is_empty());
        dropped.iter().map(|view| Changed::everything(view)).fold(Changed::default(), Changed::or)
    }

    /// Sets the fingerprint of the program that gave a backend's lists.
    pub fn set_source(&mut self, backend: &str, source: u64) {
        if let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) {
            entry.source = source;
        }
    }

    /// Sets whether a backend may show each principal something else.
    pub fn set_private(&mut self, backend: &str, private: bool) {
        if let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) {
            entry.private = private;
        }
    }

    /// Sets whether a private backend may show each token of a principal something else.
    pub fn set_per_token(&mut self, backend: &str, per_token: bool) {
        if let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) {
            entry.per_token = per_token;
        }
    }

    /// Sets who says whose lists a principal is shown.
    pub fn set_owners(&mut self, backend: &str, owners: Option<Arc<dyn ListOwners>>) {
        if let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) {
            entry.owners = owners;
        }
    }

    /// Sets whether a backend is reached by a way of its own alone.
    pub fn set_apart(&mut self, backend: &str, apart: bool) {
        if let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) {
            entry.apart = apart;
        }
    }

    /// Gives every listed name without an owner to the first backend that lists it.
    fn claim_all(&mut self) {
        for kind in ListKind::ALL {
            let claims = &mut self.claims[kind as usize];
            for (index, entry) in self.backends.iter().enumerate().filter(|(_, entry)| !entry.apart) {
                let earlier = |other: &str| self.backends[index..].iter().any(|later| *later.name == *other);
                entry.owned(kind).for_each(|name| claims.claim(name, &entry.name, earlier));
            }
            let listed = self.backends.iter().map(|entry| entry.owned(kind).count()).sum();
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
    pub fn set_listed(&mut self, backend: &str, listed: bool) -> Changed {
        let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) else {
            return Changed::default();
        };
        if entry.listed == listed {
            return Changed::default();
        }
        entry.listed = listed;
        self.generation += 1;
        entry.views.values().map(|view| Changed::everything(view)).fold(Changed::default(), Changed::or)
    }

    /// What is known of each backend, in configured order.
    #[must_use]
    pub fn backends(&self) -> &[BackendEntry] {
        &self.backends
    }

    /// An immutable picture of the catalog as it stands.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.backends.clone(), &self.claims, self.generation)
    }
}

/// The capabilities of all backends together, for `initialize` and `server/discover`.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Offer {
    /// Some backend has tools.
    pub tools: bool,
    /// Some backend has prompts.
    pub prompts: bool,
    /// Some backend has resources.
    pub resources: bool,
    /// Some backend lets resources be subscribed to.
    pub subscribe: bool,
    /// Some backend completes arguments.
    pub completions: bool,
    /// Some backend sends log messages.
    pub logging: bool,
    /// Some backend runs tasks, in the shape of either era.
    pub tasks: bool,
}

impl Offer {
    /// Everything the gateway can carry, offered while a backend is still unknown.
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

    /// Adds what one backend has.
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
