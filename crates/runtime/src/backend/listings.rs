//! Keeps the catalog up to date: reads a backend's lists when it comes up and whenever it says that they changed.

use super::Backend;
use super::connections::ConnectionRole;
use super::state::Home;
use crate::lists;
use crate::peer::Peer;
use signalbox_engine::catalog::{Changed, ListKind, Selector, Snapshot, View, ViewKey};
use signalbox_engine::{BackendUser, Event, Fault, FaultKind, ServerProfile};
use signalbox_wire::{Era, method};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::SemaphorePermit;

/// How long changes are gathered before a list is read again.
const SETTLE: Duration = Duration::from_millis(30);
/// How long a stream of changes may stay open.
const LISTEN_FOR: Duration = Duration::from_secs(24 * 3600);
/// How long to wait before a stream of changes is opened again.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);

/// Number of clients' connections to a backend that read lists at a time. The gateway's own does not wait for them.
pub(crate) const MAX_READERS: usize = 8;

impl Backend {
    /// True if this kind of client need not wait for the backend's lists: this catalog has them, or they will not come.
    pub(crate) fn lists_ready(&self, selector: &Selector, catalog: &Snapshot) -> bool {
        // Lists are shown as last known while the process is stopped; nobody starts it to list them.
        if self.is_asleep() && !self.is_per_user() {
            return true;
        }
        // A caller without a token is shown nothing of a backend that tokens are exchanged for.
        if self.lacks_token(selector.whose.as_ref()) {
            return true;
        }
        let effective = self.effective(selector);
        if self.is_stale(&effective) {
            return false;
        }
        if catalog.knows(&self.name, selector) {
            return true;
        }
        let per_user = self.is_per_user();
        let (known, down, failed) = {
            let state = self.lock();
            let down = state.home.fault().is_some();
            let whose = effective.whose.as_ref().filter(|_| per_user);
            (state.support.known(), down, state.lists.has_failed(&effective, whose, crate::clock::now()))
        };
        // Of a backend that awaits a caller with a credential, even the era may be unknown.
        let failed = failed && (known || per_user);
        down || failed || known && (catalog.knows(&self.name, &effective) || self.cannot_show(&effective))
    }

    /// The era of the gateway's own connection, if that has read its lists since it was opened and all users are shown
    /// the same.
    pub(crate) fn era_of_read_lists(&self) -> Option<Era> {
        if self.is_per_user() {
            return None;
        }
        let state = self.lock();
        let home = state.connections.home().filter(|_| matches!(state.home, Home::Up(_)));
        let key = home.and_then(|home| home.view_key()).filter(|key| state.lists.was_read(key));
        key.map(|key| key.era)
    }

    /// True if these lists are too old, for a backend that does not report changes.
    fn is_stale(&self, view: &ViewKey) -> bool {
        let (per_user, now) = (self.is_per_user(), crate::clock::now());
        let whose = view.whose.as_ref().filter(|_| per_user);
        let key = ViewKey { whose: whose.cloned(), ..view.clone() };
        let state = self.lock();
        let open = matches!(state.home, Home::Up(_)) || per_user && matches!(state.home, Home::AwaitsCaller);
        state.lists.is_stale(&key, now) && open && !state.lists.has_failed(&key, whose, now)
    }

    /// True if no connection will read these lists: none of this kind is open, and there is no room for one.
    fn cannot_show(&self, selector: &Selector) -> bool {
        let peers = {
            let state = self.lock();
            if !self.is_full(&state) {
                return false;
            }
            state.connections.all()
        };
        let whose = selector.whose.as_ref().filter(|_| self.is_per_user());
        let fits = |peer: &Arc<Peer>| {
            peer.caps == selector.caps
                && whose.is_none_or(|whose| peer.user == *whose)
                && peer.view_key().is_none_or(|key| key.era == selector.era)
        };
        !peers.iter().any(fits)
    }

    /// Reads all lists over a connection that has just become ready, unless its view is known already.
    pub(super) fn refresh(self: &Arc<Self>, peer: &Arc<Peer>, profile: &Arc<ServerProfile>, home: bool) {
        let Some(key) = peer.view_key() else { return };
        // Where each principal has its own lists, its own connection tells of their changes.
        if home || self.is_per_user() && matches!(peer.role, ConnectionRole::Shared(_)) {
            self.follow_changes(peer, profile);
        }
        if !self.lock().lists.begin_reading(peer.id, &key, crate::clock::now()) {
            return;
        }
        let (backend, peer, profile) = (Arc::clone(self), Arc::clone(peer), Arc::clone(profile));
        self.in_background(async move {
            let read = backend.read(&peer, &profile).await;
            backend.lock().lists.end_reading(peer.id);
            if let Err(fault) = read {
                backend.reading_failed(&peer, &fault);
            }
        });
    }

