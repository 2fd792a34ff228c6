//! Skips JSON values by their structure alone.

use memchr::memchr2;

/// Returns the first position at or after `at` that is not JSON whitespace.
#[inline]
#[must_use]
pub fn skip_whitespace(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// Returns the position after the value that starts at `at`, or `None` if there is no complete value.
#[inline]
#[must_use]
pub fn skip_value(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => skip_string(bytes, at),
        b'{' | b'[' => skip_container(bytes, at),
        _ => skip_scalar(bytes, at),
    }
}

/// Returns the position after a run of letters, digits and signs: a number or a literal, which is not validated.
#[inline]
fn skip_scalar(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let length = rest
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')))
        .unwrap_or(rest.len());
    (length > 0).then_some(at + length)
}

/// Returns the position after the string whose opening quote is at `at`.
#[inline]
#[must_use]
pub fn skip_string(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        let rest = bytes.get(at..)?;
        let found = quote_or_escape(rest)?;
        if rest[found] == b'"' {
            return Some(at + found + 1);
        }
        at += found + 2;
    }
}

/// Finds a quote or backslash. Most strings are short, so it checks the first bytes by words before it starts a
/// vectorized search.
#[inline]
fn quote_or_escape(bytes: &[u8]) -> Option<usize> {
    const WORDS: usize = 4;
    let (words, _) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().take(WORDS).enumerate() {
        let word = u64::from_le_bytes(*word);
        let hit = zero_bytes(word ^ (ONES * 0x22)) | zero_bytes(word ^ (ONES * 0x5C));
        if hit != 0 {
            return Some(index * 8 + (hit.trailing_zeros() / 8) as usize);
        }
    }
    let looked = words.len().min(WORDS) * 8;
    memchr2(b'"', b'\\', &bytes[looked..]).map(|found| looked + found)
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// Marks the zero bytes of `word`. Only the lowest set bit is reliable.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

fn skip_container(bytes: &[u8], at: usize) -> Option<usize> {
    let mut open = Nesting::default();
    let mut at = at;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = skip_string(bytes, at)?;
                continue;
            }
            b'{' => open.push(true),
            b'[' => open.push(false),
            closing @ (b'}' | b']') => {
                if open.pop()? != (*closing == b'}') {
                    return None;
                }
                if open.depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Stack of open brackets, one bit each. Allocates only beyond a depth of 64.
#[derive(Default)]
struct Nesting {
    depth: usize,
    top: u64,
    below: Vec<u64>,
}

impl Nesting {
    #[inline]
    fn push(&mut self, object: bool) {
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.below.push(self.top);
        }
        self.top = self.top << 1 | u64::from(object);
        self.depth += 1;
    }

    #[inline]
    fn pop(&mut self) -> Option<bool> {
        self.depth = self.depth.checked_sub(1)?;
        let object = self.top & 1 == 1;
        self.top >>= 1;
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.top = self.below.pop()?;
        }
        Some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(text: &str) -> Option<&str> {
        skip_value(text.as_bytes(), 0).map(|end| &text[end..])
    }

    #[test]
    fn steps_over_values() {
        assert_eq!(skip("12,"), Some(","));
        assert_eq!(skip("true]"), Some("]"));
        assert_eq!(skip(r#""a\"b"x"#), Some("x"));
        assert_eq!(skip(r#"{"a":[1,{"b":"]}"}]}x"#), Some("x"));
        for bad in ["", ",", "\"a", "\"a\\", "\"a\\\"", "[", "[1", "[}", "{]", "[{]}", "{\"a\":\"}"] {
            assert_eq!(skip(bad), None, "{bad}");
        }
    }

    #[test]
    fn brackets_match_at_any_depth() {
        for depth in [1, 63, 64, 65, 127, 128, 129, 1000] {
            let mixed = "[{".repeat(depth) + &"}]".repeat(depth);
            assert_eq!(skip(&mixed), Some(""), "{depth}");
            let mut wrong = mixed.into_bytes();
            wrong[2 * depth] = b']';
            assert_eq!(skip_value(&wrong, 0), None, "{depth}");
        }
    }

    #[test]
    fn strings_of_every_length_around_a_word() {
        for length in 0..100 {
            for prefix in ["", "\\\"", "\\\\"] {
                let text = format!("\"{prefix}{}\"!", "x".repeat(length));
                assert_eq!(skip(&text), Some("!"), "{text}");
            }
        }
    }
}
