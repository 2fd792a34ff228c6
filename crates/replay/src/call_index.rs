//! Where the calls of a tape stand.
//!
//! A tape may have millions of calls, most of them unlike any other. So a call costs its key, its place, and a number in a table
//! that finds it by its key: about 40 bytes. A list is made only for a key that several calls have.

use crate::match_key::MatchKey;
use hashbrown::HashTable;
use signalbox_engine::keys::TextMap;
use std::sync::Arc;

/// How many calls of one subject are listed.
const MOST_ALIKE: usize = 200;
/// For how many subjects.
const MOST_SUBJECTS: usize = 10_000;

/// A method, and its tool, prompt or URI.
type Subject = (Arc<str>, Option<Arc<str>>);

/// The calls that have been read, each by a number of its own.
#[derive(Debug, Default)]
pub(crate) struct CallIndex {
    calls: Vec<Indexed>,
    by_key: HashTable<Equal>,
    /// Calls that have one key, in the order of their places.
    equals: Vec<Vec<u32>>,
    by_subject: TextMap<Subject, Vec<u32>>,
}

/// What a call is found by, and the place of its request.
#[derive(Copy, Clone, Debug)]
struct Indexed {
    key: MatchKey,
    place: u64,
}

/// The calls of a key.
#[derive(Copy, Clone, Debug)]
enum Equal {
    /// Only this one.
    One(u32),
    /// Those of this list.
    Many(u32),
}

impl CallIndex {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// The place of a call's request.
    pub(crate) fn place(&self, call: u32) -> Option<u64> {
        self.calls.get(call as usize).map(|call| call.place)
    }

    /// Adds a call and returns its number; none if there are too many.
    pub(crate) fn add(&mut self, key: MatchKey, place: u64, subject: Subject) -> Option<u32> {
        let call = u32::try_from(self.calls.len()).ok()?;
        self.calls.push(Indexed { key, place });
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
        if is_known || self.by_subject.len() < MOST_SUBJECTS {
            let alike = self.by_subject.entry(subject).or_default();
            if alike.len() < MOST_ALIKE {
                alike.push(call);
            }
        }
        Some(call)
    }

    /// Calls come in the order in which they are complete; the list has that of their requests.
    fn put(&mut self, list: u32, call: u32, place: u64) {
        let calls = &self.calls;
        let Some(list) = self.equals.get_mut(list as usize) else { return };
        let at = list.partition_point(|other| calls.get(*other as usize).is_some_and(|other| other.place < place));
        list.insert(at, call);
    }

    /// How many calls have this key.
    pub(crate) fn count(&self, key: MatchKey) -> usize {
        self.equal(key, <[u32]>::len)
    }

    /// The nth call with this key, counted from 0.
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

    /// The first calls of a method and a tool, prompt or URI.
    pub(crate) fn alike(&self, subject: &Subject) -> &[u32] {
        self.by_subject.get(subject).map_or(&[], Vec::as_slice)
    }
}

/// The key that these calls have.
fn key_of(calls: &[Indexed], equals: &[Vec<u32>], equal: Equal) -> Option<MatchKey> {
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
        for number in 0..2 * MOST_SUBJECTS {
            let key = MatchKey::of(&json!({"method": number.to_string()}), &Paths::default()).unwrap();
            let subject = if number % 2 == 0 { "same".to_owned() } else { number.to_string() };
            index.add(key, number as u64, (Arc::from("m"), Some(subject.into()))).unwrap();
        }
        index.by_subject.values().for_each(|calls| assert!(calls.len() <= MOST_ALIKE));
        assert!(index.by_subject.len() <= MOST_SUBJECTS);
        assert_eq!(index.alike(&(Arc::from("m"), Some("same".into()))).len(), MOST_ALIKE);
    }
}
