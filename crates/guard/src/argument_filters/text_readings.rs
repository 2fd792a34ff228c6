//! Texts as which a value may be read by programs that decode it.

use signalbox_wire::percent::decode_once;
use unicode_normalization::UnicodeNormalization;

/// Maximum number of times that a value is decoded. No known program decodes more often than three times.
const MAX_ROUNDS: usize = 4;
/// Longest text in bytes whose compatibility characters are all replaced.
const MAX_NORMALIZED: usize = 32 * 1024;
/// Characters that some programs replace by ASCII although Unicode's compatibility forms do not.
const BEST_FIT: [(char, char); 8] = [
    ('\u{2044}', '/'),
    ('\u{2215}', '/'),
    ('\u{29f8}', '/'),
    ('\u{2571}', '/'),
    ('\u{2216}', '\\'),
    ('\u{29f5}', '\\'),
    ('\u{3002}', '.'),
    ('\u{a4f8}', '.'),
];

/// Returns the value as written, then decoded once, twice and so on, each also with compatibility characters replaced.
/// The first one is always the value itself.
pub(super) fn text_readings(value: &str) -> Vec<String> {
    let mut readings = vec![value.to_owned()];
    let mut current = value.to_owned();
    for _ in 0..MAX_ROUNDS {
        add_folded(&mut readings, &current);
        let Some(next) = decoded(&current).filter(|next| *next != current) else { break };
        readings.push(next.clone());
        current = next;
    }
    add_folded(&mut readings, &current);
    readings
}

