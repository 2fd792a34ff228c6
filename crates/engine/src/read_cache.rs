//! Results of `resources/read` that a backend of the new era lets be kept, for as long as it says and for whom it says.

use crate::principal::Principal;
use bytes::Bytes;
use signalbox_wire::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most bytes of results that are kept.
pub const MAX_BYTES: usize = 32 << 20;
/// The largest result that is kept.
pub const MAX_RESULT: usize = 1 << 20;
/// Most results that are kept.
pub const MAX_RESULTS: usize = 4_096;
/// The longest a result is kept, whatever the backend says.
pub const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    backend: Arc<str>,
    uri: Box<str>,
    /// None for a result that is the same for everybody.
    owner: Option<Principal>,
}

#[derive(Clone, Debug)]
struct Kept {
    result: Bytes,
    until: Instant,
}

/// The cache.
#[derive(Debug, Default)]
pub struct ReadCache {
    kept: HashMap<Key, Kept>,
    bytes: usize,
}

/// How long a result may be kept, and whether everybody may see it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// For how long.
    pub ttl: Duration,
    /// For everybody; else only for whoever asked.
    pub public: bool,
}

impl Terms {
    /// Reads them from a result; none where it may not be kept.
    #[must_use]
    pub fn read(result: &[u8]) -> Option<Self> {
        let member = |key: &str| json::member(result, key).map(|span| span.of(result));
        let millis: u64 = std::str::from_utf8(member("ttlMs")?).ok()?.parse().ok()?;
        let scope = member("cacheScope").and_then(json::string);
        let ttl = Duration::from_millis(millis).min(MAX_TTL);
        (millis > 0).then(|| Self { ttl, public: scope.as_deref() == Some("public") })
    }
}

impl ReadCache {
    /// A result that is still good, with the time it has left.
    pub fn get(&self, backend: &Arc<str>, uri: &str, principal: &Principal, now: Instant) -> Option<(Bytes, Duration)> {
        [Some(principal.clone()), None].into_iter().find_map(|owner| {
            let kept = self.kept.get(&Key { backend: Arc::clone(backend), uri: uri.into(), owner })?;
            let left = kept.until.checked_duration_since(now).filter(|left| !left.is_zero())?;
            Some((kept.result.clone(), left))
        })
    }

    /// Keeps a result under its terms. What does not fit is not kept.
    pub fn keep(
        &mut self,
        backend: &Arc<str>,
        uri: &str,
        principal: &Principal,
        result: &[u8],
        terms: Terms,
        now: Instant,
    ) {
        if result.len() > MAX_RESULT {
            return;
        }
        if self.kept.len() >= MAX_RESULTS || self.bytes + result.len() > MAX_BYTES {
            self.retain(|_, kept| kept.until > now);
        }
        if self.kept.len() >= MAX_RESULTS || self.bytes + result.len() > MAX_BYTES {
            return;
        }
        let owner = (!terms.public).then(|| principal.clone());
        let key = Key { backend: Arc::clone(backend), uri: uri.into(), owner };
        self.bytes += result.len();
        let kept = Kept { result: Bytes::copy_from_slice(result), until: now + terms.ttl };
        if let Some(before) = self.kept.insert(key, kept) {
            self.bytes -= before.result.len();
        }
    }

    /// Forgets a resource that changed.
    pub fn forget(&mut self, backend: &str, uri: &str) {
        self.retain(|key, _| &*key.backend != backend || &*key.uri != uri);
    }

    /// Forgets everything of a backend.
    pub fn forget_backend(&mut self, backend: &str) {
        self.retain(|key, _| &*key.backend != backend);
    }

    /// True where nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    fn retain(&mut self, mut keep: impl FnMut(&Key, &Kept) -> bool) {
        let bytes = &mut self.bytes;
        self.kept.retain(|key, kept| {
            let stays = keep(key, kept);
            if !stays {
                *bytes -= kept.result.len();
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &[u8] = br#"{"contents":[],"ttlMs":1000,"cacheScope":"public"}"#;
    const PRIVATE: &[u8] = br#"{"contents":[],"ttlMs":1000,"cacheScope":"private"}"#;

    #[test]
    fn a_private_result_is_kept_for_whoever_asked_and_a_public_one_for_all() {
        let (me, you) = (Principal::local("me"), Principal::local("you"));
        let (backend, now): (Arc<str>, _) = ("a".into(), Instant::now());
        for (result, shared) in [(PRIVATE, false), (PUBLIC, true)] {
            let mut cache = ReadCache::default();
            cache.keep(&backend, "x:1", &me, result, Terms::read(result).unwrap(), now);
            assert!(cache.get(&backend, "x:1", &me, now).is_some());
            assert_eq!(cache.get(&backend, "x:1", &you, now).is_some(), shared);
            assert!(cache.get(&backend, "x:2", &me, now).is_none());
            assert!(cache.get(&"b".into(), "x:1", &me, now).is_none());
        }
    }

    #[test]
    fn a_result_is_good_for_as_long_as_the_backend_says_and_until_it_changes() {
        let (me, backend, now): (_, Arc<str>, _) = (Principal::local("me"), "a".into(), Instant::now());
        let mut cache = ReadCache::default();
        cache.keep(&backend, "x:1", &me, PUBLIC, Terms::read(PUBLIC).unwrap(), now);
        let (_, left) = cache.get(&backend, "x:1", &me, now + Duration::from_millis(400)).unwrap();
        assert_eq!(left, Duration::from_millis(600));
        assert!(cache.get(&backend, "x:1", &me, now + Duration::from_millis(1000)).is_none());
        cache.forget("a", "x:1");
        assert!(cache.is_empty() && cache.bytes == 0);
    }

    #[test]
    fn what_may_not_be_kept_has_no_terms() {
        for result in [&b"{}"[..], br#"{"ttlMs":0}"#, br#"{"ttlMs":-1}"#, br#"{"ttlMs":"9"}"#, br#"{"ttlMs":1.5}"#] {
            assert_eq!(Terms::read(result), None);
        }
        assert_eq!(Terms::read(br#"{"ttlMs":99999999999999}"#).unwrap().ttl, MAX_TTL);
    }

    #[test]
    fn the_cache_is_bounded() {
        let (me, backend, now): (_, Arc<str>, _) = (Principal::local("me"), "a".into(), Instant::now());
        let mut cache = ReadCache::default();
        let big = vec![b' '; MAX_RESULT];
        let terms = Terms { ttl: Duration::from_secs(1), public: true };
        for number in 0..MAX_BYTES / MAX_RESULT + 5 {
            cache.keep(&backend, &format!("x:{number}"), &me, &big, terms, now);
        }
        assert_eq!(cache.bytes, MAX_BYTES);
        let later = now + Duration::from_secs(2);
        cache.keep(&backend, "x:new", &me, &big, terms, later);
        assert_eq!(cache.bytes, MAX_RESULT, "what is over makes room");
    }
}
