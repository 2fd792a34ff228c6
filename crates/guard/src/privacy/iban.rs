//! Finds international bank account numbers.

use super::iban_country::{self, LONGEST};
use super::segment::Segment;
use std::ops::Range;

/// Number of characters in a printed group.
const GROUP: usize = 4;
/// Digits that the calculation of check digits never yields.
const NO_CHECK_DIGITS: [&[u8]; 3] = [b"00", b"01", b"99"];
/// Spaces between printed groups: the usual one, and two that do not break.
const SPACES: [&str; 3] = [" ", "\u{a0}", "\u{202f}"];

/// Returns the account number whose check digits start a run of digits.
pub(super) fn around(segment: Segment<'_>, run: &Range<usize>) -> Option<Range<usize>> {
    let start = run.start.checked_sub(2).filter(|_| run.len() >= 2)?;
    let country = segment.bytes().get(start..run.start)?;
    if !country.iter().all(u8::is_ascii_alphabetic) || segment.is_word_before(start) {
        return None;
    }
    let format = iban_country::format(country)?;
    let (number, end) = read(segment, start, iban_country::length(format))?;
    let is_end = !segment.is_word_at(end + usize::from(segment.byte(end) == b'-'));
    let is_before = !b"-/.+".contains(&segment.byte_before(start, 1));
    let account = number.get(GROUP..)?;
    let is_number = is_before && is_end && has_one_case(&number);
    (is_number && iban_country::fits(format, account) && has_check_digits(&number)).then_some(start..end)
}

/// Reads a number of so many characters, either without spaces or with one after each group. Returns the number and
/// its end in the segment.
fn read(segment: Segment<'_>, start: usize, length: usize) -> Option<(Vec<u8>, usize)> {
    let mut number = Vec::with_capacity(LONGEST);
    let space = space_at(segment, start + GROUP);
    let mut at = start;
    for index in 0..length {
        if index > 0
            && index % GROUP == 0
            && let Some(space) = space
        {
            at += segment.text().get(at..)?.starts_with(space).then_some(space.len())?;
        }
        let byte = segment.bytes().get(at).filter(|byte| byte.is_ascii_alphanumeric())?;
        number.push(*byte);
        at += 1;
    }
    Some((number, at))
}

fn space_at(segment: Segment<'_>, at: usize) -> Option<&'static str> {
    let rest = segment.text().get(at..)?;
    SPACES.into_iter().find(|space| rest.starts_with(space))
}

fn has_one_case(number: &[u8]) -> bool {
    !(number.iter().any(u8::is_ascii_lowercase) && number.iter().any(u8::is_ascii_uppercase))
}

/// Checks digits three and four, which are 02 to 98, by the remainder of ISO/IEC 7064, MOD 97-10.
fn has_check_digits(number: &[u8]) -> bool {
    let (Some(head), Some(account)) = (number.get(..GROUP), number.get(GROUP..)) else { return false };
    let remainder = account.iter().chain(head).fold(0, |remainder, byte| {
        let value = char::from(*byte).to_digit(36).unwrap_or_default();
        (remainder * if value < 10 { 10 } else { 100 } + value) % 97
    });
    remainder == 1 && !NO_CHECK_DIGITS.iter().any(|digits| head.ends_with(digits))
}