/// Returns the beginning of a text, at most `most` bytes long.
pub(super) fn prefix(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

fn add_folded(readings: &mut Vec<String>, text: &str) {
    if !text.is_ascii() {
        let folded = folded(text);
        if folded != text && !readings.contains(&folded) {
            readings.push(folded);
        }
    }
}

/// Returns a text with compatibility characters replaced, as web browsers and Windows do.
pub(super) fn folded(text: &str) -> String {
    let best = |char: char| BEST_FIT.iter().find(|(from, _)| *from == char).map_or(char, |(_, to)| *to);
    if text.len() <= MAX_NORMALIZED {
        return text.nfkc().map(best).collect();
    }
    // One character may become eighteen, so that only the common ones are replaced in a long text.
    let wide = |char: char| match u32::from(char) {
        code @ 0xff01..=0xff5e => char::from_u32(code - 0xfee0).unwrap_or(char),
        _ => best(char),
    };
    text.chars().map(wide).collect()
}

/// Decodes percent escapes, escapes of programming languages and overlong UTF-8 once. `None` if there are none.
fn decoded(text: &str) -> Option<String> {
    let unescaped = without_escapes(text);
    let source = unescaped.as_deref().unwrap_or(text);
    match decode_once(source.as_bytes()) {
        Some(bytes) => Some(String::from_utf8_lossy(&without_overlong(&bytes)).into_owned()),
        None => unescaped,
    }
}

/// Replaces `%u002e`, `\u002e`, `\x2e` and `0x2e`.
fn without_escapes(text: &str) -> Option<String> {
    if !text.contains("%u") && !text.contains("%U") && !text.contains('\\') && !text.contains("0x") {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut any = false;
    while let Some(first) = rest.chars().next() {
        let escape = match rest.as_bytes() {
            [b'%' | b'\\', b'u' | b'U', ..] => rest.get(2..6).map(|digits| (digits, 6)),
            [b'\\', b'x', ..] => rest.get(2..4).map(|digits| (digits, 4)),
            [b'0', b'x', ..] => rest.get(2..4).filter(|digits| is_separator(digits)).map(|digits| (digits, 4)),
            _ => None,
        };
        let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let char = escape.filter(|(digits, _)| is_hex(digits));
        let char = char.and_then(|(digits, length)| {
            let char = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
            Some((char, rest.get(length..)?))
        });
        (rest, any) = match char {
            Some((char, after)) => {
                out.push(char);
                (after, true)
            }
            None => {
                out.push(first);
                (rest.get(first.len_utf8()..).unwrap_or_default(), any)
            }
        };
    }
    any.then_some(out)
}

/// Returns `true` for the hexadecimal digits of a dot, a slash or a backslash.
fn is_separator(digits: &str) -> bool {
    ["2e", "2f", "5c"].iter().any(|known| digits.eq_ignore_ascii_case(known))
}

/// Replaces ASCII characters that are encoded with more bytes than UTF-8 allows, as lax decoders do.
fn without_overlong(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match overlong(bytes.get(at..).unwrap_or_default()) {
            Some(found) => {
                out.push(found.value);
                at += found.length;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// ASCII character and the number of bytes that encode it.
struct Overlong {
    value: u8,
    length: usize,
}

fn overlong(bytes: &[u8]) -> Option<Overlong> {
    let (lead, rest) = bytes.split_first()?;
    let (count, bits) = match lead {
        0xc0 | 0xc1 => (1, u32::from(lead & 0x1f)),
        0xe0 => (2, 0),
        0xf0 => (3, 0),
        0xf8 => (4, 0),
        0xfc => (5, 0),
        _ => return None,
    };
    if count == 1 {
        match rest {
            // The second byte is not checked by some decoders.
            [byte @ (b'.' | b'/' | b'\\'), ..] => return Some(Overlong { value: *byte, length: 2 }),
            // Old versions of IIS took any letter for a hexadecimal digit.
            [b'%', high, low, ..] if high.is_ascii_alphanumeric() && low.is_ascii_alphanumeric() => {
                let next = (lax_digit(*high) * 16 + lax_digit(*low)) & 0xff;
                return ascii(bits << 6 | (next & 0x3f), 4);
            }
            [next, ..] if *next < 0xc0 => return ascii(bits << 6 | u32::from(next & 0x3f), 2),
            _ => return None,
        }
    }
    let tail = rest.get(..count)?;
    let value =
        tail.iter().try_fold(bits, |value, byte| (byte & 0xc0 == 0x80).then(|| value << 6 | u32::from(byte & 0x3f)))?;
    ascii(value, count + 1)
}

fn lax_digit(byte: u8) -> u32 {
    char::from(byte).to_digit(36).unwrap_or(0)
}

fn ascii(value: u32, length: usize) -> Option<Overlong> {
    u8::try_from(value).ok().filter(u8::is_ascii).map(|value| Overlong { value, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spelling_of_a_dot_segment_is_read() {
        for spelling in [
            "../",
            "%2e%2e/",
            "%2E%2e%2f",
            "%252e%252e%252f",
            "%25252e./",
            "%%32%65./",
            "%c0%ae%c0%ae/",
            "%c0%2e./",
            "%c0%ae.%c0%af",
            "..%c0%2f",
            "..%c0%9v",
            "..%c0%qf",
            "%e0%80%ae./",
            "%f0%80%80%ae./",
            "%f8%80%80%80%ae./",
            "%fc%80%80%80%80%ae./",
            "%25c0%25ae./",
            "%u002e%u002e%u002f",
            "%uff0e./",
            "\u{ff0e}./",
            "..\u{2215}",
            "..\u{2044}",
            "..\u{ff0f}",
            "\u{2025}/",
            "\u{2024}./",
            "%ef%bc%8e%ef%bc%8e/",
            "\\u002e./",
            "\\x2e\\x2e/",
            "0x2e0x2e0x2f",
            "\u{fe52}./",
        ] {
            assert!(
                text_readings(spelling).iter().any(|text| text == "../"),
                "{spelling}: {:?}",
                text_readings(spelling)
            );
        }
        for spelling in ["..%c1%9c", "..%c1%8s", "..%c1%pc", "..\u{2216}", "..\u{ff3c}", "..%5c", "..%255c"] {
            assert!(text_readings(spelling).iter().any(|text| text == "..\\"), "{spelling}");
        }
    }

    #[test]
    fn ordinary_text_has_one_reading() {
        for text in ["", "src/main.rs", "100%", "a\\b", "é", "0x2a", "C:\\users\\x"] {
            assert_eq!(text_readings(text), [text.to_owned()]);
        }
        assert!(text_readings(&format!("%{}41", "25".repeat(100))).len() <= MAX_ROUNDS + 1);
    }
}
