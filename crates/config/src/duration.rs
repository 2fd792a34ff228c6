//! Reads durations as people write them: `500ms`, `30s`, `1.5m`, `2h`, `7d`.

use std::time::Duration;

/// Error for a text that is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a time such as 500ms, 20s, 5m, 1h or 7d")]
pub struct NoDuration;

/// Reads a number with its unit.
///
/// # Errors
/// Returns [`NoDuration`] if the text is not a duration, or is far too long.
pub fn read(text: &str) -> Result<Duration, NoDuration> {
    let split = text.find(|char: char| !char.is_ascii_digit() && char != '.').ok_or(NoDuration)?;
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return Err(NoDuration),
    };
    let number: f64 = number.parse().map_err(|_| NoDuration)?;
    Duration::try_from_secs_f64(number * factor).map_err(|_| NoDuration)
}

/// Reads a number with its unit, or a plain number of seconds.
///
/// # Errors
/// Returns [`NoDuration`] if the text is not a duration, or is far too long.
pub fn of_seconds(text: &str) -> Result<Duration, NoDuration> {
    read_or(text, Duration::from_secs(1))
}

/// Reads a number with its unit, or a plain number that counts in units of `plain`.
///
/// # Errors
/// Returns [`NoDuration`] if the text is not a duration, or is far too long.
pub fn read_or(text: &str, plain: Duration) -> Result<Duration, NoDuration> {
    match text.parse::<f64>() {
        Ok(number) => Duration::try_from_secs_f64(number * plain.as_secs_f64()).map_err(|_| NoDuration),
        Err(_) => read(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_number_and_a_unit() {
        for (text, millis) in [("500ms", 500), ("20s", 20_000), ("1.5m", 90_000), ("2h", 7_200_000), ("1d", 86_400_000)]
        {
            assert_eq!(read(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "5", "s", "5 s", "-1s", "99999999999999999999d", "1w", "1.2.3s", ".s"] {
            assert_eq!(read(bad), Err(NoDuration), "{bad}");
        }
        let second = Duration::from_secs(1);
        assert_eq!((read_or("3", second), read_or("3m", second)), (Ok(3 * second), Ok(180 * second)));
        for bad in ["", "-1", "NaN", "inf", "x"] {
            assert_eq!(read_or(bad, second), Err(NoDuration), "{bad}");
        }
    }
}
