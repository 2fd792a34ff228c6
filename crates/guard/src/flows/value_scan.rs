//! Finds values that hardly stand in two texts by chance.

use super::FlowLimits;
use super::distinctive_value::{DistinctiveValue, ValueKind};
use super::number_values;
use std::ops::Range;

/// Maximum length of a value, in bytes.
const MAX_VALUE: usize = 256;
/// Minimum length of an e-mail address.
const MIN_EMAIL: usize = 6;
/// Minimum number of changes between small letters, capitals and digits in a token.
const MIN_CHANGES: usize = 4;
/// Number of digits from which a word with letters is a token.
const MANY_DIGITS: usize = 5;
/// Senders that stand for no person.
const COMMON_SENDERS: [&str; 3] = ["git", "noreply", "no-reply"];
/// Endings of file names that would end an e-mail address too, as in `icon@2x.png`.
const IMAGE_ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "svg", "webp"];

/// Calls `visit` with each distinctive value of a text.
///
/// In a recorded text, values have to stand for themselves: names of files and parts of paths are left out. In an
/// argument (`is_argument`) they count, because a value may be sent as a part of a path.
pub(super) fn visit(text: &str, limits: &FlowLimits, is_argument: bool, visit: &mut dyn FnMut(DistinctiveValue<'_>)) {
    let mut found = |kind, place: Range<usize>| {
        if let Some(text) = text.get(place) {
            visit(DistinctiveValue { kind, text });
        }
    };
    number_values::visit(text, limits.min_digits, is_argument, &mut |place| found(ValueKind::Number, place));
    let mut at = 0;
    while let Some(whole) = next_word(text, at) {
        at = whole.end;
        let place = trimmed(text, &whole);
        let word = text.get(place.clone()).unwrap_or_default();
        if word.len() > MAX_VALUE {
            continue;
        }
        if is_email(word) {
            found(ValueKind::Email, place);
        } else if word.len() >= limits.min_value
            && is_token(word, limits.min_value)
            && (is_argument || !is_in_path(text.as_bytes(), &whole) && !is_file_name(word))
        {
            found(ValueKind::Token, place);
        }
    }
}

/// Returns the place of the next word.
fn next_word(text: &str, from: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let start = from + bytes.get(from..)?.iter().position(|byte| is_word_byte(*byte))?;
    let rest = bytes.get(start..)?;
    Some(start..start + rest.iter().position(|byte| !is_word_byte(*byte)).unwrap_or(rest.len()))
}

const fn is_word_byte(byte: u8) -> bool {
    byte >= 0x80
        || byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'.' | b'@' | b'+' | b'%' | b'$' | b'#' | b'*' | b'!' | b'~' | b'^')
}

/// Returns the place of a word without punctuation around it.
fn trimmed(text: &str, place: &Range<usize>) -> Range<usize> {
    let word = text.get(place.clone()).unwrap_or_default();
    let is_punctuation = |character: char| !character.is_alphanumeric();
    let from_start = word.trim_start_matches(is_punctuation);
    let start = place.end - from_start.len();
    start..start + from_start.trim_end_matches(is_punctuation).len()
}

/// Returns true if a slash stands directly before or after a word.
fn is_in_path(bytes: &[u8], word: &Range<usize>) -> bool {
    let before = word.start.checked_sub(1).and_then(|at| bytes.get(at));
    let is_before = matches!(before, Some(b'/' | b'\\'));
    // A backslash after a word can escape a quote.
    let is_after = match bytes.get(word.end..) {
        Some([b'/', ..]) => true,
        Some([b'\\', next, ..]) => next.is_ascii_alphanumeric(),
        _ => false,
    };
    is_before || is_after
}

