//! State of a backend's lists: which were read, which could not be read, and until when they are valid.
//!
//! A [`ListKnowledge`] is a plain value behind the backend lock; the lists themselves are in the catalog. Invariants:
//!
//! - Lists that were read are not marked as failed.
//! - A connection runs at most one initial read of its lists at a time, and at most one reread per kind of list.
//! - The number of remembered views is bounded: at the limit, all are forgotten and read again.
//! - The number of remembered failures is bounded: at the limit, the oldest is forgotten, and no other caller's.
//! - A list with an expiry is never taken for one that was read and does not expire.

use signalbox_engine::bounded::make_room;
use signalbox_engine::catalog::{ListChanges, ListKind, MAX_PRIVATE_VIEWS, MAX_VIEWS, ViewKey};
use signalbox_engine::{BackendUser, CapSet, Fault, FaultKind, PeerId, Principal};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Maximum number of failed viewers that are remembered.
const MAX_FAILED: usize = 64;
/// Maximum number of users that are remembered as having to sign in.
const MAX_SIGN_INS: usize = 1024;
/// Delay before the lists of a user that got none are requested again without a sign-in at the backend, because a
/// secret may also come from elsewhere.
const PRIVATE_RETRY: Duration = Duration::from_secs(10);
/// Time for which a required sign-in is remembered. Equals the validity of the sign-in address.
const SIGN_IN_TIME: Duration = Duration::from_secs(600);

/// Key of a failed view: the capability set, and the user if each user has lists of its own.
type Viewer = (CapSet, Option<BackendUser>);

/// State of a backend's lists.
#[derive(Default)]
pub(crate) struct ListKnowledge {
    /// Viewers whose lists are unavailable, and the time of the failure.
    failed: HashMap<Viewer, Instant>,
    /// Users that must sign in before they see anything, with the fault that carries the address, and the time.
    sign_ins: HashMap<BackendUser, (Fault, Instant)>,
    /// Views read since the home connection was opened. Older views may be out of date.
    read: HashSet<ViewKey>,
    /// Expiry of lists whose changes the backend never reports.
    good_until: HashMap<ViewKey, Instant>,
    /// Connections that read their lists for the first time.
    reading: HashSet<PeerId>,
    /// Pending rereads, by connection and first kind of list.
    rereading: HashSet<(PeerId, ListKind)>,
    /// Number of change notifications sent to all clients, by kind of list.
    notifications: [u64; 4],
}

impl ListKnowledge {
    /// Forgets which lists were read or failed, because the home connection is up again.
    pub fn reset(&mut self) {
        self.failed.clear();
        self.read.clear();
    }

    /// Records that the lists for this capability set, and for this user if each has its own, are unavailable.
    pub fn failed(&mut self, caps: CapSet, whose: Option<BackendUser>, fault: &Fault, now: Instant) {
        if let Some(whose) = whose.as_ref().filter(|_| fault.kind == FaultKind::SignInNeeded) {
            if !self.sign_ins.contains_key(whose) {
                make_room(&mut self.sign_ins, MAX_SIGN_INS, |(_, since)| *since);
            }
            self.sign_ins.insert(whose.clone(), (fault.clone(), now));
        }
        let viewer = (caps, whose);
        if !self.failed.contains_key(&viewer) {
            make_room(&mut self.failed, MAX_FAILED, |since| *since);
        }
        self.failed.insert(viewer, now);
    }

    /// Returns true if these lists are unavailable. A user without a credential gets none whatever its client declares,
    /// so a failure of the bare capability set, which the first connection declares, counts too.
    pub fn has_failed(&self, view: &ViewKey, whose: Option<&BackendUser>, now: Instant) -> bool {
        let since = |caps: &CapSet| self.failed.get(&(caps.clone(), whose.cloned()));
        let lately = |since: &Instant| now.saturating_duration_since(*since) < PRIVATE_RETRY;
        match whose {
            None => since(&view.caps).is_some(),
            Some(_) => [&view.caps, &CapSet::bare()].into_iter().any(|caps| since(caps).is_some_and(lately)),
        }
    }

