//! Times as RFC 3339 text, in UTC and to the second.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: i64 = 86_400;
/// 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z: RFC 3339 has four digits for the year.
const WRITABLE: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

/// Writes `time`, such as `2024-01-01T12:00:00Z`; what RFC 3339 cannot write becomes the nearest time it can.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let seconds = seconds_since_epoch(time).clamp(*WRITABLE.start(), *WRITABLE.end());
    let (year, month, day) = civil(seconds.div_euclid(SECONDS_PER_DAY));
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Whole seconds, rounded down, also before 1970.
fn seconds_since_epoch(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(error) => {
            let before = error.duration();
            let whole = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            -whole - i64::from(before.subsec_nanos() > 0)
        }
    }
}

/// Year, month and day of a day counted from 1970-01-01.
///
/// Counts in eras of 400 years whose years begin in March, which puts the leap day last.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn check(seconds: i64, expected: &str) {
        let length = Duration::from_secs(seconds.unsigned_abs());
        let time = if seconds < 0 { UNIX_EPOCH - length } else { UNIX_EPOCH + length };
        assert_eq!(rfc3339(time), expected);
    }

    #[test]
    fn known_moments() {
        check(0, "1970-01-01T00:00:00Z");
        check(1_704_110_400, "2024-01-01T12:00:00Z");
        check(951_782_399, "2000-02-28T23:59:59Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
        check(-1, "1969-12-31T23:59:59Z");
        check(-62_167_219_200, "0000-01-01T00:00:00Z");
        check(253_402_300_799, "9999-12-31T23:59:59Z");
    }

    #[test]
    fn fractions_round_down_and_extremes_stay_writable() {
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_millis(1)), "1969-12-31T23:59:59Z");
        assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(999)), "1970-01-01T00:00:00Z");
        check(400_000_000_000, "9999-12-31T23:59:59Z");
        check(-99_000_000_000, "0000-01-01T00:00:00Z");
    }

    #[test]
    fn days_follow_each_other_for_four_centuries() {
        let mut last = civil(-1);
        for day in 0..146_097 {
            let next = civil(day);
            let (year, month, of_month) = last;
            let follows = next == (year, month, of_month + 1)
                || next == (year, month + 1, 1)
                || (month == 12 && next == (year + 1, 1, 1));
            assert!(follows, "{last:?} then {next:?}");
            last = next;
        }
    }
}
