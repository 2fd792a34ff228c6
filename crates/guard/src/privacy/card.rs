//! Finds numbers of payment cards.

use super::card_issuer::{self, LONGEST, SHORTEST};
use super::context_word;
use super::digit_scan::next_run;
use super::segment::Segment;
use std::ops::Range;

/// Lengths of the groups in which card numbers are printed. Longer rows come first, so that no digits of a card are
/// left.
const GROUPINGS: &[&[usize]] = &[
    &[4, 4, 4, 4, 3],
    &[4, 4, 4, 4, 2],
    &[4, 4, 4, 4, 1],
    &PLAIN_GROUPING,
    &[4, 4, 4, 3],
    &[4, 4, 4, 2],
    &[4, 4, 4, 1],
    &[6, 4, 4, 4],
    &[4, 6, 5],
    &[4, 6, 4],
    &[4, 5, 6],
    &[4, 4, 5],
    &[4, 4, 4],
    &[6, 13],
];
/// Grouping that is that of a card in itself.
const PLAIN_GROUPING: [usize; 4] = [4, 4, 4, 4];
/// Maximum number of groups, and of digits in one.
const MAX_GROUPS: usize = 5;
const MAX_GROUP: usize = 13;
/// Number of digits from which on a neighbour makes a row of numbers out of a grouped card number.
const NEIGHBOUR: usize = 4;
/// Number of bytes before and after a number that are searched for its neighbours in a table.
const TABLE_REACH: usize = 64;
/// Words that say that a number is one of a card.
const WORDS: &[&str] = &[
    "amex",
    "card",
    "carta",
    "carte",
    "cartão",
    "cc",
    "ccn",
    "credit",
    "debit",
    "diners",
    "discover",
    "jcb",
    "karte",
    "kreditkarte",
    "maestro",
    "mastercard",
    "pan",
    "tarjeta",
    "unionpay",
    "visa",
];

/// Returns the card number that starts with a run of digits.
pub(super) fn at(segment: Segment<'_>, run: &Range<usize>) -> Option<Range<usize>> {
    if run.len() < 4 || run.len() > LONGEST || !starts_number(segment, run.start) {
        return None;
    }
    if run.len() >= SHORTEST {
        return plain(segment, run);
    }
    let separator = segment.byte(run.end);
    let is_group = b" -".contains(&separator) && segment.byte(run.end + 1).is_ascii_digit();
    if is_group { grouped(segment, run, separator) } else { None }
}

/// Returns a card number without separators.
fn plain(segment: Segment<'_>, run: &Range<usize>) -> Option<Range<usize>> {
    let digits = segment.bytes().get(run.clone())?;
    let is_card = ends_number(segment, run.end)
        && card_issuer::is_card(digits)
        && (card_issuer::is_distinct(digits) && !is_in_table(segment, run) || is_named(segment, run.start));
    is_card.then(|| run.clone())
}

/// Returns true if the number before or after a comma is as long but of no card, as in a table of constants.
fn is_in_table(segment: Segment<'_>, run: &Range<usize>) -> bool {
    let is_gap = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b',';
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let before = segment.bytes().get(run.start.saturating_sub(TABLE_REACH)..run.start).unwrap_or_default();
    let after = segment.bytes().get(run.end..).unwrap_or_default();
    let after = after.get(..TABLE_REACH).unwrap_or(after);
    let gap = before.iter().rev().take_while(is_gap).count();
    let (before, gap_before) = before.split_at(before.len() - gap);
    let (gap_after, after) = after.split_at(after.iter().take_while(is_gap).count());
    let before = before.split_at(before.len() - before.iter().rev().take_while(is_digit).count()).1;
    let after = after.split_at(after.iter().take_while(is_digit).count()).0;
    let is_other =
        |gap: &[u8], digits: &[u8]| gap.contains(&b',') && digits.len() >= SHORTEST && !card_issuer::is_card(digits);
    is_other(gap_before, before) || is_other(gap_after, after)
}

/// Returns a card number in groups with one separator between them.
fn grouped(segment: Segment<'_>, first: &Range<usize>, separator: u8) -> Option<Range<usize>> {
    if is_neighbour(segment, first.start, separator) {
        return None;
    }
    let groups = groups(segment, first, separator);
    let lengths: Vec<usize> = groups.iter().map(Range::len).collect();
    GROUPINGS.iter().filter(|grouping| lengths.starts_with(grouping)).find_map(|grouping| {
        let groups = groups.get(..grouping.len())?;
        let end = groups.last()?.end;
        let digits: Vec<u8> =
            groups.iter().filter_map(|group| segment.bytes().get(group.clone())).flatten().copied().collect();
        let next = next_run(segment, end, separator).map_or(0, |run| run.len());
        let is_end = if separator == b'-' { next == 0 } else { next < NEIGHBOUR };
        let is_card = is_end && ends_number(segment, end) && card_issuer::is_card(&digits);
        let is_usual =
            **grouping == PLAIN_GROUPING || card_issuer::is_distinct(&digits) || is_named(segment, first.start);
        (is_card && is_usual).then_some(first.start..end)
    })
}

/// Returns the groups of digits from the first one on.
fn groups(segment: Segment<'_>, first: &Range<usize>, separator: u8) -> Vec<Range<usize>> {
    let next = |run: &Range<usize>| next_run(segment, run.end, separator).filter(|run| run.len() <= MAX_GROUP);
    std::iter::successors(Some(first.clone()), next).take(MAX_GROUPS).collect()
}

/// Returns true if a group of digits is before a number, so that the number may be a part of a row.
fn is_neighbour(segment: Segment<'_>, start: usize, separator: u8) -> bool {
    let before = |distance| segment.byte_before(start, distance);
    before(1) == separator && (2..2 + NEIGHBOUR).all(|distance| before(distance).is_ascii_digit())
}

/// Returns true if a number can start at an offset, and is not a part of a word, a path, a decimal or a longer number.
fn starts_number(segment: Segment<'_>, start: usize) -> bool {
    !b"./+-@#&$".contains(&segment.byte_before(start, 1)) && !segment.is_word_before(start)
}

/// Returns true if a number can end at an offset.
fn ends_number(segment: Segment<'_>, end: usize) -> bool {
    match segment.byte(end) {
        b'.' | b'-' => !segment.byte(end + 1).is_ascii_alphanumeric(),
        b'/' | b'@' | b'+' | b'%' => false,
        _ => !segment.is_word_at(end),
    }
}

fn is_named(segment: Segment<'_>, start: usize) -> bool {
    context_word::nearest(segment, start, |word| WORDS.contains(&word).then_some(())).is_some()
}
