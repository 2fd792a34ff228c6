//! Times and durations in the notations that people write and read.

use signalbox_wire::timestamp::{self, CivilDate, TimeOfDay};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// Error for a text that is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid time; write 2026-11-15, 2026-11-15T09:05:00Z, or how long ago: 90s, 30m, 2h, 7d")]
pub struct BadTime(String);

/// Formats nanoseconds since 1970 as `2026-11-15 09:05:00 UTC`.
#[must_use]
pub fn shown(nanos: u64) -> String {
    timestamp::readable(i64::try_from(nanos / SECOND).unwrap_or(i64::MAX))
}

/// Formats the time of day to the millisecond.
#[must_use]
pub fn time_of_day(nanos: u64) -> String {
    let (seconds, millis) = (nanos / SECOND % 86_400, nanos / 1_000_000 % 1000);
    format!("{:02}:{:02}:{:02}.{millis:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Formats a duration in nanoseconds, in a suitable unit.
#[must_use]
pub fn length(nanos: u64) -> String {
    match nanos {
        0..10_000 => format!("{nanos} ns"),
        10_000..10_000_000 => format!("{} µs", nanos / 1000),
        10_000_000..10_000_000_000 => format!("{} ms", nanos / 1_000_000),
        _ => format!("{} s", nanos / SECOND),
    }
}

/// Parses a time, or a duration before `now`.
///
/// # Errors
/// Fails if the text is neither.
pub fn read(text: &str, now: u64) -> Result<u64, BadTime> {
    let bad = || BadTime(text.to_owned());
    if let Some(ago) = ago(text) {
        return Ok(now.saturating_sub(u64::try_from(ago.as_nanos()).map_err(|_| bad())?));
    }
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
    let numbers = |text: &str, by: char| -> Option<Vec<u16>> {
        text.split(by).map(|part| part.parse().ok().filter(|_| part.len() <= 4)).collect()
    };
    let time = time.strip_suffix('Z').unwrap_or(time);
    let (Some(date), Some(time)) = (numbers(date, '-'), numbers(time, ':')) else { return Err(bad()) };
    let small = |number: u16| u8::try_from(number).unwrap_or(u8::MAX);
    let seconds = match (&*date, &*time) {
        (&[year @ 1970..=2500, month, day], &[hour, minute, ref second @ ..]) if second.len() <= 1 => {
            let second = second.first().copied().unwrap_or_default();
            let date = CivilDate { year: i32::from(year), month: small(month), day: small(day) };
            let time = TimeOfDay { hour: small(hour), minute: small(minute), second: small(second) };
            timestamp::unix_seconds(date, time)
        }
        _ => None,
    };
    seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(|seconds| seconds * SECOND).ok_or_else(bad)
}

fn ago(text: &str) -> Option<Duration> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    let count: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    Some(Duration::from_secs(count.checked_mul(unit)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_shown() {
        let now = 1_795_000_000 * SECOND;
        let at = |text: &str| read(text, now).map(shown);
        assert_eq!(at("2026-11-15").unwrap(), "2026-11-15 00:00:00 UTC");
        assert_eq!(at("2024-02-29T23:59:58Z").unwrap(), "2024-02-29 23:59:58 UTC");
        assert_eq!(at("2026-11-15 09:05").unwrap(), "2026-11-15 09:05:00 UTC");
        assert_eq!(read("2h", now).unwrap(), now - 7200 * SECOND);
        for bad in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-02-30",
            "2026-11-15T25:00:00",
            "1999999999-01-01",
            "-3d",
            "99999999999999999999d",
        ] {
            assert_eq!(at(bad), Err(BadTime(bad.to_owned())), "{bad}");
        }
    }

    #[test]
    fn lengths_have_the_unit_that_suits_them() {
        let shown: Vec<String> = [9, 12_345, 12_345_678, 12_345_678_900].into_iter().map(length).collect();
        assert_eq!(shown, ["9 ns", "12 µs", "12 ms", "12 s"]);
    }
}
