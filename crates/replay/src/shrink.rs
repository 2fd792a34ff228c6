//! Finds the fewest calls of a tape that still fail, by delta debugging (Zeller's ddmin).
//!
//! The caller runs each candidate set and reports if it fails. Candidates are subsets of a set that failed, so the
//! result fails as well, and no single call can be removed from it.

/// State of the search.
#[derive(Debug)]
pub struct Shrinker {
    /// Smallest set known to fail.
    kept: Vec<usize>,
    /// Number of parts that the set is divided into.
    parts: usize,
    /// Part to leave out next.
    next: usize,
    tries: usize,
}

impl Shrinker {
    /// Starts with all calls, which together must fail.
    #[must_use]
    pub fn new(calls: usize) -> Self {
        Self { kept: (0..calls).collect(), parts: 2, next: 0, tries: 0 }
    }

    /// Returns the smallest set known to fail.
    #[must_use]
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// Returns the number of candidates tried.
    #[must_use]
    pub fn tries(&self) -> usize {
        self.tries
    }

    /// Returns the calls to try next: all but one part. Returns `None` when no call can be removed.
    #[must_use]
    pub fn candidate(&self) -> Option<Vec<usize>> {
        if self.kept.len() < 2 {
            return None;
        }
        let gone = self.part(self.next)?;
        let (before, rest) = self.kept.split_at(gone.start);
        Some([before, rest.get(gone.len()..).unwrap_or_default()].concat())
    }

    /// Reports the outcome of the current candidate.
    pub fn tried(&mut self, failed: bool) {
        self.tries += 1;
        let Some(candidate) = self.candidate() else { return };
        if failed {
            self.kept = candidate;
            // The next part has moved into the place of the removed one.
            self.parts = self.parts.saturating_sub(1).max(2).min(self.kept.len().max(2));
            if self.next >= self.parts {
                self.next = 0;
            }
            return;
        }
        self.next += 1;
        if self.next >= self.parts && self.parts < self.kept.len() {
            self.parts = (self.parts * 2).min(self.kept.len());
            self.next = 0;
        }
    }

    /// Returns the index range of a part.
    fn part(&self, number: usize) -> Option<std::ops::Range<usize>> {
        let (length, parts) = (self.kept.len(), self.parts.min(self.kept.len()));
        (number < parts).then(|| number * length / parts..(number + 1) * length / parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shrunk(calls: usize, fails: impl Fn(&[usize]) -> bool) -> (Vec<usize>, usize) {
        let mut shrinker = Shrinker::new(calls);
        while let Some(candidate) = shrinker.candidate() {
            shrinker.tried(fails(&candidate));
            assert!(shrinker.tries() < 10_000, "it ends");
        }
        (shrinker.kept().to_vec(), shrinker.tries())
    }

    #[test]
    fn two_calls_of_two_hundred_are_found_in_a_few_dozen_tries() {
        let (kept, tries) = shrunk(200, |calls| calls.contains(&17) && calls.contains(&180));
        assert_eq!(kept, [17, 180]);
        assert!(tries < 80, "{tries}");
    }

    #[test]
    fn nothing_of_the_result_can_be_left_out() {
        for needed in [vec![0], vec![99], vec![3, 4, 5], vec![0, 50, 99], (0..100).collect()] {
            let (kept, _) = shrunk(100, |calls| needed.iter().all(|call| calls.contains(call)));
            assert_eq!(kept, needed);
        }
    }

    #[test]
    fn alternatives_shrink_to_one_of_them() {
        let (kept, _) = shrunk(64, |calls| calls.contains(&9) || calls.contains(&40));
        assert_eq!(kept.len(), 1);
    }
}
