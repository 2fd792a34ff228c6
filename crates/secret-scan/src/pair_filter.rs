//! Finds the positions of a text at which a keyword may begin, two bytes per step.
//!
//! A table states for every pair of bytes its possible positions in a keyword: first, second, third or fourth pair.
//! Keywords at odd offsets have other pairs than at even ones, and bits of their own. A shift-or over the pairs of the
//! text clears a bit of the last field when four consecutive pairs fit keywords of one bucket.

use std::ops::{ControlFlow, RangeInclusive};

/// Number of pairs of a keyword that are compared.
const LEVELS: usize = 4;
/// Number of bits per level: half for buckets at even offsets, half for odd ones.
const BITS: usize = 16;
/// Position of the first bit of the last level.
const LAST_LEVEL: usize = (LEVELS - 1) * BITS;
/// Number of groups of keywords. Only pairs of one group together make a candidate.
const BUCKETS: usize = BITS / 2;
/// Number of buckets for keywords of each length. Most keywords are long: these numbers make the fewest candidates in
/// prose.
const BUCKETS_BY_LENGTH: [(RangeInclusive<usize>, usize); 4] =
    [(0..=3, 1), (4..=4, 2), (5..=6, 2), (7..=usize::MAX, 3)];
/// Number of possible pairs of bytes.
const PAIRS: usize = 1 << 16;
/// Number of bytes that are processed between two checks for candidates.
const PIECE: usize = 8;

type Table = [u64; PAIRS];

/// States after each pair of a piece.
type States = [u64; PIECE / 2];

/// Set of the positions at which a keyword may begin.
pub(crate) struct PairFilter(Box<Table>);

impl std::fmt::Debug for PairFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PairFilter")
    }
}

impl PairFilter {
    /// Creates a filter. Each keyword is given as the bytes allowed at each of its positions.
    pub(crate) fn new(keywords: &[Vec<Vec<u8>>]) -> Self {
        let mut draft = Draft::new();
        for (bucket, words) in buckets(keywords).iter().enumerate() {
            for (word, level) in words.iter().flat_map(|word| (0..LEVELS).map(move |level| (word, level))) {
                let bit = 1u64 << (level * BITS + bucket);
                let at = |place: Option<usize>| place.and_then(|place| word.get(place)).map(Vec::as_slice);
                draft.allow(at(Some(level * 2)), at(Some(level * 2 + 1)), bit);
                draft.allow(at((level * 2).checked_sub(1)), at(Some(level * 2)), bit << BUCKETS);
            }
        }
        Self(draft.table())
    }

