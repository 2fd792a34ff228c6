//! Records the lists of backends: once, and again whenever they change.

use super::Recording;
use signalbox_engine::catalog::{Snapshot, View, ViewKey};
use signalbox_runtime::Gateway;
use signalbox_tape::seen;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Interval after which all lists are recorded again, because the beginning of a tape may have been pruned.
const AGAIN_AFTER: Duration = Duration::from_secs(3600);

/// Follows the lists of a gateway until it is gone.
pub fn follow(gateway: &Arc<Gateway>, recording: &Arc<Recording>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        tracing::warn!("what backends offer is not recorded: there is no runtime");
        return;
    };
    let (mut changes, gateway) = (gateway.catalog.follow(), Arc::downgrade(gateway));
    let mut tapes = recording.tape.subscribe();
    let mut observer = Observer { recording: Arc::downgrade(recording), told: HashMap::new() };
    runtime.spawn(async move {
        let start = tokio::time::Instant::now() + AGAIN_AFTER;
        let mut again = tokio::time::interval_at(start, AGAIN_AFTER);
        loop {
            let Some(snapshot) = gateway.upgrade().map(|gateway| Arc::clone(&gateway.catalog.snapshot())) else {
                return;
            };
            observer.look(&snapshot);
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                _ = again.tick() => observer.forget(),
                // Each tape must hold the lists itself.
                begun = tapes.changed() => if begun.is_ok() { observer.told.clear() } else { return },
            }
        }
    });
}

/// Recorded lists of each backend and view, by hash. Views that are gone are forgotten.
struct Observer {
    recording: Weak<Recording>,
    told: HashMap<(Arc<str>, ViewKey), (Arc<View>, String)>,
}

impl Observer {
    /// Makes everything be recorded again.
    fn forget(&mut self) {
        self.told.clear();
        if let Some(recording) = self.recording.upgrade() {
            recording.rules_again();
        }
    }

    fn look(&mut self, snapshot: &Snapshot) {
        let Some(recording) = self.recording.upgrade() else { return };
        let mut now = HashMap::new();
        for backend in snapshot.backends() {
            for (key, view) in &backend.views {
                let place = (Arc::clone(&backend.name), key.clone());
                let before = self.told.remove(&place);
                // Most changes affect one view, and the others are the same objects as before.
                if let Some((known, hash)) = before.as_ref().filter(|(known, _)| Arc::ptr_eq(known, view)) {
                    now.insert(place, (Arc::clone(known), hash.clone()));
                    continue;
                }
                let seen = seen::backend(&backend.name, key, view);
                now.insert(place, (Arc::clone(view), seen.hash.clone()));
                if before.is_none_or(|(_, hash)| hash != seen.hash) {
                    recording.recorder.backend(seen);
                }
            }
        }
        self.told = now;
    }
}