    /// Returns the fault that tells this user to sign in first, if it is shown nothing before that.
    pub fn sign_in(&self, whose: &BackendUser, now: Instant) -> Option<&Fault> {
        let (fault, since) = self.sign_ins.get(whose)?;
        (now.saturating_duration_since(*since) < SIGN_IN_TIME).then_some(fault)
    }

    /// Removes and returns all users that must sign in. Called after a sign-in, which may serve any of them.
    pub fn take_sign_ins(&mut self) -> Vec<BackendUser> {
        let waiting: Vec<BackendUser> = self.sign_ins.drain().map(|(whose, _)| whose).collect();
        self.failed.retain(|(_, whose), _| whose.as_ref().is_none_or(|whose| !waiting.contains(whose)));
        waiting
    }

    /// Forgets the state of lists that only this principal sees.
    pub fn forget(&mut self, principal: &Principal) {
        let is_others = |whose: Option<&BackendUser>| whose.is_none_or(|whose| whose.principal() != principal);
        self.failed.retain(|(_, whose), _| is_others(whose.as_ref()));
        self.sign_ins.retain(|whose, _| is_others(Some(whose)));
        self.read.retain(|view| is_others(view.whose.as_ref()));
        self.good_until.retain(|view, _| is_others(view.whose.as_ref()));
    }

    /// Returns true if these lists have expired.
    pub fn is_stale(&self, view: &ViewKey, now: Instant) -> bool {
        self.good_until.get(view).is_some_and(|until| *until <= now)
    }

    /// Returns true if these lists were read since the home connection was opened.
    pub fn was_read(&self, view: &ViewKey) -> bool {
        self.read.contains(view)
    }

    /// Records that lists were read, with their expiry if the backend does not report changes.
    pub fn store(&mut self, view: ViewKey, good_until: Option<Instant>) {
        if let Some(whose) = &view.whose {
            self.sign_ins.remove(whose);
        }
        self.failed.remove(&(view.caps.clone(), view.whose.clone()));
        if let Some(until) = good_until {
            self.serve_until(view.clone(), until);
        }
        if self.read.len() >= most(&view) {
            self.read.clear();
        }
        self.read.insert(view);
    }

    /// Sets the expiry of lists.
    pub fn serve_until(&mut self, view: ViewKey, until: Instant) {
        if self.good_until.len() >= most(&view) {
            // Without its expiry, a list that counts as read would never be read again.
            self.read.retain(|read| !self.good_until.contains_key(read));
            self.good_until.clear();
        }
        self.good_until.insert(view, until);
    }

    /// Forgets that lists were read, except those of these views.
    pub fn keep_only(&mut self, views: &HashSet<ViewKey>) {
        self.read.retain(|view| views.contains(view));
    }

    /// Marks a connection as reading its lists for the first time. Returns false if there is nothing to do: it is
    /// marked already, or another connection has read these lists.
    pub fn begin_reading(&mut self, peer: PeerId, view: &ViewKey, now: Instant) -> bool {
        let known = self.was_read(view) && !self.is_stale(view, now);
        !known && self.reading.insert(peer)
    }

    /// Records that a connection has read its lists, or will not.
    pub fn end_reading(&mut self, peer: PeerId) {
        self.reading.remove(&peer);
    }

    /// Returns true if a connection reads its lists for the first time.
    pub fn is_reading(&self, peer: PeerId) -> bool {
        self.reading.contains(&peer)
    }

    /// Marks a list as about to be reread over a connection. Returns `None` if it is marked already, otherwise the
    /// current number of change notifications for its kind.
    pub fn begin_rereading(&mut self, peer: PeerId, kind: ListKind) -> Option<u64> {
        self.rereading.insert((peer, kind)).then(|| self.notifications[kind as usize])
    }

