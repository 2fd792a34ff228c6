//! What can be set of a backend anew while it runs.

use super::{Backend, BackendSpec};
use crate::lifetime::Start;
use signalbox_wire::method;
use std::collections::HashSet;
use std::sync::Arc;

impl Backend {
    /// Goes on under other terms, with its connections and the calls in flight; these keep the time that they were given.
    /// Era and strictness stay as they are. `tools` says that other tools are let through.
    pub fn retune(self: &Arc<Self>, spec: BackendSpec, tools: bool) {
        let spec = Arc::new(spec);
        let before = self.spec.swap(Arc::clone(&spec)).lifetime;
        let rested = before.start == Start::FirstUse || before.idle_stop.is_some() && spec.lifetime.idle_stop.is_none();
        // Other tools can only be listed by a process that runs.
        if tools || rested && spec.lifetime.start == Start::Eager {
            self.wake(&mut self.lock());
        }
        let Some(gateway) = self.gateway().filter(|_| tools) else { return };
        let changed = gateway.catalog.keep_tools(self, |tool| (spec.allows)(tool));
        gateway.tell_lists_changed(changed, None);
        let peers = self.lock().connections.all();
        let mut again = HashSet::new();
        for peer in peers.iter().filter(|peer| peer.is_ready()) {
            if peer.view_key().is_some_and(|key| again.insert(key)) {
                self.lists_changed(peer, method::TOOLS_LIST_CHANGED);
            }
        }
        // What no connection can list now is listed by the next one of its kind.
        self.lock().lists.keep_only(&again);
    }

    /// Tries a backend that is down again at once, instead of at the end of its wait.
    pub fn try_now(&self) {
        self.lock().condition.hurry();
        self.changed.notify_one();
    }
}
