//! Open exchanges, by their numbers in the process, which are also those on the tape.

use super::numbering::way;
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::keys::{ExchangeId, KeyMap};
use signalbox_engine::record::MessageKind;
use signalbox_wire::Span;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of known exchanges. Beyond it, those that were silent longest are forgotten.
pub const MAX_EXCHANGES: usize = 100_000;
/// Number of ended exchanges that remain known for late facts.
const ENDED: usize = 1_024;
/// Maximum number of bytes of messages that are remembered as bases of the next image.
const MAX_BASES: usize = 64 << 20;

/// State of a known exchange.
#[derive(Default, Debug)]
pub(crate) struct Open {
    /// Method of the client's request.
    pub(crate) method: Option<Arc<str>>,
    /// Tool, prompt or URI of the request.
    pub(crate) subject: Option<Arc<str>>,
    /// True if the subject was redacted.
    pub(crate) redacted: bool,
    /// Method of the latest request that the backend sent during the exchange.
    pub(crate) asked: Option<Arc<str>>,
    /// True if bodies toward the client are left out.
    pub(crate) withheld: bool,
    /// True once filters and sampling have judged the exchange.
    pub(crate) begun: bool,
    bases: [Option<BaseBody>; 2],
    /// True if the bases are copies of the messages.
    own: bool,
    last: u64,
    ended: bool,
    /// True once the answer has left for the client.
    answered: bool,
}

/// A complete body that the next image is compared with.
#[derive(Clone, Debug)]
pub(crate) struct BaseBody {
    pub(crate) bytes: Bytes,
    /// Span of its id, if that is a plain number and the message was not redacted.
    pub(crate) plain_id: Option<Span>,
}

#[derive(Default, Debug)]
pub(crate) struct Exchanges {
    open: KeyMap<ExchangeId, Open>,
    ended: VecDeque<ExchangeId>,
    bases: usize,
}

/// An exchange that is forgotten.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Forgotten {
    pub(crate) number: u64,
    /// True if the end of the exchange was never reported.
    pub(crate) orphan: bool,
}

impl Exchanges {
    /// Returns the exchange of this key. Exchanges that had to make room for it are added to `forgotten`.
    pub(crate) fn enter(&mut self, id: ExchangeId, at: u64, forgotten: &mut Vec<Forgotten>) -> &mut Open {
        if self.open.len() >= MAX_EXCHANGES && !self.open.contains_key(&id) {
            self.make_room(forgotten);
        }
        let open = self.open.entry(id).or_default();
        open.last = at;
        open
    }

    /// Returns the preceding complete body in the same direction.
    pub(crate) fn base(&self, id: ExchangeId, point: Point) -> Option<&BaseBody> {
        self.open.get(&id)?.bases[way(point)].as_ref()
    }

    /// Remembers a complete body as the base of the next image. `None` forgets it.
    pub(crate) fn set_base(&mut self, id: ExchangeId, way: usize, body: Option<BaseBody>) {
        let Some(open) = self.open.get_mut(&id) else { return };
        self.bases -= open.bases[way].take().map_or(0, |old| old.bytes.len());
        let room = MAX_BASES - self.bases.min(MAX_BASES);
        open.bases[way] = body.filter(|body| body.bytes.len() <= room);
        open.own = false;
        self.bases += open.bases[way].as_ref().map_or(0, |base| base.bytes.len());
    }

    /// Releases the base of an answer that has passed.
    pub(crate) fn passed(&mut self, id: ExchangeId, point: Point, kind: MessageKind) {
        if matches!(kind, MessageKind::Result | MessageKind::Error) {
            match point {
                Point::BackendIn => self.set_base(id, 0, None),
                Point::ClientOut => self.answer(id),
                Point::ClientIn | Point::BackendOut => {}
            }
        }
    }

    /// Notes that the answer has left for the client.
    fn answer(&mut self, id: ExchangeId) {
        if let Some(open) = self.open.get_mut(&id) {
            open.answered = true;
            self.bases -= open.bases[1].take().map_or(0, |base| base.bytes.len());
        }
    }

