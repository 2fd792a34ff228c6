//! Names of tools, searched for as words in texts.

use aho_corasick::{AhoCorasick, MatchKind};
use std::ops::Range;

/// Minimum length of a name that is searched for. Shorter ones are words of every text.
const MIN_NAME: usize = 4;
/// Maximum number of names; further ones are not searched for.
const MAX_NAMES: usize = 10_000;

/// Set of the names of tools.
#[derive(Clone, Debug, Default)]
pub struct NameSet {
    index: Option<AhoCorasick>,
}

impl NameSet {
    /// Creates a set. Names of fewer than four characters are left out.
    #[must_use]
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.into_iter().filter(|name| name.len() >= MIN_NAME).take(MAX_NAMES).collect();
        if names.is_empty() {
            return Self::default();
        }
        Self { index: AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(names).ok() }
    }

    /// Returns the places where a text names one of the tools as a word, in order.
    pub(super) fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let bytes = text.as_bytes();
        let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let matches = self.index.iter().flat_map(move |index| index.find_iter(text));
        matches.map(|found| found.range()).filter(move |range| {
            let before = range.start.checked_sub(1).and_then(|at| bytes.get(at));
            !is_part(before) && !is_part(bytes.get(range.end))
        })
    }
}

/// Returns true if a name is hardly a word of a language: `send_email`, `readFile`, `fs.read`.
pub(super) fn is_distinctive(name: &str) -> bool {
    let inner = name.get(1..).unwrap_or_default();
    inner.contains(['_', '-', '.', '/']) || name.contains(|first: char| first.is_ascii_digit()) || {
        let capitals = inner.bytes().filter(u8::is_ascii_uppercase).count();
        capitals > 0 && inner.bytes().any(|byte| byte.is_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_words() {
        let names = NameSet::new(["send_email", "get", "search"]);
        let found = |text: &str| names.find(text).map(|range| text[range].to_owned()).collect::<Vec<_>>();
        assert_eq!(found("use `send_email`, research, send_emails and get"), ["send_email"]);
        assert_eq!(found("search, then"), ["search"]);
        assert_eq!(NameSet::default().find("search").count(), 0);
    }

    #[test]
    fn words_of_a_language_are_not_distinctive() {
        assert!(["send_email", "readFile", "a-b", "web2"].iter().all(|name| is_distinctive(name)));
        assert!(!["search", "Search", "SEARCH", "_x"].iter().any(|name| is_distinctive(name)));
    }
}
