//! The exchanges that are open, by the numbers that they have in their process and in the tape.

use super::numbering::way;
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::keys::{ExchangeId, KeyMap};
use signalbox_engine::record::MessageKind;
use signalbox_wire::Span;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Most exchanges that are known at once. Beyond, those of which nothing was heard longest are forgotten.
pub const MAX_EXCHANGES: usize = 100_000;
/// So many exchanges that have ended are still known, for what comes late.
const ENDED: usize = 1_024;
/// Most bytes of messages that are remembered to compare the next image with.
const MAX_BASES: usize = 64 << 20;

/// What is remembered of an exchange.
#[derive(Default, Debug)]
pub(crate) struct Open {
    /// The method of the client's request.
    pub(crate) method: Option<Arc<str>>,
    /// The tool, prompt or URI of it.
    pub(crate) subject: Option<Arc<str>>,
    /// Something was taken out of its subject.
    pub(crate) redacted: bool,
    /// The method of what the backend asked last in the middle of it.
    pub(crate) asked: Option<Arc<str>>,
    /// Bodies toward its client are left out.
    pub(crate) withheld: bool,
    /// It was judged by filters and sampling.
    pub(crate) begun: bool,
    bases: [Option<BaseBody>; 2],
    /// Its bases are copies of their own.
    own: bool,
    last: u64,
    ended: bool,
    /// Its answer has left for the client.
    answered: bool,
}

/// A whole body that the next image is compared with.
#[derive(Clone, Debug)]
pub(crate) struct BaseBody {
    pub(crate) bytes: Bytes,
    /// The span of its id, if that is a plain number and nothing was taken out of the message.
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
    /// Nobody said that it ended.
    pub(crate) orphan: bool,
}

impl Exchanges {
    /// The exchange of this key. Exchanges that had to make room for it are added to `forgotten`.
    pub(crate) fn enter(&mut self, id: ExchangeId, at: u64, forgotten: &mut Vec<Forgotten>) -> &mut Open {
        if self.open.len() >= MAX_EXCHANGES && !self.open.contains_key(&id) {
            self.make_room(forgotten);
        }
        let open = self.open.entry(id).or_default();
        open.last = at;
        open
    }

    /// The whole body before this one that goes the same way.
    pub(crate) fn base(&self, id: ExchangeId, point: Point) -> Option<&BaseBody> {
        self.open.get(&id)?.bases[way(point)].as_ref()
    }

    /// Remembers a whole body, for the next image to be compared with. None forgets it.
    pub(crate) fn set_base(&mut self, id: ExchangeId, way: usize, body: Option<BaseBody>) {
        let Some(open) = self.open.get_mut(&id) else { return };
        self.bases -= open.bases[way].take().map_or(0, |old| old.bytes.len());
        let room = MAX_BASES - self.bases.min(MAX_BASES);
        open.bases[way] = body.filter(|body| body.bytes.len() <= room);
        open.own = false;
        self.bases += open.bases[way].as_ref().map_or(0, |base| base.bytes.len());
    }

    /// An answer has passed: what it was compared with is not needed any more.
    pub(crate) fn passed(&mut self, id: ExchangeId, point: Point, kind: MessageKind) {
        if matches!(kind, MessageKind::Result | MessageKind::Error) {
            match point {
                Point::BackendIn => self.set_base(id, 0, None),
                Point::ClientOut => self.answer(id),
                Point::ClientIn | Point::BackendOut => {}
            }
        }
    }

    /// The answer has left for the client.
    fn answer(&mut self, id: ExchangeId) {
        if let Some(open) = self.open.get_mut(&id) {
            open.answered = true;
            self.bases -= open.bases[1].take().map_or(0, |base| base.bytes.len());
        }
    }

    /// The exchange has ended. It is known for a while yet, since its last image may come late; its messages are not,
    /// because they would stay charged to their senders.
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

    /// Forgets exchanges of which nothing was heard for this long.
    pub(crate) fn sweep(&mut self, now: u64, orphan_after: Duration, forgotten: &mut Vec<Forgotten>) {
        let old = |open: &Open| u128::from(now.saturating_sub(open.last)) >= orphan_after.as_nanos();
        // What is open for long holds nothing but itself, not all that was shelved with it.
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

    /// Forgets what messages are compared with: the next tape has none of it.
    pub(crate) fn forget_bases(&mut self) {
        self.open.values_mut().for_each(|open| open.bases = [None, None]);
        self.bases = 0;
    }

    /// The exchanges that are known, and whether each has ended.
    pub(crate) fn known(&self) -> impl Iterator<Item = (u64, bool)> + '_ {
        self.open.iter().map(|(id, open)| (id.0, open.ended))
    }

    /// Number of exchanges without an end of which nothing was heard since this time.
    pub(crate) fn silent_since(&self, time: u64) -> usize {
        self.open.values().filter(|open| !open.ended && open.last < time).count()
    }

    /// True if all exchanges but this many have ended, and the answers of those that ended since `time` have left.
    pub(crate) fn is_quiet(&self, silent: usize, time: u64) -> bool {
        let without_end = self.open.len().saturating_sub(self.ended.len());
        let mut recent =
            self.ended.iter().rev().filter_map(|id| self.open.get(id)).take_while(|open| open.last >= time);
        without_end <= silent && recent.all(|open| open.answered)
    }

    /// An eighth goes at once, so that a full table does not cost a search each time.
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

    #[test]
    fn s_70_orphans_are_cleaned_and_what_ended_is_known_a_while() {
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

    #[test]
    fn s_70_the_table_has_a_bound() {
        let (mut exchanges, mut gone) = (Exchanges::default(), vec![]);
        for id in 0..=MAX_EXCHANGES as u64 {
            exchanges.enter(ExchangeId(id), id, &mut gone);
        }
        assert_eq!(gone.len(), MAX_EXCHANGES / 8);
        assert!(gone.iter().all(|one| one.orphan && one.number <= MAX_EXCHANGES as u64 / 8));
    }
}
