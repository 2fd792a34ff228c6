//! Maps with a bound.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// Makes room for one more entry in a map that may hold `most`: if it is full, removes the entry that is the least by
/// `order`, such as the oldest or the one that expires first. Searches the whole map, so the bound must be small or
/// rarely reached.
pub fn make_room<K, V, S, O>(map: &mut HashMap<K, V, S>, most: usize, order: impl Fn(&V) -> O)
where
    K: Clone + Eq + Hash,
    S: BuildHasher,
    O: Ord,
{
    if map.len() < most {
        return;
    }
    let least = map.iter().min_by_key(|(_, value)| order(value)).map(|(key, _)| key.clone());
    least.and_then(|key| map.remove(&key));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_map_loses_its_least_entry_and_no_other() {
        let mut map = HashMap::from([("a", 2), ("b", 1), ("c", 3)]);
        make_room(&mut map, 4, |age| *age);
        assert_eq!(map.len(), 3);
        make_room(&mut map, 3, |age| *age);
        assert_eq!(map, HashMap::from([("a", 2), ("c", 3)]));
        make_room(&mut HashMap::<u8, u8>::new(), 0, |age| *age);
    }
}
