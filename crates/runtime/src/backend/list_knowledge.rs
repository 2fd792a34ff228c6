//! What is known about the lists of a backend: which were read, which could not be, and how long they are good.
//!
//! A [`ListKnowledge`] is a plain value behind the backend's lock; the lists themselves are in the catalog. These hold after
//! every method:
//!
//! - Lists that were read are not marked as failed.
//! - One connection reads its lists for the first time once at a time, and rereads a kind of list once at a time.
//! - The views that are remembered are bounded: if there are too many, all are forgotten and read again.

use signalbox_engine::catalog::{Changed, ListKind, MAX_VIEWS, ViewKey};
use signalbox_engine::{CapSet, PeerId};
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// Most capability sets that are remembered as failed.
const MAX_FAILED: usize = 64;

/// What is known about a backend's lists.
#[derive(Default)]
pub(crate) struct ListKnowledge {
    /// The capability sets whose lists cannot be had for now.
    failed: HashSet<CapSet>,
    /// The views read since the home connection was opened; what was known before may be out of date.
    read: HashSet<ViewKey>,
    /// How long lists are good that the backend never tells changes of.
    good_until: HashMap<ViewKey, Instant>,
    /// The connections whose lists are being read for the first time.
    reading: HashSet<PeerId>,
    /// The lists that are about to be read again, by connection and the first kind of them.
    rereading: HashSet<(PeerId, ListKind)>,
    /// How often everybody was told that a list changed, by its kind.
    told: [u64; 4],
}

impl ListKnowledge {
    /// Forgets what was read and what failed, since the home connection is up again.
    pub fn start_anew(&mut self) {
        self.failed.clear();
        self.read.clear();
    }

    /// Notes that the lists for this capability set cannot be had for now.
    pub fn failed(&mut self, caps: CapSet) {
        if self.failed.len() >= MAX_FAILED {
            self.failed.clear();
        }
        self.failed.insert(caps);
    }

    /// True if the lists for this capability set cannot be had for now.
    pub fn has_failed(&self, caps: &CapSet) -> bool {
        self.failed.contains(caps)
    }

    /// True if these lists are older than the backend says they may be.
    pub fn is_stale(&self, view: &ViewKey, now: Instant) -> bool {
        self.good_until.get(view).is_some_and(|until| *until <= now)
    }

    /// True if these lists were read since the home connection was opened.
    pub fn was_read(&self, view: &ViewKey) -> bool {
        self.read.contains(view)
    }

    /// Notes that lists were read, and until when they are good, if the backend does not report changes.
    pub fn store(&mut self, view: ViewKey, good_until: Option<Instant>) {
        self.failed.remove(&view.caps);
        if let Some(until) = good_until {
            self.serve_until(view.clone(), until);
        }
        if self.read.len() >= MAX_VIEWS {
            self.read.clear();
        }
        self.read.insert(view);
    }

    /// Has lists serve until then.
    pub fn serve_until(&mut self, view: ViewKey, until: Instant) {
        if self.good_until.len() >= MAX_VIEWS {
            self.good_until.clear();
        }
        self.good_until.insert(view, until);
    }

    /// Forgets that lists were read, but for those of these views.
    pub fn keep_only(&mut self, views: &HashSet<ViewKey>) {
        self.read.retain(|view| views.contains(view));
    }

    /// Notes that a connection begins to read its lists for the first time. False if it need not: it does so already, or
    /// another connection has read them.
    pub fn begin_reading(&mut self, peer: PeerId, view: &ViewKey, now: Instant) -> bool {
        let known = self.was_read(view) && !self.is_stale(view, now);
        !known && self.reading.insert(peer)
    }

    /// Notes that a connection has read its lists, or will not.
    pub fn end_reading(&mut self, peer: PeerId) {
        self.reading.remove(&peer);
    }

    /// True if a connection reads its lists for the first time.
    pub fn is_reading(&self, peer: PeerId) -> bool {
        self.reading.contains(&peer)
    }

    /// Notes that a connection is about to read a list again. `None` if it does so already; otherwise how often everybody was
    /// told of changes until now.
    pub fn begin_rereading(&mut self, peer: PeerId, kind: ListKind) -> Option<u64> {
        self.rereading.insert((peer, kind)).then(|| self.told[kind as usize])
    }