/// Returns true for a name with an ending of up to five letters or digits.
fn is_file_name(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(name, ending)| {
        let is_ending = ending.len() <= 5 && ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
        !name.is_empty() && is_ending && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

fn is_email(word: &str) -> bool {
    let Some((local, domain)) = word.split_once('@') else { return false };
    let Some((host, ending)) = domain.rsplit_once('.') else { return false };
    let is_ending = ending.len() >= 2 && ending.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_common = COMMON_SENDERS.iter().any(|sender| local.eq_ignore_ascii_case(sender))
        || IMAGE_ENDINGS.iter().any(|image| ending.eq_ignore_ascii_case(image));
    let has_parts = !local.is_empty() && !host.is_empty() && !domain.contains('@');
    word.len() >= MIN_EMAIL && is_ending && has_parts && !is_common
}

/// Returns true for a word with letters and digits that looks random rather than chosen.
fn is_token(word: &str, min_length: usize) -> bool {
    let length = word.chars().count();
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.chars().filter(|character| character.is_alphabetic()).count();
    if length < min_length || digits == 0 || letters == 0 {
        return false;
    }
    let changes = count_changes(word);
    let is_mixed = changes >= MIN_CHANGES && changes * 4 >= length;
    let has_date = || {
        let compact: Vec<u8> = word.bytes().filter(|byte| !matches!(byte, b'-' | b'_')).collect();
        compact.windows(8).any(|window| window.iter().all(u8::is_ascii_digit) && number_values::is_date(window))
    };
    is_mixed || digits >= MANY_DIGITS && !word.contains('.') && !has_date()
}

/// Returns how often small letters, capitals and digits follow each other, without the capitals that begin words.
fn count_changes(word: &str) -> usize {
    let class = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    };
    let mut classes = word.bytes().filter(u8::is_ascii_alphanumeric).map(class);
    let Some(mut previous) = classes.next() else { return 0 };
    let is_change = |class| {
        let is_change = class != previous && (previous, class) != (1, 2);
        previous = class;
        is_change
    };
    classes.map(is_change).filter(|is_change| *is_change).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, is_argument: bool) -> Vec<String> {
        let mut all = Vec::new();
        visit(text, &FlowLimits::default(), is_argument, &mut |value| {
            if value.kind != ValueKind::Number {
                all.push(value.text.to_owned());
            }
        });
        all
    }

    #[test]
    fn tokens_and_addresses_are_found() {
        for (text, wanted) in [
            ("token=kX9vQz2LmTrW8pYs&x=1", "kX9vQz2LmTrW8pYs"),
            (r#"{"key":"a81f3c9be4d2"}"#, "a81f3c9be4d2"),
            (r#"{\"key\":\"a81f3c9be4d2\"}"#, "a81f3c9be4d2"),
            ("write to <Anna.Becker@example.org>, please.", "Anna.Becker@example.org"),
            ("case ACME-7731-9902-XK.", "ACME-7731-9902-XK"),
            ("pass Tr0ub4dor#3xQ!", "Tr0ub4dor#3xQ"),
        ] {
            assert_eq!(words(text, false), [wanted], "{text}");
        }
    }

    #[test]
    fn names_of_files_code_and_products_are_no_values() {
        for text in [
            "report2024v2a1.pdf src/h2c4x9k1m3q7 C:\\a1b2c3d4e5f6 https://db01a2b3c4.example.org/",
            "base64_encoder sha256_digest utf8_validate parseHttpHeadersFromRequest2 toBase64UrlString",
            "serde_json-1.0.120 python3.11-slim x86_64-linux-gnu claude-3-5-sonnet-20241022",
            "2026-11-19T20:15:00Z noreply@example.org git@github.com icon@2x.png left-pad@1.3.0",
            "internationalisation 0.918273645 v1.22.333-rc1",
        ] {
            assert_eq!(words(text, false), [""; 0], "{text}");
        }
    }

    #[test]
    fn values_within_the_path_of_an_argument_count() {
        assert_eq!(words("https://x.example/kX9vQz2LmTrW8pYs/a", true), ["kX9vQz2LmTrW8pYs"]);
    }
}
