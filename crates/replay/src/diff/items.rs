//! Pairs the items of two arrays.

use super::align::align;
use super::{Comparison, Digest, digest};
use serde_json::Value;
use std::collections::HashMap;

/// Maximum number of removed and added items for an alignment. Beyond it, items are compared index by index.
const MAX_EDITS: usize = 1000;
/// Maximum number of item pairs to compute the similarity for.
const MAX_LIKENESSES: usize = 40_000;
/// Minimum similarity, in thousandths, of two versions of an item.
const MIN_LIKENESS: u32 = 300;
/// Members that identify an item. They weigh [`NAMING_WEIGHT`] times as much as others.
const NAMING: [&str; 5] = ["id", "name", "uri", "uriTemplate", "key"];
const NAMING_WEIGHT: u32 = 3;

/// Step of a pairing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Pair of a recorded index and a new one.
    Both(usize, usize),
    /// Index of a recorded item without a counterpart.
    Old(usize),
    /// Index of a new item without a counterpart.
    New(usize),
}

type Items<'a> = (&'a [Value], &'a [Digest]);

pub(super) fn pair(by: &Comparison, old: Items<'_>, new: Items<'_>, unordered: bool) -> Vec<Step> {
    let pairing = Pairing { by, old: old.0, new: new.0, steps: Vec::new() };
    if unordered { pairing.unordered(old.1, new.1) } else { pairing.ordered(old.1, new.1) }
}

struct Pairing<'a> {
    by: &'a Comparison,
    old: &'a [Value],
    new: &'a [Value],
    steps: Vec<Step>,
}

