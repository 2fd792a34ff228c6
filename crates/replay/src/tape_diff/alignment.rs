//! Aligns the calls of two tapes.

use super::tape_index::Call;
use crate::MatchKey;
use crate::diff::align;
use std::collections::{HashMap, VecDeque};

/// Maximum number of removed and added calls for a minimal alignment. Beyond it, equal calls are paired by their rank.
const MAX_EDITS: usize = 2000;

/// Relation of a call to the other tape, as indices into the old and the new calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AlignmentStep {
    /// Equal calls in the same order.
    Paired(usize, usize),
    /// Equal calls in a different order.
    Moved(usize, usize),
    /// Calls of the same tool between the same neighbours.
    Rewritten(usize, usize),
    Removed(usize),
    Added(usize),
}

/// Aligns the calls of two tapes, in the order of the old one.
pub(super) fn align(old: &[Call], new: &[Call]) -> Vec<AlignmentStep> {
    let keys = |calls: &[Call]| calls.iter().map(|call| call.key).collect::<Vec<_>>();
    let names = |calls: &[Call]| calls.iter().map(|call| call.name).collect::<Vec<_>>();
    align_keys((&keys(old), &names(old)), (&keys(new), &names(new)))
}

/// Key for matching calls, if the call has one.
type Key = Option<MatchKey>;

fn align_keys(old: (&[Key], &[u32]), new: (&[Key], &[u32])) -> Vec<AlignmentStep> {
    let in_order = align::align(old.0, new.0, MAX_EDITS).unwrap_or_else(|| increasing(&by_count(old.0, new.0)));
    let old_gaps = gaps(old.0.len(), in_order.iter().map(|pair| pair.0));
    let new_gaps = gaps(new.0.len(), in_order.iter().map(|pair| pair.1));
    // Sort key: gap, then old calls, new calls, and the pair that ends the gap.
    let mut all: Vec<((usize, u8, usize), AlignmentStep)> = Vec::with_capacity(old.0.len());
    all.extend(in_order.iter().enumerate().map(|(gap, &(i, j))| ((gap, 2, 0), AlignmentStep::Paired(i, j))));

    let moved = pair_up(&old_gaps, &new_gaps, |i| old.0.get(i).copied(), |j| new.0.get(j).copied());
    all.extend(moved.pairs.iter().map(|&(gap, i, j)| ((gap, 0, i), AlignmentStep::Moved(i, j))));
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
    all.extend(rewritten.pairs.iter().map(|&(gap, i, j)| ((gap, 0, i), AlignmentStep::Rewritten(i, j))));
    all.extend(rewritten.old.iter().map(|&(gap, i)| ((gap, 0, i), AlignmentStep::Removed(i))));
    all.extend(rewritten.new.iter().map(|&(gap, j)| ((gap, 1, j), AlignmentStep::Added(j))));
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, step)| step).collect()
}

/// Returns the unpaired indices, each with the number of pairs before it.
fn gaps(length: usize, paired: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut left = Vec::new();
    let mut next = 0;
    for (gap, place) in paired.chain([length]).enumerate() {
        left.extend((next..place).map(|place| (gap, place)));
        next = place + 1;
    }
    left
}

struct PairedItems {
    /// Old gap, old index and new index of each pair.
    pairs: Vec<(usize, usize, usize)>,
    old: Vec<(usize, usize)>,
    new: Vec<(usize, usize)>,
}

/// Pairs the k-th old with the k-th new item of each key.
fn pair_up<K: std::hash::Hash + Eq>(
    old: &[(usize, usize)],
    new: &[(usize, usize)],
    old_key: impl Fn(usize) -> Option<K>,
    new_key: impl Fn(usize) -> Option<K>,
) -> PairedItems {
    let mut free: HashMap<Option<K>, VecDeque<(usize, usize)>> = HashMap::new();
    for &(gap, j) in new {
        free.entry(new_key(j)).or_default().push_back((gap, j));
    }
    let mut found = PairedItems { pairs: vec![], old: vec![], new: vec![] };
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

/// Returns the longest subsequence of these pairs that is increasing on both sides. The input is sorted by the old
/// side.
fn increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // `ends` has the pair with the smallest end for each length, `before` the predecessor of each pair.
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
    use super::AlignmentStep::{Added, Moved, Paired, Removed, Rewritten};
    use super::*;
    use crate::Paths;
    use serde_json::json;

    fn keys(text: &str) -> (Vec<Key>, Vec<u32>) {
        let key = |one: char| MatchKey::of(&json!({"method": one.to_string()}), &Paths::default());
        // Upper and lower case are calls of one tool.
        (text.chars().map(key).collect(), text.chars().map(|one| one.to_ascii_lowercase() as u32).collect())
    }

    fn aligned(old: &str, new: &str) -> Vec<AlignmentStep> {
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
