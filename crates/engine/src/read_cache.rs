//! Cache of `resources/read` results, under the terms that a backend of the new era gives.

use crate::caller::Principal;
use bytes::Bytes;
use signalbox_wire::json;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of bytes of cached results.
pub const MAX_BYTES: usize = 32 << 20;
/// Maximum size of a cached result.
pub const MAX_RESULT: usize = 1 << 20;
/// Maximum number of cached results.
pub const MAX_RESULTS: usize = 4_096;
/// Maximum time a result is cached, regardless of the backend's terms.
pub const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    backend: Arc<str>,
    uri: Box<str>,
    /// `None` for a result that is the same for every caller.
    owner: Option<Principal>,
}

#[derive(Clone, Debug)]
struct CachedRead {
    result: Bytes,
    until: Instant,
}

/// Number of change counters. Resources share them, so at worst a result is not cached although it could be.
const COUNTERS: usize = 1024;

/// Number of changes of a resource before a request for it, as far as the gateway knows.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct Generation(u64);

/// Cached results with their owners and expiry.
#[derive(Debug)]
pub struct ReadCache {
    entries: HashMap<Key, CachedRead>,
    bytes: usize,
    changes: [u64; COUNTERS],
}

impl Default for ReadCache {
    fn default() -> Self {
        Self { entries: HashMap::new(), bytes: 0, changes: [0; COUNTERS] }
    }
}

/// Cache terms of a result.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CacheTerms {
    /// Time for which the result may be cached.
    pub ttl: Duration,
    /// True if the result is the same for every caller; otherwise only the caller that asked may cache it.
    pub public: bool,
}

impl CacheTerms {
    /// Terms that forbid caching.
    pub const NOT_AT_ALL: Self = Self { ttl: Duration::ZERO, public: false };

    /// Returns the value of `cacheScope`.
    #[must_use]
    pub fn scope(self) -> &'static str {
        if self.public { "public" } else { "private" }
    }

    /// Reads the terms of a result; `None` if it may not be cached.
    #[must_use]
    pub fn read(result: &[u8]) -> Option<Self> {
        let member = |key: &str| json::member(result, key).map(|span| span.of(result));
        if member("resultType").and_then(json::string)? != "complete" {
            return None;
        }
        let millis: u64 = std::str::from_utf8(member("ttlMs")?).ok()?.parse().ok()?;
        let scope = member("cacheScope").and_then(json::string);
        let ttl = Duration::from_millis(millis).min(MAX_TTL);
        (millis > 0).then(|| Self { ttl, public: scope.as_deref() == Some("public") })
    }
}

impl ReadCache {
    /// Returns a result that is still fresh, with the time it has left.
    pub fn get(&self, backend: &Arc<str>, uri: &str, principal: &Principal, now: Instant) -> Option<(Bytes, Duration)> {
        [Some(principal.clone()), None].into_iter().find_map(|owner| {
            let kept = self.entries.get(&Key { backend: Arc::clone(backend), uri: uri.into(), owner })?;
            let left = kept.until.checked_duration_since(now).filter(|left| !left.is_zero())?;
            Some((kept.result.clone(), left))
        })
    }

    /// Returns the current generation of a resource. A result requested now may be cached as long as the generation is
    /// the same.
    #[must_use]
    pub fn generation(&self, backend: &str, uri: &str) -> Generation {
        Generation(self.changes[counter(backend, uri)])
    }

    /// Caches a result under its terms, unless its resource changed since it was requested: the result may be older
    /// than the change. Results that do not fit are not cached.
    #[allow(clippy::too_many_arguments, reason = "the parts of a kept result, each needed once")]
    pub fn keep(
        &mut self,
        backend: &Arc<str>,
        uri: &str,
        principal: &Principal,
        result: &[u8],
        terms: CacheTerms,
        asked: Generation,
        now: Instant,
    ) {
        if result.len() > MAX_RESULT || asked != self.generation(backend, uri) {
            return;
        }
        if self.entries.len() >= MAX_RESULTS || self.bytes + result.len() > MAX_BYTES {
            self.retain(|_, kept| kept.until > now);
        }
        if self.entries.len() >= MAX_RESULTS || self.bytes + result.len() > MAX_BYTES {
            return;
        }
        let owner = (!terms.public).then(|| principal.clone());
        let key = Key { backend: Arc::clone(backend), uri: uri.into(), owner };
        self.bytes += result.len();
        let kept = CachedRead { result: Bytes::copy_from_slice(result), until: now + terms.ttl };
        if let Some(before) = self.entries.insert(key, kept) {
            self.bytes -= before.result.len();
        }
    }

