//! Subscriptions of clients to a backend beyond the answers to their calls: resources, tasks and log messages.
//!
//! A [`Subscriptions`] is a plain value behind the backend lock. It belongs to the backend and not to a connection, so
//! that a connection which is opened later, or again, can restore it. Invariants:
//!
//! - A resource is an entry only while a session watches it.
//! - Nothing remains of a session after [`Subscriptions::forget`].
//! - There are at most [`MAX_WATCHES`] watched resources, [`MAX_WATCHES_EACH`] of one session, [`MAX_FOLLOWS`] listen
//!   requests, and [`MAX_WATCHES`] changes that wait to be forwarded.

use super::connections::ConnectionRole;
use crate::bridged_call_driver::Waiter;
use crate::session::Session;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{BackendUser, CapSet, ExchangeId, PeerId, SessionKey};
use signalbox_wire::{Envelope, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Maximum number of watched resources of one backend.
pub const MAX_WATCHES: usize = 10_000;
/// Maximum number of resources of one backend that one session watches.
pub const MAX_WATCHES_EACH: usize = 1_000;
/// Maximum number of listen requests that follow resources of one backend.
pub const MAX_FOLLOWS: usize = 10_000;

/// Maximum number of prefixes of a URI that are checked to find the resource that contains it.
const MAX_PARTS: usize = 64;

/// Resources and tasks of a backend, under the names that the backend uses.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct FollowTargets {
    pub uris: Vec<String>,
    pub tasks: Vec<String>,
}

impl FollowTargets {
    pub fn is_empty(&self) -> bool {
        self.uris.is_empty() && self.tasks.is_empty()
    }

    /// Removes and returns what is refused.
    fn take_refused(&mut self, refused: &dyn Fn(&str) -> bool, refused_task: &dyn Fn(&str) -> bool) -> Self {
        let (uris, tasks);
        (uris, self.uris) = std::mem::take(&mut self.uris).into_iter().partition(|uri| refused(uri));
        (tasks, self.tasks) = std::mem::take(&mut self.tasks).into_iter().partition(|task| refused_task(task));
        Self { uris, tasks }
    }

    /// Returns the JSON filter of a listen request for these resources and tasks.
    pub fn filter(&self) -> String {
        let lists = [("resourceSubscriptions", &self.uris), ("taskIds", &self.tasks)];
        let named = lists.into_iter().filter(|(_, list)| !list.is_empty()).map(|(key, list)| {
            let list: Vec<String> = list.iter().map(|one| json::quote(one)).collect();
            format!("\"{key}\":[{}]", list.join(","))
        });
        format!("\"notifications\":{{{}}}", named.collect::<Vec<_>>().join(","))
    }
}

/// A client's `subscriptions/listen` request, as far as it concerns this backend.
pub(crate) struct Follow {
    pub session: Arc<Session>,
    pub exchange: ExchangeId,
    /// Backend user that stands for the client.
    pub user: BackendUser,
    pub wanted: FollowTargets,
    pub caps: CapSet,
    /// Receives, once, what the backend does not follow.
    pub acknowledged: Option<oneshot::Sender<FollowTargets>>,
    /// Modern connection that carries the listen request.
    pub carrier: Option<PeerId>,
}

impl Follow {
    /// Returns true if the request follows this resource.
    pub fn names(&self, uri: &str) -> bool {
        self.wanted.uris.iter().any(|own| own == uri)
    }

    /// Returns true if the request follows this task.
    pub fn names_task(&self, task: &str) -> bool {
        self.wanted.tasks.iter().any(|own| own == task)
    }

    /// Removes what the backend refuses and reports it to the waiting listen request. A client that stopped waiting was
    /// told that everything is followed, so in that case everything is kept.
    pub fn settle(&mut self, refused: &dyn Fn(&str) -> bool, refused_task: &dyn Fn(&str) -> bool) {
        let Some(sender) = self.acknowledged.take() else { return };
        if let Err(no) = sender.send(self.wanted.take_refused(refused, refused_task)) {
            self.wanted.uris.extend(no.uris);
            self.wanted.tasks.extend(no.tasks);
        }
    }

