//! Canonical text of a JSON number: numbers of the same value have the same text, and others do not.

/// Longest run of zeros that is written out instead of an exponent.
const MAX_ZEROS: i64 = 21;

/// Returns the canonical text of a number that follows the grammar of JSON, or `None` if its exponent does not fit 64
/// bits. The value is never rounded, unlike that of a double.
pub(super) fn canonical_number(token: &str) -> Option<String> {
    let (negative, unsigned) = token.strip_prefix('-').map_or((false, token), |rest| (true, rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0').trim_end_matches('0');
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let dropped = all.len() - all.trim_end_matches('0').len();
    let exponent: i64 = exponent.parse().ok()?;
    let exponent =
        exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(i64::try_from(dropped).ok()?)?;
    let sign = if negative { "-" } else { "" };
    let length = i64::try_from(digits.len()).ok()?;
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    Some(match exponent {
        0..=MAX_ZEROS => format!("{sign}{digits}{}", zeros(exponent)),
        _ if exponent < 0 && exponent > -length => {
            let (whole, fraction) = digits.split_at(usize::try_from(length.checked_add(exponent)?).ok()?);
            format!("{sign}{whole}.{fraction}")
        }
        _ if exponent < 0 && exponent >= -length - MAX_ZEROS => {
            format!("{sign}0.{}{digits}", zeros(-exponent - length))
        }
        _ => format!("{sign}{digits}e{exponent}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_value_have_one_text() {
        for (text, tokens) in [
            ("0", &["0", "-0", "0.0", "0e9", "0e99999999999999999999"][..]),
            ("1", &["1", "1.0", "10e-1", "0.1e1", "1E+0", "1.000e0"]),
            ("-1.5", &["-1.5", "-15e-1", "-0.15E1"]),
            ("100", &["100", "1e2", "1.00E2"]),
            ("0.001", &["0.001", "1e-3"]),
            ("1e22", &["1e22", "10000000000000000000000"]),
            ("1e-23", &["1e-23", "0.1e-22"]),
            ("9007199254740993", &["9007199254740993", "9007199254740993.0"]),
        ] {
            for token in tokens {
                assert_eq!(canonical_number(token).as_deref(), Some(text), "{token}");
            }
        }
        assert_ne!(canonical_number("9007199254740993"), canonical_number("9007199254740992"));
        assert_eq!(canonical_number("1e-99999999999999999999"), None);
    }
}
