//! Immutable copy of the catalog: owners of names, and lists as clients see them.

mod resource_routes;

use super::claims::Claims;
use super::cursor::Cursor;
use super::names::Names;
use super::{Audience, BackendEntry, CallerView, EntryRef, Item, ListKind, NameStyle, Offer, Selector, View};
use crate::backend_user::BackendUser;
use crate::bridge::listing;
use crate::bridge::tasks::{self, TaskSupport};
use crate::chain::Ruling;
use crate::keys::TextMap;
use crate::lock::LockResultExt;
use crate::profile::ServerProfile;
use crate::read_cache::CacheTerms;
use bytes::Bytes;
use signalbox_wire::header_params::ParamHeader;
use signalbox_wire::{Era, Revision, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Maximum number of entries on one page.
pub const PAGE_ENTRIES: usize = 1_000;
/// Maximum number of bytes on one page, unless a single entry is larger.
pub const PAGE_BYTES: usize = 1 << 20;
/// Maximum number of cached first pages.
const MAX_RENDERED: usize = 64;

/// Destination of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Configured name of the backend.
    pub backend: Arc<str>,
    /// The backend's own name for the subject.
    pub name: Box<str>,
    /// True if the exposed name differs from the backend's.
    pub renamed: bool,
}

/// One page of a list, rendered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// JSON array of the entries.
    pub array: Bytes,
    /// Cursor of the next page, if there is one.
    pub next: Option<String>,
}

impl Page {
    /// Returns true if the page has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        &*self.array == b"[]"
    }
}

/// Cache key of a rendered page: everything it depends on besides the catalog.
type PageKey = (ListKind, Selector, Option<Audience>);

/// State of the catalog at one moment.
#[derive(Debug)]
pub struct Snapshot {
    backends: Vec<BackendEntry>,
    generation: u64,
    tools: Names,
    prompts: Names,
    resources: Names,
    templates: Names,
    params: TextMap<Box<str>, Arc<[ParamHeader]>>,
    /// True if any backend shows each principal its own lists.
    has_private: bool,
    /// True for each backend whose old connections run tool calls as tasks, in the order of `backends`.
    task_hosts: Vec<bool>,
    /// True for each backend that has resources, in the order of `backends`. Empty unless several have.
    resource_hosts: Vec<bool>,
    rendered: Mutex<HashMap<PageKey, Page>>,
    /// True once a client has seen or used a name.
    shown: AtomicBool,
}

impl Snapshot {
    pub(super) fn new(backends: Vec<BackendEntry>, claims: &[Claims; 4], generation: u64) -> Self {
        let names: Vec<Arc<str>> = backends.iter().map(|entry| Arc::clone(&entry.name)).collect();
        let of = |kind: ListKind| {
            let owned = backends.iter().map(|entry| entry.listed_names(kind).map(Box::from).collect()).collect();
            let first = |name: &str| {
                let owner = claims[kind as usize].owner(name)?;
                names.iter().position(|name| name == owner)
            };
            Names::new(kind.style(), &names, owned, first, |index| backends[index].apart)
        };
        let tools = of(ListKind::Tools);
        let mut params = TextMap::default();
        for (index, entry) in backends.iter().enumerate() {
            for item in entry.views.values().flat_map(|view| &view.tools).filter(|item| !item.params.is_empty()) {
                let exposed = tools.renamed(index, &item.key).unwrap_or(&item.key);
                params.insert(exposed.into(), Arc::clone(&item.params));
            }
        }
        Self {
            tools,
            prompts: of(ListKind::Prompts),
            resources: of(ListKind::Resources),
            templates: of(ListKind::Templates),
            params,
            has_private: backends.iter().any(|entry| entry.private),
            task_hosts: backends.iter().map(|entry| entry.views.values().any(|view| hosts_old_tasks(view))).collect(),
            resource_hosts: resource_routes::hosts(&backends),
            backends,
            generation,
            rendered: Mutex::default(),
            shown: AtomicBool::new(false),
        }
    }

    /// Returns true once a client has seen or used a name.
    #[must_use]
    pub fn was_shown(&self) -> bool {
        self.shown.load(Ordering::Relaxed)
    }

    fn show(&self) {
        if !self.was_shown() {
            self.shown.store(true, Ordering::Relaxed);
        }
    }

    /// Returns a number that grows with every change of the catalog.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the state of each backend, in configured order.
    #[must_use]
    pub fn backends(&self) -> &[BackendEntry] {
        &self.backends
    }

    /// Returns the only backend, if there is just one.
    #[must_use]
    pub fn only(&self) -> Option<&Arc<str>> {
        match &self.backends[..] {
            [one] => Some(&one.name),
            _ => None,
        }
    }