    /// Returns the session and exchange of the listen request.
    pub fn waiter(&self) -> Waiter {
        (Arc::clone(&self.session), self.exchange)
    }
}

/// Yields the URI itself and its prefixes, which are the resources that may contain it.
fn containing_uris(uri: &str) -> impl Iterator<Item = &str> {
    let ends = uri.match_indices(['/', '?', '#']).take(MAX_PARTS);
    let before = ends.flat_map(|(at, end)| [uri.get(..at), uri.get(..at + end.len())]).flatten();
    std::iter::once(uri).chain(before)
}

/// Reason why a resource cannot be watched.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum TooManyWatches {
    /// All sessions together watch [`MAX_WATCHES`] resources.
    OfBackend,
    /// This session alone watches that many resources.
    OfSession(usize),
}

/// Key of a pending change notification: the backend user and the URI of the resource.
pub(crate) type ChangeKey = (BackendUser, Box<str>);

/// Subscriptions of all sessions to one backend.
#[derive(Default)]
pub(crate) struct Subscriptions {
    /// Sessions that watch a resource by `resources/subscribe`, by URI.
    watches: HashMap<Box<str>, HashMap<SessionKey, BackendUser>>,
    /// Listen requests of clients.
    follows: BTreeMap<(SessionKey, ExchangeId), Follow>,
    /// Log level that each session has set.
    levels: HashMap<SessionKey, LogLevel>,
    /// Debounced change notifications, each with the latest message of the backend.
    changes_to_tell: HashMap<ChangeKey, Envelope>,
    /// Connections that are about to be reopened for their subscribers.
    reopening: HashSet<ConnectionRole>,
}

impl Subscriptions {
    /// Adds a watch of a session on a resource.
    ///
    /// # Errors
    /// If the limit of the backend or of the session is reached.
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

    /// Moves the watches of a session to another token.
    pub fn set_user(&mut self, session: SessionKey, user: &BackendUser) {
        for one in self.watches.values_mut().filter_map(|sessions| sessions.get_mut(&session)) {
            one.clone_from(user);
        }
    }

    /// Removes the watch of a session on a resource.
    pub fn unwatch(&mut self, session: SessionKey, uri: &str) {
        if let Some(sessions) = self.watches.get_mut(uri) {
            sessions.remove(&session);
            if sessions.is_empty() {
                self.watches.remove(uri);
            }
        }
    }

    /// Returns true if this session watches this resource.
    pub fn is_watched_by(&self, uri: &str, session: SessionKey) -> bool {
        self.watches.get(uri).is_some_and(|sessions| sessions.contains_key(&session))
    }

    /// Returns true if this session follows this resource or one that contains it: a server may report a part of what
    /// its client subscribed to.
    pub fn is_followed_by(&self, uri: &str, session: SessionKey) -> bool {
        let own = self.follows.range((session, ExchangeId(0))..).take_while(|((key, _), _)| *key == session);
        let listened: Vec<&Follow> = own.map(|(_, follow)| follow).collect();
        containing_uris(uri)
            .any(|whole| self.is_watched_by(whole, session) || listened.iter().any(|one| one.names(whole)))
    }

    /// Returns true if this session watches any resource.
    pub fn has_watches(&self, session: SessionKey) -> bool {
        self.watches.values().any(|sessions| sessions.contains_key(&session))
    }

    /// Returns the sessions that watch a resource.
    pub fn watchers_of(&self, uri: &str) -> impl Iterator<Item = (SessionKey, &BackendUser)> {
        self.watches.get(uri).into_iter().flatten().map(|(key, user)| (*key, user))
    }

    /// Returns one item per watch: the session and its user.
    pub fn watchers(&self) -> impl Iterator<Item = (SessionKey, &BackendUser)> {
        self.watches.values().flatten().map(|(key, user)| (*key, user))
    }