impl Pairing<'_> {
    fn ordered(mut self, old: &[Digest], new: &[Digest]) -> Vec<Step> {
        let common = align(old, new, MAX_EDITS).unwrap_or_default();
        let (mut i, mut j) = (0, 0);
        for (to_i, to_j) in common.into_iter().chain([(old.len(), new.len())]) {
            let (old_gap, new_gap): (Vec<usize>, Vec<usize>) = ((i..to_i).collect(), (j..to_j).collect());
            self.gap(&old_gap, &new_gap);
            if to_i < old.len() {
                self.steps.push(Step::Both(to_i, to_j));
            }
            (i, j) = (to_i + 1, to_j + 1);
        }
        self.steps
    }

    fn unordered(mut self, old: &[Digest], new: &[Digest]) -> Vec<Step> {
        let mut free: HashMap<Digest, Vec<usize>> = HashMap::new();
        for (j, digest) in new.iter().enumerate().rev() {
            free.entry(*digest).or_default().push(j);
        }
        let mut old_left = Vec::new();
        for (i, digest) in old.iter().enumerate() {
            match free.get_mut(digest).and_then(Vec::pop) {
                Some(j) => self.steps.push(Step::Both(i, j)),
                None => old_left.push(i),
            }
        }
        let mut new_left: Vec<usize> = free.into_values().flatten().collect();
        new_left.sort_unstable();
        if old_left.len().saturating_mul(new_left.len()) <= MAX_LIKENESSES {
            let (members_old, members_new) = (self.members(self.old, &old_left), self.members(self.new, &new_left));
            let mut taken = vec![false; new_left.len()];
            old_left = (0..old_left.len())
                .filter_map(|at| {
                    let i = old_left[at];
                    let likeness = |k: usize| self.likeness(i, new_left[k], &members_old[at], &members_new[k]);
                    let free = (0..new_left.len()).filter(|k| !taken[*k]);
                    let best =
                        free.map(|k| (likeness(k), std::cmp::Reverse(k))).max().filter(|best| best.0 >= MIN_LIKENESS);
                    let Some((_, std::cmp::Reverse(k))) = best else { return Some(i) };
                    taken[k] = true;
                    self.steps.push(Step::Both(i, new_left[k]));
                    None
                })
                .collect();
            new_left = new_left.iter().zip(taken).filter(|(_, taken)| !taken).map(|(j, _)| *j).collect();
        }
        self.by_position(&old_left, &new_left);
        self.steps
    }

    /// Pairs the changed items between two unchanged ones. Similar items come first, chosen for the greatest total
    /// similarity in order.
    fn gap(&mut self, old: &[usize], new: &[usize]) {
        let small = old.len().saturating_mul(new.len()) <= MAX_LIKENESSES;
        let alike = if small && old.len().max(new.len()) > 1 { self.most_alike(old, new) } else { Vec::new() };
        let (mut a, mut b) = (0, 0);
        for (to_a, to_b) in alike {
            self.by_position(&old[a..to_a], &new[b..to_b]);
            self.steps.push(Step::Both(old[to_a], new[to_b]));
            (a, b) = (to_a + 1, to_b + 1);
        }
        self.by_position(&old[a..], &new[b..]);
    }

    fn by_position(&mut self, old: &[usize], new: &[usize]) {
        let both = old.len().min(new.len());
        self.steps.extend(old.iter().zip(new).map(|(i, j)| Step::Both(*i, *j)));
        self.steps.extend(old[both..].iter().map(|i| Step::Old(*i)));
        self.steps.extend(new[both..].iter().map(|j| Step::New(*j)));
    }

    /// Returns the pairs with the greatest total similarity, as positions in both lists.
    fn most_alike(&self, old: &[usize], new: &[usize]) -> Vec<(usize, usize)> {
        let (members_old, members_new) = (self.members(self.old, old), self.members(self.new, new));
        let width = new.len() + 1;
        let mut best = vec![0_u32; (old.len() + 1) * width];
        let mut likeness = vec![0_u32; old.len() * new.len()];
        for a in (0..old.len()).rev() {
            for b in (0..new.len()).rev() {
                let found = self.likeness(old[a], new[b], &members_old[a], &members_new[b]);
                let found = if found >= MIN_LIKENESS { found } else { 0 };
                likeness[a * new.len() + b] = found;
                let paired = best[(a + 1) * width + b + 1] + found;
                best[a * width + b] = paired.max(best[(a + 1) * width + b]).max(best[a * width + b + 1]);
            }
        }
        let (mut a, mut b, mut pairs) = (0, 0, Vec::new());
        while a < old.len() && b < new.len() {
            let here = best[a * width + b];
            let found = likeness[a * new.len() + b];
            if found > 0 && here == best[(a + 1) * width + b + 1] + found {
                pairs.push((a, b));
                (a, b) = (a + 1, b + 1);
            } else if here == best[(a + 1) * width + b] {
                a += 1;
            } else {
                b += 1;
            }
        }
        pairs
    }

    /// Returns the digests of the items' members.
    fn members<'v>(&self, all: &'v [Value], of: &[usize]) -> Vec<HashMap<&'v str, Digest>> {
        let digest = |value: &Value| digest::of_part(self.by, &[], 0, value);
        let members = |index: &usize| all.get(*index).and_then(Value::as_object).into_iter().flatten();
        of.iter().map(|index| members(index).map(|(name, value)| (name.as_str(), digest(value))).collect()).collect()
    }

    /// Returns the similarity of two items in thousandths.
    fn likeness(
        &self,
        i: usize,
        j: usize,
        old_members: &HashMap<&str, Digest>,
        new_members: &HashMap<&str, Digest>,
    ) -> u32 {
        let same_number = |one: &Value, other: &Value| match (one, other) {
            (Value::Number(one), Value::Number(other)) => self.by.same_number(one, other),
            _ => false,
        };
        match (&self.old[i], &self.new[j]) {
            (Value::Object(old), Value::Object(new)) => {
                let weight = |name: &str| if NAMING.contains(&name) { NAMING_WEIGHT } else { 1 };
                let total = |all: &serde_json::Map<String, Value>| all.keys().map(|name| weight(name)).sum::<u32>();
                let same = |name: &&String| {
                    let equal = old_members.get(name.as_str()) == new_members.get(name.as_str());
                    new.get(*name).is_some_and(|value| equal || same_number(&old[*name], value))
                };
                let equal: u32 = old.keys().filter(same).map(|name| weight(name)).sum();
                equal * 1000 / total(old).max(total(new)).max(1)
            }
            (one, other) if same_number(one, other) => 1000,
            _ => 0,
        }
    }
}
