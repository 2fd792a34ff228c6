//! Wait of a list request for backends whose lists are not known yet.

use crate::backend::Backend;
use crate::gateway::Gateway;
use crate::session::Session;
use signalbox_engine::catalog::{Selector, Snapshot};
use signalbox_engine::{BackendUser, Caller, ClientProfile, ExchangeId, Fault};
use std::sync::Arc;
use std::time::Duration;

/// Maximum wait of a list request for slow backends, if its client is notified of changes and other backends have lists
/// to show. Claude Code gives up after 5 s.
pub const EARLY_LIST_WAIT: Duration = Duration::from_secs(3);

/// Maximum wait for lists of exactly the client's kind, if those of another process of the same backend are known.
pub const KNOWN_LIST_WAIT: Duration = Duration::from_millis(750);

/// Replaces [`KNOWN_LIST_WAIT`] for a client that declares capabilities, if the known lists are of its own era: a
/// legacy server may show it more than others.
pub const DECLARED_LIST_WAIT: Duration = Duration::from_millis(2_500);

impl Gateway {
    /// Returns true if this kind of client need not wait for any backend's lists. The caller must then use this very
    /// catalog: lists that arrive in between would count as ready here and not be shown.
    pub(crate) fn lists_ready(&self, caller: &Caller, selector: &Selector, catalog: &Snapshot) -> bool {
        self.backends().iter().all(|backend| self.need_not_wait(backend, caller, selector, catalog))
    }

    /// Returns true if a caller need not wait for this backend, which it may not even see.
    fn need_not_wait(&self, backend: &Backend, caller: &Caller, selector: &Selector, catalog: &Snapshot) -> bool {
        backend.lists_ready(selector, catalog)
            || self.visibility().is_some_and(|visibility| !visibility.shows_backend(caller, &backend.name))
    }

    /// Returns the backends that show this user nothing before a sign-in, with the faults that carry the addresses.
    pub(crate) fn sign_ins(&self, whose: &BackendUser) -> Vec<(Arc<str>, Fault)> {
        let wanted = |backend: &Arc<Backend>| Some((Arc::clone(&backend.name), backend.wanted_sign_in(whose)?));
        self.backends().iter().filter_map(wanted).collect()
    }

    fn prepare(&self, session: &Arc<Session>, client: Option<&ClientProfile>, selector: &Selector) {
        let catalog = self.catalog.snapshot();
        let ready = |backend: &Backend| self.need_not_wait(backend, &session.caller, selector, &catalog);
        for backend in self.backends().iter().filter(|backend| !ready(backend)) {
            backend.prepare(session, client, selector);
        }
    }

    /// Waits until the lists are there, or other processes of the same backends have lists to show, or the time is
    /// over. A client that is notified of changes waits for a shorter time, gets what is there, and is notified when
    /// there is more.
    pub(crate) async fn wait_for_lists(
        &self,
        session: &Arc<Session>,
        exchange: ExchangeId,
        client: Option<&ClientProfile>,
        selector: &Selector,
    ) {
        let most = self.settings().first_list_wait;
        let short = EARLY_LIST_WAIT.min(most);
        let is_notified = session.is_notified_of_changes(exchange, client);
        let mut coming = std::pin::pin!(async {
            tokio::select! {
                () = self.wait_for_ready_lists(session, client, selector) => {}
                () = self.wait_for_similar_lists(&session.caller, selector, is_notified) => {}
            }
        });
        if tokio::time::timeout(short, &mut coming).await.is_ok() {
            return;
        }
        let early = is_notified && self.shows_any(&session.caller, selector);
        if !early && tokio::time::timeout(most.saturating_sub(short), coming).await.is_ok() {
            return;
        }
        let (backends, catalog) = (self.backends(), self.catalog.snapshot());
        let missing: Vec<&str> = backends
            .iter()
            .filter(|backend| !self.need_not_wait(backend, &session.caller, selector, &catalog))
            // Lists that were known before are in the answer, though they may have changed.
            .filter(|backend| !is_shown(&catalog, &backend.name, selector))
            .map(|backend| &*backend.name)
            .collect();
        if missing.is_empty() {
            return;
        }
        let missing = missing.join(", ");
        if early {
            tracing::info!(missing, "answered a list without slow backends; its client is told when they are there");
        } else {
            tracing::warn!(missing, "answered a list without backends that did not start in time");
        }
    }

    async fn wait_for_ready_lists(&self, session: &Arc<Session>, client: Option<&ClientProfile>, selector: &Selector) {
        let mut changes = self.catalog.follow();
        while !self.lists_ready(&session.caller, selector, &self.catalog.snapshot()) && !session.is_ended() {
            // Repeated each time, because the era of a backend decides which connection the session needs.
            self.prepare(session, client, selector);
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until every backend has read its lists for some kind of client, and a while longer for those of this kind.
    /// A legacy server may show more to a client that declares capabilities, which would not learn of it without change
    /// notifications. A server of both eras has no such lists: modern lists are the same for all.
    async fn wait_for_similar_lists(&self, caller: &Caller, selector: &Selector, is_notified: bool) {
        let mut changes = self.catalog.follow();
        let of_other_era = loop {
            match self.similar_lists(caller, selector) {
                SimilarLists::Unknown => {}
                SimilarLists::OfOtherEra => break true,
                SimilarLists::OfSameEra => break false,
            }
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        };
        let longer = match (selector.caps.is_bare() || of_other_era, is_notified) {
            (true, _) => KNOWN_LIST_WAIT,
            (false, true) => DECLARED_LIST_WAIT,
            (false, false) => return std::future::pending().await,
        };
        tokio::time::sleep(longer).await;
    }

    fn similar_lists(&self, caller: &Caller, selector: &Selector) -> SimilarLists {
        let catalog = self.catalog.snapshot();
        let mut similar = SimilarLists::OfOtherEra;
        for backend in self.backends().iter().filter(|one| !self.need_not_wait(one, caller, selector, &catalog)) {
            match backend.era_of_read_lists().filter(|_| is_shown(&catalog, &backend.name, selector)) {
                None => return SimilarLists::Unknown,
                Some(era) if era == selector.era => similar = SimilarLists::OfSameEra,
                Some(_) => {}
            }
        }
        similar
    }

    /// Returns true if there is something to show to this kind of client.
    fn shows_any(&self, caller: &Caller, selector: &Selector) -> bool {
        let (catalog, visibility) = (self.catalog.snapshot(), self.visibility());
        let sees = |name: &str| visibility.is_none_or(|visibility| visibility.shows_backend(caller, name));
        catalog.backends().iter().any(|entry| entry.listed && sees(&entry.name) && entry.shown(selector).is_some())
    }
}

/// Result of looking for lists of another kind of client at all backends.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum SimilarLists {
    /// A backend has none.
    Unknown,
    /// At least one backend has lists read with other capabilities, in the era of the client.
    OfSameEra,
    /// All lists were read in the other era.
    OfOtherEra,
}

/// Returns true if a list for this kind of client contains entries of this backend.
fn is_shown(catalog: &Snapshot, backend: &str, selector: &Selector) -> bool {
    let mut entries = catalog.backends().iter().filter(|entry| *entry.name == *backend);
    entries.any(|entry| entry.listed && entry.shown(selector).is_some())
}
