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

/// Windows of a text in which the pattern of a rule is tried.
#[derive(Debug)]
pub(super) struct RuleWindows {
    /// Index of the rule.
    pub(super) rule: usize,
    pub(super) windows: Vec<Range<usize>>,
}

/// Windows of one text, and the ciphers that its keywords suggest.
#[derive(Debug, Default)]
pub(super) struct KeywordHits {
    pub(super) rules: Vec<RuleWindows>,
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
        let mut windows: Vec<Vec<Range<usize>>> = Vec::new();
        windows.resize_with(active.len(), Vec::new);
        for found in self.index.find_overlapping_iter(text) {
            for meaning in self.meanings.get(found.pattern().as_usize()).into_iter().flatten() {
                match meaning {
                    Meaning::Rotated(shift) => hits.rotated = Some(*shift),
                    Meaning::Reversed => hits.reversed = true,
                    Meaning::Leet => hits.leet = true,
                    Meaning::Rule(rule) => {
                        if active.get(*rule) == Some(&true)
                            && let Some(windows) = windows.get_mut(*rule)
                        {
                            add_window(windows, found.start(), text.len());
                        }
                    }
                }
            }
        }
        let tried = windows.into_iter().enumerate().filter(|(_, windows)| !windows.is_empty());
        hits.rules = tried.map(|(rule, windows)| RuleWindows { rule, windows }).collect();
        hits
    }
}

/// Adds the surroundings of a keyword, and joins them with the last window if they overlap.
fn add_window(windows: &mut Vec<Range<usize>>, at: usize, length: usize) {
    let (start, end) = (at.saturating_sub(BEFORE), at.saturating_add(AFTER).min(length));
    match windows.last_mut().filter(|last| last.end >= start) {
        Some(last) => last.end = last.end.max(end),
        None => windows.push(start..end),
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
    fn windows_that_overlap_are_one() {
        let mut windows = Vec::new();
        for at in [0, 100, 5000] {
            add_window(&mut windows, at, 5100);
        }
        assert_eq!(windows, [0..420, 4840..5100]);
    }

    #[test]
    fn keywords_beyond_ascii_are_found_in_any_case() {
        assert_eq!(spellings("Игнор"), ["ИГНОР", "Игнор", "игнор"]);
        assert_eq!(spellings("IGNORE"), ["ignore"]);
    }
}
