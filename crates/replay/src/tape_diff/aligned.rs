//! Which calls of two tapes belong together.

use super::reel::Call;
use crate::MatchKey;
use crate::diff::align;
use std::collections::{HashMap, VecDeque};

/// Most calls that may be removed and added for tapes to be aligned with the fewest changes; beyond, the k-th of equal calls
/// belongs to the k-th.
const MAX_EDITS: usize = 2000;

/// What becomes of a call, by its place among the calls of the old and of the new tape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Aligned {
    /// The same call at the same place in the order.
    Paired(usize, usize),
    /// The same call at another place in the order.
    Moved(usize, usize),
    /// A call of the same tool between the same calls.
    Rewritten(usize, usize),
    Removed(usize),
    Added(usize),
}

/// Aligns the calls of two tapes; what comes out is in the order of the old one.
pub(super) fn align(old: &[Call], new: &[Call]) -> Vec<Aligned> {
    let keys = |calls: &[Call]| calls.iter().map(|call| call.key).collect::<Vec<_>>();
    let names = |calls: &[Call]| calls.iter().map(|call| call.name).collect::<Vec<_>>();
    align_keys((&keys(old), &names(old)), (&keys(new), &names(new)))
}

/// What finds a call.
type Key = Option<MatchKey>;

fn align_keys(old: (&[Key], &[u32]), new: (&[Key], &[u32])) -> Vec<Aligned> {
    let in_order = align::align(old.0, new.0, MAX_EDITS).unwrap_or_else(|| increasing(&by_count(old.0, new.0)));
    let old_gaps = gaps(old.0.len(), in_order.iter().map(|pair| pair.0));
    let new_gaps = gaps(new.0.len(), in_order.iter().map(|pair| pair.1));
    // Sorted by the gap between pairs in order, then old calls, then new ones, then the pair that ends the gap.
    let mut all: Vec<((usize, u8, usize), Aligned)> = Vec::with_capacity(old.0.len());
    all.extend(in_order.iter().enumerate().map(|(gap, &(i, j))| ((gap, 2, 0), Aligned::Paired(i, j))));

    let moved = pair_up(&old_gaps, &new_gaps, |i| old.0.get(i).copied(), |j| new.0.get(j).copied());
    all.extend(moved.pairs.iter().map(|&(gap, i, j)| ((gap, 0, i), Aligned::Moved(i, j))));
    let name = |gap_names: &[u32], gap: usize, at: usize| gap_names.get(at).map(|name| (gap, *name));
    let (old_left, new_left) = (moved.old, moved.new);
    let gap_of: HashMap<usize, usize> = old_left.iter().map(|&(gap, i)| (i, gap)).collect();
    let new_gap_of: HashMap<usize, usize> = new_left.iter().map(|&(gap, j)| (j, gap)).collect();
    let rewritten = pair_up(
        &old_left,
        &new_left,
        |i| name(old.1, gap_of.get(&i).copied().unwrap_or_default(), i),
        |j| name(new.1, new_gap_of.get(&j).copied().unwrap_or_default(), j),
    );
    all.extend(rewritten.pairs.iter().map(|&(gap, i, j)| ((gap, 0, i), Aligned::Rewritten(i, j))));
    all.extend(rewritten.old.iter().map(|&(gap, i)| ((gap, 0, i), Aligned::Removed(i))));
    all.extend(rewritten.new.iter().map(|&(gap, j)| ((gap, 1, j), Aligned::Added(j))));
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, step)| step).collect()
}

/// The places that are in no pair, each with the number of pairs before it.
fn gaps(length: usize, paired: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut left = Vec::new();
    let mut next = 0;
    for (gap, place) in paired.chain([length]).enumerate() {
        left.extend((next..place).map(|place| (gap, place)));
        next = place + 1;
    }
    left
}

struct Paired {
    /// With the gap of the old one.
    pairs: Vec<(usize, usize, usize)>,
    old: Vec<(usize, usize)>,
    new: Vec<(usize, usize)>,
}

