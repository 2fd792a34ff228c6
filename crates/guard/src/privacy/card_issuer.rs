//! Issuers of payment cards: how their numbers begin and how long they are.

use std::ops::RangeInclusive;

/// Minimum and maximum number of digits of a card number (ISO/IEC 7812-1).
pub(super) const SHORTEST: usize = 12;
pub(super) const LONGEST: usize = 19;

/// Range of prefixes of one issuer.
struct CardIssuer {
    /// Prefixes, all of one length.
    prefixes: RangeInclusive<u32>,
    lengths: RangeInclusive<usize>,
    /// Lengths whose numbers are rare otherwise, so that the number alone says that it is one of a card.
    distinct: RangeInclusive<usize>,
}

/// Lengths of an issuer whose numbers are always looked at together with the words before them.
#[expect(clippy::reversed_empty_ranges, reason = "the range of no length")]
const NONE: RangeInclusive<usize> = 1..=0;

const ISSUERS: &[CardIssuer] = &[
    // Visa. Its numbers of 13 digits look like article numbers (EAN), and none have been issued for decades.
    CardIssuer { prefixes: 4..=4, lengths: 16..=16, distinct: 16..=16 },
    CardIssuer { prefixes: 4..=4, lengths: 19..=19, distinct: NONE },
    // Mastercard.
    CardIssuer { prefixes: 51..=55, lengths: 16..=16, distinct: 16..=16 },
    CardIssuer { prefixes: 2221..=2720, lengths: 16..=16, distinct: 16..=16 },
    // American Express.
    CardIssuer { prefixes: 34..=34, lengths: 15..=15, distinct: 15..=15 },
    CardIssuer { prefixes: 37..=37, lengths: 15..=15, distinct: 15..=15 },
    // Discover.
    CardIssuer { prefixes: 6011..=6011, lengths: 16..=19, distinct: 16..=16 },
    CardIssuer { prefixes: 644..=649, lengths: 16..=19, distinct: 16..=16 },
    CardIssuer { prefixes: 65..=65, lengths: 16..=19, distinct: 16..=16 },
    // JCB.
    CardIssuer { prefixes: 3528..=3589, lengths: 16..=19, distinct: 16..=16 },
    // Diners Club.
    CardIssuer { prefixes: 300..=305, lengths: 14..=16, distinct: 14..=14 },
    CardIssuer { prefixes: 3095..=3095, lengths: 14..=16, distinct: 14..=14 },
    CardIssuer { prefixes: 36..=36, lengths: 14..=14, distinct: 14..=14 },
    CardIssuer { prefixes: 38..=39, lengths: 14..=16, distinct: 14..=14 },
    // UnionPay.
    CardIssuer { prefixes: 62..=62, lengths: 16..=19, distinct: 16..=19 },
    CardIssuer { prefixes: 8171..=8171, lengths: 16..=19, distinct: 16..=16 },
    // Maestro.
    CardIssuer { prefixes: 50..=50, lengths: 12..=19, distinct: NONE },
    CardIssuer { prefixes: 56..=58, lengths: 12..=19, distinct: NONE },
    CardIssuer { prefixes: 63..=63, lengths: 12..=19, distinct: NONE },
    CardIssuer { prefixes: 67..=67, lengths: 12..=19, distinct: 16..=16 },
];

impl CardIssuer {
    fn has_prefix(&self, digits: &[u8]) -> bool {
        let length = self.prefixes.start().ilog10() as usize + 1;
        let prefix = digits.iter().take(length).fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
        self.prefixes.contains(&prefix)
    }
}

/// Returns true if ASCII digits are a card number: prefix and length of an issuer, a valid check digit, and at
/// least two different digits.
pub(super) fn is_card(digits: &[u8]) -> bool {
    let is_issued = ISSUERS.iter().any(|issuer| issuer.lengths.contains(&digits.len()) && issuer.has_prefix(digits));
    is_issued && is_varied(digits) && has_check_digit(digits)
}

/// Returns true if numbers of this prefix and length are hardly anything other than card numbers.
pub(super) fn is_distinct(digits: &[u8]) -> bool {
    ISSUERS.iter().any(|issuer| issuer.distinct.contains(&digits.len()) && issuer.has_prefix(digits))
}

/// Returns true if the digits are not all the same.
fn is_varied(digits: &[u8]) -> bool {
    digits.iter().any(|digit| Some(digit) != digits.first())
}

/// Checks the last digit by the formula of Luhn (ISO/IEC 7812-1, annex B).
fn has_check_digit(digits: &[u8]) -> bool {
    let weighted = digits.iter().rev().enumerate().map(|(at, digit)| {
        let value = u32::from(digit - b'0') << (at % 2);
        if value > 9 { value - 9 } else { value }
    });
    weighted.sum::<u32>() % 10 == 0
}