    /// Runs a task off the worker threads: resolving the names of many entries takes a while, and calls must
    /// not wait for it.
    fn in_background(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self.gateway().and_then(|gateway| gateway.runtimes.background()) {
            Some(runtime) => drop(runtime.spawn(task)),
            None => drop(tokio::spawn(task)),
        }
    }

    /// Reads all lists. Each connection reads one thing at a time, so that newer lists are stored after older ones.
    async fn read(&self, peer: &Peer, profile: &Arc<ServerProfile>) -> Result<(), Fault> {
        let _turn = peer.lists_turn.lock().await;
        let _reader = self.reader(peer).await;
        let (view, good) = lists::fetch_view(peer, profile, &Arc::clone(&self.spec())).await?;
        self.store(peer, view, good).await;
        Ok(())
    }

    /// Waits until this connection may read lists.
    async fn reader(&self, peer: &Peer) -> Option<SemaphorePermit<'_>> {
        match peer.role {
            ConnectionRole::Home => None,
            _ => self.list_readers.acquire().await.ok(),
        }
    }

    /// Has the backend report changes of its lists, on its GET stream or in response to a listen request.
    fn follow_changes(self: &Arc<Self>, peer: &Arc<Peer>, profile: &ServerProfile) {
        if profile.era() == Era::Legacy {
            return peer.open_general();
        }
        let wanted: Vec<&str> = [
            ("tools", "\"toolsListChanged\":true"),
            ("prompts", "\"promptsListChanged\":true"),
            ("resources", "\"resourcesListChanged\":true"),
        ]
        .into_iter()
        .filter(|(capability, _)| profile.has(&[capability, "listChanged"]))
        .map(|(_, member)| member)
        .collect();
        if wanted.is_empty() {
            return;
        }
        let params = format!("\"notifications\":{{{}}}", wanted.join(","));
        let (backend, peer) = (Arc::clone(self), Arc::clone(peer));
        self.in_background(async move {
            while !peer.is_lost() {
                let ended = peer.ask(method::SUBSCRIPTIONS_LISTEN, &params, LISTEN_FOR).await;
                tracing::debug!(peer = %peer.id, ok = matches!(ended, Ok(Ok(_))), "stream of changes ended");
                tokio::time::sleep(LISTEN_AGAIN).await;
                // Nobody heard of changes in between.
                if let Some(profile) = peer.profile().filter(|_| !peer.is_lost())
                    && let Err(fault) = backend.read(&peer, &profile).await
                {
                    tracing::debug!(backend = %backend.name, %fault, "could not read lists again");
                }
            }
        });
    }

    /// Reads a list again that the backend says has changed, once for several such notifications.
    pub(crate) fn lists_changed(self: &Arc<Self>, peer: &Arc<Peer>, name: &str) {
        let kinds: &'static [ListKind] = match name {
            method::TOOLS_LIST_CHANGED => &[ListKind::Tools],
            method::PROMPTS_LIST_CHANGED => &[ListKind::Prompts],
            _ => &[ListKind::Resources, ListKind::Templates],
        };
        if let Some(gateway) = self.gateway().filter(|_| kinds[0] == ListKind::Resources) {
            gateway.reads.forget_backend(&self.name);
        }
        let told = {
            let mut state = self.lock();
            if state.is_ending() {
                return;
            }
            let Some(told) = state.lists.begin_rereading(peer.id, kinds[0]) else { return };
            told
        };
        let (backend, peer) = (Arc::clone(self), Arc::clone(peer));
        self.in_background(async move {
            tokio::time::sleep(SETTLE).await;
            backend.lock().lists.end_rereading(peer.id, kinds[0]);
            match backend.reread(&peer, kinds).await {
                Ok(true) => {}
                Ok(false) => backend.tell_unchanged(&peer, kinds, told),
                Err(fault) => backend.reading_failed(&peer, &fault),
            }
        });
    }

    /// Passes a change notification on although the lists are the same as before. Each process of an old server has
    /// lists of its own, and the gateway does not doubt what a server says. `told` is the count from when the
    /// notification came: if everybody was told of a change since then, they are not told again.
    fn tell_unchanged(&self, peer: &Peer, kinds: &[ListKind], told: u64) {
        let (Some(gateway), resources) = (self.gateway(), kinds[0] == ListKind::Resources) else { return };
        let changed = Changed { tools: kinds[0] == ListKind::Tools, prompts: kinds[0] == ListKind::Prompts, resources };
        if let Some(owner) = peer.owner() {
            return owner.handle(Event::ListsChanged { changed });
        }
        if matches!(peer.role, ConnectionRole::Pooled(_)) || self.lock().lists.tell_unless_told(kinds[0], told) {
            gateway.tell_lists_changed(changed, peer.view_key().as_ref());
        }
    }

    /// Reads these lists again. False if nothing in them has changed.
    async fn reread(self: &Arc<Self>, peer: &Arc<Peer>, kinds: &[ListKind]) -> Result<bool, Fault> {
        let (Some(gateway), Some(key), Some(profile)) = (self.gateway(), peer.view_key(), peer.profile()) else {
            return Ok(true);
        };
        let _turn = peer.lists_turn.lock().await;
        let _reader = self.reader(peer).await;
        let known: Option<View> = {
            let catalog = gateway.catalog.snapshot();
            let entry = catalog.backends().iter().find(|entry| entry.name == self.name);
            entry.and_then(|entry| entry.views.get(&key)).map(|view| View::clone(view))
        };
        let Some(mut view) = known else {
            let (view, good) = lists::fetch_view(peer, &profile, &Arc::clone(&self.spec())).await?;
            return Ok(self.store(peer, view, good).await);
        };
        let (mut lists, spec) = (Vec::new(), Arc::clone(&self.spec()));
        for kind in kinds {
            if profile.has(&[kind.capability()]) {
                match lists::fetch(peer, *kind, &spec).await {
                    Ok(listed) => lists.push((*kind, listed)),
                    Err(_) if *kind == ListKind::Templates => {}
                    Err(fault) => return Err(fault),
                }
            }
        }
        for (kind, listed) in lists {
            listed.put(kind, &mut view);
        }
        Ok(self.store(peer, view, None).await)
    }

    /// Puts lists into the catalog. True if they differ from what was known.
    async fn store(&self, peer: &Peer, view: View, good: Option<Duration>) -> bool {
        let (Some(gateway), Some(key)) = (self.gateway(), peer.view_key()) else { return false };
        // A principal may have been forgotten meanwhile, which closes its connections first.
        let owner = key.whose.as_ref().map(BackendUser::principal);
        if owner.is_some() && peer.was_closed() {
            return false;
        }
        tracing::debug!(
            backend = %self.name,
            tools = view.tools.len(),
            prompts = view.prompts.len(),
            resources = view.resources.len(),
            templates = view.templates.len(),
            "lists read"
        );
        // The connection that would tell of changes may end with its session, so private lists are read
        // again now and then.
        let good = good.or_else(|| key.whose.as_ref().map(|_| lists::OLD_TTL));
        self.lock().lists.store(key.clone(), good.map(|good| crate::clock::now() + good));
        let changed = gateway.catalog.set_view(self, key.clone(), view);
        if let Some(owner) = owner.filter(|_| peer.was_closed()) {
            self.drop_lists_of(owner);
            return false;
        }
        // Lists that had to make room are read again by the next connection of their kind.
        self.lock().lists.keep_only(&gateway.catalog.views(self));
        if changed.any() {
            self.lock().lists.tell(changed);
            gateway.tell_lists_changed(changed, Some(&key));
            // The lists of one principal are not kept.
            if key.whose.is_none() {
                gateway.catalog.save().await;
            }
        }
        changed.any()
    }

    /// The fault that tells this user to sign in, if the backend shows it nothing before that.
    pub(crate) fn wanted_sign_in(&self, whose: &BackendUser) -> Option<Fault> {
        if !self.connector.signs_in() {
            return None;
        }
        let state = self.lock();
        let down = state.home.fault().filter(|fault| fault.kind == FaultKind::SignInNeeded);
        down.or_else(|| state.lists.sign_in(&self.known_as(whose), crate::clock::now())).cloned()
    }

    fn reading_failed(&self, peer: &Peer, fault: &Fault) {
        // The backend is not to blame if the gateway closed the connection itself, for example with its session.
        let closed = peer.was_closed();
        if closed {
            tracing::debug!(backend = %self.name, why = %fault, "stopped reading the backend's lists, since the gateway closed the connection");
        } else {
            tracing::warn!(backend = %self.name, why = %fault, "could not read the backend's lists");
        }
        // Whoever has signed out at the backend is shown its lists no longer.
        if let Some(whose) = self.lists_of(&peer.user).filter(|_| fault.kind == FaultKind::SignInNeeded) {
            self.drop_lists_of(whose.principal());
        }
        let known = self
            .gateway()
            .zip(peer.view_key())
            .filter(|(gateway, key)| gateway.catalog.snapshot().knows(&self.name, key));
        let mut state = self.lock();
        if let Some((_, key)) = known {
            // The known lists stay in use and are read again after a while.
            state.lists.serve_until(key, crate::clock::now() + lists::OLD_TTL);
        } else if !state.others_reading(peer, self.is_per_user()) {
            state.lists.failed(peer.caps.clone(), self.lists_of(&peer.user), fault, crate::clock::now());
        }
        if !closed {
            state.condition.set_error(fault.message.clone());
        }
        drop(state);
        if let Some(gateway) = self.gateway() {
            gateway.catalog.nudge();
        }
    }
}
