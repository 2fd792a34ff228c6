//! Converts UTC timestamps to text and back.
//!
//! RFC 3339 has four digits for the year. Timestamps outside the years 0 to 9999 are clamped.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::{Date, Month, OffsetDateTime, Time};

/// First and last second that RFC 3339 can express: 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z.
const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;
const SECONDS_PER_DAY: i64 = 86_400;

fn moment(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(seconds.clamp(FIRST, LAST)).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn date_and_time(seconds: i64, between: char) -> String {
    let at = moment(seconds);
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    format!("{year:04}-{month:02}-{day:02}{between}{:02}:{:02}:{:02}", at.hour(), at.minute(), at.second())
}

/// Returns the whole seconds since 1970, rounded down, even before 1970.
#[must_use]
pub fn seconds_of(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(error) => {
            let before = error.duration();
            let whole = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            -whole - i64::from(before.subsec_nanos() > 0)
        }
    }
}

/// Returns the time since 1970; zero before 1970.
#[must_use]
pub fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the whole milliseconds since 1970; 0 before 1970.
#[must_use]
pub fn millis_of(time: SystemTime) -> u64 {
    u64::try_from(since_1970(time).as_millis()).unwrap_or(u64::MAX)
}

/// Returns the nanoseconds since 1970; 0 before 1970.
#[must_use]
pub fn nanos_of(time: SystemTime) -> u64 {
    u64::try_from(since_1970(time).as_nanos()).unwrap_or(u64::MAX)
}

/// Formats seconds since 1970 as `2026-09-21T14:26:40Z`.
#[must_use]
pub fn rfc3339(seconds: i64) -> String {
    date_and_time(seconds, 'T') + "Z"
}

/// Formats milliseconds since 1970 as `2026-09-21T14:26:40.001Z`.
#[must_use]
pub fn rfc3339_millis(millis: u64) -> String {
    let mut text = String::with_capacity(24);
    push_rfc3339_millis(&mut text, millis);
    text
}

/// Appends milliseconds since 1970 as `2026-09-21T14:26:40.001Z`. Audit records need this for every call, so it avoids
/// the formatting machinery.
pub fn push_rfc3339_millis(out: &mut String, millis: u64) {
    let at = moment(i64::try_from(millis / 1_000).unwrap_or(i64::MAX));
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let mut put = |end: usize, mut number: u32| {
        let mut at = end;
        while number > 0 {
            at -= 1;
            // The remainder is a single digit.
            text[at] = b'0' + (number % 10) as u8;
            number /= 10;
        }
    };
    put(4, at.year().unsigned_abs());
    put(7, u8::from(at.month()).into());
    put(10, at.day().into());
    put(13, at.hour().into());
    put(16, at.minute().into());
    put(19, at.second().into());
    put(23, (millis % 1_000) as u32);
    // Digits and punctuation are valid UTF-8.
    out.push_str(str::from_utf8(&text).unwrap_or_default());
}

/// Formats seconds since 1970 for display: `2026-11-15 09:05:00 UTC`.
#[must_use]
pub fn readable(seconds: i64) -> String {
    date_and_time(seconds, ' ') + " UTC"
}

/// Returns the date `days` days after 1970-01-01.
#[must_use]
pub fn date_of_day(days: i64) -> CivilDate {
    let at = moment(days.saturating_mul(SECONDS_PER_DAY));
    CivilDate { year: at.year(), month: at.month().into(), day: at.day() }
}

/// Day of the calendar, which may not exist.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CivilDate {
    /// Year, counted from the birth of Christ.
    pub year: i32,
    /// Month of the year, from 1.
    pub month: u8,
    /// Day of the month, from 1.
    pub day: u8,
}

/// Time of a day, which may not exist.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct TimeOfDay {
    /// Hour, from 0 to 23.
    pub hour: u8,
    /// Minute of the hour.
    pub minute: u8,
    /// Second of the minute.
    pub second: u8,
}

/// Returns the seconds since 1970 of a date and time of day, or `None` if the calendar has no such time.
#[must_use]
pub fn unix_seconds(date: CivilDate, time: TimeOfDay) -> Option<i64> {
    let date = Date::from_calendar_date(date.year, Month::try_from(date.month).ok()?, date.day).ok()?;
    let time = Time::from_hms(time.hour, time.minute, time.second).ok()?;
    Some(date.with_time(time).assume_utc().unix_timestamp())
}

