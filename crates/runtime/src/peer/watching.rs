//! The one listen request by which a backend of the new era tells of the resources that old sessions follow.
//!
//! What a listen request asks for cannot change, so a change opens a new one, and the old one ends when the new one is
//! acknowledged: nothing is missed and nothing is heard twice.

use super::Peer;
use crate::berthed::Waiter;
use crate::origin::Origin;
use bytes::Bytes;
use signalbox_engine::{Event, Fault};
use signalbox_wire::{Edits, Envelope, json, method};
use std::sync::Arc;
use std::time::Duration;

/// How long a listen request may stay open.
const LISTEN_FOR: Duration = Duration::from_secs(24 * 3600);
/// How long to wait before one that ended is opened again.
const AGAIN: Duration = Duration::from_secs(5);

/// Where the connection is with it.
#[derive(Default)]
pub(super) struct Watching {
    /// The number of the newest listen request.
    newest: u64,
    /// The number of the one that is acknowledged.
    live: u64,
    /// Who is told when the newest one is acknowledged.
    waiting: Vec<Waiter>,
}

impl Peer {
    /// Follows exactly these resources from now on; `waiter` is answered once that is so.
    pub(crate) fn watch_exactly(self: &Arc<Self>, uris: &[String], waiter: Option<Waiter>) {
        let number = {
            let mut inner = self.lock();
            inner.watching.waiting.extend(waiter);
            if !inner.machine.is_ready() {
                return;
            }
            inner.watching.newest += 1;
            inner.watching.newest
        };
        if uris.is_empty() {
            return self.watch_acknowledged(number);
        }
        let list: Vec<String> = uris.iter().map(|uri| json::quote(uri)).collect();
        let params = format!("\"notifications\":{{\"resourceSubscriptions\":[{}]}}", list.join(","));
        if let Err(fault) = self.own(Origin::Watches(number), method::SUBSCRIPTIONS_LISTEN, &params, LISTEN_FOR) {
            self.watch_ended(number, Some(fault));
        }
    }

    /// True where this listen request is the one whose word counts.
    pub(super) fn is_watching(&self, number: u64) -> bool {
        self.lock().watching.live == number
    }

    pub(super) fn watch_acknowledged(self: &Arc<Self>, number: u64) {
        let waiting = {
            let mut inner = self.lock();
            if number <= inner.watching.live {
                return;
            }
            inner.watching.live = number;
            while let Some(over) =
                inner.machine.cancel(|origin| matches!(origin, Origin::Watches(old) if *old < number), None)
            {
                self.give_up(&mut inner, Some(over));
            }
            std::mem::take(&mut inner.watching.waiting)
        };
        for (session, exchange) in waiting {
            if let Ok(message) = Envelope::parse(Bytes::from_static(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#)) {
                session.handle(Event::Answered { exchange, message, edits: Edits::new(), status: None });
            }
        }
    }

    /// The stream of a listen request is over: who waited for it is told, and it is opened again after a while.
    pub(super) fn watch_ended(self: &Arc<Self>, number: u64, fault: Option<Fault>) {
        let waiting = {
            let mut inner = self.lock();
            if number != inner.watching.newest {
                return;
            }
            std::mem::take(&mut inner.watching.waiting)
        };
        let fault = fault.unwrap_or_else(|| self.gone());
        for (session, exchange) in waiting {
            session.handle(Event::Failed { exchange, fault: fault.clone() });
        }
        let peer = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(AGAIN).await;
            let Some(peer) = peer.upgrade().filter(|peer| peer.is_ready() && !peer.is_lost()) else { return };
            if let Some(backend) = peer.backend.upgrade() {
                peer.watch_exactly(&backend.watched(&peer.principal), None);
            }
        });
    }
}
