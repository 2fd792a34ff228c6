//! The only way out to a backend, and the facts about every message on a connection, in both directions.

use super::{Peer, PeerState};
use crate::gateway::Gateway;
use crate::origin::{Attribution, Origin};
use signalbox_engine::back::{BackCommand, Outbound, ToBackend};
use signalbox_engine::budget::WEIGHED;
use signalbox_engine::fact::{MessageFact, Point, TransportData};
use signalbox_engine::{Fact, Fault, FaultKind};
use std::sync::{Arc, MutexGuard};

/// Maximum length of a recorded event id, in bytes.
const MAX_EVENT_ID: usize = 1024;

impl Peer {
    /// Sends and records a message under the peer lock, so that messages leave in the order in which they were created.
    /// It is attributed to the origin of its request, or to the gateway.
    pub(super) fn transmit(&self, inner: &mut MutexGuard<'_, PeerState>, message: Outbound) -> Result<(), Fault> {
        let recording = self.recording();
        let whose = recording.as_ref().and_then(|_| Some(inner.machine.origin(message.key()?)?.party()));
        self.hand_over(inner, message, recording.zip(Some(whose.unwrap_or_default())))
    }

    /// Does the same as [`Self::transmit`] for a message that belongs to no request of the connection.
    pub(super) fn transmit_for(
        &self,
        inner: &mut MutexGuard<'_, PeerState>,
        message: Outbound,
        party: &Attribution,
    ) -> Result<(), Fault> {
        let recording = self.recording();
        self.hand_over(inner, message, recording.map(|gateway| (gateway, party.clone())))
    }

    fn hand_over(
        &self,
        inner: &mut MutexGuard<'_, PeerState>,
        mut message: Outbound,
        told: Option<(Arc<Gateway>, Attribution)>,
    ) -> Result<(), Fault> {
        let key = message.key();
        let room = self.charge(&mut message);
        let (leaving, fact) = match &told {
            Some((gateway, party)) => {
                let (account, now) = (party.account(gateway), crate::clock::now());
                let (leaving, fact) = message.leave(inner.epoch, account, &self.name, &gateway.numbers, now);
                (leaving, Some(fact))
            }
            None => (message.leave_untold(inner.epoch), None),
        };
        let sent = room.and_then(|()| match self.link.get() {
            Some(link) => link.send(leaving),
            None => Err(self.not_connected()),
        });
        if let (Some((gateway, party)), Some(fact)) = (told, fact) {
            let lost = sent.as_ref().err().map(Fault::reason);
            party.note(&gateway, Fact::Message(MessageFact { lost, ..fact }));
        }
        if sent.is_err() {
            inner.machine.unsent(key);
        }
        sent
    }

    /// Charges a large message to the backend's memory budget until it is written or dropped.
    fn charge(&self, message: &mut Outbound) -> Result<(), Fault> {
        if message.bytes().len() < WEIGHED {
            return Ok(());
        }
        let backend = self.backend.upgrade();
        let Some(share) = backend.as_ref().and_then(|backend| backend.share()) else { return Ok(()) };
        message.charge(share).map_err(|error| {
            let name = self.backend_name();
            Fault::new(FaultKind::Overloaded, format!("backend `{name}`: {error}")).with_str("backend", &name)
        })
    }

    /// Releases a request that the transport itself makes, and records it.
    pub(super) fn release_own(&self, message: Outbound) -> ToBackend {
        let Some(gateway) = self.recording() else { return message.leave_untold(0) };
        let (account, now) = (Attribution::GATEWAY.account(&gateway), crate::clock::now());
        let (leaving, fact) = message.leave(0, account, &self.name, &gateway.numbers, now);
        Attribution::GATEWAY.note(&gateway, Fact::Message(fact));
        leaving
    }

    /// Records a message of the backend before it is acted on.
    pub(super) fn record_received(&self, command: &BackCommand<Origin>, event_id: Option<&str>) {
        let Some(heard) = command.heard() else { return };
        let Some(gateway) = self.recording() else { return };
        let party = heard.whose.map_or_else(|| self.unsolicited_party(), Origin::party);
        let (number, bytes) = (gateway.numbers.message(), heard.message.bytes());
        let fact = party.account(&gateway).fact(crate::clock::now(), Point::BackendIn, &self.name, bytes, number);
        let carried = event_id
            .filter(|id| id.len() <= MAX_EVENT_ID)
            .map(|id| Arc::new(TransportData { event_id: Some(id.into()), http: None }));
        party.note(&gateway, Fact::Message(MessageFact { lost: heard.lost, carried, ..fact }));
    }

    /// Returns the party of an unsolicited message: the session that owns the connection, or the gateway.
    fn unsolicited_party(&self) -> Attribution {
        self.owner().map_or(Attribution::GATEWAY, |owner| Attribution::of(owner, None))
    }

    /// Counts input from the backend that is dropped.
    pub(crate) fn count_dropped(&self, reason: &'static str) {
        if let Some(gateway) = self.backend.upgrade().and_then(|backend| backend.gateway()) {
            gateway.counters.dropped(reason);
        }
    }

    /// Returns the gateway if a sink records messages.
    fn recording(&self) -> Option<Arc<Gateway>> {
        let gateway = self.backend.upgrade()?.gateway()?;
        gateway.message_facts().then_some(gateway)
    }
}
