//! What clients want to hear of a backend beyond the answers to their calls: resources, tasks, log messages.
//!
//! A [`Subscriptions`] is a plain value behind the backend's lock. It is kept with the backend and not with a
//! connection, so that a connection which is opened later, or again, can be told of it. These hold after every method:
//!
//! - A resource is listed as watched only while a session watches it.
//! - Nothing is kept for a session after [`Subscriptions::forget`].
//! - There are no more than [`MAX_WATCHES`] watched resources, [`MAX_WATCHES_EACH`] of one session, [`MAX_FOLLOWS`] listen
//!   requests, and [`MAX_WATCHES`] changes that wait to be told.

use super::connections::ConnectionRole;
use crate::bridged_call_driver::Waiter;
use crate::session::Session;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{BackendUser, CapSet, ExchangeId, PeerId, SessionKey};
use signalbox_wire::{Envelope, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Most resources that are followed on one backend.
pub const MAX_WATCHES: usize = 10_000;
/// Most of them that one session follows.
pub const MAX_WATCHES_EACH: usize = 1_000;
/// Most listen requests that follow resources of one backend.
pub const MAX_FOLLOWS: usize = 10_000;

/// Maximum number of parts of a URI that are looked at to find the resource it belongs to.
const MAX_PARTS: usize = 64;

/// Resources and tasks of a backend, under the names that it knows them by.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Followed {
    pub uris: Vec<String>,
    pub tasks: Vec<String>,
}

impl Followed {
    /// True if it names nothing.
    pub fn is_empty(&self) -> bool {
        self.uris.is_empty() && self.tasks.is_empty()
    }

    /// Takes out what is refused, and returns it.
    fn take_refused(&mut self, refused: &dyn Fn(&str) -> bool, refused_task: &dyn Fn(&str) -> bool) -> Self {
        let (uris, tasks);
        (uris, self.uris) = std::mem::take(&mut self.uris).into_iter().partition(|uri| refused(uri));
        (tasks, self.tasks) = std::mem::take(&mut self.tasks).into_iter().partition(|task| refused_task(task));
        Self { uris, tasks }
    }

    /// The filter of a listen request for them.
    pub fn filter(&self) -> String {
        let lists = [("resourceSubscriptions", &self.uris), ("taskIds", &self.tasks)];
        let named = lists.into_iter().filter(|(_, list)| !list.is_empty()).map(|(key, list)| {
            let list: Vec<String> = list.iter().map(|one| json::quote(one)).collect();
            format!("\"{key}\":[{}]", list.join(","))
        });
        format!("\"notifications\":{{{}}}", named.collect::<Vec<_>>().join(","))
    }
}

/// What a client's `subscriptions/listen` follows on this backend.
pub(crate) struct Follow {
    pub session: Arc<Session>,
    pub exchange: ExchangeId,
    /// The user that the backend takes the client for.
    pub user: BackendUser,
    pub wanted: Followed,
    /// The capabilities of the client.
    pub caps: CapSet,
    /// Gets, once, what the backend does not follow.
    pub acknowledged: Option<oneshot::Sender<Followed>>,
    /// The connection of the new era that the listen request is open on.
    pub carrier: Option<PeerId>,
}

impl Follow {
    /// True if it follows this resource.
    pub fn names(&self, uri: &str) -> bool {
        self.wanted.uris.iter().any(|own| own == uri)
    }

    /// True if it follows this task.
    pub fn names_task(&self, task: &str) -> bool {
        self.wanted.tasks.iter().any(|own| own == task)
    }

    /// Takes over what the backend refuses, and tells the waiting listen requests. A client that stopped waiting was
    /// told that everything is followed, so it may still hear of all of it.
    pub fn settle(&mut self, refused: &dyn Fn(&str) -> bool, refused_task: &dyn Fn(&str) -> bool) {
        let Some(sender) = self.acknowledged.take() else { return };
        if let Err(no) = sender.send(self.wanted.take_refused(refused, refused_task)) {
            self.wanted.uris.extend(no.uris);
            self.wanted.tasks.extend(no.tasks);
        }
    }

    /// The listen request of the client.
    pub fn waiter(&self) -> Waiter {
        (Arc::clone(&self.session), self.exchange)
    }
}