    /// Calls `found` with every position at which a keyword may begin, in order, until it breaks.
    #[inline]
    pub(crate) fn each(&self, text: &[u8], mut found: impl FnMut(usize) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut state = u64::MAX;
        let (pieces, rest) = text.as_chunks::<PIECE>();
        for (index, piece) in pieces.iter().enumerate() {
            let states = self.states(state, piece);
            if has_candidate(states) {
                tell(index * PIECE, states, &mut found)?;
            }
            [.., state] = states;
        }
        // A place is reported three pairs after it began, so zeros are appended to report those near the end.
        let mut ends = [[0; PIECE]; 2];
        ends.as_flattened_mut().iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        for (index, piece) in ends.iter().enumerate() {
            let states = self.states(state, piece);
            tell((pieces.len() + index) * PIECE, states, &mut found)?;
            [.., state] = states;
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn states(&self, state: u64, piece: &[u8; PIECE]) -> States {
        let pairs = u64::from_le_bytes(*piece);
        let first = self.step(state, pairs as u16);
        let second = self.step(first, (pairs >> 16) as u16);
        let third = self.step(second, (pairs >> 32) as u16);
        [first, second, third, self.step(third, (pairs >> 48) as u16)]
    }

    #[inline]
    fn step(&self, state: u64, pair: u16) -> u64 {
        // The index is always within the table; the compiler removes the check.
        (state << BITS) | self.0.get(usize::from(pair)).copied().unwrap_or_default()
    }
}

/// Divides keywords by length and first letters. Short ones match more texts, so few of them share a bucket.
fn buckets(keywords: &[Vec<Vec<u8>>]) -> Vec<Vec<&Vec<Vec<u8>>>> {
    let mut all = Vec::with_capacity(BUCKETS);
    for (lengths, count) in BUCKETS_BY_LENGTH {
        let mut words: Vec<_> = keywords.iter().filter(|word| lengths.contains(&word.len())).collect();
        words.sort();
        let size = words.len().div_ceil(count).max(1);
        all.extend(words.chunks(size).map(<[_]>::to_vec));
    }
    all
}

#[inline]
fn has_candidate([first, second, third, fourth]: States) -> bool {
    (first & second & third & fourth) >> LAST_LEVEL != u64::from(u16::MAX)
}

/// Reports the candidates whose fourth pair is in the piece that begins at `at`.
#[inline]
fn tell(at: usize, states: States, found: &mut impl FnMut(usize) -> ControlFlow<()>) -> ControlFlow<()> {
    let [first, second, third, fourth] = states.map(|state| !state >> LAST_LEVEL);
    // One byte for each position of the piece.
    let mut places = first | second << BITS | third << (2 * BITS) | fourth << (3 * BITS);
    while places != 0 {
        let place = places.trailing_zeros() as usize / BUCKETS;
        places &= !(0xff << (place * BUCKETS));
        if let Some(from) = (at + place).checked_sub((LEVELS - 1) * 2) {
            found(from)?;
        }
    }
    ControlFlow::Continue(())
}

/// Levels at which pairs are allowed, by the bytes of the pair that are given.
struct Draft {
    by_pair: Box<Table>,
    by_first: [u64; 256],
    by_second: [u64; 256],
    always: u64,
}

impl Draft {
    fn new() -> Self {
        // The table is built on the heap, because half a megabyte exceeds some stacks.
        let table: Result<Box<Table>, _> = vec![0; PAIRS].into_boxed_slice().try_into();
        let by_pair = table.unwrap_or_else(|_| Box::new([0; PAIRS]));
        Self { by_pair, by_first: [0; 256], by_second: [0; 256], always: 0 }
    }

    /// Allows pairs of these bytes at a level; `None` stands for every byte.
    fn allow(&mut self, first: Option<&[u8]>, second: Option<&[u8]>, bit: u64) {
        let note = |levels: Option<&mut u64>| levels.into_iter().for_each(|levels| *levels |= bit);
        match (first, second) {
            (None, None) => self.always |= bit,
            (Some(first), None) => first.iter().for_each(|byte| note(self.by_first.get_mut(usize::from(*byte)))),
            (None, Some(second)) => second.iter().for_each(|byte| note(self.by_second.get_mut(usize::from(*byte)))),
            (Some(first), Some(second)) => {
                for pair in first.iter().flat_map(|one| second.iter().map(move |other| [*one, *other])) {
                    note(self.by_pair.get_mut(usize::from(u16::from_le_bytes(pair))));
                }
            }
        }
    }

    /// Returns the table, in which a cleared bit allows the pair.
    fn table(mut self) -> Box<Table> {
        let of = |levels: &[u64; 256], byte: u8| levels.get(usize::from(byte)).copied().unwrap_or_default();
        for (index, levels) in self.by_pair.iter_mut().enumerate() {
            let [first, second, ..] = index.to_le_bytes();
            *levels = !(*levels | self.always | of(&self.by_first, first) | of(&self.by_second, second));
        }
        self.by_pair
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(keywords: &[&str], text: &str) -> Vec<usize> {
        let spelled: Vec<Vec<Vec<u8>>> =
            keywords.iter().map(|word| word.bytes().map(|byte| vec![byte]).collect()).collect();
        let mut places = Vec::new();
        let _ = PairFilter::new(&spelled).each(text.as_bytes(), |place| {
            places.push(place);
            ControlFlow::Continue(())
        });
        places
    }

    #[test]
    fn a_keyword_is_a_candidate_at_every_place_of_a_text_of_any_length() {
        for word in ["key", "pass", "token", "credentials_file"] {
            for (before, after) in (0..40).flat_map(|before| (0..20).map(move |after| (before, after))) {
                let text = format!("{}{word}{}", ".".repeat(before), ".".repeat(after));
                assert!(places(&["key", "pass", "token", "credentials_file"], &text).contains(&before), "{text}");
            }
        }
    }

    #[test]
    fn what_begins_like_no_keyword_is_no_candidate() {
        assert_eq!(places(&["key", "token"], &"nothing is here to be found, ".repeat(9)), []);
        assert_eq!(places(&["key"], "KEY"), []);
    }
}
