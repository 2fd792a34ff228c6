//! Index of the calls on a tape, by key and by subject.
//!
//! A tape may have millions of calls, most of them unique. Each call costs its key, its position and an entry in a hash
//! table: about 40 bytes. Only keys shared by several calls get a list.

use crate::match_key::MatchKey;
use hashbrown::HashTable;
use signalbox_engine::keys::TextMap;
use std::sync::Arc;

/// Maximum number of calls listed for one subject.
const MAX_CALLS_PER_SUBJECT: usize = 200;
/// Maximum number of subjects.
const MAX_SUBJECTS: usize = 10_000;

/// Method with its tool, prompt or URI.
type Subject = (Arc<str>, Option<Arc<str>>);

/// Index of the calls read so far. A call is identified by its index.
#[derive(Debug, Default)]
pub(crate) struct CallIndex {
    calls: Vec<IndexEntry>,
    by_key: HashTable<Equal>,
    /// Lists of calls that share a key, in the order of their positions.
    equals: Vec<Vec<u32>>,
    by_subject: TextMap<Subject, Vec<u32>>,
}

/// Key of a call and position of its request.
#[derive(Copy, Clone, Debug)]
struct IndexEntry {
    key: MatchKey,
    place: u64,
}

/// Calls that share a key.
#[derive(Copy, Clone, Debug)]
enum Equal {
    One(u32),
    /// Index of their list in [`CallIndex::equals`].
    Many(u32),
}

impl CallIndex {
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns the position of a call's request.
    pub(crate) fn place(&self, call: u32) -> Option<u64> {
        self.calls.get(call as usize).map(|call| call.place)
    }

    /// Adds a call and returns its index, or `None` if the index is full.
    pub(crate) fn add(&mut self, key: MatchKey, place: u64, subject: Subject) -> Option<u32> {
        let call = u32::try_from(self.calls.len()).ok()?;
        self.calls.push(IndexEntry { key, place });
        let (calls, equals) = (&self.calls, &mut self.equals);
        let found = self.by_key.find_mut(key.short(), |other| key_of(calls, equals, *other) == Some(key));
        match found {
            None => {
                let hash = |other: &Equal| key_of(calls, equals, *other).map_or(0, MatchKey::short);
                self.by_key.insert_unique(key.short(), Equal::One(call), hash);
            }
            Some(equal) => {
                if let Equal::One(first) = *equal {
                    *equal = Equal::Many(u32::try_from(equals.len()).ok()?);
                    equals.push(vec![first]);
                }
                if let Equal::Many(list) = *equal {
                    self.put(list, call, place);
                }
            }
        }
        let is_known = self.by_subject.contains_key(&subject);
        if is_known || self.by_subject.len() < MAX_SUBJECTS {
            let alike = self.by_subject.entry(subject).or_default();
            if alike.len() < MAX_CALLS_PER_SUBJECT {
                alike.push(call);
            }
        }
        Some(call)
    }

    /// Inserts a call in the order of requests. Calls are added in the order of their completion.
    fn put(&mut self, list: u32, call: u32, place: u64) {
        let calls = &self.calls;
        let Some(list) = self.equals.get_mut(list as usize) else { return };
        let at = list.partition_point(|other| calls.get(*other as usize).is_some_and(|other| other.place < place));
        list.insert(at, call);
    }

    /// Returns the number of calls with this key.
    pub(crate) fn count(&self, key: MatchKey) -> usize {
        self.equal(key, <[u32]>::len)
    }

    /// Returns the nth call with this key, counted from 0.
    pub(crate) fn nth(&self, key: MatchKey, nth: usize) -> Option<u32> {
        self.equal(key, |all| all.get(nth).copied())
    }

    fn equal<T: Default>(&self, key: MatchKey, look: impl FnOnce(&[u32]) -> T) -> T {
        let is_wanted = |other: &Equal| key_of(&self.calls, &self.equals, *other) == Some(key);
        match self.by_key.find(key.short(), is_wanted) {
            Some(Equal::One(call)) => look(&[*call]),
            Some(Equal::Many(list)) => self.equals.get(*list as usize).map(|all| look(all)).unwrap_or_default(),
            None => T::default(),
        }
    }

    /// Returns the first calls of a subject.
    pub(crate) fn alike(&self, subject: &Subject) -> &[u32] {
        self.by_subject.get(subject).map_or(&[], Vec::as_slice)
    }
}

/// Returns the key shared by these calls.
fn key_of(calls: &[IndexEntry], equals: &[Vec<u32>], equal: Equal) -> Option<MatchKey> {
    let first = match equal {
        Equal::One(call) => call,
        Equal::Many(list) => *equals.get(list as usize)?.first()?,
    };
    calls.get(first as usize).map(|call| call.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Paths;
    use serde_json::json;

    #[test]
    fn equal_calls_have_the_order_of_their_places() {
        let key = |name: &str| MatchKey::of(&json!({"method": name}), &Paths::default()).unwrap();
        let subject = || (Arc::from("m"), None);
        let mut index = CallIndex::default();
        for (name, place) in [("a", 5), ("b", 2), ("a", 1), ("a", 9), ("a", 7)] {
            index.add(key(name), place, subject()).unwrap();
        }
        let places = |name: &str| -> Vec<u64> {
            (0..index.count(key(name))).map(|nth| index.place(index.nth(key(name), nth).unwrap()).unwrap()).collect()
        };
        assert_eq!((places("a"), places("b"), places("c")), (vec![1, 5, 7, 9], vec![2], vec![]));
        assert_eq!((index.len(), index.nth(key("b"), 1), index.nth(key("c"), 0)), (5, None, None));
        assert_eq!(index.alike(&subject()), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn what_the_nearest_call_is_looked_for_in_has_bounds() {
        let mut index = CallIndex::default();
        for number in 0..2 * MAX_SUBJECTS {
            let key = MatchKey::of(&json!({"method": number.to_string()}), &Paths::default()).unwrap();
            let subject = if number % 2 == 0 { "same".to_owned() } else { number.to_string() };
            index.add(key, number as u64, (Arc::from("m"), Some(subject.into()))).unwrap();
        }
        index.by_subject.values().for_each(|calls| assert!(calls.len() <= MAX_CALLS_PER_SUBJECT));
        assert!(index.by_subject.len() <= MAX_SUBJECTS);
        assert_eq!(index.alike(&(Arc::from("m"), Some("same".into()))).len(), MAX_CALLS_PER_SUBJECT);
    }
}
