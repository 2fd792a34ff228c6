//! Finds the longest common subsequence of two lists with Myers' algorithm.

/// Maximum number of steps in one alignment.
const MAX_STEPS: usize = 200_000_000;

/// Returns the index pairs of a longest common subsequence, in order. Returns `None` if that takes more than
/// `max_edits` removals and additions. The cost grows with the square of that number.
#[must_use]
pub fn align<T: PartialEq>(old: &[T], new: &[T], max_edits: usize) -> Option<Vec<(usize, usize)>> {
    let head = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old_mid, new_mid) = (&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail]);
    let middle = if old_mid.is_empty() || new_mid.is_empty() {
        Vec::new()
    } else {
        Middle { old: old_mid, new: new_mid, trace: Vec::new() }.pairs(max_edits)?
    };
    let mut pairs: Vec<_> = (0..head).map(|at| (at, at)).collect();
    pairs.extend(middle.into_iter().map(|(one, other)| (one + head, other + head)));
    pairs.extend((0..tail).map(|at| (old.len() - tail + at, new.len() - tail + at)));
    Some(pairs)
}

/// Lists without their common prefix and suffix. Diagonal `k` has the points with `x - y == k`.
struct Middle<'a, T> {
    old: &'a [T],
    new: &'a [T],
    /// Frontier before each number of edits.
    trace: Vec<Frontier>,
}

/// Furthest `x` on each diagonal from `-reach` to `reach`.
#[derive(Clone)]
struct Frontier {
    reach: isize,
    furthest: Vec<u32>,
}

impl Frontier {
    fn at(&self, diagonal: isize) -> isize {
        let place = usize::try_from(diagonal + self.reach).ok();
        place.and_then(|place| self.furthest.get(place)).map_or(0, |&x| x as isize)
    }

    fn set(&mut self, diagonal: isize, x: isize) {
        let place = usize::try_from(diagonal + self.reach).ok();
        if let (Some(slot), Ok(x)) = (place.and_then(|place| self.furthest.get_mut(place)), u32::try_from(x)) {
            *slot = x;
        }
    }

    /// Returns a copy with room for one more diagonal on each side.
    fn wider(&self) -> Self {
        let furthest = std::iter::once(0).chain(self.furthest.iter().copied()).chain([0]).collect();
        Self { reach: self.reach + 1, furthest }
    }

    /// Returns `true` if diagonal `k` is reached from the one above, that is by an addition.
    fn comes_from_above(&self, k: isize, edits: isize) -> bool {
        k == -edits || (k != edits && self.at(k - 1) < self.at(k + 1))
    }
}

impl<T: PartialEq> Middle<'_, T> {
    fn pairs(mut self, max_edits: usize) -> Option<Vec<(usize, usize)>> {
        let (n, m) = (self.old.len() as isize, self.new.len() as isize);
        let mut steps = 0;
        let mut reached = Frontier { reach: 1, furthest: vec![0; 3] };
        for edits in 0..=max_edits.min(self.old.len() + self.new.len()) as isize {
            let before = reached.wider();
            reached = before.clone();
            for k in (-edits..=edits).step_by(2) {
                let start = if before.comes_from_above(k, edits) { before.at(k + 1) } else { before.at(k - 1) + 1 };
                let x = self.follow(if edits == 0 { 0 } else { start }, k);
                steps += 1 + usize::try_from(x - start).unwrap_or_default();
                reached.set(k, x);
                if x >= n && x - k >= m {
                    self.trace.push(before);
                    return Some(self.back());
                }
            }
            if steps > MAX_STEPS {
                return None;
            }
            self.trace.push(before);
        }
        None
    }

    fn follow(&self, mut x: isize, k: isize) -> isize {
        let element = |list: &'_ [T], at: isize| usize::try_from(at).ok().filter(|at| *at < list.len());
        while let (Some(one), Some(other)) = (element(self.old, x), element(self.new, x - k)) {
            if self.old[one] != self.new[other] {
                break;
            }
            x += 1;
        }
        x
    }

    /// Walks back from the end and collects the common elements.
    fn back(&self) -> Vec<(usize, usize)> {
        let (mut x, mut y) = (self.old.len() as isize, self.new.len() as isize);
        let mut pairs = Vec::new();
        for (edits, before) in self.trace.iter().enumerate().rev() {
            let edits = edits as isize;
            let k = x - y;
            let (from_x, from_y) = match edits {
                0 => (0, 0),
                _ if before.comes_from_above(k, edits) => (before.at(k + 1), before.at(k + 1) - k - 1),
                _ => (before.at(k - 1), before.at(k - 1) - k + 1),
            };
            while x > from_x && y > from_y {
                (x, y) = (x - 1, y - 1);
                pairs.extend(usize::try_from(x).ok().zip(usize::try_from(y).ok()));
            }
            (x, y) = (from_x, from_y);
        }
        pairs.reverse();
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The length of the longest common subsequence by the textbook table.
    fn longest(old: &[u8], new: &[u8]) -> usize {
        let mut table = vec![vec![0; new.len() + 1]; old.len() + 1];
        for (i, one) in old.iter().enumerate() {
            for (j, other) in new.iter().enumerate() {
                table[i + 1][j + 1] = if one == other { table[i][j] + 1 } else { table[i][j + 1].max(table[i + 1][j]) };
            }
        }
        table[old.len()][new.len()]
    }

    #[test]
    fn an_inserted_and_a_removed_element_leave_the_others_paired() {
        assert_eq!(align(b"abc", b"axbc", 10).unwrap(), [(0, 0), (1, 2), (2, 3)]);
        assert_eq!(align(b"abcd", b"bcx", 10).unwrap(), [(1, 0), (2, 1)]);
        assert_eq!(align(b"", b"ab", 0).unwrap(), []);
    }

    #[test]
    fn lists_that_differ_too_much_are_given_up() {
        assert_eq!(align(b"abcdef", b"uvwxyz", 11), None);
        assert_eq!(align(b"abcdef", b"uvwxyz", 12), Some(vec![]));
    }

    proptest! {
        #[test]
        fn as_much_as_possible_is_common(
            old in proptest::collection::vec(0_u8..4, 0..24),
            new in proptest::collection::vec(0_u8..4, 0..24),
        ) {
            let pairs = align(&old, &new, 100).unwrap();
            prop_assert!(pairs.iter().all(|&(one, other)| old[one] == new[other]));
            prop_assert!(pairs.is_sorted_by(|one, other| one.0 < other.0 && one.1 < other.1));
            prop_assert_eq!(pairs.len(), longest(&old, &new));
        }
    }
}
