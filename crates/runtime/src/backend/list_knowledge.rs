//! What is known about the lists of a backend: which were read, which could not be, and how long they are good.
//!
//! A [`ListKnowledge`] is a plain value behind the backend's lock; the lists themselves are in the catalog. These
//! hold after every method:
//!
//! - Lists that were read are not marked as failed.
//! - One connection reads its lists for the first time once at a time, and rereads a kind of list once at a time.
//! - The views that are remembered are bounded: if there are too many, all are forgotten and read again.

use signalbox_engine::catalog::{Changed, ListKind, MAX_PRIVATE_VIEWS, MAX_VIEWS, ViewKey};
use signalbox_engine::{BackendUser, CapSet, Fault, FaultKind, PeerId, Principal};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Most kinds of clients that are remembered as failed.
const MAX_FAILED: usize = 64;
/// Most principals that are known to have to sign in first.
const MAX_SIGN_INS: usize = 1024;
/// Time before the lists of a principal who got none are asked for again, unless a person signs in at the backend. A
/// secret may also come from elsewhere.
const PRIVATE_RETRY: Duration = Duration::from_secs(10);
/// How long it is remembered that a principal has to sign in, which is as long as the address is good.
const SIGN_IN_TIME: Duration = Duration::from_secs(600);

/// The clients that are shown a list: their capability set, and the user if each has its own.
type Viewer = (CapSet, Option<BackendUser>);

/// What is known about a backend's lists.
#[derive(Default)]
pub(crate) struct ListKnowledge {
    /// Those whose lists cannot be had for now, and since when.
    failed: HashMap<Viewer, Instant>,
    /// The users that are shown nothing before they have signed in, with the fault that says where, and since when.
    sign_ins: HashMap<BackendUser, (Fault, Instant)>,
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

    /// Notes that the lists for this capability set, of this principal if each has its own, cannot be had for now.
    pub fn failed(&mut self, caps: CapSet, whose: Option<BackendUser>, fault: &Fault, now: Instant) {
        if let Some(whose) = whose.as_ref().filter(|_| fault.kind == FaultKind::SignInNeeded) {
            if self.sign_ins.len() >= MAX_SIGN_INS {
                self.sign_ins.clear();
            }
            self.sign_ins.insert(whose.clone(), (fault.clone(), now));
        }
        if self.failed.len() >= MAX_FAILED {
            self.failed.clear();
        }
        self.failed.insert((caps, whose), now);
    }

    /// True if these lists cannot be had for now. Who has no credential gets none whatever its client declares, and the
    /// first connection declares nothing.
    pub fn has_failed(&self, view: &ViewKey, whose: Option<&BackendUser>, now: Instant) -> bool {
        let since = |caps: &CapSet| self.failed.get(&(caps.clone(), whose.cloned()));
        let lately = |since: &Instant| now.saturating_duration_since(*since) < PRIVATE_RETRY;
        match whose {
            None => since(&view.caps).is_some(),
            Some(_) => [&view.caps, &CapSet::bare()].into_iter().any(|caps| since(caps).is_some_and(lately)),
        }
    }

    /// Why this principal is shown nothing: it has to sign in first.
    pub fn sign_in(&self, whose: &BackendUser, now: Instant) -> Option<&Fault> {
        let (fault, since) = self.sign_ins.get(whose)?;
        (now.saturating_duration_since(*since) < SIGN_IN_TIME).then_some(fault)
    }

    /// Forgets who has to sign in, since somebody has, and returns them.
    pub fn take_sign_ins(&mut self) -> Vec<BackendUser> {
        let waiting: Vec<BackendUser> = self.sign_ins.drain().map(|(whose, _)| whose).collect();
        self.failed.retain(|(_, whose), _| whose.as_ref().is_none_or(|whose| !waiting.contains(whose)));
        waiting
    }

    /// Forgets what is known about the lists of this principal alone.
    pub fn forget(&mut self, principal: &Principal) {
        let is_others = |whose: Option<&BackendUser>| whose.is_none_or(|whose| whose.principal() != principal);
        self.failed.retain(|(_, whose), _| is_others(whose.as_ref()));
        self.sign_ins.retain(|whose, _| is_others(Some(whose)));
        self.read.retain(|view| is_others(view.whose.as_ref()));
        self.good_until.retain(|view, _| is_others(view.whose.as_ref()));
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

    /// Has lists serve until then.
    pub fn serve_until(&mut self, view: ViewKey, until: Instant) {
        if self.good_until.len() >= most(&view) {
            self.good_until.clear();
        }
        self.good_until.insert(view, until);
    }

    /// Forgets that lists were read, but for those of these views.
    pub fn keep_only(&mut self, views: &HashSet<ViewKey>) {
        self.read.retain(|view| views.contains(view));
    }

    /// Notes that a connection begins to read its lists for the first time. False if it need not: it does so already,
    /// or another connection has read them.
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

    /// Notes that a connection is about to read a list again. `None` if it does so already; otherwise how often
    /// everybody was told of changes until now.
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

/// How many views are remembered, no more than the catalog keeps.
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

    #[test]
    fn lists_that_were_read_have_not_failed() {
        let (mut lists, now) = (ListKnowledge::default(), Instant::now());
        lists.failed(CapSet::bare(), None, &fault(), now);
        assert!(lists.has_failed(&view(), None, now + SIGN_IN_TIME));
        lists.store(view(), None);
        assert!(!lists.has_failed(&view(), None, now) && lists.was_read(&view()));
        lists.start_anew();
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
            lists.failed(caps.clone(), None, &fault(), Instant::now());
            lists.store(ViewKey::shared(Era::Legacy, caps), Some(Instant::now()));
            let roots = CapSet::read(format!(r#"{{"roots":{{"n":{number}}}}}"#).as_bytes());
            lists.failed(roots, Some(Principal::named(&number.to_string()).into()), &fault(), Instant::now());
        }
        assert!(lists.failed.len() <= MAX_FAILED && lists.sign_ins.len() <= MAX_SIGN_INS);
        assert!(lists.read.len() <= MAX_VIEWS && lists.good_until.len() <= MAX_VIEWS);
    }
}
