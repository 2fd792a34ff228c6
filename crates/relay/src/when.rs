//! Time formats of the legacy API.

use time::{Date, Month, OffsetDateTime, Weekday};

/// Formats milliseconds since 1970 as `2026-11-17T18:53:21.000Z`.
#[must_use]
pub fn iso(millis: u64) -> String {
    let seconds = i64::try_from(millis / 1_000).unwrap_or(i64::MAX);
    let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, time) = (at.date(), at.time());
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        time.hour(),
        time.minute(),
        time.second(),
        millis % 1_000
    )
}

/// Formats the beginning of a day, `2027-06-30`, as an HTTP date. `None` if it is not a day.
#[must_use]
pub fn http_date(day: &str) -> Option<String> {
    let mut parts = day.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let month = Month::try_from(month.parse::<u8>().ok()?).ok()?;
    let date = Date::from_calendar_date(year.parse().ok()?, month, day.parse().ok()?).ok()?;
    let weekday = match date.weekday() {
        Weekday::Monday => "Mon",
        Weekday::Tuesday => "Tue",
        Weekday::Wednesday => "Wed",
        Weekday::Thursday => "Thu",
        Weekday::Friday => "Fri",
        Weekday::Saturday => "Sat",
        Weekday::Sunday => "Sun",
    };
    let name = month.to_string();
    Some(format!("{weekday}, {:02} {} {:04} 00:00:00 GMT", date.day(), name.get(..3)?, date.year()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_form_that_clients_read() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(1_794_941_601_042), "2026-11-17T18:53:21.042Z");
        assert_eq!(http_date("2027-06-30").as_deref(), Some("Wed, 30 Jun 2027 00:00:00 GMT"));
        for bad in ["2027-06-31", "2027-6-30", "soon", "", "2027-06"] {
            assert_eq!(http_date(bad), None, "{bad}");
        }
    }
}
