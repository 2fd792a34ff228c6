//! Patterns for names, in which `*` stands for any text and `?` for any one character.

/// Most bytes of a pattern.
pub const MAX_PATTERN: usize = 256;

/// True if all of `text` fits the pattern. Takes time proportional to the product of both lengths at most.
#[must_use]
pub fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // After a mismatch the last star takes one character more. Earlier stars never need to be tried again.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match (pattern.get(p), star) {
            (Some('*'), _) => {
                star = Some((p, t));
                p += 1;
            }
            (Some(wanted), _) if *wanted == '?' || *wanted == text[t] => (p, t) = (p + 1, t + 1),
            (_, Some((at, taken))) => {
                star = Some((at, taken + 1));
                (p, t) = (at + 1, taken + 1);
            }
            (_, None) => return false,
        }
    }
    pattern[p..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_any_character() {
        for (pattern, text) in [("read_*", "read_file"), ("*", ""), ("a*b*c", "aXbYbZc"), ("?o", "ño"), ("x", "x")] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("read_*", "write"), ("?", ""), ("a*b", "abc"), ("", "x")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }
}
