//! One search for the keywords of all rules.

use super::BadInstructionRules;
use super::rule::InstructionRule;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of bytes before a keyword in which a match may begin.
const BEFORE: usize = 160;
/// Number of bytes behind the start of a keyword in which a match may end.
const AFTER: usize = 320;

/// Part of a text in which the pattern of a rule is tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RuleWindow {
    /// Index of the rule.
    pub(super) rule: usize,
    pub(super) range: Range<usize>,
}

/// Windows of one text, and the ciphers that its keywords suggest.
#[derive(Debug, Default)]
pub(super) struct KeywordHits {
    /// Windows by rule; those of a rule are in order and do not overlap.
    pub(super) windows: Vec<RuleWindow>,
    /// Number of letters by which a keyword of the text is shifted, if one is.
    pub(super) rotated: Option<u8>,
    /// True if a keyword stands in the text backwards.
    pub(super) reversed: bool,
    /// True if a keyword is spelled with digits.
    pub(super) leet: bool,
}

/// Compiled index of keywords.
#[derive(Debug)]
pub(super) struct KeywordSearch {
    index: AhoCorasick,
    meanings: Vec<Vec<Meaning>>,
}

/// Rules that a keyword is evidence of.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Meaning {
    Rule(usize),
    Rotated(u8),
    Reversed,
    Leet,
}

/// Words of orders that hardly occur by chance in a cipher.
const TELLING: &[&str] = &[
    "ignore",
    "disregard",
    "previous",
    "instruction",
    "system prompt",
    "assistant",
    "password",
    "secret",
    "credential",
    "do not tell",
    "override",
    "api key",
    "forward",
    "message",
    "delete all",
    "you must",
];

impl KeywordSearch {
    pub(super) fn new(rules: &[InstructionRule]) -> Result<Self, BadInstructionRules> {
        let mut words: BTreeMap<String, Vec<Meaning>> = BTreeMap::new();
        for (index, rule) in rules.iter().enumerate() {
            for spelling in rule.keywords.iter().flat_map(|word| spellings(word)) {
                words.entry(spelling).or_default().push(Meaning::Rule(index));
            }
        }
        for word in TELLING {
            for shift in 1..26 {
                words.entry(super::spelling::rotate(word, shift)).or_default().push(Meaning::Rotated(shift));
            }
            words.entry(word.chars().rev().collect()).or_default().push(Meaning::Reversed);
            for spelling in super::spelling::leet_spellings(word) {
                words.entry(spelling).or_default().push(Meaning::Leet);
            }
        }
        let builder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words.keys());
        let index = builder.map_err(|error| BadInstructionRules::Keywords(error.to_string()))?;
        Ok(Self { index, meanings: words.into_values().collect() })
    }

    /// Searches a text once for the keywords of the active rules.
    pub(super) fn search(&self, text: &str, active: &[bool]) -> KeywordHits {
        let mut hits = KeywordHits::default();
        let mut windows = WindowList::new(active.len(), text.len());
        for found in self.index.find_overlapping_iter(text) {
            for meaning in self.meanings.get(found.pattern().as_usize()).into_iter().flatten() {
                match meaning {
                    Meaning::Rotated(shift) => hits.rotated = Some(*shift),
                    Meaning::Reversed => hits.reversed = true,
                    Meaning::Leet => hits.leet = true,
                    Meaning::Rule(rule) if active.get(*rule) == Some(&true) => windows.add(*rule, found.start()),
                    Meaning::Rule(_) => {}
                }
            }
        }
        hits.windows = windows.finish();
        hits
    }
}

/// Windows of all rules, as they are found.
struct WindowList {
    windows: Vec<RuleWindow>,
    /// Index behind the last window of each rule, zero for a rule without one.
    last: Vec<u32>,
    /// Length of the text.
    length: usize,
}

impl WindowList {
    fn new(rules: usize, length: usize) -> Self {
        Self { windows: Vec::new(), last: vec![0; rules], length }
    }

    /// Adds the surroundings of a keyword, and joins them with the last window of the rule if they overlap.
    fn add(&mut self, rule: usize, at: usize) {
        let Some(last) = self.last.get_mut(rule) else { return };
        let (start, end) = (at.saturating_sub(BEFORE), at.saturating_add(AFTER).min(self.length));
        let known = last.checked_sub(1).and_then(|index| self.windows.get_mut(index as usize));
        match known.filter(|window| window.range.end >= start) {
            Some(window) => window.range.end = window.range.end.max(end),
            None => {
                self.windows.push(RuleWindow { rule, range: start..end });
                *last = u32::try_from(self.windows.len()).unwrap_or(0);
            }
        }
    }

    fn finish(mut self) -> Vec<RuleWindow> {
        // Stable, so that the windows of a rule stay in order.
        self.windows.sort_by_key(|window| window.rule);
        self.windows
    }
}

/// Returns the forms in which a keyword is searched for: beyond ASCII, case matters to the index.
fn spellings(word: &str) -> Vec<String> {
    let lower = word.to_lowercase();
    if lower.is_ascii() {
        return vec![lower];
    }
    let mut letters = lower.chars();
    let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    let mut all = vec![capital, lower.to_uppercase(), lower];
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_a_rule_that_overlap_are_one() {
        let mut windows = WindowList::new(2, 5100);
        for (rule, at) in [(1, 0), (0, 50), (1, 100), (1, 5000)] {
            windows.add(rule, at);
        }
        let window = |rule, range| RuleWindow { rule, range };
        assert_eq!(windows.finish(), [window(0, 0..370), window(1, 0..420), window(1, 4840..5100)]);
    }

    #[test]
    fn keywords_beyond_ascii_are_found_in_any_case() {
        assert_eq!(spellings("Игнор"), ["ИГНОР", "Игнор", "игнор"]);
        assert_eq!(spellings("IGNORE"), ["ignore"]);
    }
}