    /// Notes that a later word of the connection has its list read once more.
    pub fn end_rereading(&mut self, peer: PeerId, kind: ListKind) {
        self.rereading.remove(&(peer, kind));
    }

    /// True if a connection reads lists, or is about to.
    pub fn is_busy(&self, peer: PeerId) -> bool {
        self.is_reading(peer) || self.rereading.iter().any(|(one, _)| *one == peer)
    }

    /// Notes that everybody is told of these changes.
    pub fn tell(&mut self, changed: Changed) {
        self.told[ListKind::Tools as usize] += u64::from(changed.tools);
        self.told[ListKind::Prompts as usize] += u64::from(changed.prompts);
        self.told[ListKind::Resources as usize] += u64::from(changed.resources);
    }

    /// Notes that everybody is told of a change of this list, unless they were told since `told` was noted. False then.
    pub fn tell_unless_told(&mut self, kind: ListKind, told: u64) -> bool {
        let count = &mut self.told[kind as usize];
        let tells = *count == told;
        *count += u64::from(tells);
        tells
    }

    /// How many connections read lists, and how many lists are read again.
    #[cfg(feature = "testing")]
    pub fn counts(&self) -> (usize, usize) {
        (self.reading.len(), self.rereading.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_wire::Era;
    use std::time::Duration;

    fn view() -> ViewKey {
        ViewKey { era: Era::Legacy, caps: CapSet::bare() }
    }

    #[test]
    fn lists_that_were_read_have_not_failed() {
        let mut lists = ListKnowledge::default();
        lists.failed(CapSet::bare());
        assert!(lists.has_failed(&CapSet::bare()));
        lists.store(view(), None);
        assert!(!lists.has_failed(&CapSet::bare()) && lists.was_read(&view()));
        lists.start_anew();
        assert!(!lists.was_read(&view()));
    }

    #[test]
    fn lists_are_read_once_until_they_are_stale() {
        let (mut lists, now) = (ListKnowledge::default(), Instant::now());
        assert!(lists.begin_reading(PeerId(1), &view(), now));
        assert!(!lists.begin_reading(PeerId(1), &view(), now), "it reads already");
        assert!(lists.begin_reading(PeerId(2), &view(), now), "nobody has read them yet");
        lists.end_reading(PeerId(1));
        lists.end_reading(PeerId(2));
        lists.store(view(), Some(now + Duration::from_secs(1)));
        assert!(!lists.begin_reading(PeerId(3), &view(), now));
        assert!(lists.begin_reading(PeerId(3), &view(), now + Duration::from_secs(1)));
    }

    #[test]
    fn a_change_is_told_again_only_if_nobody_was_told_since() {
        let mut lists = ListKnowledge::default();
        let told = lists.begin_rereading(PeerId(1), ListKind::Tools).unwrap();
        assert_eq!(lists.begin_rereading(PeerId(1), ListKind::Tools), None);
        assert!(lists.is_busy(PeerId(1)) && !lists.is_reading(PeerId(1)));
        lists.end_rereading(PeerId(1), ListKind::Tools);
        assert!(lists.tell_unless_told(ListKind::Tools, told));
        assert!(!lists.tell_unless_told(ListKind::Tools, told));
        lists.tell(Changed { tools: false, prompts: true, resources: false });
        assert!(!lists.tell_unless_told(ListKind::Prompts, 0));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut lists = ListKnowledge::default();
        for number in 0..3 * MAX_FAILED.max(MAX_VIEWS) {
            let caps = CapSet::read(format!(r#"{{"sampling":{{"n":{number}}}}}"#).as_bytes());
            lists.failed(caps.clone());
            lists.store(ViewKey { era: Era::Legacy, caps }, Some(Instant::now()));
            lists.failed(CapSet::read(format!(r#"{{"roots":{{"n":{number}}}}}"#).as_bytes()));
        }
        assert!(lists.failed.len() <= MAX_FAILED);
        assert!(lists.read.len() <= MAX_VIEWS && lists.good_until.len() <= MAX_VIEWS);
    }
}
