//! JSON as Cedar values: null is absent, integers are `Long`, other numbers exact decimals.

use cedar_policy::RestrictedExpression;
use signalbox_wire::json;

/// Maximum nesting depth of values.
pub const MAX_DEPTH: usize = 64;
/// Number of decimal places of a Cedar decimal.
const SCALE: u32 = 4;

/// Reason why Cedar cannot represent a value. It never quotes the value, because it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// A whole number that does not fit 64 bits.
    #[error("it is too large for a whole number")]
    TooLarge,
    /// A number that is not an exact decimal.
    #[error("it is not exact with four digits after the point")]
    NotExact,
    /// The nesting exceeds [`MAX_DEPTH`].
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("it is not JSON")]
    Malformed,
}

/// Converts JSON to a Cedar value; `None` for null.
///
/// # Errors
/// The reason why Cedar cannot represent it.
pub fn value(token: &[u8]) -> Result<Option<RestrictedExpression>, ValueError> {
    at_depth(token.trim_ascii(), 0)
}

fn at_depth(token: &[u8], depth: usize) -> Result<Option<RestrictedExpression>, ValueError> {
    if depth > MAX_DEPTH {
        return Err(ValueError::TooDeep);
    }
    Ok(Some(match token.first() {
        Some(b'n') => return Ok(None),
        Some(b't' | b'f') => RestrictedExpression::new_bool(token == b"true"),
        Some(b'"') => RestrictedExpression::new_string(json::string(token).ok_or(ValueError::Malformed)?.into_owned()),
        Some(b'[') => {
            let mut items = Vec::new();
            for span in json::elements(token) {
                items.extend(at_depth(span.of(token), depth + 1)?);
            }
            RestrictedExpression::new_set(items)
        }
        Some(b'{') => {
            let mut fields = Vec::new();
            for member in json::members(token) {
                let key = json::string(member.key.of(token)).ok_or(ValueError::Malformed)?;
                if let Some(field) = at_depth(member.value.of(token), depth + 1)? {
                    fields.push((key.into_owned(), field));
                }
            }
            RestrictedExpression::new_record(fields).map_err(|_| ValueError::Malformed)?
        }
        Some(b'-' | b'0'..=b'9') => number(std::str::from_utf8(token).map_err(|_| ValueError::Malformed)?)?,
        _ => return Err(ValueError::Malformed),
    }))
}

fn number(token: &str) -> Result<RestrictedExpression, ValueError> {
    if !token.contains(['.', 'e', 'E']) {
        let whole = token.parse().map_err(|_| ValueError::TooLarge)?;
        return Ok(RestrictedExpression::new_long(whole));
    }
    exact(token).map(RestrictedExpression::new_decimal).ok_or(ValueError::NotExact)
}

/// Formats a number as a Cedar decimal, if it is exactly representable.
fn exact(token: &str) -> Option<String> {
    let (sign, token) = token.strip_prefix('-').map_or(("", token), |rest| ("-", rest));
    let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0');
    if kept.trim_start_matches('0').is_empty() {
        return Some("0.0".to_owned());
    }
    // The value is `kept` times ten to this power.
    let dropped = i64::try_from(digits.len() - kept.len()).ok()?;
    let power = exponent.parse::<i64>().ok()?.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(dropped)?;
    let shift = u32::try_from(power.checked_add(i64::from(SCALE))?).ok()?;
    let scaled = kept.parse::<i128>().ok()?.checked_mul(10_i128.checked_pow(shift)?)?;
    let unit = 10_i128.pow(SCALE);
    let most = i128::from(i64::MAX) + i128::from(!sign.is_empty());
    (scaled <= most).then(|| format!("{sign}{}.{:04}", scaled / unit, scaled % unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_an_error() {
        for (token, decimal) in [
            ("1.5", Some("1.5000")),
            ("-1.25e1", Some("-12.5000")),
            ("1e2", Some("100.0000")),
            ("0.0001", Some("0.0001")),
            ("0.00010", Some("0.0001")),
            ("1000e-3", Some("1.0000")),
            ("0.0", Some("0.0")),
            ("-0e9", Some("0.0")),
            ("922337203685477.5807", Some("922337203685477.5807")),
            ("-922337203685477.5808", Some("-922337203685477.5808")),
            ("922337203685477.5808", None),
            ("0.00001", None),
            ("1e400", None),
            ("1e-400", None),
            ("1e99999999999999999999", None),
        ] {
            assert_eq!(exact(token).as_deref(), decimal, "{token}");
        }
        assert!(value(b"9223372036854775807").is_ok());
        assert_eq!(value(b"9223372036854775808"), Err(ValueError::TooLarge));
        assert_eq!(value(b"0.00001"), Err(ValueError::NotExact));
    }

    #[test]
    fn null_is_absent_wherever_it_stands() {
        let same = |one: &[u8], other: &[u8]| {
            assert_eq!(format!("{:?}", value(one)), format!("{:?}", value(other)), "{}", String::from_utf8_lossy(one));
        };
        assert_eq!(value(b" null ").unwrap().map(|_| ()), None);
        same(br#"{"a":null,"b":[null,1]}"#, br#"{"b":[1]}"#);
        assert_ne!(format!("{:?}", value(b"1")), format!("{:?}", value(b"1.0")), "a decimal is not a Long");
    }

    #[test]
    fn what_is_too_deep_or_no_json_is_refused() {
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH + 2), "]".repeat(MAX_DEPTH + 2));
        assert_eq!(value(deep.as_bytes()), Err(ValueError::TooDeep));
        assert_eq!(value(b"hello"), Err(ValueError::Malformed));
        assert_eq!(value(b""), Err(ValueError::Malformed));
    }
}
