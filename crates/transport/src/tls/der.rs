//! Parses as much DER as the validity of a certificate needs.

/// Returns the start and end of a certificate's validity, in seconds since 1970.
///
/// ```text
/// Certificate ::= SEQUENCE { tbs SEQUENCE { [0] version?, serial, algorithm, issuer, validity SEQUENCE { from, until }, … } … }
/// ```
pub(crate) fn validity(certificate: &[u8]) -> Option<(i64, i64)> {
    let mut tbs = Der(Der(Der(certificate).content(SEQUENCE)?).content(SEQUENCE)?);
    let mut member = tbs.next()?;
    if member.0 == VERSION {
        member = tbs.next()?;
    }
    if member.0 != INTEGER {
        return None;
    }
    tbs.content(SEQUENCE)?;
    tbs.content(SEQUENCE)?;
    let mut validity = Der(tbs.content(SEQUENCE)?);
    Some((validity.time()?, validity.time()?))
}

use signalbox_wire::timestamp::{self, CivilDate, TimeOfDay};
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// Reader over the remaining bytes.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Reads the tag and the content of the next value.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, mut rest) = rest.split_first()?;
        let mut length = usize::from(*first);
        if length >= 0x80 {
            // Four bytes of length exceed any file that is read.
            let bytes = length - 0x80;
            let (digits, after) = rest.split_at_checked(bytes).filter(|_| (1..=4).contains(&bytes))?;
            length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
            rest = after;
        }
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }

    /// Reads the content of the next value, which must have this tag.
    fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    fn time(&mut self) -> Option<i64> {
        let (tag, text) = self.next()?;
        let (year, rest) = match tag {
            UTC_TIME => {
                let (year, rest) = text.split_at_checked(2)?;
                let year = i32::from(number(year)?);
                // Two digits stand for 1950 to 2049.
                (if year < 50 { 2000 + year } else { 1900 + year }, rest)
            }
            GENERALIZED_TIME => {
                let (year, rest) = text.split_at_checked(4)?;
                (100 * i32::from(number(&year[..2])?) + i32::from(number(&year[2..])?), rest)
            }
            _ => return None,
        };
        let digits = rest.strip_suffix(b"Z").filter(|digits| digits.len() == 10)?;
        let part = |index: usize| number(&digits[2 * index..2 * index + 2]);
        let (date, second) = (CivilDate { year, month: part(0)?, day: part(1)? }, part(4)?);
        // Parse a leap second as second 59 plus one: the calendar has no second 60.
        let leap = second == 60;
        let time = TimeOfDay { hour: part(2)?, minute: part(3)?, second: second - u8::from(leap) };
        let seconds = timestamp::unix_seconds(date, time)?;
        Some(seconds + i64::from(leap))
    }
}

/// Parses a number of two digits.
fn number(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + (digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_kinds_are_read_and_nothing_else() {
        let time = |tag: u8, text: &str| {
            let mut bytes = vec![tag, u8::try_from(text.len()).unwrap()];
            bytes.extend(text.as_bytes());
            Der(&bytes).time()
        };
        assert_eq!(time(UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(time(UTC_TIME, "491231235959Z"), Some(2_524_607_999));
        assert_eq!(time(UTC_TIME, "500101000000Z"), Some(-631_152_000));
        assert_eq!(time(GENERALIZED_TIME, "99991231235959Z"), Some(253_402_300_799));
        for bad in [
            "",
            "Z",
            "7001010000Z",
            "701301000000Z",
            "700100000000Z",
            "700101240000Z",
            "70010100000aZ",
            "700101000000+0000",
        ] {
            assert_eq!(time(UTC_TIME, bad), None, "{bad}");
        }
        assert_eq!(time(INTEGER, "700101000000Z"), None);
    }

    #[test]
    fn what_ends_too_early_is_no_certificate() {
        for bytes in [&b""[..], b"\x30", b"\x30\x80", b"\x30\x85\0\0\0\0\0", b"\x30\x82\xff\xff", b"\x30\x02\x30\x00"] {
            assert_eq!(validity(bytes), None, "{bytes:?}");
        }
    }
}
