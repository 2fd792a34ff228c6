//! Name patterns with `*` and `?`, matched in bounded time.

/// Whether `name` matches `pattern`: `*` stands for any run of characters, `?` for one, the rest for itself.
///
/// Only the last star is ever retried, so the work is at most the product of the two lengths, whatever the pattern.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match (pattern.get(p), retry) {
            (Some('*'), _) => {
                retry = Some((p, n));
                p += 1;
            }
            (Some(&wanted), _) if wanted == '?' || wanted == name[n] => {
                p += 1;
                n += 1;
            }
            (_, Some((star, from))) => {
                retry = Some((star, from + 1));
                p = star + 1;
                n = from + 1;
            }
            _ => return false,
        }
    }
    pattern[p..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name) in [
            ("*", ""),
            ("*.rs", "main.rs"),
            ("m*n.r?", "main.rs"),
            ("*a*b*", "xxaxxbxx"),
            ("**", "x"),
            ("grün?", "grüne"),
            ("", ""),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("*.rs", "main.rsx"), ("?", ""), ("a", "A"), ("", "x"), ("a*b", "ac"), ("*ab", "abc")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_longer_than_its_lengths_allow() {
        assert!(!matches(&"*a".repeat(128), &"a".repeat(127)));
        assert!(!matches(&format!("{}b", "*a".repeat(120)), &"a".repeat(255)));
    }
}
