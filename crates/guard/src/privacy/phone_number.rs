//! Digits of a telephone number with the signs between them.

use super::digit_scan::run_end;
use super::segment::Segment;
use std::ops::Range;

/// Maximum number of digits (ITU-T E.164, section 6).
pub(super) const MAX_DIGITS: usize = 15;
/// Maximum number of groups of digits. France prints six, after the country code.
const MAX_GROUPS: usize = 8;
/// Maximum length of an area code, or of a country code with its sign.
const MAX_CODE: usize = 5;
/// Maximum number of characters between two groups, as in `(030) / 90 18 20`.
const MAX_SIGNS: usize = 4;

/// Number in groups of digits. Later groups may belong to something else.
#[derive(Clone, Debug, Default)]
pub(super) struct PhoneNumber {
    digits: Vec<u8>,
    groups: Vec<DigitGroup>,
}

/// Digits without a separator between them.
#[derive(Copy, Clone, Debug)]
struct DigitGroup {
    length: usize,
    end: usize,
    /// Sign before the group other than a space or a bracket, or 0.
    sign: u8,
    is_in_brackets: bool,
}

impl PhoneNumber {
    /// Reads a number whose first digit is at an offset, behind so many signs, with brackets around its first group.
    pub(super) fn read(segment: Segment<'_>, start: usize, signs: usize) -> Self {
        let is_in_brackets = is_in_brackets(segment, start - signs, run_end(segment, start));
        let mut number = Self::default();
        let (mut at, mut is_open, mut sign) = (start, is_in_brackets, 0);
        while number.groups.len() < MAX_GROUPS {
            let end = run_end(segment, at);
            let length = end - at;
            if length == 0 || number.digits.len() + length > MAX_DIGITS {
                break;
            }
            number.digits.extend(segment.bytes().get(at..end).unwrap_or_default());
            number.groups.push(DigitGroup { length, end, sign, is_in_brackets: is_open });
            let Some(next) = next_group(segment, end, is_open) else { break };
            (at, is_open, sign) = (next.at, next.is_open, next.sign);
        }
        number
    }

    pub(super) fn digits(&self) -> &[u8] {
        &self.digits
    }

    pub(super) fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Returns the end of the last group, or 0.
    pub(super) fn end(&self) -> usize {
        self.groups.last().map_or(0, |group| group.end)
    }

    /// Removes the last group.
    pub(super) fn shorten(&mut self) {
        let length = self.groups.pop().map_or(0, |group| group.length);
        self.digits.truncate(self.digits.len() - length);
    }

    /// Returns the lengths of the groups.
    pub(super) fn lengths(&self) -> Vec<usize> {
        self.groups.iter().map(|group| group.length).collect()
    }

    /// Returns true if a number is grouped as telephone numbers are: at most one group of one digit after the first,
    /// besides the zero that is dialled within a country, and no points beside hyphens, as in coordinates.
    pub(super) fn is_grouped(&self) -> bool {
        let singles = self.groups.iter().skip(1).filter(|group| group.length == 1 && !group.is_in_brackets);
        let has = |sign: u8| self.groups.iter().any(|group| group.sign == sign);
        singles.count() <= 1 && !(has(b'.') && has(b'-'))
    }

    /// Returns true if every group after the first has this sign before it.
    pub(super) fn is_joined_by(&self, sign: u8) -> bool {
        self.groups.len() > 1 && self.groups.iter().skip(1).all(|group| group.sign == sign)
    }

    pub(super) fn starts_in_brackets(&self) -> bool {
        self.groups.first().is_some_and(|group| group.is_in_brackets)
    }

    /// Returns true if there are more than two different digits.
    pub(super) fn is_varied(&self) -> bool {
        (b'0'..=b'9').filter(|digit| self.digits.contains(digit)).count() > 2
    }

    /// Returns the groups as numbers.
    pub(super) fn values(&self) -> Vec<u64> {
        let mut digits = self.digits.iter();
        let value = |value: u64, digit: &u8| value * 10 + u64::from(digit - b'0');
        self.groups.iter().map(|group| digits.by_ref().take(group.length).fold(0, value)).collect()
    }
}

/// Start of the next group of digits.
struct NextGroup {
    at: usize,
    is_open: bool,
    sign: u8,
}

/// Returns true if another group of digits follows a run of digits.
pub(super) fn continues(segment: Segment<'_>, run: &Range<usize>) -> bool {
    next_group(segment, run.end, is_in_brackets(segment, run.start, run.end)).is_some()
}

/// Returns true for a country or area code in brackets.
fn is_in_brackets(segment: Segment<'_>, start: usize, end: usize) -> bool {
    end - start <= MAX_CODE && segment.byte_before(start, 1) == b'(' && segment.byte(end) == b')'
}

/// Reads the signs after a group. Returns `None` if no group follows them. Brackets go around one group.
fn next_group(segment: Segment<'_>, end: usize, is_in_brackets: bool) -> Option<NextGroup> {
    let mut at = end + usize::from(is_in_brackets);
    if is_in_brackets && segment.byte(end) != b')' {
        return None;
    }
    let (mut sign, mut is_open) = (0, false);
    for character in segment.text().get(at..)?.chars().take(MAX_SIGNS + 1) {
        match character {
            '0'..='9' => return Some(NextGroup { at, is_open, sign }),
            _ if is_open => return None,
            ' ' | '\u{a0}' | '\u{202f}' => {}
            '(' => is_open = true,
            '-' | '\u{2011}' if sign == 0 => sign = b'-',
            '.' if sign == 0 => sign = b'.',
            '/' if sign == 0 => sign = b'/',
            _ => return None,
        }
        at += character.len_utf8();
    }
    None
}
