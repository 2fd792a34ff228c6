//! The part of a rule's pattern that starts at its keyword.
//!
//! Most keywords are ordinary words. An anchored search from the keyword fails within a few bytes if nothing like a
//! credential follows, so that the whole pattern runs only over windows in which it can match.

use crate::rule::{self, BadRules};
use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::Extractor;

#[derive(Debug)]
pub(crate) struct Continuation(Regex);

impl Continuation {
    /// Compiles the pattern from the rule file, or else the rule's own pattern if each of its matches begins with a
    /// keyword.
    pub(crate) fn new(stated: Option<&str>, pattern: &str, keywords: &[String]) -> Result<Option<Self>, BadRules> {
        let own = pattern.strip_prefix("<start>").unwrap_or(pattern);
        let from_keyword = match stated {
            Some(stated) => stated,
            None if begins_with_keyword(own, keywords) => own,
            None => return Ok(None),
        };
        rule::compile(&rule::expand(from_keyword)).map(|regex| Some(Self(regex)))
    }

    /// Returns false if no match has its keyword at `from`.
    pub(crate) fn follows(&self, text: &[u8], from: usize, end: usize) -> bool {
        self.0.is_match(Input::new(text).span(from..end).anchored(Anchored::Yes))
    }
}

/// Returns true if every match of this pattern begins with one of the keywords. Case is ignored, as it is for keywords
/// without capitals; a keyword with capitals makes the result false.
fn begins_with_keyword(pattern: &str, keywords: &[String]) -> bool {
    if keywords.iter().any(|word| word.bytes().any(|byte| byte.is_ascii_uppercase())) {
        return false;
    }
    // Literals of both cases would exceed the limit of the extractor.
    let plain = rule::expand(pattern).replace("(?i:", "(?:");
    let Ok(hir) = ParserBuilder::new().unicode(false).utf8(false).build().parse(&plain) else { return false };
    let literals = Extractor::new().extract(&hir);
    let begins = |literal: &[u8]| keywords.iter().any(|word| literal.to_ascii_lowercase().starts_with(word.as_bytes()));
    literals.literals().is_some_and(|all| !all.is_empty() && all.iter().all(|literal| begins(literal.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(pattern: &str, keywords: &[&str]) -> bool {
        begins_with_keyword(pattern, &keywords.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn patterns_that_begin_with_their_keywords_are_known() {
        assert!(begins("(?i:authorization)<is>(?<secret>[a-z]{20,})", &["authorization"]));
        assert!(begins("(?i:https?):(?<secret>.)", &["http"]));
        assert!(begins("(?i:box[_-]?secret|box_)<name>", &["boxsecret", "box_", "box-secret"]));
        assert!(!begins("(?i:box[_-]?secret|box_)<name>", &["boxsecret", "box_"]));
        assert!(!begins("(?i:(?:set-)?cookie):", &["cookie"]));
        assert!(!begins("[a-z]{0,9}token", &["token"]));
        assert!(!begins("KEY-[a-z]{9}", &["KEY-"]));
    }

    #[test]
    fn a_continuation_is_looked_for_at_the_keyword_only() {
        let keywords = ["token".to_owned()];
        let check = Continuation::new(None, "(?i:token)=(?<secret>[a-z]{4})", &keywords).unwrap().unwrap();
        let text = b"token token=abcd";
        assert!(!check.follows(text, 0, text.len()));
        assert!(check.follows(text, 6, text.len()));
        assert!(!check.follows(text, 6, 14));
    }
}