/// A resource and those that it is a part of, as far as its URI tells.
fn wholes(uri: &str) -> impl Iterator<Item = &str> {
    let ends = uri.match_indices(['/', '?', '#']).take(MAX_PARTS);
    let before = ends.flat_map(|(at, end)| [uri.get(..at), uri.get(..at + end.len())]).flatten();
    std::iter::once(uri).chain(before)
}

/// Why a resource cannot be watched.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum TooManyWatches {
    /// All sessions together watch [`MAX_WATCHES`] resources.
    OfBackend,
    /// This session watches so many.
    OfSession(usize),
}

/// A resource whose change waits to be told to the sessions of a user.
pub(crate) type ChangeKey = (BackendUser, Box<str>);

/// What clients follow on a backend.
#[derive(Default)]
pub(crate) struct Subscriptions {
    /// Which sessions follow which resources by `resources/subscribe`.
    watches: HashMap<Box<str>, HashMap<SessionKey, BackendUser>>,
    /// What listen requests of clients follow.
    follows: BTreeMap<(SessionKey, ExchangeId), Follow>,
    /// The log level that each session wants.
    levels: HashMap<SessionKey, LogLevel>,
    /// Changes of resources that will be told in a moment, each as the backend told it last.
    changes_to_tell: HashMap<ChangeKey, Envelope>,
    /// Which connections are about to be opened again for those who listen on them.
    reopening: HashSet<ConnectionRole>,
}

impl Subscriptions {
    /// Notes that a session watches a resource.
    ///
    /// # Errors
    /// If too many are watched already.
    pub fn watch(&mut self, session: SessionKey, user: &BackendUser, uri: &str) -> Result<(), TooManyWatches> {
        if self.watches.len() >= MAX_WATCHES && !self.watches.contains_key(uri) {
            return Err(TooManyWatches::OfBackend);
        }
        let own = self.watches.values().filter(|sessions| sessions.contains_key(&session)).count();
        if own >= MAX_WATCHES_EACH && !self.is_watched_by(uri, session) {
            return Err(TooManyWatches::OfSession(own));
        }
        self.watches.entry(uri.into()).or_default().insert(session, user.clone());
        Ok(())
    }

    /// Notes that a session has another token, with which it watches what it watched before.
    pub fn set_user(&mut self, session: SessionKey, user: &BackendUser) {
        for one in self.watches.values_mut().filter_map(|sessions| sessions.get_mut(&session)) {
            one.clone_from(user);
        }
    }

    /// Notes that a session does not watch a resource any more.
    pub fn unwatch(&mut self, session: SessionKey, uri: &str) {
        if let Some(sessions) = self.watches.get_mut(uri) {
            sessions.remove(&session);
            if sessions.is_empty() {
                self.watches.remove(uri);
            }
        }
    }

    /// True if this session watches this resource.
    pub fn is_watched_by(&self, uri: &str, session: SessionKey) -> bool {
        self.watches.get(uri).is_some_and(|sessions| sessions.contains_key(&session))
    }

    /// True if this session follows this resource, or one that contains it: a server may tell of a part of what its
    /// client subscribed to.
    pub fn is_followed_by(&self, uri: &str, session: SessionKey) -> bool {
        let own = self.follows.range((session, ExchangeId(0))..).take_while(|((key, _), _)| *key == session);
        let listened: Vec<&Follow> = own.map(|(_, follow)| follow).collect();
        wholes(uri).any(|whole| self.is_watched_by(whole, session) || listened.iter().any(|one| one.names(whole)))
    }

    /// True if this session watches any resource.
    pub fn has_watches(&self, session: SessionKey) -> bool {
        self.watches.values().any(|sessions| sessions.contains_key(&session))
    }

    /// The sessions that watch a resource.
    pub fn watchers_of(&self, uri: &str) -> impl Iterator<Item = (SessionKey, &BackendUser)> {
        self.watches.get(uri).into_iter().flatten().map(|(key, user)| (*key, user))
    }

    /// The sessions that watch any resource, once for each.
    pub fn watchers(&self) -> impl Iterator<Item = (SessionKey, &BackendUser)> {
        self.watches.values().flatten().map(|(key, user)| (*key, user))
    }

    /// The resources that are watched by a session for which this holds.
    pub fn watched_where(&self, holds: impl Fn(SessionKey, &BackendUser) -> bool) -> impl Iterator<Item = String> {
        let watched = self.watches.iter().filter(move |(_, sessions)| sessions.iter().any(|(key, of)| holds(*key, of)));
        watched.map(|(uri, _)| String::from(&**uri))
    }

