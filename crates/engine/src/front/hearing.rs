//! Who hears of changes of lists. Such a client can be shown the lists that are there, and told when there is more.

use super::inward::in_params;
use super::{FrontMachine, Lifecycle};
use crate::catalog::ListKind;
use crate::keys::ExchangeId;
use crate::profile::ClientProfile;
use signalbox_wire::{Era, json, method};

/// What a request is that waits for lists.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// It asks for this list.
    List(ListKind),
    /// It wants to hear of changes.
    Listen,
    /// It needs an entry that no known list has.
    Entry,
}

impl FrontMachine {
    /// What a request that is held for the lists wants of them.
    #[must_use]
    pub fn awaited(&self, id: ExchangeId) -> Option<Awaited> {
        let (message, _) = self.held.get(&id)?;
        let method = message.method()?;
        Some(match ListKind::of_method(method) {
            Some(kind) => Awaited::List(kind),
            None if method == method::SUBSCRIPTIONS_LISTEN => Awaited::Listen,
            None => Awaited::Entry,
        })
    }

    /// True where a session of the old era is told of changes on its general stream.
    #[must_use]
    pub fn hears_changes(&self) -> bool {
        self.general.is_some() && self.state == Lifecycle::Operational
    }

    /// True where a listen request of this client, answered or held, is to hear of changes of this list.
    #[must_use]
    pub fn listens_for(&self, kind: ListKind, client: &ClientProfile) -> bool {
        let same = |id: &ExchangeId| {
            let exchange = self.exchanges.get(id).filter(|exchange| exchange.era == Era::Modern);
            exchange.and_then(|exchange| exchange.client.as_ref()).is_some_and(|own| own.info == client.info)
        };
        let held = |id: &ExchangeId| {
            let (message, _) = self.held.get(id)?;
            let filter =
                in_params(message, &["notifications"]).filter(|_| self.awaited(*id) == Some(Awaited::Listen))?;
            let filter = filter.of(message.bytes());
            json::member(filter, wish(kind)).map(|span| span.of(filter) == b"true")
        };
        self.listeners.iter().any(|(id, listener)| listener.hears(kind) && same(id))
            || self.held.keys().any(|id| same(id) && held(id) == Some(true))
    }
}

/// The member of a listen request that asks for changes of this list.
pub(super) fn wish(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "toolsListChanged",
        ListKind::Prompts => "promptsListChanged",
        ListKind::Resources | ListKind::Templates => "resourcesListChanged",
    }
}
