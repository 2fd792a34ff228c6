//! Names with wildcards: `*` for any run of characters, `?` for any one.

/// Some patterns, of which one has to match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Globs(pub Box<[Box<str>]>);

impl Globs {
    pub fn new(patterns: &[&str]) -> Self {
        Self(patterns.iter().map(|pattern| Box::from(*pattern)).collect())
    }

    pub fn fit(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| fits(pattern.as_bytes(), name.as_bytes()))
    }
}

/// Goes back to the last `*` only, so the time is at most the product of both lengths, and the patterns are short.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(b'?') => {
                p += 1;
                n += character(name, n);
            }
            Some(byte) if *byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (p, n) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// How many bytes the character at `at` has.
fn character(name: &[u8], at: usize) -> usize {
    1 + name[at + 1..].iter().take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_fit_as_people_expect() {
        for (pattern, name, fit) in [
            ("echo", "echo", true),
            ("echo", "echos", false),
            ("files__*", "files__read", true),
            ("files__*", "file__read", false),
            ("*delete*", "files__delete_all", true),
            ("*a*b*c", "xxaxxbxxbc", true),
            ("*a*b*c", "xxaxxbxxb", false),
            ("f?les", "füles", true),
            ("f?les", "fles", false),
            ("*", "", true),
            ("?", "", false),
            ("", "", true),
        ] {
            assert_eq!(Globs::new(&[pattern]).fit(name), fit, "{pattern} {name}");
        }
    }
}