    /// True if there is room for another listen request.
    pub fn can_follow(&self) -> bool {
        self.follows.len() < MAX_FOLLOWS
    }

    /// Notes a listen request. Drops it if there is no room, see [`Self::can_follow`].
    pub fn follow(&mut self, follow: Follow) {
        if self.can_follow() {
            self.follows.insert((follow.session.key, follow.exchange), follow);
        }
    }

    /// Forgets a listen request, and returns what it followed.
    pub fn unfollow(&mut self, session: SessionKey, exchange: ExchangeId) -> Option<Follow> {
        self.follows.remove(&(session, exchange))
    }

    /// What a listen request follows.
    pub fn follow_mut(&mut self, (session, exchange): &Waiter) -> Option<&mut Follow> {
        self.follows.get_mut(&(session.key, *exchange))
    }

    /// What all listen requests follow.
    pub fn follows(&self) -> impl Iterator<Item = &Follow> {
        self.follows.values()
    }

    /// Everything that the listen requests of a user follow.
    pub fn follows_of(&self, user: &BackendUser) -> impl Iterator<Item = &Follow> {
        self.follows.values().filter(move |one| one.user == *user)
    }

    /// True if a client follows a resource or a task.
    pub fn any(&self) -> bool {
        !self.follows.is_empty() || !self.watches.is_empty()
    }

    /// True if a client of this user follows a resource or a task.
    pub fn any_of(&self, user: &BackendUser) -> bool {
        self.follows_of(user).next().is_some() || self.watchers().any(|(_, of)| of == user)
    }

    /// Notes which log level a session wants.
    pub fn set_level(&mut self, session: SessionKey, level: LogLevel) {
        self.levels.insert(session, level);
    }

    /// The log level that a session wants.
    pub fn level_of(&self, session: SessionKey) -> Option<LogLevel> {
        self.levels.get(&session).copied()
    }

    /// The sessions that have set a log level.
    pub fn log_readers(&self) -> impl Iterator<Item = SessionKey> {
        self.levels.keys().copied()
    }

    /// Forgets everything that a session wanted to hear. Returns the resources that it watched.
    pub fn forget(&mut self, session: SessionKey) -> Vec<String> {
        self.levels.remove(&session);
        self.follows.retain(|(key, _), _| *key != session);
        let mut unwatched = Vec::new();
        self.watches.retain(|uri, sessions| {
            if sessions.remove(&session).is_some() {
                unwatched.push(String::from(&**uri));
            }
            !sessions.is_empty()
        });
        unwatched
    }

    /// Takes over what sessions want to hear of a predecessor, which keeps nothing of it. No connection carries it yet.
    pub fn take_over(&mut self, from: &mut Self) {
        self.watches = std::mem::take(&mut from.watches);
        self.levels = std::mem::take(&mut from.levels);
        self.follows = std::mem::take(&mut from.follows);
        for follow in self.follows.values_mut() {
            follow.carrier = None;
        }
    }

    /// Replaces a change that waits to be told by a newer one. False if none waits.
    pub fn renew_change(&mut self, key: &ChangeKey, message: &Envelope) -> bool {
        let Some(newest) = self.changes_to_tell.get_mut(key) else { return false };
        *newest = message.clone();
        true
    }

    /// Keeps a change to be told in a moment. False if too many wait already.
    pub fn hold_change(&mut self, key: ChangeKey, message: &Envelope) -> bool {
        let room = self.changes_to_tell.len() < MAX_WATCHES;
        if room {
            self.changes_to_tell.insert(key, message.clone());
        }
        room
    }

    /// Takes out a change whose moment has come.
    pub fn take_change(&mut self, key: &ChangeKey) -> Option<Envelope> {
        self.changes_to_tell.remove(key)
    }

    /// Notes that a connection is being opened again. False if that is noted already.
    pub fn begin_reopening(&mut self, role: &ConnectionRole) -> bool {
        self.reopening.insert(role.clone())
    }

    /// Notes that a connection need not be opened again any more.
    pub fn end_reopening(&mut self, role: &ConnectionRole) {
        self.reopening.remove(role);
    }

