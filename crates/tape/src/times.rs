//! Formats of times and durations in exports and reports.

/// Formats nanoseconds since 1970 as `2026-09-21T14:26:40.001Z`, to the millisecond.
pub(crate) fn rfc3339(unix: u64) -> String {
    signalbox_wire::timestamp::rfc3339_millis(unix / 1_000_000)
}

/// Formats nanoseconds as milliseconds with three decimal places.
pub(crate) fn millis(nanos: u64) -> String {
    format!("{}.{:03} ms", nanos / 1_000_000, nanos / 1_000 % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_durations_are_written() {
        assert_eq!(rfc3339(1_790_000_000_000_000_000), "2026-09-21T14:13:20.000Z");
        assert_eq!(millis(12_345_678), "12.345 ms");
    }
}