    /// Returns true if the backend's lists for this kind of client are known.
    #[must_use]
    pub fn knows(&self, backend: &str, selector: &Selector) -> bool {
        self.entry(backend).is_some_and(|entry| entry.views.contains_key(&*entry.key_of(selector)))
    }

    /// Returns the lists of a backend for this kind of client, or the nearest ones if those are unknown.
    #[must_use]
    pub fn view<'a>(&self, entry: &'a BackendEntry, selector: &Selector) -> Option<&'a Arc<View>> {
        entry.shown(selector)
    }

    /// Returns the profile that each listed backend declares to this kind of client.
    pub fn profiles<'a>(
        &'a self,
        selector: &Selector,
        sight: Option<&'a CallerView<'_>>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a ServerProfile)> {
        self.profiles_of(|entry| entry.listed, selector, sight)
    }

    /// Returns the same for all backends: the profile of one that is down holds when it returns.
    pub fn known_profiles<'a>(
        &'a self,
        selector: &Selector,
        sight: Option<&'a CallerView<'_>>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a ServerProfile)> {
        self.profiles_of(|_| true, selector, sight)
    }

    fn profiles_of<'a>(
        &'a self,
        fits: impl Fn(&BackendEntry) -> bool,
        selector: &Selector,
        sight: Option<&'a CallerView<'_>>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a ServerProfile)> {
        let selector = selector.clone();
        self.backends
            .iter()
            .filter(move |entry| fits(entry) && sight.is_none_or(|sight| sight.backend(&entry.name)))
            .filter_map(move |entry| Some((&entry.name, &*self.view(entry, &selector)?.profile)))
    }

    /// Returns the combined capabilities of all backends, or everything the gateway can carry while one of them is
    /// unknown. Backends that are down count with their last profile, because a client may ask only for lists that were
    /// declared.
    #[must_use]
    pub fn offer(&self, selector: &Selector, sight: Option<&CallerView<'_>>) -> Offer {
        let seen = |entry: &&BackendEntry| sight.is_none_or(|sight| sight.backend(&entry.name));
        if self.backends.iter().filter(seen).any(|entry| entry.shown(selector).is_none()) {
            return Offer::full();
        }
        let mut offer = Offer::default();
        for (_, profile) in self.known_profiles(selector, sight) {
            offer.add(profile);
        }
        offer
    }

    /// Returns the route of a tool.
    #[must_use]
    pub fn tool(&self, exposed: &str) -> Option<Route> {
        self.route(&self.tools, exposed)
    }

    /// Returns the route of a tool by the backend's own name for it.
    #[must_use]
    pub fn own_tool(&self, backend: &str, own: &str) -> Option<Route> {
        let index = self.index(backend).filter(|index| self.tools.has(*index, own))?;
        self.show();
        Some(Route { backend: Arc::clone(&self.backends[index].name), name: own.into(), renamed: false })
    }

    /// Returns the route of a prompt.
    #[must_use]
    pub fn prompt(&self, exposed: &str) -> Option<Route> {
        self.route(&self.prompts, exposed)
    }

    /// Returns the task support of a tool of an old backend; `Forbidden` for backends of the new era, which decide for
    /// themselves. `selector` is called only if it matters.
    #[must_use]
    pub fn task_support(&self, route: &Route, selector: impl FnOnce() -> Selector) -> TaskSupport {
        let index = self.index(&route.backend).filter(|index| self.task_hosts[*index]);
        let view = index.and_then(|index| self.view(&self.backends[index], &selector()));
        let host = view.filter(|view| hosts_old_tasks(view));
        let item = host.and_then(|view| view.tools.named(&route.name));
        item.map_or(TaskSupport::Forbidden, |item| tasks::support(&item.raw))
    }

    /// Returns the definition of a tool by its exposed name, as its backend sent it for this user.
    #[must_use]
    pub fn definition(&self, exposed: &str, backend: &str, whose: &BackendUser) -> Option<&Bytes> {
        let route = self.tool(exposed).filter(|route| *route.backend == *backend);
        // A caller that sees a single backend uses that backend's own tool names.
        self.own_definition(route.as_ref().map_or(exposed, |route| &route.name), backend, whose)
    }

    /// Returns the definition of a tool by the backend's own name for it.
    #[must_use]
    pub fn own_definition(&self, own: &str, backend: &str, whose: &BackendUser) -> Option<&Bytes> {
        let mut views = self.entry(backend)?.views_for(Some(whose));
        views.find_map(|(_, view)| view.tools.named(own)).map(|item| &item.raw)
    }

    /// Returns the entry that a route leads to, as shown to this user.
    #[must_use]
    pub fn entry_of<'a>(&'a self, kind: ListKind, route: &'a Route, whose: &BackendUser) -> EntryRef<'a> {
        let mut views = self.entry(&route.backend).into_iter().flat_map(|entry| entry.views_for(Some(whose)));
        let item = views.find_map(|(_, view)| view.list(kind).named(&route.name));
        EntryRef { kind, backend: &route.backend, name: &route.name, definition: item.map(|item| &*item.raw) }
    }

    /// Returns false if the route leads to a tool or prompt that the backend shows only to other users. Resources need
    /// not be listed to be read, so there the backend decides by the credential.
    #[must_use]
    pub fn is_listed_for(&self, kind: ListKind, route: &Route, whose: &BackendUser) -> bool {
        if !self.has_private || kind.style() != NameStyle::Name {
            return true;
        }
        let entry = self.entry(&route.backend).filter(|entry| entry.private);
        entry.is_none_or(|entry| {
            let mut views = entry.views_for(Some(whose));
            views.any(|(_, view)| view.list(kind).named(&route.name).is_some())
        })
    }

    /// Returns the qualified names of all tools with this own name.
    #[must_use]
    pub fn qualified_tools(&self, own: &str) -> Vec<String> {
        self.tools.candidates(own, &self.backends)
    }

    /// Returns the entries that clients see under their qualified name because another backend has the plain one, as
    /// (list, backend, own name), in no order.
    pub fn collisions(&self) -> impl Iterator<Item = (ListKind, &Arc<str>, &str)> {
        ListKind::ALL.into_iter().flat_map(move |kind| {
            let among = self.names(kind).all_renamed().filter(|(index, _)| !self.backends[*index].apart);
            among.map(move |(index, name)| (kind, &self.backends[index].name, name))
        })
    }

    /// Returns the arguments of a tool that are mirrored into headers.
    #[must_use]
    pub fn param_headers(&self, exposed_tool: &str) -> Option<&Arc<[ParamHeader]>> {
        if self.params.is_empty() {
            return None;
        }
        self.params.get(exposed_tool).or_else(|| {
            let (index, own) = self.tools.owner(exposed_tool)?;
            self.params.get(self.tools.renamed(index, &own).unwrap_or(&own))
        })
    }

    /// Returns one page of a list for this kind of client, or `None` if the cursor is not ours.
    #[must_use]
    pub fn page(
        &self,
        kind: ListKind,
        selector: &Selector,
        sight: Option<&CallerView<'_>>,
        cursor: Option<&str>,
    ) -> Option<Page> {
        self.show();
        if let Some(text) = cursor {
            return self.render(kind, selector, sight, Some(Cursor::decode(kind, text)?));
        }
        let mut selector = selector.clone();
        if !self.has_private {
            // Without private backends, the page does not depend on the user.
            selector.whose = None;
        }
        // A caller that sees a single backend shares the page with all callers that share its lists.
        if let Some(entry) = sight.and_then(CallerView::sole).and_then(|sole| self.entry(sole)) {
            selector = entry.key_of(&selector).into_owned();
        }
        let key = (kind, selector, sight.map(|sight| sight.audience().clone()));
        let kept = self.rendered.lock().unpoisoned().get(&key).cloned();
        if kept.is_some() {
            return kept;
        }
        let page = self.render(kind, &key.1, sight, None)?;
        let mut rendered = self.rendered.lock().unpoisoned();
        if rendered.len() < MAX_RENDERED {
            rendered.insert(key, page.clone());
        }
        Some(page)
    }

    /// Returns the strictest terms for caching this list among the backends whose entries the client sees. A backend
    /// that is down or gives no terms forbids caching, and a list that depends on the caller is private.
    #[must_use]
    pub fn terms(
        &self,
        kind: ListKind,
        selector: &Selector,
        sight: Option<&CallerView<'_>>,
        now: Instant,
    ) -> CacheTerms {
        let mut merged: Option<CacheTerms> = None;
        for entry in self.backends.iter().filter(|entry| sight.is_none_or(|sight| sight.backend(&entry.name))) {
            let view = self.view(entry, selector);
            if view.is_some_and(|view| !view.profile.has(&[kind.capability()])) {
                continue;
            }
            let Some(own) = view.filter(|_| entry.listed).and_then(|view| view.terms(kind)) else {
                return CacheTerms::NOT_AT_ALL;
            };
            let ttl = own.until.saturating_duration_since(now);
            let known = merged.unwrap_or(CacheTerms { ttl, public: sight.is_none() });
            let public = known.public && own.public && !entry.private;
            merged = Some(CacheTerms { ttl: known.ttl.min(ttl), public });
        }
        merged.unwrap_or(CacheTerms::NOT_AT_ALL)
    }

    fn render(
        &self,
        kind: ListKind,
        selector: &Selector,
        sight: Option<&CallerView<'_>>,
        after: Option<Cursor>,
    ) -> Option<Page> {
        let (start, after) = match &after {
            Some(cursor) => {
                let start = self.index(&cursor.backend)?;
                let known = self.backends[start].ranks[kind as usize].get(&*cursor.key);
                (start, *known.unwrap_or(&cursor.rank))
            }
            None => (0, 0),
        };
        let mut array = vec![b'['];
        let mut count = 0;
        let mut last: Option<(usize, &Item)> = None;
        for (index, entry) in self.backends.iter().enumerate().skip(start) {
            let Some(view) = self.view(entry, selector).filter(|_| entry.listed) else { continue };
            let tasks = kind == ListKind::Tools
                && selector.era == Era::Legacy
                && view.profile.era() == Era::Modern
                && view.profile.hosts_tasks();
            for item in view.list(kind) {
                let seen = sight.is_none_or(|sight| {
                    let (backend, name, definition) = (&*entry.name, &*item.key, Some(&*item.raw));
                    sight.lists(&EntryRef { kind, backend, name, definition })
                });
                if index == start && item.rank <= after || !seen {
                    continue;
                }
                let own = sight.and_then(CallerView::sole).is_some_and(|sole| *sole == *entry.name);
                let mut bytes = self.render_item(kind, index, item, selector.era, own);
                if tasks {
                    bytes = listing::with_task_support(&bytes);
                }
                if count == PAGE_ENTRIES || (count > 0 && array.len() + bytes.len() > PAGE_BYTES) {
                    let next = last.map(|(i, item)| Cursor::encode(kind, &self.backends[i].name, item.rank, &item.key));
                    array.push(b']');
                    return Some(Page { array: array.into(), next });
                }
                if count > 0 {
                    array.push(b',');
                }
                array.extend_from_slice(&bytes);
                count += 1;
                last = Some((index, item));
            }
        }
        array.push(b']');
        Some(Page { array: array.into(), next: None })
    }

    fn render_item(&self, kind: ListKind, index: usize, item: &Item, era: Era, own: bool) -> Bytes {
        let exposed = self.names(kind).renamed(index, &item.key).filter(|_| !own);
        let bytes = item.render(exposed, |uri| self.resources.renamed(index, uri).map(Into::into));
        let revision = if era == Era::Modern { Revision::LATEST } else { Revision::LATEST_LEGACY };
        listing::entry(kind, revision, &bytes)
    }

    fn names(&self, kind: ListKind) -> &Names {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
        }
    }

    /// Returns the backend that has a plain name. This does not count as showing the name to clients, so it may still
    /// move to another backend.
    #[must_use]
    pub fn owner_of(&self, kind: ListKind, exposed: &str) -> Option<&Arc<str>> {
        let (index, _) = self.names(kind).owner(exposed)?;
        Some(&self.backends[index].name)
    }

    fn route(&self, names: &Names, exposed: &str) -> Option<Route> {
        let (index, name) = names.owner(exposed)?;
        self.show();
        Some(Route { backend: Arc::clone(&self.backends[index].name), renamed: name != exposed, name: name.into() })
    }

    /// Returns the shared ruling for requests routed here under the entry's own name.
    pub(crate) fn routed(&self, route: &Route) -> Option<&Arc<Ruling>> {
        let entry = self.backends.iter().find(|entry| Arc::ptr_eq(&entry.name, &route.backend));
        entry.filter(|_| !route.renamed).map(|entry| &entry.routed)
    }

    fn entry(&self, backend: &str) -> Option<&BackendEntry> {
        self.backends.iter().find(|entry| &*entry.name == backend)
    }

    fn index(&self, backend: &str) -> Option<usize> {
        self.backends.iter().position(|entry| &*entry.name == backend)
    }

    fn single(&self, fits: impl Fn(&View) -> bool) -> Option<usize> {
        let mut found = (0..self.backends.len()).filter(|i| self.backends[*i].views.values().any(|view| fits(view)));
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }
}

fn hosts_old_tasks(view: &View) -> bool {
    view.profile.era() == Era::Legacy && view.profile.hosts_tasks()
}

/// Builds the result object of a list answer: the array, the next cursor and the given tail.
#[must_use]
pub fn list_result(kind: ListKind, page: &Page, tail: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(page.array.len() + 160);
    out.push(b'{');
    json::write_quoted(&mut out, kind.member());
    out.push(b':');
    out.extend_from_slice(&page.array);
    if let Some(next) = &page.next {
        out.extend_from_slice(b",\"nextCursor\":");
        json::write_quoted(&mut out, next);
    }
    out.extend_from_slice(tail);
    out.push(b'}');
    out.into()
}
