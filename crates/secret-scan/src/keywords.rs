//! Searches for the keywords of all rules in one pass.

use crate::keyword_index::KeywordIndex;
use crate::pair_filter::PairFilter;
use crate::rule::{BadRules, Rule};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Number of bytes after the prefix of a credential that must belong to it for the rule to be tried.
const TAIL: usize = 8;

#[derive(Debug)]
pub(crate) struct Keywords {
    filter: PairFilter,
    index: KeywordIndex,
    /// Rules of each keyword.
    entries: Vec<Vec<Entry>>,
}

/// A keyword of a rule.
#[derive(Clone, Debug)]
struct Entry {
    rule: u16,
    /// Exact spelling; `None` if case does not matter.
    exactly: Option<Box<[u8]>>,
    /// True if the credential begins with it.
    first: bool,
    /// True if it identifies the issuer of the credential by itself.
    telling: bool,
}

/// A keyword found in a text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Hit {
    /// Index of the rule to try.
    pub(crate) rule: u16,
    /// Offset of the keyword.
    pub(crate) from: usize,
    /// Offset after the keyword.
    pub(crate) to: usize,
    /// True if it begins a credential and identifies its issuer.
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
        if words.len() > usize::from(u16::MAX) {
            return Err(BadRules::Keywords(format!("there are {}", words.len())));
        }
        let spelled: Vec<Vec<Vec<u8>>> = words.iter().map(|(word, entries)| spellings(word, entries)).collect();
        let (filter, index) = (PairFilter::new(&spelled), KeywordIndex::new(words.keys().map(String::as_str)));
        Ok(Self { filter, index, entries: words.into_values().collect() })
    }

    /// Calls `found` for every keyword whose rule should be tried, in the order of their positions, until it breaks.
    #[inline]
    pub(crate) fn each(&self, text: &[u8], mut found: impl FnMut(Hit) -> ControlFlow<()>) -> ControlFlow<()> {
        self.filter.each(text, |from| {
            self.index.at(text, from, |word, length| {
                self.entries_of(text, word, from, from + length).try_for_each(&mut found)
            })
        })
    }

    /// Returns true if the text has a keyword whose rule should be tried.
    pub(crate) fn has_any(&self, text: &[u8]) -> bool {
        self.each(text, |_| ControlFlow::Break(())).is_break()
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

/// Returns the bytes allowed at each position of a keyword: both cases, unless every entry has an exact spelling.
fn spellings(word: &str, entries: &[Entry]) -> Vec<Vec<u8>> {
    let exact: Option<Vec<&[u8]>> = entries.iter().map(|entry| entry.exactly.as_deref()).collect();
    let of_place = |(place, byte): (usize, &u8)| {
        let mut bytes: Vec<u8> = match &exact {
            Some(written) => written.iter().filter_map(|word| word.get(place).copied()).collect(),
            None => vec![byte.to_ascii_lowercase(), byte.to_ascii_uppercase()],
        };
        bytes.sort_unstable();
        bytes.dedup();
        bytes
    };
    word.as_bytes().iter().enumerate().map(of_place).collect()
}

impl Entry {
    /// Returns true if a keyword found without regard to case is this one, at a position where a credential may begin.
    fn fits(&self, text: &[u8], from: usize, to: usize) -> bool {
        if self.exactly.as_deref().is_some_and(|word| text.get(from..to) != Some(word)) {
            return false;
        }
        !self.first || begins_word(text, from) && has_tail(text, to)
    }
}

/// Returns true if no word continues across this position. The letter of a preceding escape like `\n` or `%XX` does not
/// count.
fn begins_word(text: &[u8], at: usize) -> bool {
    let before = |count: usize| at.checked_sub(count).and_then(|at| text.get(at)).copied().unwrap_or(b' ');
    !before(1).is_ascii_alphanumeric() || before(2) == b'\\' || before(3) == b'%' || before(6) == b'\\'
}

/// Returns true if enough characters follow that may be part of a credential.
fn has_tail(text: &[u8], at: usize) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.+/=%:|~$\\".contains(byte);
    text.get(at..at + TAIL).is_some_and(|tail| tail.iter().all(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scanner;

    /// Every hit, looked for at each place by comparing.
    fn compared(keywords: &Keywords, words: &[String], text: &[u8]) -> Vec<(u16, usize, usize)> {
        let places = 0..text.len();
        let mut all = Vec::new();
        for (from, (index, word)) in places.flat_map(|from| words.iter().enumerate().map(move |word| (from, word))) {
            let to = from + word.len();
            if text.get(from..to).is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes())) {
                all.extend(keywords.entries_of(text, index, from, to).map(|hit| (hit.rule, hit.from, hit.to)));
            }
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn every_keyword_is_found_wherever_it_stands() {
        let rules = Scanner::built_in().rules();
        let keywords = Keywords::new(rules).unwrap();
        let mut words: Vec<String> =
            rules.iter().flat_map(|rule| &rule.keywords).map(|word| word.to_ascii_lowercase()).collect();
        words.sort();
        words.dedup();
        let spelled: Vec<&String> = rules.iter().flat_map(|rule| &rule.keywords).collect();
        let mut random = 0x9e37_79b9_u64;
        let mut next = |most: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % most
        };
        for _ in 0..40 {
            let mut text = String::new();
            for _ in 0..30 {
                let word = spelled[next(spelled.len())];
                text.push_str(&["", " ", "=", "a9", "the key of ", "é"][next(6)].repeat(next(3)));
                match next(4) {
                    0 => text.push_str(&word.to_ascii_uppercase()),
                    1 => text.extend(word.chars().skip(1)),
                    _ => text.push_str(word),
                }
                text.push_str(["", "abcdefgh12", "_"][next(3)]);
            }
            let mut found = Vec::new();
            let _ = keywords.each(text.as_bytes(), |hit| {
                found.push((hit.rule, hit.from, hit.to));
                ControlFlow::Continue(())
            });
            found.sort_unstable();
            assert_eq!(found, compared(&keywords, &words, text.as_bytes()), "{text}");
        }
    }
}