    /// How much is kept for clients, by kind.
    #[cfg(feature = "testing")]
    pub fn counts(&self) -> [(&'static str, usize); 5] {
        [
            ("watched resources", self.watches.len()),
            ("log levels", self.levels.len()),
            ("followed listen requests", self.follows.len()),
            ("changes to be told", self.changes_to_tell.len()),
            ("connections to be opened again", self.reopening.len()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::Principal;

    fn key(number: u64) -> SessionKey {
        SessionKey(number)
    }

    #[test]
    fn a_resource_is_watched_until_its_last_session_leaves() {
        let (mut subscriptions, principal) = (Subscriptions::default(), BackendUser::from(Principal::anonymous()));
        subscriptions.watch(key(1), &principal, "x://a").unwrap();
        subscriptions.watch(key(2), &principal, "x://a").unwrap();
        subscriptions.unwatch(key(1), "x://a");
        assert!(subscriptions.any() && subscriptions.is_watched_by("x://a", key(2)));
        assert!(!subscriptions.has_watches(key(1)));
        subscriptions.unwatch(key(2), "x://a");
        assert!(!subscriptions.any() && subscriptions.watches.is_empty());
    }

    #[test]
    fn nothing_is_kept_for_a_session_that_is_forgotten() {
        let (mut subscriptions, principal) = (Subscriptions::default(), BackendUser::from(Principal::anonymous()));
        subscriptions.watch(key(1), &principal, "x://a").unwrap();
        subscriptions.watch(key(1), &principal, "x://b").unwrap();
        subscriptions.watch(key(2), &principal, "x://b").unwrap();
        subscriptions.set_level(key(1), LogLevel::Debug);
        let mut unwatched = subscriptions.forget(key(1));
        unwatched.sort();
        assert_eq!(unwatched, ["x://a", "x://b"]);
        assert_eq!(subscriptions.watchers().map(|(key, _)| key).collect::<Vec<_>>(), [key(2)]);
        assert_eq!((subscriptions.log_readers().count(), subscriptions.watches.len()), (0, 1));
    }

    #[test]
    fn one_session_cannot_watch_more_than_its_share_but_may_repeat_itself() {
        let (mut subscriptions, principal) = (Subscriptions::default(), BackendUser::from(Principal::anonymous()));
        for number in 0..MAX_WATCHES_EACH {
            subscriptions.watch(key(1), &principal, &format!("x://{number}")).unwrap();
        }
        let refused = subscriptions.watch(key(1), &principal, "x://more");
        assert_eq!(refused, Err(TooManyWatches::OfSession(MAX_WATCHES_EACH)));
        assert_eq!(subscriptions.watch(key(1), &principal, "x://0"), Ok(()));
        assert_eq!(subscriptions.watch(key(2), &principal, "x://more"), Ok(()));
    }

    #[test]
    fn a_successor_takes_everything_over() {
        let (mut old, mut new, principal) =
            (Subscriptions::default(), Subscriptions::default(), BackendUser::from(Principal::anonymous()));
        old.watch(key(1), &principal, "x://a").unwrap();
        old.set_level(key(1), LogLevel::Error);
        new.take_over(&mut old);
        assert!(!old.any() && old.log_readers().next().is_none());
        assert!(new.is_watched_by("x://a", key(1)) && new.level_of(key(1)) == Some(LogLevel::Error));
    }

    #[test]
    fn of_several_changes_the_newest_is_told_once() {
        let mut subscriptions = Subscriptions::default();
        let change: ChangeKey = (Principal::anonymous().into(), "x://a".into());
        let told = |number: u8| {
            Envelope::parse(format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"n":{number}}}}}"#).into()).unwrap()
        };
        assert!(!subscriptions.renew_change(&change, &told(0)));
        assert!(subscriptions.hold_change(change.clone(), &told(1)));
        assert!(subscriptions.renew_change(&change, &told(2)));
        assert_eq!(subscriptions.take_change(&change).unwrap().params(), Some(&br#"{"n":2}"#[..]));
        assert!(subscriptions.take_change(&change).is_none());
    }

    #[test]
    fn a_connection_is_opened_again_by_one_task_at_a_time() {
        let (mut subscriptions, role) = (Subscriptions::default(), ConnectionRole::Owned(key(1)));
        assert!(subscriptions.begin_reopening(&role));
        assert!(!subscriptions.begin_reopening(&role));
        subscriptions.end_reopening(&role);
        assert!(subscriptions.begin_reopening(&role));
    }
}
