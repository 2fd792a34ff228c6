//! Finds credentials in a text.

use crate::keywords::Keywords;
use crate::percent::{self, Escapes};
use crate::rule::{BUILT_IN, BadRules, Rule};
use crate::{base64_text, checks, hidden};
use regex_automata::Input;
use std::ops::ControlFlow;
use std::sync::LazyLock;

/// Maximum length of a text that is scanned, in bytes.
pub const MAX_TEXT: usize = 64 << 20;
/// Maximum number of credentials that are reported per text.
pub const MAX_FOUND: usize = 16_384;
/// Number of bytes that patterns may examine, per byte of a text and as a minimum per text.
const WORK_PER_BYTE: usize = 32;
const WORK: usize = 1 << 20;
/// Maximum length of a credential that is recognized by its prefix alone, in bytes.
const LONGEST_TAIL: usize = 1024;

/// Compiled set of all rules.
#[derive(Debug)]
pub struct Scanner {
    keywords: Keywords,
    rules: Vec<Rule>,
}

/// A credential in a text.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CredentialMatch<'a> {
    /// Offset of its first byte.
    pub start: usize,
    /// Offset after its last byte.
    pub end: usize,
    /// Id of the rule that found it.
    pub kind: &'a str,
}

/// Credentials of a text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings<'a> {
    /// Credentials in order, without overlaps.
    pub found: Vec<CredentialMatch<'a>>,
    /// True if there may be more, because the text was too long or a bound was reached.
    pub more: bool,
}

/// Findings of a search so far, and its remaining budget.
struct Search<'a> {
    found: Vec<CredentialMatch<'a>>,
    /// Number of bytes that patterns may still examine.
    work: usize,
    more: bool,
}

static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the rules are part of the program, and a test reads and compiles each")]
    Scanner::new(BUILT_IN).expect("the built-in rules can be read")
});

impl Scanner {
    /// Returns the scanner of the built-in rules. The first call parses them.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &SCANNER
    }

    /// Creates a scanner with the rules of these files.
    ///
    /// # Errors
    /// Fails if a file is not a list of valid rules.
    pub fn new(files: &[&str]) -> Result<Self, BadRules> {
        let mut rules = Vec::new();
        for file in files {
            rules.extend(Rule::read(file)?);
        }
        Ok(Self { keywords: Keywords::new(&rules)?, rules })
    }

    /// Returns the rules of the scanner.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Compiles every pattern at once instead of on first use.
    ///
    /// # Errors
    /// Fails if a pattern is not a regular expression.
    pub fn compile_all(&self) -> Result<(), BadRules> {
        self.rules.iter().try_for_each(|rule| rule.compile().map(drop))
    }

    /// Returns false if the text certainly holds no credential. This check is fast; only texts that pass it need
    /// [`Self::find`].
    #[must_use]
    pub fn may_hold(&self, text: &[u8]) -> bool {
        let mut keyword = false;
        let possible = self.keywords.each(text, |hit| {
            keyword = true;
            match self.rules.get(usize::from(hit.rule)).is_some_and(|rule| rule.is_possible(text, hit.from, hit.to)) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        if possible.is_break() {
            return true;
        }
        match percent::escapes(text) {
            Escapes::Hiding => return true,
            Escapes::Usual if keyword => return true,
            _ => {}
        }
        let holds = |bytes: &[u8]| self.keywords.has_any(bytes);
        if hidden::reveal(text).is_some_and(|revealed| holds(&revealed.bytes)) {
            return true;
        }
        base64_text::runs(text)
            .any(|run| holds(&run.bytes) || base64_text::runs(&run.bytes).any(|inner| holds(&inner.bytes)))
    }

    /// Returns all credentials of a text.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Findings<'_> {
        if text.len() > MAX_TEXT {
            return Findings { found: vec![], more: true };
        }
        let mut search =
            Search { found: vec![], work: text.len().saturating_mul(WORK_PER_BYTE).max(WORK), more: false };
        let hit = self.plain(text, &mut search, |_, _| true, |from, to| (from, to));
        let escapes = percent::escapes(text);
        if escapes == Escapes::Hiding || hit && escapes == Escapes::Usual {
            let decoded = percent::decode(text);
            // Windows without an escape were already searched in the text itself.
            let differs = |from: usize, to| decoded.differs(from.saturating_sub(1), to + 1);
            self.plain(&decoded.bytes, &mut search, differs, |from, to| (decoded.place(from), decoded.place(to)));
        }
        if let Some(revealed) = hidden::reveal(text) {
            let differs = |from: usize, to| revealed.differs(from, to);
            self.plain(&revealed.bytes, &mut search, differs, |from, to| (revealed.place(from), revealed.place(to)));
        }
        for run in base64_text::runs(text) {
            self.plain(&run.bytes, &mut search, |_, _| true, |from, to| run.place(from, to));
            for inner in base64_text::runs(&run.bytes) {
                let place = |from, to| {
                    let (from, to) = inner.place(from, to);
                    run.place(from, to)
                };
                self.plain(&inner.bytes, &mut search, |_, _| true, place);
            }
        }
        search.done()
    }

    /// Searches the windows of one decoding of the text for which `is_new` holds; `place` maps a range of this decoding
    /// to the original text. Returns true if there was any keyword.
    fn plain<'a>(
        &'a self,
        text: &[u8],
        search: &mut Search<'a>,
        is_new: impl Fn(usize, usize) -> bool,
        place: impl Fn(usize, usize) -> (usize, usize),
    ) -> bool {
        // Touching windows of one rule are merged, so that no rule examines a byte twice.
        let mut windows: Vec<(u16, usize, usize)> = Vec::new();
        let mut last: Vec<Option<usize>> = Vec::new();
        let mut keyword = false;
        // Checks of adjacent keywords examine the same bytes again. Once this budget is used up, every keyword counts
        // as possible.
        let mut checks = text.len().saturating_mul(WORK_PER_BYTE);
        let _ = self.keywords.each(text, |hit| {
            keyword = true;
            if last.is_empty() {
                last.resize(self.rules.len(), None);
            }
            if hit.telling {
                search.tail(self.rules.get(usize::from(hit.rule)), text, hit.from, hit.to, &place);
            }
            let index = usize::from(hit.rule);
            let (Some(rule), Some(last)) = (self.rules.get(index), last.get_mut(index)) else {
                return ControlFlow::Continue(());
            };
            let (start, end) = rule.window(hit.from, hit.to, text.len());
            if let Some(left) = checks.checked_sub(end - hit.from) {
                checks = left;
                if !rule.continues(text, hit.from, end) {
                    return ControlFlow::Continue(());
                }
            }
            match last.and_then(|at| windows.get_mut(at)) {
                Some(window) if window.2 >= start => window.2 = window.2.max(end),
                _ => {
                    *last = Some(windows.len());
                    windows.push((hit.rule, start, end));
                }
            }
            ControlFlow::Continue(())
        });
        for (index, start, end) in windows.iter().filter(|(_, start, end)| is_new(*start, *end)) {
            if let Some(rule) = self.rules.get(usize::from(*index)) {
                search.window(rule, text, *start, *end, &place);
            }
        }
        keyword
    }
}