    /// Returns the resources watched by a session for which `holds` is true.
    pub fn watched_where(&self, holds: impl Fn(SessionKey, &BackendUser) -> bool) -> impl Iterator<Item = String> {
        let watched = self.watches.iter().filter(move |(_, sessions)| sessions.iter().any(|(key, of)| holds(*key, of)));
        watched.map(|(uri, _)| String::from(&**uri))
    }

    /// Returns true if another listen request can be added.
    pub fn can_follow(&self) -> bool {
        self.follows.len() < MAX_FOLLOWS
    }

    /// Adds a listen request. Drops it if the limit is reached, see [`Self::can_follow`].
    pub fn follow(&mut self, follow: Follow) {
        if self.can_follow() {
            self.follows.insert((follow.session.key, follow.exchange), follow);
        }
    }

    /// Removes a listen request and returns it.
    pub fn unfollow(&mut self, session: SessionKey, exchange: ExchangeId) -> Option<Follow> {
        self.follows.remove(&(session, exchange))
    }

    /// Returns the entry of a listen request.
    pub fn follow_mut(&mut self, (session, exchange): &Waiter) -> Option<&mut Follow> {
        self.follows.get_mut(&(session.key, *exchange))
    }

    /// Returns all listen requests.
    pub fn follows(&self) -> impl Iterator<Item = &Follow> {
        self.follows.values()
    }

    /// Returns the listen requests of a user.
    pub fn follows_of(&self, user: &BackendUser) -> impl Iterator<Item = &Follow> {
        self.follows.values().filter(move |one| one.user == *user)
    }

    /// Returns true if a client follows a resource or a task.
    pub fn any(&self) -> bool {
        !self.follows.is_empty() || !self.watches.is_empty()
    }

    /// Returns true if a client of this user follows a resource or a task.
    pub fn any_of(&self, user: &BackendUser) -> bool {
        self.follows_of(user).next().is_some() || self.watchers().any(|(_, of)| of == user)
    }

    /// Sets the log level of a session.
    pub fn set_level(&mut self, session: SessionKey, level: LogLevel) {
        self.levels.insert(session, level);
    }

    /// Returns the log level of a session.
    pub fn level_of(&self, session: SessionKey) -> Option<LogLevel> {
        self.levels.get(&session).copied()
    }

    /// Returns the sessions that have set a log level.
    pub fn log_readers(&self) -> impl Iterator<Item = SessionKey> {
        self.levels.keys().copied()
    }

    /// Removes all entries of a session. Returns the resources that it watched.
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

    /// Moves the subscriptions out of a predecessor. No connection carries them yet.
    pub fn take_over(&mut self, from: &mut Self) {
        self.watches = std::mem::take(&mut from.watches);
        self.levels = std::mem::take(&mut from.levels);
        self.follows = std::mem::take(&mut from.follows);
        for follow in self.follows.values_mut() {
            follow.carrier = None;
        }
    }

    /// Replaces a pending change with a newer one. Returns false if none is pending.
    pub fn renew_change(&mut self, key: &ChangeKey, message: &Envelope) -> bool {
        let Some(newest) = self.changes_to_tell.get_mut(key) else { return false };
        *newest = message.clone();
        true
    }

    /// Adds a pending change. Returns false if the limit is reached.
    pub fn hold_change(&mut self, key: ChangeKey, message: &Envelope) -> bool {
        let room = self.changes_to_tell.len() < MAX_WATCHES;
        if room {
            self.changes_to_tell.insert(key, message.clone());
        }
        room
    }

    /// Removes and returns a pending change that is due.
    pub fn take_change(&mut self, key: &ChangeKey) -> Option<Envelope> {
        self.changes_to_tell.remove(key)
    }

    /// Marks a connection as being reopened. Returns false if it is marked already.
    pub fn begin_reopening(&mut self, role: &ConnectionRole) -> bool {
        self.reopening.insert(role.clone())
    }

    /// Removes the mark of [`Self::begin_reopening`].
    pub fn end_reopening(&mut self, role: &ConnectionRole) {
        self.reopening.remove(role);
    }

    /// Returns the number of entries by kind.
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
