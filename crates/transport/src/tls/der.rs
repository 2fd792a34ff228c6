//! As much of DER as tells how long a certificate is good for.

/// From when and until when a certificate is good, in seconds since 1970.
///
/// ```text
/// Certificate ::= SEQUENCE { tbs SEQUENCE { [0] version?, serial, algorithm, issuer, validity SEQUENCE { from, until }, … } … }
/// ```
pub(super) fn validity(certificate: &[u8]) -> Option<(i64, i64)> {
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

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// What is left to read.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The tag and the content of the next value.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, mut rest) = rest.split_first()?;
        let mut length = usize::from(*first);
        if length >= 0x80 {
            // Four bytes of length are far beyond what is read of any file.
            let bytes = length - 0x80;
            let (digits, after) = rest.split_at_checked(bytes).filter(|_| (1..=4).contains(&bytes))?;
            length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
            rest = after;
        }
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }

    /// The content of the next value, which must have this tag.
    fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    fn time(&mut self) -> Option<i64> {
        let (tag, text) = self.next()?;
        let (year, rest) = match tag {
            UTC_TIME => {
                let (year, rest) = text.split_at_checked(2)?;
                let year = number(year)?;
                // Two digits stand for 1950 to 2049.
                (if year < 50 { 2000 + year } else { 1900 + year }, rest)
            }
            GENERALIZED_TIME => {
                let (year, rest) = text.split_at_checked(4)?;
                (number(year)?, rest)
            }
            _ => return None,
        };
        let digits = rest.strip_suffix(b"Z").filter(|digits| digits.len() == 10)?;
        let part = |index: usize| number(&digits[2 * index..2 * index + 2]);
        let (month, day, hour, minute, second) = (part(0)?, part(1)?, part(2)?, part(3)?, part(4)?);
        let fits = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
        fits.then(|| days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')))
}

/// Days from 1970 to a day of the Gregorian calendar. Years are counted from March, so that a leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, month) = (year.div_euclid(400), (month + 9) % 12);
    let year = year.rem_euclid(400);
    let day = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year * 365 + year / 4 - year / 100 + day - 719_468
}

/// The day that is so many after 1970: year, month, day.
pub(super) fn day(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (year, number) = (year + era * 400, day - (153 * month + 2) / 5 + 1);
    if month < 10 { (year, month + 3, number) } else { (year + 1, month - 9, number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_and_named_alike() {
        for (date, count) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2000, 3, 1), 11_017),
            ((2026, 11, 15), 20_772),
            ((9999, 12, 31), 2_932_896),
        ] {
            assert_eq!(days(date.0, date.1, date.2), count, "{date:?}");
            assert_eq!(day(count), date, "{count}");
        }
    }

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
