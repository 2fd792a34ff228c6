//! The sessions of a tape, by their numbers in it.

use signalbox_engine::fact::SessionFact;
use signalbox_engine::keys::{KeyMap, SessionKey};
use signalbox_engine::record::SessionInfo;
use signalbox_wire::json;
use std::collections::VecDeque;

/// Most sessions that are known at once. Beyond, the one that was told of first is forgotten.
const MAX_SESSIONS: usize = 100_000;
/// So many sessions that have ended are still known, for what comes late.
const ENDED: usize = 1_024;

#[derive(Default, Debug)]
pub(crate) struct Sessions {
    numbers: KeyMap<SessionKey, u64>,
    order: VecDeque<SessionKey>,
    ended: VecDeque<SessionKey>,
    counted: u64,
}

impl Sessions {
    /// The number of a session that was told of.
    pub(crate) fn number(&self, key: SessionKey) -> Option<u64> {
        self.numbers.get(&key).copied()
    }

    /// The number of a session that is told of.
    pub(crate) fn enter(&mut self, key: SessionKey) -> u64 {
        if let Some(number) = self.number(key) {
            return number;
        }
        if self.numbers.len() >= MAX_SESSIONS
            && let Some(oldest) = self.order.pop_front()
        {
            self.numbers.remove(&oldest);
        }
        self.counted += 1;
        self.numbers.insert(key, self.counted);
        self.order.push_back(key);
        self.counted
    }

    /// The session has ended. It is known for a while yet.
    pub(crate) fn end(&mut self, key: SessionKey) {
        self.ended.push_back(key);
        if self.ended.len() > ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.numbers.remove(&oldest);
            // Sessions end in about the order in which they began, so the search is short.
            if let Some(place) = self.order.iter().position(|known| *known == oldest) {
                self.order.remove(place);
            }
        }
    }
}

/// What a tape says of a session.
pub(crate) fn info(fact: &SessionFact) -> SessionInfo {
    let said = fact.client.as_deref();
    let text = |name: &str| {
        let info = said?.info.as_deref()?;
        json::string(json::member(info, name)?.of(info)).map(|text| text.into_owned())
    };
    SessionInfo {
        external: fact.external.as_deref().map(str::to_owned),
        client: text("name"),
        client_version: text("version"),
        revision: said.map(|client| client.revision.as_str().to_owned()),
        transport: fact.transport.to_owned(),
    }
}
