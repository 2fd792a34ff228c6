//! Which clients are notified of list changes. Such a client can be shown the known lists at once, and told when
//! there are more.

use super::exchanges::Stage;
use super::inward::in_params;
use super::{FrontMachine, Lifecycle};
use crate::catalog::ListKind;
use crate::keys::ExchangeId;
use crate::profile::ClientProfile;
use signalbox_wire::{Envelope, Era, json, method};

/// What a request that waits for lists needs them for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// It asks for this list.
    List(ListKind),
    /// It is a listen request.
    Listen,
    /// It needs an entry that no known list has.
    Entry,
}

impl FrontMachine {
    /// What a request that waits for lists needs them for.
    #[must_use]
    pub fn awaited(&self, id: ExchangeId) -> Option<Awaited> {
        match self.exchanges.stage(id)? {
            Stage::AwaitingLists(waiting) => awaited_by(&waiting.message),
            _ => None,
        }
    }

    /// True if a session of the old era is notified of changes on its general stream.
    #[must_use]
    pub fn hears_changes(&self) -> bool {
        self.general.is_some() && self.state == Lifecycle::Operational
    }

    /// True if a listen request of this client, open or waiting for lists, asks for changes of this list.
    #[must_use]
    pub fn listens_for(&self, kind: ListKind, client: &ClientProfile) -> bool {
        self.exchanges.stages().any(|(exchange, stage)| {
            let same = exchange.client.as_ref().is_some_and(|own| own.info == client.info);
            let hears = match stage {
                Stage::Listening(listener) => listener.hears(kind),
                Stage::AwaitingLists(waiting) => asks_to_hear(&waiting.message, kind),
                _ => false,
            };
            hears && same && exchange.era == Era::Modern
        })
    }
}

fn awaited_by(message: &Envelope) -> Option<Awaited> {
    let method = message.method()?;
    Some(match ListKind::of_method(method) {
        Some(kind) => Awaited::List(kind),
        None if method == method::SUBSCRIPTIONS_LISTEN => Awaited::Listen,
        None => Awaited::Entry,
    })
}

/// True for a listen request that asks for changes of this list.
fn asks_to_hear(message: &Envelope, kind: ListKind) -> bool {
    let filter = in_params(message, &["notifications"]).filter(|_| awaited_by(message) == Some(Awaited::Listen));
    let Some(filter) = filter.map(|span| span.of(message.bytes())) else { return false };
    json::member(filter, wish(kind)).is_some_and(|span| span.of(filter) == b"true")
}

/// The member of a listen request that asks for changes of this list.
pub(super) fn wish(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "toolsListChanged",
        ListKind::Prompts => "promptsListChanged",
        ListKind::Resources | ListKind::Templates => "resourcesListChanged",
    }
}
