//! Finds telephone numbers: international ones by their country code, national ones beside a word that says so, and
//! American ones by their brackets.

use super::announcement::Announcement;
use super::phone_number::{self, MAX_DIGITS, PhoneNumber};
use super::segment::Segment;
use super::{PrivacyClass, PrivateSpan, country_code, placeholder};
use std::ops::{Range, RangeInclusive};

/// Number of digits of an international number with its country code.
const INTERNATIONAL: RangeInclusive<usize> = 8..=MAX_DIGITS;
/// Minimum number of digits of an international number without separators that no word announces.
const PLAIN: usize = 10;
/// Number of digits of a national number.
const NATIONAL: RangeInclusive<usize> = 7..=MAX_DIGITS;
/// Minimum number of digits of a national number after a word that has other meanings, too.
const AMBIGUOUS: usize = 9;
/// Numbers of digits of a point in time, in seconds and in milliseconds since 1970.
const TIMES: [usize; 2] = [10, 13];

/// Adds the international numbers of a segment.
pub(super) fn find_international(segment: Segment<'_>, spans: &mut Vec<PrivateSpan>) {
    for at in memchr::memchr_iter(b'+', segment.bytes()) {
        if let Some(range) = international(segment, at) {
            let placeholder = placeholder::of_class(PrivacyClass::Phone).into();
            spans.push(PrivateSpan { class: PrivacyClass::Phone, range: segment.place(range), placeholder });
        }
    }
}

/// Returns the national number that starts with a run of digits.
pub(super) fn national(segment: Segment<'_>, run: &Range<usize>) -> Option<Range<usize>> {
    // After another number, no word announces this one. Tables of numbers are skipped by this.
    if segment.byte_before(run.start, 1) == b' ' && segment.byte_before(run.start, 2).is_ascii_digit() {
        return None;
    }
    if run.len() < *NATIONAL.start() && !phone_number::continues(segment, run) || run.len() > MAX_DIGITS {
        return None;
    }
    let mut number = PhoneNumber::read(segment, run.start, 0);
    let start = run.start - usize::from(number.starts_in_brackets());
    if number.digits().len() < *NATIONAL.start() || !starts_number(segment, start) {
        return None;
    }
    let announcement = Announcement::before(segment, start);
    while number.digits().len() >= *NATIONAL.start() {
        let is_number = is_american(&number) || announcement.is_some_and(|words| is_national(&number, words));
        if is_number && ends_number(segment, number.end()) {
            return Some(start..number.end());
        }
        number.shorten();
    }
    None
}

/// Returns the international number with the sign at an offset.
fn international(segment: Segment<'_>, sign: usize) -> Option<Range<usize>> {
    if !(b'1'..=b'9').contains(&segment.byte(sign + 1)) {
        return None;
    }
    let mut number = PhoneNumber::read(segment, sign + 1, 1);
    let start = sign - usize::from(number.starts_in_brackets());
    if !starts_number(segment, start) {
        return None;
    }
    while INTERNATIONAL.contains(&number.digits().len()) {
        if is_international(segment, start, &number) && ends_number(segment, number.end()) {
            return Some(start..number.end());
        }
        number.shorten();
    }
    None
}

fn is_international(segment: Segment<'_>, start: usize, number: &PhoneNumber) -> bool {
    let digits = number.digits();
    let Some(code) = country_code::length(digits) else { return false };
    let is_right_length = match digits.first() {
        Some(b'1') => is_american_number(digits.get(1..).unwrap_or_default()),
        Some(b'7') => digits.len() == 11,
        _ => true,
    };
    let first = number.lengths().first().copied().unwrap_or_default();
    let is_separated = match number.group_count() {
        1 => digits.len() >= PLAIN || Announcement::before(segment, start) == Some(Announcement::Phone),
        // Registries of domains write `+49.3012345678`. Otherwise one point is that of a decimal.
        2 if number.is_joined_by(b'.') => first == code && digits.len() >= PLAIN,
        _ => true,
    };
    first >= code && is_right_length && is_separated && number.is_varied() && number.is_grouped() && !is_date(number)
}

/// Returns true for `(415) 555-0100`, which needs no word before it.
fn is_american(number: &PhoneNumber) -> bool {
    number.starts_in_brackets() && number.lengths() == [3, 3, 4] && is_american_number(number.digits())
}

/// Returns true for ten digits of the North American plan: area code and exchange begin with 2 to 9.
fn is_american_number(digits: &[u8]) -> bool {
    let is_start = |at: usize| digits.get(at).is_some_and(|digit| (b'2'..=b'9').contains(digit));
    digits.len() == 10 && is_start(0) && is_start(3)
}

/// Returns true if a number that words announce is one of a telephone, and no date, address or point in time.
fn is_national(number: &PhoneNumber, words: Announcement) -> bool {
    let digits = number.digits();
    let is_plain = number.group_count() == 1;
    let is_time = is_plain && digits.first() == Some(&b'1') && TIMES.contains(&digits.len());
    let is_announced = match words {
        Announcement::Phone => true,
        Announcement::Ambiguous => !is_plain && digits.len() >= AMBIGUOUS,
        Announcement::Other => false,
    };
    is_announced && !is_time && number.is_varied() && number.is_grouped() && !is_date(number) && !is_address(number)
}

/// Returns true for a day of the years 1900 to 2099 in digits, and for one of a year of ISO 8601 with a sign.
fn is_date(number: &PhoneNumber) -> bool {
    let is_year = |year: u64| (1900..2100).contains(&year);
    let lengths = number.lengths();
    let is_signed = lengths.len() == 3 && lengths.ends_with(&[2, 2]) && lengths.first().is_some_and(|first| *first > 3);
    match *number.values() {
        [_, month, day] if is_signed && number.is_joined_by(b'-') => month <= 12 && day <= 31,
        [year, month, day, ..] if lengths.starts_with(&[4, 2, 2]) => is_year(year) && month <= 12 && day <= 31,
        [day, month, year, ..] if lengths.get(2) == Some(&4) => is_year(year) && day <= 31 && month <= 31,
        [day] if lengths == [8] => is_year(day / 10_000) && day / 100 % 100 <= 12 && day % 100 <= 31,
        _ => false,
    }
}

/// Returns true for four numbers of a byte each, and for a number with one decimal point.
fn is_address(number: &PhoneNumber) -> bool {
    let is_host = number.group_count() == 4 && number.values().iter().all(|value| *value < 256);
    number.is_joined_by(b'.') && (is_host || number.group_count() == 2)
}

/// Returns true if a number can start at an offset, and is not a part of a word, a sum, a decimal or a longer number.
fn starts_number(segment: Segment<'_>, start: usize) -> bool {
    let (last, second) = (segment.byte_before(start, 1), segment.byte_before(start, 2));
    match last {
        b'.' | b'-' | b'+' | b'#' | b'$' | b'@' | b')' | b'^' => false,
        b'/' | b':' | b',' => !second.is_ascii_digit(),
        _ => !segment.is_word_before(start),
    }
}

/// Returns true if a number can end at an offset.
fn ends_number(segment: Segment<'_>, end: usize) -> bool {
    let second = segment.byte(end + 1);
    match segment.byte(end) {
        b'.' | b'-' | b':' | b'/' => !second.is_ascii_alphanumeric(),
        b'+' | b'=' | b'@' | b'%' | b'^' => false,
        // The number of an extension.
        b'x' => second.is_ascii_digit(),
        _ => !segment.is_word_at(end),
    }
}
