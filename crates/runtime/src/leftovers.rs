//! Inventory of what a gateway still holds for clients. Tests use it to find leaks.

use crate::backend::Backend;
use crate::gateway::Gateway;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

impl Gateway {
    /// Returns how much is held for clients, by kind; empty if no client left anything behind. The gateway's own
    /// connections do not count, nor do bounded caches: lists, reads, and the states of calls that may continue.
    #[must_use]
    pub fn leftovers(&self) -> BTreeMap<String, usize> {
        let mut kept: BTreeMap<String, usize> = BTreeMap::new();
        let in_flight = self.counters.in_flight.load(Ordering::Relaxed);
        kept.insert("sessions".to_owned(), self.sessions.len().max(self.sessions.all().len()));
        kept.insert("requests in flight".to_owned(), usize::try_from(in_flight.unsigned_abs()).unwrap_or(usize::MAX));
        kept.insert("event streams".to_owned(), self.counters.event_streams.load(Ordering::Relaxed));
        kept.insert("parked calls".to_owned(), self.parks.len());
        kept.insert("bytes of parked calls".to_owned(), self.parks.bytes());
        kept.insert("held messages".to_owned(), self.holds.list().len());
        kept.insert("retiring backends".to_owned(), self.backends().retiring().len());
        for backend in self.backends().all() {
            for (what, count) in backend.leftovers() {
                *kept.entry(format!("{what} at backend `{}`", backend.name)).or_default() += count;
            }
        }
        kept.retain(|_, count| *count > 0);
        kept
    }
}

impl Backend {
    fn leftovers(&self) -> Vec<(&'static str, usize)> {
        let state = self.state();
        let peers = state.connections.all();
        let homes = usize::from(state.connections.home().is_some());
        let ((owned, pools), (reading, rereading)) = (state.connections.counts(), state.lists.counts());
        let mut kept = vec![
            ("connections besides its own", peers.len().saturating_sub(homes)),
            ("connections of sessions", owned),
            ("pools of connections", pools),
            ("calls that wait for a connection", state.waiting.len()),
            ("requests that wait for an answer", peers.iter().map(|peer| peer.waits_for_others()).sum()),
            ("connections that read lists", reading),
            ("lists that are read again", rereading),
        ];
        kept.extend(state.subscriptions.counts());
        kept
    }
}