    /// Removes a resource that changed.
    pub fn forget(&mut self, backend: &str, uri: &str) {
        self.changes[counter(backend, uri)] += 1;
        self.retain(|key, _| &*key.backend != backend || &*key.uri != uri);
    }

    /// Removes all results of a backend, and keeps results still in flight from being cached.
    pub fn forget_backend(&mut self, backend: &str) {
        for count in &mut self.changes {
            *count += 1;
        }
        self.retain(|key, _| &*key.backend != backend);
    }

    /// Removes the results that are cached only for this principal.
    pub fn forget_principal(&mut self, principal: &Principal) {
        self.retain(|key, _| key.owner.as_ref() != Some(principal));
    }

    /// Returns true if nothing is cached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn retain(&mut self, mut keep: impl FnMut(&Key, &CachedRead) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|key, kept| {
            let stays = keep(key, kept);
            if !stays {
                *bytes -= kept.result.len();
            }
            stays
        });
    }
}

fn counter(backend: &str, uri: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    (backend, uri).hash(&mut hasher);
    usize::try_from(hasher.finish() % COUNTERS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &[u8] = br#"{"resultType":"complete","contents":[],"ttlMs":1000,"cacheScope":"public"}"#;
    const PRIVATE: &[u8] = br#"{"resultType":"complete","contents":[],"ttlMs":1000,"cacheScope":"private"}"#;

    #[test]
    fn a_private_result_is_kept_for_whoever_asked_and_a_public_one_for_all() {
        let (me, you) = (Principal::local("me"), Principal::local("you"));
        let (backend, now): (Arc<str>, _) = ("a".into(), Instant::now());
        for (result, shared) in [(PRIVATE, false), (PUBLIC, true)] {
            let mut cache = ReadCache::default();
            cache.keep(&backend, "x:1", &me, result, CacheTerms::read(result).unwrap(), Generation::default(), now);
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
        let terms = CacheTerms::read(PUBLIC).unwrap();
        cache.keep(&backend, "x:1", &me, PUBLIC, terms, cache.generation("a", "x:1"), now);
        let (_, left) = cache.get(&backend, "x:1", &me, now + Duration::from_millis(400)).unwrap();
        assert_eq!(left, Duration::from_millis(600));
        assert!(cache.get(&backend, "x:1", &me, now + Duration::from_millis(1000)).is_none());
        cache.forget("a", "x:1");
        assert!(cache.is_empty() && cache.bytes == 0);
    }

    #[test]
    fn a_result_that_a_change_overtook_is_not_kept() {
        let (me, backend, now): (_, Arc<str>, _) = (Principal::local("me"), "a".into(), Instant::now());
        let mut cache = ReadCache::default();
        let terms = CacheTerms::read(PUBLIC).unwrap();
        let changes: [fn(&mut ReadCache); 2] = [|cache| cache.forget("a", "x:1"), |cache| cache.forget_backend("a")];
        for change in changes {
            let asked = cache.generation("a", "x:1");
            change(&mut cache);
            cache.keep(&backend, "x:1", &me, PUBLIC, terms, asked, now);
            assert!(cache.is_empty());
        }
        cache.keep(&backend, "x:1", &me, PUBLIC, terms, cache.generation("a", "x:1"), now);
        assert!(!cache.is_empty());
    }

    #[test]
    fn what_may_not_be_kept_has_no_terms() {
        let read = |rest: &str| CacheTerms::read(format!(r#"{{"resultType":"complete"{rest}}}"#).as_bytes());
        for rest in ["", r#","ttlMs":0"#, r#","ttlMs":-1"#, r#","ttlMs":"9""#, r#","ttlMs":1.5"#] {
            assert_eq!(read(rest), None);
        }
        for result in [r#"{"resultType":"input_required","ttlMs":9}"#, r#"{"ttlMs":9}"#] {
            assert_eq!(CacheTerms::read(result.as_bytes()), None);
        }
        assert_eq!(read(r#","ttlMs":99999999999999"#).unwrap().ttl, MAX_TTL);
    }

    #[test]
    fn the_cache_is_bounded() {
        let (me, backend, now): (_, Arc<str>, _) = (Principal::local("me"), "a".into(), Instant::now());
        let mut cache = ReadCache::default();
        let big = vec![b' '; MAX_RESULT];
        let terms = CacheTerms { ttl: Duration::from_secs(1), public: true };
        for number in 0..MAX_BYTES / MAX_RESULT + 5 {
            cache.keep(&backend, &format!("x:{number}"), &me, &big, terms, Generation::default(), now);
        }
        assert_eq!(cache.bytes, MAX_BYTES);
        let later = now + Duration::from_secs(2);
        cache.keep(&backend, "x:new", &me, &big, terms, Generation::default(), later);
        assert_eq!(cache.bytes, MAX_RESULT, "what is over makes room");
    }
}
