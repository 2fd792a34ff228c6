//! Undoes escapes that spell characters in ASCII: of URLs, of JSON and programming languages, and of HTML.

/// Text whose escapes were undone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UnescapedText {
    pub(crate) text: String,
    /// True if most escapes were those of URLs.
    pub(crate) is_percent: bool,
}

/// Undoes every escape that [`unescape`] undoes, and those of bytes beyond ASCII, line breaks, quotes and pairs of
/// surrogates. Returns `None` if the text has no escape.
pub(crate) fn unescape_all(text: &str) -> Option<UnescapedText> {
    let mut bytes = Vec::new();
    let (mut percents, mut others) = (0_usize, 0_usize);
    let mut rest = text;
    while let Some(at) = memchr::memchr3(b'%', b'\\', b'&', rest.as_bytes()) {
        let (before, tail) = rest.split_at(at);
        bytes.extend_from_slice(before.as_bytes());
        let is_percent = tail.starts_with('%');
        let length = read_any_escape(tail, &mut bytes);
        if let Some(length) = length {
            percents += usize::from(is_percent);
            others += usize::from(!is_percent);
            rest = tail.get(length..).unwrap_or_default();
        } else {
            let (first, remainder) = tail.split_at(1);
            bytes.extend_from_slice(first.as_bytes());
            rest = remainder;
        }
    }
    if percents + others == 0 {
        return None;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(UnescapedText { text: String::from_utf8_lossy(&bytes).into_owned(), is_percent: percents >= others })
}

/// Appends the character of the escape at the start of a text, and returns the length of the escape.
fn read_any_escape(text: &str, bytes: &mut Vec<u8>) -> Option<usize> {
    let hex = |start: usize, count: usize| u32::from_str_radix(text.get(start..start + count)?, 16).ok();
    let mut push = |character: char, length: usize| {
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Some(length)
    };
    match text.as_bytes() {
        [b'%', ..] => {
            bytes.push(u8::try_from(hex(1, 2)?).ok()?);
            Some(3)
        }
        [b'\\', b'x', ..] => {
            bytes.push(u8::try_from(hex(2, 2)?).ok()?);
            Some(4)
        }
        [b'\\', b'u', b'{', digits @ ..] => {
            let count = digits.iter().take(6).take_while(|digit| digit.is_ascii_hexdigit()).count();
            let character = char::from_u32(hex(3, count)?)?;
            (digits.get(count) == Some(&b'}')).then_some(())?;
            push(character, count + 4)
        }
        [b'\\', b'u', ..] => {
            let unit = hex(2, 4)?;
            let second = match text.as_bytes().get(6..8) {
                Some(b"\\u") => hex(8, 4).filter(|low| (0xdc00..0xe000).contains(low)),
                _ => None,
            };
            match second {
                Some(low) if (0xd800..0xdc00).contains(&unit) => {
                    push(char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00))?, 12)
                }
                _ => push(char::from_u32(unit)?, 6),
            }
        }
        [b'\\', short, ..] => push(short_escape(*short)?, 2),
        [b'&', ..] => match read_escape(text) {
            Some((character, length)) => push(character, length),
            None => {
                let named = NAMED.iter().find(|(name, _)| text.starts_with(name));
                named.and_then(|(name, character)| push(*character, name.len()))
            }
        },
        _ => None,
    }
}

/// Named characters of HTML that texts cannot do without.
const NAMED: [(&str, char); 6] =
    [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>'), ("&quot;", '"'), ("&apos;", '\''), ("&nbsp;", ' ')];

const fn short_escape(letter: u8) -> Option<char> {
    match letter {
        b'n' => Some('\n'),
        b'r' => Some('\r'),
        b't' => Some('\t'),
        b'"' | b'\'' | b'\\' | b'/' => Some(letter as char),
        _ => None,
    }
}

/// Undoes percent, backslash and numeric character escapes of printable ASCII.
pub(crate) fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['%', '\\', '&']) {
        let (before, tail) = rest.split_at(at);
        result.push_str(before);
        match read_escape(tail) {
            Some((character, length)) => {
                result.push(character);
                rest = tail.get(length..).unwrap_or_default();
            }
            None => {
                let (first, others) = tail.split_at(1);
                result.push_str(first);
                rest = others;
            }
        }
    }
    result.push_str(rest);
    result
}

/// Reads an escape at the start of a text and returns its character and length.
fn read_escape(text: &str) -> Option<(char, usize)> {
    let hex = |start: usize, count: usize| {
        let digits = text.get(start..start + count)?;
        let value = u32::from_str_radix(digits, 16).ok()?;
        char::from_u32(value).map(|character| (character, start + count))
    };
    match text.as_bytes() {
        [b'%', ..] => hex(1, 2).filter(|(character, _)| character.is_ascii()),
        [b'\\', b'x', ..] => hex(2, 2).filter(|(character, _)| character.is_ascii()),
        [b'\\', b'u', ..] => hex(2, 4),
        [b'&', b'#', kind, ..] => {
            let (start, radix) = if matches!(kind, b'x' | b'X') { (3, 16) } else { (2, 10) };
            let digits =
                text.as_bytes().get(start..)?.iter().take(8).take_while(|byte| byte.is_ascii_hexdigit()).count();
            let value = u32::from_str_radix(text.get(start..start + digits)?, radix).ok()?;
            let end = start + digits;
            Some((char::from_u32(value)?, end + usize::from(text.as_bytes().get(end) == Some(&b';'))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_printable_ascii_are_undone() {
        assert_eq!(unescape("&#105;g%6eo\\u0072\\x65 100% \\n &amp;"), "ignore 100% \\n &amp;");
    }

    #[test]
    fn every_escape_is_undone_once() {
        for (escaped, text, is_percent) in [
            ("caf%C3%A9%20au%20lait", "café au lait", true),
            (r#"\"a\"\n\u00e9\ud83d\ude00\u{1f600}"#, "\"a\"\né😀😀", false),
            (r"\\n is a line break", r"\n is a line break", false),
            ("a &amp; b &#x3c; c&nbsp;d", "a & b < c d", false),
            ("%e4%b8", "\u{fffd}", true),
        ] {
            assert_eq!(unescape_all(escaped), Some(UnescapedText { text: text.to_owned(), is_percent }), "{escaped}");
        }
    }

    #[test]
    fn text_without_escapes_stays() {
        for text in ["100 % & more", "C:\\", "\\ud800", "%", "\\u{}", "\\u{1234567}", "&unknown;", "%é"] {
            assert_eq!(unescape_all(text), None, "{text}");
        }
    }
}