    /// Marks the exchange as ended. It stays known for a while, since its last image may come late; its messages are
    /// released, because they would stay charged to their senders.
    pub(crate) fn end(&mut self, id: ExchangeId, forgotten: &mut Vec<Forgotten>) {
        if let Some(open) = self.open.get_mut(&id)
            && !std::mem::replace(&mut open.ended, true)
        {
            self.ended.push_back(id);
            self.bases -= open.bases.iter_mut().filter_map(Option::take).map(|base| base.bytes.len()).sum::<usize>();
        }
        if self.ended.len() > ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.forget(oldest, forgotten);
        }
    }

    /// Forgets exchanges that were silent for this long.
    pub(crate) fn sweep(&mut self, now: u64, orphan_after: Duration, forgotten: &mut Vec<Forgotten>) {
        let old = |open: &Open| u128::from(now.saturating_sub(open.last)) >= orphan_after.as_nanos();
        // A long-open exchange must hold only its own bodies, not the buffers they are slices of.
        self.own_bases();
        let gone: Vec<ExchangeId> =
            self.open.iter().filter(|(_, open)| !open.ended && old(open)).map(|(key, _)| *key).collect();
        gone.into_iter().for_each(|key| self.forget(key, forgotten));
    }

    /// Copies the remembered bodies, so that they are no longer charged to their senders.
    pub(crate) fn own_bases(&mut self) {
        for open in self.open.values_mut().filter(|open| !open.own) {
            open.own = true;
            for base in open.bases.iter_mut().flatten() {
                base.bytes = Bytes::copy_from_slice(&base.bytes);
            }
        }
    }

    /// Forgets all bases, because the next tape does not have them.
    pub(crate) fn forget_bases(&mut self) {
        self.open.values_mut().for_each(|open| open.bases = [None, None]);
        self.bases = 0;
    }

    /// Returns the known exchanges, and whether each has ended.
    pub(crate) fn known(&self) -> impl Iterator<Item = (u64, bool)> + '_ {
        self.open.iter().map(|(id, open)| (id.0, open.ended))
    }

    /// Returns the number of open exchanges that were silent since this time.
    pub(crate) fn silent_since(&self, time: u64) -> usize {
        self.open.values().filter(|open| !open.ended && open.last < time).count()
    }

    /// Returns true if all exchanges but this many have ended, and the answers of those that ended since `time` have
    /// left.
    pub(crate) fn is_quiet(&self, silent: usize, time: u64) -> bool {
        let without_end = self.open.len().saturating_sub(self.ended.len());
        let mut recent =
            self.ended.iter().rev().filter_map(|id| self.open.get(id)).take_while(|open| open.last >= time);
        without_end <= silent && recent.all(|open| open.answered)
    }

    /// Forgets an eighth of the exchanges at once, so that a full table does not cost a search each time.
    fn make_room(&mut self, forgotten: &mut Vec<Forgotten>) {
        let mut keys: Vec<(u64, ExchangeId)> = self.open.iter().map(|(key, open)| (open.last, *key)).collect();
        let many = (keys.len() / 8).max(1).min(keys.len().saturating_sub(1));
        keys.select_nth_unstable(many);
        keys.truncate(many);
        for (_, key) in keys {
            self.forget(key, forgotten);
        }
        self.ended.retain(|key| self.open.contains_key(key));
    }

    fn forget(&mut self, key: ExchangeId, forgotten: &mut Vec<Forgotten>) {
        if let Some(open) = self.open.remove(&key) {
            self.bases -= open.bases.iter().flatten().map(|base| base.bytes.len()).sum::<usize>();
            forgotten.push(Forgotten { number: key.0, orphan: !open.ended });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves S-70.
    #[test]
    fn orphans_are_cleaned_and_what_ended_is_known_a_while() {
        let (mut exchanges, mut gone) = (Exchanges::default(), vec![]);
        let asked: Arc<str> = "tools/call".into();
        exchanges.enter(ExchangeId(10), 10, &mut gone).method = Some(Arc::clone(&asked));
        exchanges.enter(ExchangeId(20), 20, &mut gone).method = Some(Arc::clone(&asked));
        exchanges.end(ExchangeId(10), &mut gone);
        let late = exchanges.enter(ExchangeId(10), 10, &mut gone);
        assert_eq!(late.method.as_ref(), Some(&asked), "what comes late belongs to it");
        exchanges.sweep(1_000, Duration::from_nanos(500), &mut gone);
        assert_eq!(gone, [Forgotten { number: 20, orphan: true }]);
        assert_eq!(exchanges.enter(ExchangeId(20), 20, &mut gone).method, None);
    }

    /// Proves S-70.
    #[test]
    fn the_table_has_a_bound() {
        let (mut exchanges, mut gone) = (Exchanges::default(), vec![]);
        for id in 0..=MAX_EXCHANGES as u64 {
            exchanges.enter(ExchangeId(id), id, &mut gone);
        }
        assert_eq!(gone.len(), MAX_EXCHANGES / 8);
        assert!(gone.iter().all(|one| one.orphan && one.number <= MAX_EXCHANGES as u64 / 8));
    }
}
