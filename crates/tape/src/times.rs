//! Times and durations as people write them.

/// Nanoseconds since 1970 as `2026-09-21T14:26:40.001Z`, to the millisecond.
pub(crate) fn rfc3339(unix: u64) -> String {
    let (seconds, millis) = (unix / 1_000_000_000, unix / 1_000_000 % 1_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a day since 1970, after Howard Hinnant's `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// Nanoseconds as milliseconds with three digits behind the point.
pub(crate) fn millis(nanos: u64) -> String {
    format!("{}.{:03} ms", nanos / 1_000_000, nanos / 1_000 % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_399_999_000_000), "2000-02-28T23:59:59.999Z");
        assert_eq!(rfc3339(951_868_799_000_000_000), "2000-02-29T23:59:59.000Z");
        assert_eq!(rfc3339(1_790_000_000_000_000_000), "2026-09-21T14:13:20.000Z");
        assert_eq!(rfc3339(u64::MAX), "2554-07-21T23:34:33.709Z");
        assert_eq!(millis(12_345_678), "12.345 ms");
    }
}