/// Pairs the k-th of each key with the k-th.
fn pair_up<K: std::hash::Hash + Eq>(
    old: &[(usize, usize)],
    new: &[(usize, usize)],
    old_key: impl Fn(usize) -> Option<K>,
    new_key: impl Fn(usize) -> Option<K>,
) -> Paired {
    let mut free: HashMap<Option<K>, VecDeque<(usize, usize)>> = HashMap::new();
    for &(gap, j) in new {
        free.entry(new_key(j)).or_default().push_back((gap, j));
    }
    let mut found = Paired { pairs: vec![], old: vec![], new: vec![] };
    for &(gap, i) in old {
        match free.get_mut(&old_key(i)).and_then(VecDeque::pop_front) {
            Some((_, j)) => found.pairs.push((gap, i, j)),
            None => found.old.push((gap, i)),
        }
    }
    found.new = free.into_values().flatten().collect();
    found.new.sort_unstable();
    found
}

fn by_count(old: &[Key], new: &[Key]) -> Vec<(usize, usize)> {
    let places = |length: usize| (0..length).map(|place| (0, place)).collect::<Vec<_>>();
    let all = pair_up(&places(old.len()), &places(new.len()), |i| old.get(i).copied(), |j| new.get(j).copied());
    all.pairs.into_iter().map(|(_, i, j)| (i, j)).collect()
}

/// The longest part of these pairs, which are in the order of the old calls, that is in the order of the new ones too.
fn increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length the pair with which a run of that length ends soonest, and for each pair the one before it.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (_, j)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *j);
        before.push(length.checked_sub(1).and_then(|shorter| ends.get(shorter).copied()));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut run: Vec<(usize, usize)> =
        std::iter::successors(ends.last().copied(), |at| before[*at]).map(|at| pairs[at]).collect();
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use super::Aligned::{Added, Moved, Paired, Removed, Rewritten};
    use super::*;
    use crate::Paths;
    use serde_json::json;

    fn keys(text: &str) -> (Vec<Key>, Vec<u32>) {
        let key = |one: char| MatchKey::of(&json!({"method": one.to_string()}), &Paths::default());
        // Upper and lower case are calls of one tool.
        (text.chars().map(key).collect(), text.chars().map(|one| one.to_ascii_lowercase() as u32).collect())
    }

    fn aligned(old: &str, new: &str) -> Vec<Aligned> {
        let (old, new) = (keys(old), keys(new));
        align_keys((&old.0, &old.1), (&new.0, &new.1))
    }

    #[test]
    fn calls_are_paired_in_order_and_named_where_they_are_not() {
        assert_eq!(aligned("lalb", "lalb"), [Paired(0, 0), Paired(1, 1), Paired(2, 2), Paired(3, 3)]);
        // The first of two equal calls is gone: the second is still itself.
        assert_eq!(aligned("lalb", "alb"), [Removed(0), Paired(1, 0), Paired(2, 1), Paired(3, 2)]);
        assert_eq!(aligned("ab", "axb"), [Paired(0, 0), Added(1), Paired(1, 2)]);
        assert_eq!(aligned("abc", "bca"), [Moved(0, 2), Paired(1, 0), Paired(2, 1)]);
        assert_eq!(aligned("axb", "aXb"), [Paired(0, 0), Rewritten(1, 1), Paired(2, 2)]);
        // Another place is not the same call.
        assert_eq!(aligned("xab", "abX"), [Removed(0), Paired(1, 0), Paired(2, 1), Added(2)]);
    }

    #[test]
    fn tapes_that_have_little_in_common_are_paired_by_count() {
        let [old, new]: [Vec<Key>; 2] = [0, 7].map(|shift| {
            let key =
                |at: u32| MatchKey::of(&json!({"method": ((at + shift) * 7919 % 4001).to_string()}), &Paths::default());
            (0..4001).map(key).rev().collect()
        });
        let mut shuffled = new.clone();
        shuffled.sort_by_key(|key| format!("{key:?}"));
        let zero = vec![0; old.len()];
        assert_eq!(align::align(&old, &shuffled, MAX_EDITS), None);
        let found = align_keys((&old, &zero), (&shuffled, &zero));
        assert!(found.iter().all(|step| matches!(step, Paired(..) | Moved(..))));
        assert_eq!(found.len(), old.len());
    }
}
