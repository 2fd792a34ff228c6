//! Queries over several tapes: selects the tapes to search and merges their entries into one page.

use crate::limits::{DEFAULT_LIMIT, MAX_LIMIT};
use crate::tape_row::TapeRow;
use signalbox_engine::record::{EntryPage, Hit, Query, StoreError};

/// Selects the tapes that can match a query, and sorts them by the order of the page.
pub fn promising(mut tapes: Vec<TapeRow>, query: &Query) -> Result<Vec<TapeRow>, StoreError> {
    if query.after.is_some() && tapes.len() > 1 {
        return Err(StoreError::Query("name the tape: a position belongs to one tape".into()));
    }
    tapes.retain(|tape| {
        query.since.is_none_or(|since| tape.last_at >= since) && query.until.is_none_or(|until| tape.first_at < until)
    });
    if query.newest_first {
        tapes.sort_by_key(|tape| std::cmp::Reverse((tape.last_at, tape.number)));
    } else {
        tapes.sort_by_key(|tape| (tape.first_at, tape.number));
    }
    Ok(tapes)
}

/// Merges the hits of one tape after another into a page.
///
/// Entries of different tapes are ordered by time, and those of one tape by position, whatever its clock did: an entry
/// from after a backward step of the clock is ordered with its neighbour.
pub struct Merge {
    newest_first: bool,
    limit: usize,
    /// Hits with their effective time.
    hits: Vec<(u64, Hit)>,
    cut: bool,
}

impl Merge {
    /// Creates an empty merge with the query's limit and order.
    pub fn new(query: &Query) -> Self {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
        Self { newest_first: query.newest_first, limit, hits: Vec::new(), cut: false }
    }

    /// Returns the number of entries to find in each tape: one more than the page holds, which shows that there are
    /// more.
    pub fn room(&self) -> usize {
        self.limit + 1
    }

    /// Returns true if no entry of this tape, or of a later one, can precede the hits so far.
    pub fn is_enough(&self, tape: &TapeRow) -> bool {
        let last = self.hits.get(self.limit).map(|(time, _)| *time);
        let beyond = |last: u64| if self.newest_first { last > tape.last_at } else { last < tape.first_at };
        self.cut || last.is_some_and(beyond)
    }

    /// Adds the hits of a tape, in order. `cut` is true if their size ended the search early.
    pub fn add(&mut self, found: Vec<Hit>, cut: bool) {
        let mut before = None;
        for hit in found {
            let at = hit.entry.at;
            let time = before.map_or(at, |before: u64| if self.newest_first { before.min(at) } else { before.max(at) });
            before = Some(time);
            self.hits.push((time, hit));
        }
        let newest_first = self.newest_first;
        self.hits.sort_by(|(time, a), (other, b)| {
            let order = (time, &a.tape, a.entry.seq).cmp(&(other, &b.tape, b.entry.seq));
            if newest_first { order.reverse() } else { order }
        });
        self.cut = cut;
        if !cut {
            self.hits.truncate(self.limit + 1);
        }
    }

    /// Returns the finished page.
    pub fn page(mut self) -> EntryPage {
        let more = self.hits.len() > self.limit || self.cut;
        self.hits.truncate(self.limit);
        EntryPage { hits: self.hits.into_iter().map(|(_, hit)| hit).collect(), more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::record::{Content, Entry};

    fn found(tape: &str, times: &[u64], newest_first: bool) -> Vec<Hit> {
        let hit = |(place, at): (usize, &u64)| Hit {
            tape: tape.to_owned(),
            entry: Entry::new(place as u64 + 1, *at, "local".into(), Content::SessionEnded),
        };
        let mut hits: Vec<Hit> = times.iter().enumerate().map(hit).collect();
        if newest_first {
            hits.reverse();
        }
        hits
    }

    fn merged(newest_first: bool, limit: usize) -> String {
        let mut merge = Merge::new(&Query { newest_first, limit: Some(limit), ..Query::default() });
        for (tape, times) in [("a", &[100, 10, 120][..]), ("b", &[50, 105]), ("c", &[20, 110])] {
            merge.add(found(tape, times, newest_first), false);
        }
        let hits = merge.page().hits;
        hits.iter().map(|hit| format!("{}{}", hit.tape, hit.entry.seq)).collect::<Vec<_>>().join(" ")
    }

    // No order by time alone has a1 before a2, a2 before b1 and b1 before a1.
    #[test]
    fn a_clock_that_went_backwards_does_not_turn_its_tape_around() {
        assert_eq!(merged(false, 10), "c1 b1 a1 a2 b2 c2 a3");
        assert_eq!(merged(true, 10), "a3 c2 b2 b1 c1 a2 a1");
    }

    #[test]
    fn a_page_is_the_beginning_of_all_there_is() {
        for newest_first in [false, true] {
            for limit in 1..=7 {
                let all = merged(newest_first, 10);
                assert_eq!(merged(newest_first, limit), all[..3 * limit - 1], "{newest_first} {limit}");
            }
        }
    }
}