impl<'a> Search<'a> {
    /// Reports the text after an issuer's prefix as a credential if it looks random, since issuers change lengths and
    /// alphabets.
    fn tail(
        &mut self,
        rule: Option<&'a Rule>,
        text: &[u8],
        from: usize,
        to: usize,
        place: impl Fn(usize, usize) -> (usize, usize),
    ) {
        let rest = text.get(to..).unwrap_or_default().iter().take(LONGEST_TAIL);
        let length = rest.take_while(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte)).count();
        let tail = text.get(to..to + length).unwrap_or_default();
        if let Some(rule) = rule.filter(|_| checks::is_tail(tail) && !checks::is_sample(tail)) {
            let (start, end) = place(from, to + length);
            self.found.push(CredentialMatch { start, end, kind: &rule.id });
        }
    }

    /// Runs the pattern of a rule over a part of the text.
    fn window(
        &mut self,
        rule: &'a Rule,
        text: &[u8],
        start: usize,
        end: usize,
        place: impl Fn(usize, usize) -> (usize, usize),
    ) {
        let part = text.get(start..end).unwrap_or_default();
        if !rule.has_needs(part) {
            return;
        }
        let Some(regex) = rule.regex() else { return };
        let Some(left) = self.work.checked_sub(part.len()) else {
            self.more = true;
            return;
        };
        self.work = left;
        let mut captures = regex.create_captures();
        let mut at = start;
        while at < end {
            regex.search_captures(&Input::new(text).span(at..end), &mut captures);
            let Some(secret) = captures.get_group_by_name("secret") else { return };
            // The text after the secret may belong to the next one.
            at = secret.end.max(at + 1);
            let bytes = text.get(secret.range()).unwrap_or_default();
            let name = captures.get_match().map_or(secret.start, |whole| whole.start());
            let random = rule.entropy.is_none_or(|least| checks::entropy(bytes) >= least);
            if !bytes.is_empty()
                && random
                && !checks::is_sample(bytes)
                && rule.check.is_none_or(|check| checks::passes(check, bytes, text, name))
            {
                let (start, end) = place(secret.start, secret.end);
                self.found.push(CredentialMatch { start, end, kind: &rule.id });
            }
            if self.found.len() > 4 * MAX_FOUND {
                self.more = true;
                return;
            }
        }
    }

    /// Sorts the findings, and merges overlapping ones into the first.
    fn done(mut self) -> Findings<'a> {
        self.found.sort_by_key(|found| (found.start, std::cmp::Reverse(found.end)));
        self.found.dedup_by(|next, kept| {
            let overlap = next.start < kept.end;
            if overlap {
                kept.end = kept.end.max(next.end);
            }
            overlap
        });
        self.more |= self.found.len() > MAX_FOUND;
        self.found.truncate(MAX_FOUND);
        Findings { found: self.found, more: self.more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up;

    #[test]
    fn what_cannot_be_seen_in_full_is_said() {
        let scanner = Scanner::built_in();
        assert!(scanner.find(&vec![b' '; MAX_TEXT + 1]).more);
        let many = "AKIAABCDEFGHIJKLMNOP ".repeat(MAX_FOUND + 1);
        let findings = scanner.find(many.as_bytes());
        assert!(findings.more);
        assert_eq!(findings.found.len(), MAX_FOUND);
        assert!(!scanner.find(many.as_bytes().get(21..).unwrap()).more);
    }

    #[test]
    fn no_pattern_looks_at_a_text_more_often_than_the_bound() {
        let words = Scanner::built_in().rules().iter().flat_map(|rule| &rule.keywords);
        let soup: String = words.flat_map(|word| [word.as_str(), "=0 "]).collect();
        // Windows of one rule become one, and beyond the bound no further pattern runs.
        let findings = Scanner::built_in().find(soup.repeat(12).as_bytes());
        assert!(findings.more, "so many rules at once are more than the bound allows");
        for piece in
            ["-----BEGIN PRIVATE KEY-----\n", "password=", "eyJaaaaaaaa.", "https://a:b", "Cookie: a=aaaaaaaaaa;"]
        {
            let _ = Scanner::built_in().find(piece.repeat(4_000).as_bytes());
        }
    }

    #[test]
    fn checks_of_what_follows_a_keyword_hide_no_credential() {
        let fast = Scanner::built_in();
        let whole = Scanner::new(BUILT_IN).unwrap();
        whole.rules.iter().for_each(Rule::skip_continuation);
        let example = |rule: &Rule, text: &String| made_up::example(text, &rule.id).text;
        let examples = || fast.rules.iter().flat_map(|rule| rule.examples.iter().map(move |text| example(rule, text)));
        let counters = fast.rules.iter().flat_map(|rule| rule.counter_examples.iter().cloned());
        let mut texts: Vec<String> = examples().chain(counters).collect();
        texts.extend(examples().map(|text| text.replace('=', " = ").replace(':', ": ")));
        texts.extend(examples().map(|text| text.replace('"', "\\\"")));
        texts.extend(examples().map(|text| text.to_uppercase()));
        let mut random = made_up::Random::new("continuations");
        for _ in 0..2_000 {
            let mut piece = || texts[random.below(texts.len())].clone();
            let text = [piece(), piece(), piece()].join([" ", "\n", "", "\", \"", ": "][random.below(5)]);
            texts.push(text);
        }
        // Where two rules find the same, either may be named.
        let places = |scanner: &Scanner, text: &str| {
            scanner.find(text.as_bytes()).found.iter().map(|found| (found.start, found.end)).collect::<Vec<_>>()
        };
        for text in &texts {
            assert_eq!(places(fast, text), places(&whole, text), "{text}");
        }
    }

    #[test]
    fn rules_that_make_no_sense_are_refused() {
        assert!(matches!(Scanner::new(&["rule = 1"]), Err(BadRules::Text(_))));
        let rule = |keyword: &str, pattern: &str| {
            format!("[[rule]]\nid = 'a'\nabout = 'b'\nsource = 'c'\nkeywords = ['{keyword}']\npattern = '{pattern}'\n")
        };
        assert_eq!(Scanner::new(&[&rule("ab", "x")]).unwrap_err(), BadRules::NoKeyword("a".to_owned()));
        assert!(Scanner::new(&[&rule("abc", "(")]).unwrap().compile_all().is_err());
        assert_eq!(Scanner::new(&[&rule("abc", "abc[0-9]{8}")]).unwrap().find(b"(abc12345678)").found.len(), 1);
    }
}
