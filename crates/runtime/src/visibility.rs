//! Visibility of catalog entries, and notification of sessions when lists change.

use crate::gateway::Gateway;
use signalbox_engine::catalog::{CallerView, ListChanges, ListKind, ViewKey, Visibility};
use signalbox_engine::{BackendUser, Caller, Event, Principal};

impl Gateway {
    /// Returns the filter that decides which entries a caller sees, or `None` while all callers see all entries.
    #[must_use]
    pub fn visibility(&self) -> Option<&dyn Visibility> {
        self.visibility.as_deref().filter(|visibility| !visibility.is_open())
    }

    /// Returns true unless the caller must not learn that the tool of this exposed name exists.
    #[must_use]
    pub fn reveals_tool(&self, caller: &Caller, principal: &Principal, exposed: &str) -> bool {
        let user = BackendUser::of(principal.clone(), caller);
        let catalog = self.catalog.snapshot();
        let sight = self.visibility().map(|visibility| CallerView::of(visibility, caller));
        let route = match sight.as_ref().and_then(CallerView::sole) {
            Some(sole) => catalog.own_tool(sole, exposed),
            None => catalog.tool(exposed),
        };
        route.is_some_and(|route| {
            let is_revealed = |sight: &CallerView<'_>| sight.reveals(&catalog.entry_of(ListKind::Tools, &route, &user));
            catalog.is_listed_for(ListKind::Tools, &route, &user) && sight.as_ref().is_none_or(is_revealed)
        })
    }

    /// Notifies clients that their lists have changed, because callers may now see other entries.
    pub fn visibility_changed(&self) {
        let changed = ListChanges { tools: true, prompts: true, resources: true };
        self.notify_lists_changed(changed, None);
    }

    /// Inspects all known lists again, and tells clients whose lists changed by that.
    pub fn inspect_lists_again(&self) {
        let changed = self.catalog.inspect_again();
        self.notify_lists_changed(changed, None);
    }

    /// Notifies sessions that lists have changed: all of them, or those that see the lists of this view.
    pub(crate) fn notify_lists_changed(&self, changed: ListChanges, view: Option<&ViewKey>) {
        if !changed.any() {
            return;
        }
        for session in self.sessions.all() {
            let sees = |view: &ViewKey| view.caps.is_bare() || session.sees(&view.caps);
            let own = |view: &ViewKey| view.whose.as_ref().is_none_or(|whose| session.is_user(whose));
            if view.is_none_or(|view| own(view) && sees(view)) {
                session.handle(Event::ListsChanged { changed });
            }
        }
    }
}
