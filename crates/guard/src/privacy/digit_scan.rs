//! Finds what begins with or contains digits: card numbers, bank account numbers and national telephone numbers.

use super::segment::Segment;
use super::{PrivacyClass, PrivacyClasses, PrivateSpan, card, iban, phone, placeholder};
use std::ops::Range;

/// Number of bytes that are examined at once for a digit.
const BLOCK: usize = 64;

/// Search for a number that a run of digits belongs to.
type NumberSearch = fn(Segment<'_>, &Range<usize>) -> Option<Range<usize>>;

/// Searches by class. The first one that finds a number ends the others.
const SEARCHES: [(PrivacyClass, NumberSearch); 3] =
    [(PrivacyClass::Iban, iban::around), (PrivacyClass::Card, card::at), (PrivacyClass::Phone, phone::national)];

/// Adds the numbers of a segment.
pub(super) fn find(segment: Segment<'_>, classes: PrivacyClasses, spans: &mut Vec<PrivateSpan>) {
    let mut at = 0;
    // End of the last finding. Digits before it belong to that.
    let mut done = 0;
    while let Some(start) = next_digit(segment.bytes(), at) {
        let run = start..run_end(segment, start);
        at = run.end;
        if run.start < done {
            continue;
        }
        let mut searches = SEARCHES.iter().filter(|(class, _)| classes.contains(*class));
        let found = searches.find_map(|(class, search)| Some((*class, search(segment, &run)?)));
        if let Some((class, range)) = found {
            done = range.end;
            let placeholder = placeholder::of_class(class).into();
            spans.push(PrivateSpan { class, range: segment.place(range), placeholder });
        }
    }
}

/// Returns the end of the run of digits at an offset.
pub(super) fn run_end(segment: Segment<'_>, start: usize) -> usize {
    let rest = segment.bytes().get(start..).unwrap_or_default();
    start + rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len())
}

/// Returns the offset of the first digit from `at` on.
fn next_digit(bytes: &[u8], mut at: usize) -> Option<usize> {
    for block in bytes.get(at..)?.chunks(BLOCK) {
        // Without an early exit, the compiler examines many bytes with one instruction.
        if block.iter().fold(false, |has_digit, byte| has_digit | byte.is_ascii_digit()) {
            return Some(at + block.iter().position(u8::is_ascii_digit)?);
        }
        at += block.len();
    }
    None
}

/// Returns the run of digits after one separator, which is a single byte.
pub(super) fn next_run(segment: Segment<'_>, end: usize, separator: u8) -> Option<Range<usize>> {
    let start = end + 1;
    let is_next = segment.bytes().get(end) == Some(&separator) && segment.byte(start).is_ascii_digit();
    is_next.then(|| start..run_end(segment, start))
}