    /// Removes the mark of [`Self::begin_rereading`], so that a later notification causes another reread.
    pub fn end_rereading(&mut self, peer: PeerId, kind: ListKind) {
        self.rereading.remove(&(peer, kind));
    }

    /// Returns true if a connection reads lists, or is about to.
    pub fn is_busy(&self, peer: PeerId) -> bool {
        self.is_reading(peer) || self.rereading.iter().any(|(one, _)| *one == peer)
    }

    /// Counts change notifications that are sent to all clients.
    pub fn count_sent(&mut self, changed: ListChanges) {
        self.notifications[ListKind::Tools as usize] += u64::from(changed.tools);
        self.notifications[ListKind::Prompts as usize] += u64::from(changed.prompts);
        self.notifications[ListKind::Resources as usize] += u64::from(changed.resources);
    }

    /// Counts a change notification of this list and returns true, unless one was sent since `sent_before` was read.
    pub fn count_unless_sent(&mut self, kind: ListKind, sent_before: u64) -> bool {
        let count = &mut self.notifications[kind as usize];
        let is_first = *count == sent_before;
        *count += u64::from(is_first);
        is_first
    }

    /// Returns the number of connections that read lists, and of pending rereads.
    #[cfg(feature = "testing")]
    pub fn counts(&self) -> (usize, usize) {
        (self.reading.len(), self.rereading.len())
    }
}

