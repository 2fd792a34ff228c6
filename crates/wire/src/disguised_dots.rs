//! Spellings of `..` that some servers take for it: look-alikes in Unicode, blanks beside the dots, and bytes that are
//! no UTF-8.
//!
//! Unicode normalization (NFKC) and the code pages of Windows turn look-alikes into `.`, `/` and `\`. Windows drops
//! blanks and dots at the end of a name. Lenient decoders accept overlong forms of ASCII characters.

/// Returns the path in the way in which such servers read it, if that differs from the text.
#[must_use]
pub fn unmask(path: &str) -> Option<String> {
    let ascii = path.contains(|one| plain(one).is_some());
    let folded = match ascii {
        true => path.chars().map(|one| plain(one).map_or_else(|| one.to_string(), str::to_owned)).collect(),
        false => path.to_owned(),
    };
    if !ascii && !folded.split(['/', '\\']).any(leads_up_by_blanks) {
        return None;
    }
    let read = |segment: &str| if leads_up_by_blanks(segment) { "..".to_owned() } else { segment.to_owned() };
    Some(folded.replace('\\', "/").split('/').map(read).collect::<Vec<_>>().join("/"))
}

/// Returns true if a text has a `..` that is not written as such.
#[must_use]
pub fn has_disguised_dots(text: &str) -> bool {
    let count = |text: &str| text.split(['/', '\\']).filter(|segment| *segment == "..").count();
    unmask(text).is_some_and(|read| count(&read) > count(text)) || has_overlong_escape(text)
}

/// Returns true if bytes have an overlong form of an ASCII character, which is never valid in UTF-8.
#[must_use]
pub fn is_overlong(bytes: &[u8]) -> bool {
    let starts = |pair: &[u8]| matches!(pair, [0xE0, 0x80..=0x9F] | [0xF0, 0x80..=0x8F]);
    bytes.iter().any(|byte| matches!(byte, 0xC0 | 0xC1)) || bytes.windows(2).any(starts)
}

/// Returns true if a text has such a form in percent escapes.
fn has_overlong_escape(text: &str) -> bool {
    let mut rest = text.as_bytes();
    let mut run = Vec::new();
    while let Some(first) = rest.first() {
        let digit = |at: usize| rest.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (digit(1), digit(2)) {
            (Some(high), Some(low)) if *first == b'%' => {
                run.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = rest.get(3..).unwrap_or_default();
            }
            _ => {
                // An ordinary byte ends a sequence of escapes.
                run.push(b' ');
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    is_overlong(&run)
}

/// Returns true for a segment of dots and blanks that ends up as `..`.
fn leads_up_by_blanks(segment: &str) -> bool {
    let dots = segment.chars().filter(|one| *one == '.').count();
    dots > 1 && segment != ".." && segment.chars().all(|one| one == '.' || one.is_whitespace())
}

/// Returns the ASCII text that a look-alike is turned into.
fn plain(one: char) -> Option<&'static str> {
    match one {
        '\u{FF0E}' | '\u{FE52}' | '\u{2024}' => Some("."),
        '\u{2025}' | '\u{FE30}' => Some(".."),
        '\u{2026}' => Some("..."),
        '\u{FF0F}' | '\u{2215}' | '\u{2044}' => Some("/"),
        '\u{FF3C}' | '\u{FE68}' | '\u{2216}' => Some("\\"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_and_blanks_are_read_as_dots_and_other_names_stay() {
        for path in
            ["a/.. /b", "a/ ../b", "a/．．/b", "a／..／b", "a/‥/b", "a/.\u{2024}/b", "a/. ./b", "a/.../b", "a＼．．＼b"]
        {
            assert_eq!(unmask(path).as_deref(), Some("a/../b"), "{path}");
            assert!(has_disguised_dots(path), "{path}");
        }
        for path in ["a/../b", "a/b.. /c", "a/b c/d", "a/. /b", "a/.b/c", "", "a/ /b"] {
            assert_eq!(unmask(path), None, "{path}");
        }
        assert!(!has_disguised_dots("notes/to do….txt"));
    }

    #[test]
    fn overlong_forms_are_found_in_bytes_and_escapes() {
        for text in ["%c0%ae%c0%ae/x", "a%C0%AFb", "%e0%80%ae", "%F0%80%80%AE", "%c1%9c"] {
            assert!(has_disguised_dots(text), "{text}");
        }
        for text in ["%c3%a4", "%e2%80%ae", "%f0%9f%98%80", "%e0x%80", "c0", "%c", "%"] {
            assert!(!has_disguised_dots(text), "{text}");
        }
        assert!(is_overlong(b"\xc0\xae") && !is_overlong("ä€😀".as_bytes()));
    }
}
