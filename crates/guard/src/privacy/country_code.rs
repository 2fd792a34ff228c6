//! Country codes of international telephone numbers (list of ITU-T E.164).

use std::ops::RangeInclusive;

/// Codes of two digits.
const TWO_DIGITS: &[RangeInclusive<u16>] = &[
    20..=20,
    27..=27,
    30..=34,
    36..=36,
    39..=41,
    43..=49,
    51..=58,
    60..=66,
    81..=82,
    84..=84,
    86..=86,
    90..=95,
    98..=98,
];
/// Codes of three digits.
const THREE_DIGITS: &[RangeInclusive<u16>] = &[
    211..=213,
    216..=216,
    218..=218,
    220..=258,
    260..=269,
    290..=291,
    297..=299,
    350..=359,
    370..=383,
    385..=387,
    389..=389,
    420..=421,
    423..=423,
    500..=509,
    590..=599,
    670..=670,
    672..=683,
    685..=692,
    800..=800,
    808..=808,
    850..=850,
    852..=853,
    855..=856,
    870..=870,
    878..=878,
    880..=883,
    886..=886,
    888..=888,
    960..=968,
    970..=977,
    979..=979,
    992..=996,
    998..=998,
];

/// Returns the length of the country code that ASCII digits begin with.
pub(super) fn length(digits: &[u8]) -> Option<usize> {
    let code =
        |length: usize| digits.get(..length).map(|code| code.iter().fold(0, |sum, digit| sum * 10 + value(*digit)));
    let has = |codes: &[RangeInclusive<u16>], code: Option<u16>| {
        codes.iter().any(|range| code.is_some_and(|code| range.contains(&code)))
    };
    match digits.first()? {
        b'1' | b'7' => Some(1),
        _ if has(TWO_DIGITS, code(2)) => Some(2),
        _ if has(THREE_DIGITS, code(3)) => Some(3),
        _ => None,
    }
}

fn value(digit: u8) -> u16 {
    u16::from(digit - b'0')
}
