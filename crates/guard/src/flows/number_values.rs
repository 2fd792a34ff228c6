//! Finds numbers that identify something: of accounts, cards, telephones, invoices.

use std::ops::Range;

/// Maximum number of digits of a number.
const MAX_DIGITS: usize = 64;
/// Lengths of groups of digits that are read as one number.
const GROUP: std::ops::RangeInclusive<usize> = 2..=5;
/// Maximum number of groups of one number.
const MAX_GROUPS: usize = 8;
/// Minimum number of digits of a number in groups.
const MIN_GROUPED: usize = 8;
/// Maximum number of letters before the digits of a number, such as those of an IBAN.
const MAX_LETTERS: usize = 4;

/// Calls `visit` with the place of each number, some of them with separators between groups of digits.
///
/// A number in a recorded text has to stand for itself. In an argument (`is_argument`), digits within other text and
/// some of several groups count too.
pub(super) fn visit(text: &str, min_digits: usize, is_argument: bool, visit: &mut dyn FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(run) = next_digits(bytes, at) {
        at = run.end;
        let digits = bytes.get(run.clone()).unwrap_or_default();
        let is_long = (min_digits..=MAX_DIGITS).contains(&digits.len());
        if is_long && (is_argument || stands_alone(bytes, &run)) && is_identifying(digits) {
            visit(run.clone());
        }
        if groups.last().is_some_and(|last| !is_joined(bytes, &groups, last, &run)) {
            visit_groups(bytes, &groups, is_argument, visit);
            groups.clear();
        }
        if GROUP.contains(&run.len()) {
            // In an argument, each group is the last one of the numbers that end with it.
            if is_argument && groups.len() == MAX_GROUPS {
                groups.remove(0);
            }
            groups.push(run);
            if is_argument {
                (0..groups.len()).for_each(|first| visit_joined(bytes, groups.get(first..), visit));
            }
        }
    }
    visit_groups(bytes, &groups, is_argument, visit);
}

fn visit_groups(bytes: &[u8], groups: &[Range<usize>], is_argument: bool, visit: &mut dyn FnMut(Range<usize>)) {
    // Longer rows are columns of a table.
    if !is_argument && groups.len() <= MAX_GROUPS {
        visit_joined(bytes, Some(groups), visit);
    }
}

/// Visits a number in several groups.
fn visit_joined(bytes: &[u8], groups: Option<&[Range<usize>]>, visit: &mut dyn FnMut(Range<usize>)) {
    let Some([first, .., last]) = groups else { return };
    let count: usize = groups.unwrap_or_default().iter().map(ExactSizeIterator::len).sum();
    if count < MIN_GROUPED {
        return;
    }
    let place = first.start..last.end;
    let whole = bytes.get(place.clone()).unwrap_or_default();
    let digits: Vec<u8> = whole.iter().copied().filter(u8::is_ascii_digit).collect();
    if is_identifying(&digits) && !is_date_of(groups.unwrap_or_default()) {
        visit(place);
    }
}

fn next_digits(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let start = from + bytes.get(from..)?.iter().position(u8::is_ascii_digit)?;
    let rest = bytes.get(start..)?;
    Some(start..start + rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len()))
}

/// Returns true if a run of digits goes on the number that the groups are of: after the same single separator.
fn is_joined(bytes: &[u8], groups: &[Range<usize>], last: &Range<usize>, run: &Range<usize>) -> bool {
    let separator = bytes.get(last.end..run.start);
    let first = match groups {
        [one, two, ..] => bytes.get(one.end..two.start),
        _ => separator,
    };
    GROUP.contains(&run.len()) && matches!(separator, Some(b" " | b"-")) && separator == first
}

/// Returns true if digits are no part of a word or a fraction. Up to four letters may stand before them.
fn stands_alone(bytes: &[u8], run: &Range<usize>) -> bool {
    let before = bytes.get(..run.start).unwrap_or_default();
    let letters = before.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let mut earlier = before.iter().rev().skip(letters);
    let (last, second) = (earlier.next(), earlier.next());
    let is_fraction = letters == 0 && last == Some(&b'.') && second.is_some_and(u8::is_ascii_digit);
    let is_word = letters > MAX_LETTERS || letters > 0 && last.is_some_and(|byte| byte.is_ascii_digit());
    let is_continued = bytes.get(run.end).is_some_and(u8::is_ascii_alphabetic);
    !is_fraction && !is_word && !is_continued
}

/// Returns true for digits that are hardly a size, a limit, a date or an example.
fn is_identifying(digits: &[u8]) -> bool {
    let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    let distinct = (b'0'..=b'9').filter(|digit| digits.contains(digit)).count();
    let is_row = digits.windows(2).all(|pair| matches!(pair, [one, two] if one.wrapping_add(1) == *two));
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u128>().ok());
    let is_power = number.is_some_and(u128::is_power_of_two);
    distinct >= 3 && zeros * 2 < digits.len() && !is_row && !is_power && !is_date(digits)
}

/// Returns true for a day as in `20261119`, alone or with a time after it.
pub(super) fn is_date(digits: &[u8]) -> bool {
    let two = |at: usize| match digits.get(at..at + 2) {
        Some([tens, ones]) => u32::from(tens.wrapping_sub(b'0')) * 10 + u32::from(ones.wrapping_sub(b'0')),
        _ => u32::MAX,
    };
    matches!(digits.len(), 8 | 12 | 14)
        && matches!(two(0), 19 | 20)
        && (1..=12).contains(&two(4))
        && (1..=31).contains(&two(6))
}

/// Returns true for groups as in `2026-11-19`, `19-11-2026` or these with a time after them.
fn is_date_of(groups: &[Range<usize>]) -> bool {
    let lengths = groups.iter().take(3).map(ExactSizeIterator::len);
    lengths.clone().eq([4, 2, 2]) || lengths.eq([2, 2, 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str, is_argument: bool) -> Vec<&str> {
        let mut all = Vec::new();
        visit(text, 6, is_argument, &mut |place| all.push(&text[place]));
        all
    }

    #[test]
    fn numbers_that_identify_something_are_found() {
        for (text, wanted) in [
            ("account 00912345, due 45", &["00912345"][..]),
            ("card 4111 1111 1251 1111.", &["4111 1111 1251 1111"]),
            ("IBAN DE89 3704 0044 0532 0130 00", &["89 3704 0044 0532 0130 00"]),
            ("IBAN DE89370400440532013000", &["89370400440532013000"]),
            ("tel +49 170 1234597", &["1234597"]),
            ("ssn 078-05-1120", &["078-05-1120"]),
            ("INV-2026-004213", &["004213"]),
            (r#"{"pin":918273}"#, &["918273"]),
        ] {
            assert_eq!(numbers(text, false), wanted, "{text}");
        }
    }

    #[test]
    fn sizes_dates_and_parts_of_words_are_no_numbers() {
        for text in [
            "1048576 16777216 1000000 86400000 111111 123456",
            "2026-11-19 20261119 20261119201500 19-11-2026",
            "2026-11-19T20:15:00.123456Z",
            "0.918273645 a1b2918273c 4d918273 parameter918273",
            "12 34 56 78 12 34 56 78 12 34 57",
            "10.21.32.43 1.2.3",
        ] {
            assert_eq!(numbers(text, false), [""; 0], "{text}");
        }
    }

    #[test]
    fn arguments_may_hold_numbers_within_other_text() {
        assert_eq!(numbers("x918273y", true), ["918273"]);
        assert!(numbers("ref 12 4111 1111 1251 1111 99", true).contains(&"4111 1111 1251 1111"));
    }
}
