//! Keeps the catalog up to date: reads a backend's lists when it comes up and whenever it reports a change.

use super::Backend;
use super::connections::ConnectionRole;
use super::state::Home;
use crate::lists;
use crate::peer::Peer;
use signalbox_engine::catalog::{ListChanges, ListKind, Selector, Snapshot, View, ViewKey};
use signalbox_engine::{BackendUser, Event, Fault, FaultKind, ServerProfile};
use signalbox_wire::{Era, method};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::SemaphorePermit;

/// Debounce time between a change notification and the reread.
const SETTLE: Duration = Duration::from_millis(30);
/// Maximum lifetime of a listen request for list changes.
const LISTEN_FOR: Duration = Duration::from_secs(24 * 3600);
/// Delay before a listen request for list changes is opened again.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);

impl Backend {
    /// Returns true if a client of this kind need not wait for the lists: `catalog` has them, or they will not come.
    pub(crate) fn lists_ready(&self, selector: &Selector, catalog: &Snapshot) -> bool {
        // While the process is stopped, the last known lists are shown; listing does not start it.
        if self.is_asleep() && !self.is_per_user() {
            return true;
        }
        // With exchanged tokens, a caller without a token sees nothing of the backend.
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

    /// Returns the era of the gateway's own connection, if that has read its lists since it was opened and all users
    /// see the same lists.
    pub(crate) fn era_of_read_lists(&self) -> Option<Era> {
        if self.is_per_user() {
            return None;
        }
        let state = self.lock();
        let home = state.connections.home().filter(|_| matches!(state.home, Home::Up(_)));
        let key = home.and_then(|home| home.view_key()).filter(|key| state.lists.was_read(key));
        key.map(|key| key.era)
    }

    /// Returns true if these lists have expired and can be read again.
    fn is_stale(&self, view: &ViewKey) -> bool {
        let (per_user, now) = (self.is_per_user(), crate::clock::now());
        let whose = view.whose.as_ref().filter(|_| per_user);
        let key = ViewKey { whose: whose.cloned(), ..view.clone() };
        let state = self.lock();
        let open = matches!(state.home, Home::Up(_)) || per_user && matches!(state.home, Home::AwaitsCaller);
        state.lists.is_stale(&key, now) && open && !state.lists.has_failed(&key, whose, now)
    }

    /// Returns true if no connection will read these lists: none of this kind is open and no further one may be opened.
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

    /// Reads all lists over a connection that has just become ready, unless its view has been read already.
    pub(super) fn refresh(self: &Arc<Self>, peer: &Arc<Peer>, profile: &Arc<ServerProfile>, home: bool) {
        let Some(key) = peer.view_key() else { return };
        // Where each principal has its own lists, the connection of that principal reports their changes.
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

    /// Spawns a task outside the worker threads: resolving the names of many entries takes long, and calls must not
    /// wait for it.
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

    /// Waits for a permit to read lists. The home connection needs none.
    async fn reader(&self, peer: &Peer) -> Option<SemaphorePermit<'_>> {
        match peer.role {
            ConnectionRole::Home => None,
            _ => self.list_readers.acquire().await.ok(),
        }
    }

    /// Subscribes to changes of the lists, on the GET stream of a legacy backend or with a listen request.
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
                // Changes in between were not reported.
                if let Some(profile) = peer.profile().filter(|_| !peer.is_lost())
                    && let Err(fault) = backend.read(&peer, &profile).await
                {
                    tracing::debug!(backend = %backend.name, %fault, "could not read lists again");
                }
            }
        });
    }

    /// Rereads a list after a change notification, once for several notifications in a row.
    pub(crate) fn lists_changed(self: &Arc<Self>, peer: &Arc<Peer>, name: &str) {
        let kinds: &'static [ListKind] = match name {
            method::TOOLS_LIST_CHANGED => &[ListKind::Tools],
            method::PROMPTS_LIST_CHANGED => &[ListKind::Prompts],
            _ => &[ListKind::Resources, ListKind::Templates],
        };
        if let Some(gateway) = self.gateway().filter(|_| kinds[0] == ListKind::Resources) {
            gateway.reads.forget_backend(&self.name);
        }
        let sent_before = {
            let mut state = self.lock();
            if state.is_ending() {
                return;
            }
            let Some(sent_before) = state.lists.begin_rereading(peer.id, kinds[0]) else { return };
            sent_before
        };
        let (backend, peer) = (Arc::clone(self), Arc::clone(peer));
        self.in_background(async move {
            tokio::time::sleep(SETTLE).await;
            backend.lock().lists.end_rereading(peer.id, kinds[0]);
            let (own, ()) = tokio::join!(backend.reread(&peer, kinds), backend.reread_common(&peer, kinds));
            match own {
                Ok(true) => {}
                Ok(false) => backend.forward_unchanged(&peer, kinds, sent_before),
                Err(fault) => backend.reading_failed(&peer, &fault),
            }
        });
    }

    /// Rereads the lists that all clients are shown, after a connection of one session reported a change. That
    /// connection may end before it is read, and the server may tell no other.
    async fn reread_common(self: &Arc<Self>, reporter: &Peer, kinds: &'static [ListKind]) {
        let home = {
            let state = self.lock();
            let is_up = matches!(state.home, Home::Up(_)) && !self.is_per_user();
            let home = state.connections.home().filter(|home| is_up && home.id != reporter.id && !home.is_lost());
            home.cloned()
        };
        let Some(home) = home else { return };
        // Of several reports at once, one rereads.
        if self.lock().lists.begin_rereading(home.id, kinds[0]).is_none() {
            return;
        }
        tokio::time::sleep(SETTLE).await;
        self.lock().lists.end_rereading(home.id, kinds[0]);
        if let Err(fault) = self.reread(&home, kinds).await {
            tracing::debug!(backend = %self.name, %fault, "could not read lists again");
        }
    }

    /// Forwards a change notification although the reread lists are the same. Each process of a legacy server has lists
    /// of its own, and the gateway trusts the notification. `sent_before` is the count at its arrival: if all clients
    /// were notified since then, they are not notified again.
    fn forward_unchanged(&self, peer: &Peer, kinds: &[ListKind], sent_before: u64) {
        let (Some(gateway), resources) = (self.gateway(), kinds[0] == ListKind::Resources) else { return };
        let changed =
            ListChanges { tools: kinds[0] == ListKind::Tools, prompts: kinds[0] == ListKind::Prompts, resources };
        if let Some(owner) = peer.owner() {
            return owner.handle(Event::ListsChanged { changed });
        }
        if matches!(peer.role, ConnectionRole::Pooled(_)) || self.lock().lists.count_unless_sent(kinds[0], sent_before)
        {
            gateway.notify_lists_changed(changed, peer.view_key().as_ref());
        }
    }

    /// Reads these lists again. Returns false if they are unchanged.
    async fn reread(self: &Arc<Self>, peer: &Arc<Peer>, kinds: &[ListKind]) -> Result<bool, Fault> {
        let (Some(gateway), Some(key), Some(profile)) = (self.gateway(), peer.view_key(), peer.profile()) else {
            return Ok(true);
        };
        let _turn = peer.lists_turn.lock().await;
        let _reader = self.reader(peer).await;
        let known: Option<View> = {
            let catalog = gateway.catalog.snapshot();
            let entry = catalog.backends().iter().find(|entry| entry.name == self.name);
            entry.and_then(|entry| entry.views.get(&key)).map(|view| view.sent().clone())
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

    /// Stores lists in the catalog. Returns true if they differ from the previous ones.
    async fn store(&self, peer: &Peer, view: View, good: Option<Duration>) -> bool {
        let (Some(gateway), Some(key)) = (self.gateway(), peer.view_key()) else { return false };
        // The principal may have been forgotten meanwhile, which closes its connections first.
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
        // The connection that would report changes may end with its session, so private lists expire and are read
        // again.
        let good = good.or_else(|| key.whose.as_ref().map(|_| lists::OLD_TTL));
        self.lock().lists.store(key.clone(), good.map(|good| crate::clock::now() + good));
        let changed = gateway.catalog.set_view(self, key.clone(), view);
        if let Some(owner) = owner.filter(|_| peer.was_closed()) {
            self.drop_lists_of(owner);
            return false;
        }
        // Lists that were evicted are read again by the next connection of their kind.
        self.lock().lists.keep_only(&gateway.catalog.views(self));
        if changed.any() {
            self.lock().lists.count_sent(changed);
            gateway.notify_lists_changed(changed, Some(&key));
            // The lists of one principal are not saved.
            if key.whose.is_none() {
                gateway.catalog.save().await;
            }
        }
        changed.any()
    }

    /// Returns the fault that tells this user to sign in, if the backend shows it nothing before that.
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
        // A user that has signed out at the backend no longer sees its lists.
        if let Some(whose) = self.lists_of(&peer.user).filter(|_| fault.kind == FaultKind::SignInNeeded) {
            self.drop_lists_of(whose.principal());
        }
        let known = self
            .gateway()
            .zip(peer.view_key())
            .filter(|(gateway, key)| gateway.catalog.snapshot().knows(&self.name, key));
        let mut state = self.lock();
        if let Some((_, key)) = known {
            // The known lists stay in use until they are read again.
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
