//! Wildcard matching of names. Every pattern in the program uses this matcher.
//!
//! Matching is case-sensitive, and no character is a separator: `*` also matches slashes and dots.

/// Wildcards of a pattern.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Wildcards {
    /// `*` matches any run of characters, and `?` any single character.
    StarAndQuestion,
    /// `*` matches any run of characters, and `?` only itself.
    Star,
}

/// Returns `true` if all of `text` matches the pattern. Takes time up to the product of both lengths.
#[must_use]
pub fn fits(pattern: &str, text: &str, wildcards: Wildcards) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // After a mismatch, the last star takes one more character. Earlier stars need not be tried again.
    let mut star: Option<(usize, usize)> = None;
    while let Some(&found) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                star = Some((p, t));
            }
            Some(b'?') if wildcards == Wildcards::StarAndQuestion => {
                p += 1;
                t = after(text, t);
            }
            Some(wanted) if *wanted == found => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((behind, from)) = star else { return false };
                let from = after(text, from);
                star = Some((behind, from));
                (p, t) = (behind, from);
            }
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|rest| *rest == b'*')
}

/// Returns the position of the character after the one at `at`.
fn after(text: &[u8], at: usize) -> usize {
    let continues = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    at + 1 + text.get(at + 1..).unwrap_or_default().iter().take_while(continues).count()
}

#[cfg(test)]
mod tests {
    use super::Wildcards::{Star, StarAndQuestion};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_star_is_any_run_and_a_question_mark_any_character() {
        for (pattern, text) in [
            ("", ""),
            ("x", "x"),
            ("*", ""),
            ("**", "x"),
            ("a**a", "aa"),
            ("*call", "tools/call"),
            ("tools/*", "tools/call"),
            ("read_*", "read_"),
            ("read_*", "read_file"),
            ("read_file", "read_file"),
            ("files__*", "files__read"),
            ("*delete*", "files__delete_all"),
            ("*_file", "a_file_file"),
            ("*.rs", "main.rs"),
            ("m*n.r?", "main.rs"),
            ("*a*b*", "xxaxxbxx"),
            ("*a*b*c", "xxaxxbxxbc"),
            ("a*b*c", "aXbYbZc"),
            ("a*b*c", "a-b-b-c"),
            ("?", "é"),
            ("?o", "ño"),
            ("f?les", "füles"),
            ("grün?", "grüne"),
            ("*?", "é"),
        ] {
            assert!(fits(pattern, text, StarAndQuestion), "{pattern} {text}");
            assert_eq!(fits(pattern, text, Star), !pattern.contains('?'), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "x"),
            ("?", ""),
            ("a", "A"),
            ("x", "xy"),
            ("[a]", "a"),
            ("a*b", "ac"),
            ("a*b", "abc"),
            ("a*b", "ab-"),
            ("*ab", "abc"),
            ("aa*aa", "aaa"),
            ("echo", "echos"),
            ("read_*", "write"),
            ("read_file", "read_files"),
            ("tools/*", "tool"),
            ("files__*", "file__read"),
            ("*.rs", "main.rsx"),
            ("*a*b*c", "xxaxxbxxb"),
            ("a*b*c", "a-b-b-d"),
            ("f?les", "fles"),
            ("*??", "é"),
        ] {
            assert!(!fits(pattern, text, StarAndQuestion), "{pattern} {text}");
            assert!(!fits(pattern, text, Star), "{pattern} {text}");
        }
        assert!(fits("a?", "a?", Star) && !fits("a?", "ab", Star));
    }

    #[test]
    fn a_hostile_pattern_takes_no_longer_than_its_lengths_allow() {
        assert!(!fits("*a*a*a*b", &"a".repeat(2000), StarAndQuestion));
        assert!(!fits(&"*a".repeat(128), &"a".repeat(127), StarAndQuestion));
        assert!(!fits(&format!("{}b", "*a".repeat(120)), &"a".repeat(255), Star));
    }

    /// The same by trying everything.
    fn tried(pattern: &[char], text: &[char]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => (0..=text.len()).any(|taken| tried(rest, &text[taken..])),
            (Some((wanted, rest)), Some((found, others))) => (*wanted == '?' || wanted == found) && tried(rest, others),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn it_finds_what_trying_everything_finds(pattern in "[abé*?]{0,8}", text in "[abé]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(fits(&pattern, &text, StarAndQuestion), tried(&chars(&pattern), &chars(&text)));
        }
    }
}