/// Parses a timestamp such as `2026-09-21T14:26:40.001Z` or `2026-09-21T16:26:40+02:00` to nanoseconds since 1970. A
/// text without a zone is UTC. Returns `None` for an invalid timestamp or one before 1970.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let number = |text: &str, digits: usize| -> Option<u8> {
        (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
    };
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let (time, offset) = zone(rest)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    if fraction.len() > 18 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut date = date.split('-');
    let year = date.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let (month, day) = (number(date.next()?, 2)?, number(date.next()?, 2)?);
    let mut time = time.split(':');
    let (hour, minute) = (number(time.next()?, 2)?, number(time.next()?, 2)?);
    // A leap second counts as the second before it.
    let second = time.next().map_or(Some(0), |second| number(second, 2))?.min(59);
    if date.next().is_some() || time.next().is_some() {
        return None;
    }
    let seconds =
        unix_seconds(CivilDate { year, month, day }, TimeOfDay { hour, minute, second })?.checked_sub(offset)?;
    let nanos = format!("{fraction:0<9}").get(..9)?.parse::<u64>().ok()?;
    u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// Splits a time of day from its zone. Returns the zone's offset from UTC in seconds.
fn zone(text: &str) -> Option<(&str, i64)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, 0)) };
    let (time, zone) = text.split_at_checked(at)?;
    let digits: String = zone.chars().skip(1).filter(|letter| *letter != ':').collect();
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = digits.get(2..4).map_or(Some(0), |minutes| minutes.parse().ok())?;
    let ahead = hours * 3600 + minutes * 60;
    (digits.len() <= 4 && hours < 24 && minutes < 60)
        .then_some((time, if zone.starts_with('-') { -ahead } else { ahead }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_are_written_in_every_form() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_704_110_400, "2024-01-01T12:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (i64::MIN, "0000-01-01T00:00:00Z"),
            (i64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), expected);
        }
        assert_eq!(rfc3339_millis(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339_millis(951_782_400_001), "2000-02-29T00:00:00.001Z");
        assert_eq!(rfc3339_millis(1_790_000_000_000), "2026-09-21T14:13:20.000Z");
        assert_eq!(rfc3339_millis(u64::MAX / 1_000_000), "2554-07-21T23:34:33.709Z");
        assert_eq!(readable(951_868_799), "2000-02-29 23:59:59 UTC");
    }

    #[test]
    fn fractions_of_a_second_round_down() {
        assert_eq!(seconds_of(UNIX_EPOCH - Duration::from_millis(1)), -1);
        assert_eq!(seconds_of(UNIX_EPOCH + Duration::from_millis(999)), 0);
    }

    #[test]
    fn days_are_counted_and_named_alike() {
        let of = |year, month, day| CivilDate { year, month, day };
        let midnight = TimeOfDay::default();
        for (date, days) in [
            (of(1970, 1, 1), 0),
            (of(1969, 12, 31), -1),
            (of(2000, 2, 29), 11_016),
            (of(2000, 3, 1), 11_017),
            (of(2026, 11, 15), 20_772),
            (of(9999, 12, 31), 2_932_896),
        ] {
            assert_eq!(unix_seconds(date, midnight), Some(days * SECONDS_PER_DAY), "{date:?}");
            assert_eq!(date_of_day(days), date, "{days}");
        }
        assert_eq!(unix_seconds(of(2026, 2, 29), midnight), None, "the calendar has no such day");
        assert_eq!(unix_seconds(of(2026, 2, 28), TimeOfDay { hour: 24, ..midnight }), None);
    }

    #[test]
    fn moments_are_read_with_and_without_a_zone() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2026-09-21T14:26:40.001Z", Some(1_790_000_800_001_000_000)),
            ("2026-09-21T16:26:40.001+02:00", Some(1_790_000_800_001_000_000)),
            ("2026-09-21 09:26:40-0500", Some(1_790_000_800_000_000_000)),
            ("2026-09-21T14:26:40.123456789123", Some(1_790_000_800_123_456_789)),
            ("2026-09-21T14:26", Some(1_790_000_760_000_000_000)),
            ("1969-12-31T23:59:59Z", None),
            ("2026-02-30T00:00:00Z", None),
            ("2026-09-21", None),
            ("2026-09-21T14:26:40.x", None),
            ("2026-09-21T14:26:40+\u{e4}1", None),
            ("T", None),
            ("", None),
        ] {
            assert_eq!(parse_rfc3339(text), expected, "{text}");
        }
    }
}