/// Returns the maximum number of remembered views of this kind. Equals the limit of the catalog.
fn most(view: &ViewKey) -> usize {
    if view.whose.is_some() { MAX_PRIVATE_VIEWS } else { MAX_VIEWS }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_wire::Era;

    fn fault() -> Fault {
        Fault::new(FaultKind::SignInNeeded, "open x")
    }

    fn view() -> ViewKey {
        ViewKey::shared(Era::Legacy, CapSet::bare())
    }

    /// Clients choose their capability sets, and so may fill the memory of failures.
    #[test]
    fn a_flood_of_failures_forgets_the_oldest_only() {
        let (mut lists, start) = (ListKnowledge::default(), Instant::now());
        let user = |number: usize| BackendUser::from(Principal::named(&format!("u{number}")));
        let at = |number: usize| start + Duration::from_millis(number as u64);
        for number in 0..=MAX_SIGN_INS {
            lists.failed(CapSet::bare(), Some(user(number)), &fault(), at(number));
        }
        let now = at(MAX_SIGN_INS);
        assert!(lists.sign_in(&user(0), now).is_none() && lists.sign_in(&user(1), now).is_some());
        let failed = |number: usize| lists.has_failed(&view(), Some(&user(number)), now);
        assert!(failed(MAX_SIGN_INS) && failed(MAX_SIGN_INS + 1 - MAX_FAILED));
        assert!(!failed(MAX_SIGN_INS - MAX_FAILED));
    }

    #[test]
    fn a_list_whose_expiry_is_forgotten_is_read_again() {
        let (mut lists, now) = (ListKnowledge::default(), Instant::now());
        let of = |number: usize| ViewKey {
            whose: Some(BackendUser::from(Principal::named(&format!("u{number}")))),
            ..view()
        };
        for number in 0..=MAX_PRIVATE_VIEWS {
            lists.store(of(number), Some(now + SIGN_IN_TIME));
        }
        let is_good = |view: &ViewKey| lists.was_read(view) && !lists.is_stale(view, now + 2 * SIGN_IN_TIME);
        assert!(!(0..=MAX_PRIVATE_VIEWS).any(|number| is_good(&of(number))), "one of them stays for ever");
    }

    #[test]
    fn lists_that_were_read_have_not_failed() {
        let (mut lists, now) = (ListKnowledge::default(), Instant::now());
        lists.failed(CapSet::bare(), None, &fault(), now);
        assert!(lists.has_failed(&view(), None, now + SIGN_IN_TIME));
        lists.store(view(), None);
        assert!(!lists.has_failed(&view(), None, now) && lists.was_read(&view()));
        lists.reset();
        assert!(!lists.was_read(&view()));
    }

    #[test]
    fn who_has_to_sign_in_is_asked_for_lists_again_soon_and_nobody_else_is_concerned() {
        let (mut lists, now) = (ListKnowledge::default(), Instant::now());
        let (ada, eve) =
            (BackendUser::from(Principal::named("corp:ada")), BackendUser::from(Principal::named("corp:eve")));
        lists.failed(CapSet::bare(), Some(ada.clone()), &fault(), now);
        assert!(lists.has_failed(&view(), Some(&ada), now) && !lists.has_failed(&view(), Some(&eve), now));
        let declares = ViewKey { caps: CapSet::read(br#"{"sampling":{}}"#), ..view() };
        assert!(lists.has_failed(&declares, Some(&ada), now), "whatever her client declares");
        assert!(!lists.has_failed(&view(), Some(&ada), now + PRIVATE_RETRY));
        assert!(lists.sign_in(&ada, now + PRIVATE_RETRY).is_some() && lists.sign_in(&eve, now).is_none());
        assert!(lists.sign_in(&ada, now + SIGN_IN_TIME).is_none(), "the address is not good any more");
        lists.store(ViewKey { whose: Some(ada.clone()), ..view() }, None);
        assert!(lists.sign_in(&ada, now).is_none());
    }

    #[test]
    fn what_is_known_of_a_principal_is_forgotten_and_of_others_is_not() {
        let (mut lists, now) = (ListKnowledge::default(), Instant::now());
        let users = ["corp:ada", "corp:eve"].map(|name| BackendUser::from(Principal::named(name)));
        let [ada, eve] = users.clone().map(|whose| ViewKey { whose: Some(whose), ..view() });
        for own in [&ada, &eve] {
            lists.store(own.clone(), Some(now + Duration::from_secs(9)));
            lists.failed(CapSet::read(br#"{"roots":{}}"#), own.whose.clone(), &fault(), now);
        }
        lists.forget(users[0].principal());
        assert!(!lists.was_read(&ada) && lists.was_read(&eve));
        assert!(lists.sign_in(&users[0], now).is_none() && lists.sign_in(&users[1], now).is_some());
        assert!(lists.good_until.keys().chain(&lists.read).all(|view| *view == eve) && lists.failed.len() == 1);
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
        let sent_before = lists.begin_rereading(PeerId(1), ListKind::Tools).unwrap();
        assert_eq!(lists.begin_rereading(PeerId(1), ListKind::Tools), None);
        assert!(lists.is_busy(PeerId(1)) && !lists.is_reading(PeerId(1)));
        lists.end_rereading(PeerId(1), ListKind::Tools);
        assert!(lists.count_unless_sent(ListKind::Tools, sent_before));
        assert!(!lists.count_unless_sent(ListKind::Tools, sent_before));
        lists.count_sent(ListChanges { tools: false, prompts: true, resources: false });
        assert!(!lists.count_unless_sent(ListKind::Prompts, 0));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut lists = ListKnowledge::default();
        for number in 0..3 * MAX_FAILED.max(MAX_VIEWS) {
            let caps = CapSet::read(format!(r#"{{"sampling":{{"n":{number}}}}}"#).as_bytes());
            lists.failed(caps.clone(), None, &fault(), Instant::now());
            lists.store(ViewKey::shared(Era::Legacy, caps), Some(Instant::now()));
            let roots = CapSet::read(format!(r#"{{"roots":{{"n":{number}}}}}"#).as_bytes());
            lists.failed(roots, Some(Principal::named(&number.to_string()).into()), &fault(), Instant::now());
        }
        assert!(lists.failed.len() <= MAX_FAILED && lists.sign_ins.len() <= MAX_SIGN_INS);
        assert!(lists.read.len() <= MAX_VIEWS && lists.good_until.len() <= MAX_VIEWS);
    }
}
