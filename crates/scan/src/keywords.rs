//! All keywords of all rules, looked for in one pass.

use crate::rule::{BadRules, Rule};
use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind};
use std::collections::BTreeMap;

/// How many bytes behind the first letters of a credential must belong to it for the rule to be tried.
const TAIL: usize = 8;

#[derive(Debug)]
pub(crate) struct Keywords {
    search: DFA,
    /// Where every search begins.
    start: StateID,
    /// For every keyword, the rules that name it.
    entries: Vec<Vec<Entry>>,
}

/// A keyword of a rule.
#[derive(Clone, Debug)]
struct Entry {
    rule: u16,
    /// How it must be written; none where case does not matter.
    exactly: Option<Box<[u8]>>,
    /// The credential begins with it.
    first: bool,
    /// It says by itself whose credential follows.
    telling: bool,
}

/// A keyword in a text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Hit {
    /// The rule to try.
    pub(crate) rule: u16,
    /// Where the keyword begins.
    pub(crate) from: usize,
    /// Where it ends.
    pub(crate) to: usize,
    /// It begins a credential and says by itself whose.
    pub(crate) telling: bool,
}

impl Keywords {
    pub(crate) fn new(rules: &[Rule]) -> Result<Self, BadRules> {
        let mut words: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for (index, rule) in rules.iter().enumerate() {
            let index = u16::try_from(index).map_err(|error| BadRules::Keywords(error.to_string()))?;
            for word in &rule.keywords {
                let lower = word.to_ascii_lowercase();
                let exactly = (lower != *word).then(|| word.as_bytes().into());
                let entry =
                    Entry { rule: index, exactly, first: rule.begins_with(word), telling: rule.is_told_by(word) };
                words.entry(lower).or_default().push(entry);
            }
        }
        let bad = |error: &dyn std::fmt::Display| BadRules::Keywords(error.to_string());
        let search = DFA::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .prefilter(false)
            .build(words.keys())
            .map_err(|error| bad(&error))?;
        let start = search.start_state(Anchored::No).map_err(|error| bad(&error))?;
        Ok(Self { search, start, entries: words.into_values().collect() })
    }

    /// Every keyword of a text for which its rule should be tried.
    #[inline]
    pub(crate) fn hits<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Hit> + 'a {
        let mut ends = Ends { keywords: self, text, at: 0, state: self.start };
        std::iter::from_fn(move || ends.next()).flat_map(move |(state, end)| {
            let ending = (0..self.search.match_len(state)).map(move |index| self.search.match_pattern(state, index));
            ending.flat_map(move |word| {
                let start = end - self.search.pattern_len(word);
                self.entries_of(text, word.as_usize(), start, end)
            })
        })
    }

    fn entries_of<'a>(&'a self, text: &'a [u8], word: usize, from: usize, to: usize) -> impl Iterator<Item = Hit> + 'a {
        let entries = self.entries.get(word).map(Vec::as_slice).unwrap_or_default();
        let fitting = entries.iter().filter(move |entry| entry.fits(text, from, to));
        fitting.map(move |entry| {
            let telling = entry.telling && begins_word(text, from);
            Hit { rule: entry.rule, from, to, telling }
        })
    }
}

/// The places of a text at which keywords end.
struct Ends<'a> {
    keywords: &'a Keywords,
    text: &'a [u8],
    at: usize,
    state: StateID,
}

impl Ends<'_> {
    /// The next such place, with the state that knows which keywords end there. Hardly any text has none: words like
    /// `key` are common, and case is looked at later. So the loop is kept as short as it can be.
    #[inline]
    fn next(&mut self) -> Option<(StateID, usize)> {
        let search = &self.keywords.search;
        loop {
            let (state, end) = walk(search, self.state, self.text.get(self.at..)?)?;
            self.state = state;
            self.at += end;
            if search.is_match(state) {
                return Some((state, self.at));
            }
        }
    }
}

/// The next state that is not an ordinary one, and the place behind the byte that leads to it. Goes by pieces of a
/// fixed length, whose loop the compiler unrolls.
#[inline]
fn walk(search: &DFA, mut state: StateID, text: &[u8]) -> Option<(StateID, usize)> {
    const PIECE: usize = 8;
    let (pieces, rest) = text.as_chunks::<PIECE>();
    for (piece, bytes) in pieces.iter().enumerate() {
        for (place, byte) in bytes.iter().enumerate() {
            state = search.next_state(Anchored::No, state, *byte);
            if search.is_special(state) {
                return Some((state, piece * PIECE + place + 1));
            }
        }
    }
    for (place, byte) in rest.iter().enumerate() {
        state = search.next_state(Anchored::No, state, *byte);
        if search.is_special(state) {
            return Some((state, pieces.len() * PIECE + place + 1));
        }
    }
    None
}

impl Entry {
    /// True if a keyword found without regard to case is this one, in a place where a credential may begin.
    fn fits(&self, text: &[u8], from: usize, to: usize) -> bool {
        if self.exactly.as_deref().is_some_and(|word| text.get(from..to) != Some(word)) {
            return false;
        }
        !self.first || begins_word(text, from) && has_tail(text, to)
    }
}

/// True if no word goes on here: nothing of one stands before, but for the letter of an escape like `\n` or of a `%XX`.
fn begins_word(text: &[u8], at: usize) -> bool {
    let before = |count: usize| at.checked_sub(count).and_then(|at| text.get(at)).copied().unwrap_or(b' ');
    !before(1).is_ascii_alphanumeric() || before(2) == b'\\' || before(3) == b'%' || before(6) == b'\\'
}

/// True if something follows that is no space, quote or bracket.
fn has_tail(text: &[u8], at: usize) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.+/=%:|~$\\".contains(byte);
    text.get(at..at + TAIL).is_some_and(|tail| tail.iter().all(is_part))
}
