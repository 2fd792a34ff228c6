//! Grammar of JSON numbers, shared by the envelope, the strict scan and the header rules.

/// Returns the length of the number at the start of `bytes`, or `None` if there is none.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    match bytes.get(at)? {
        b'0' => at += 1,
        b'1'..=b'9' => at += digits(bytes, at),
        _ => return None,
    }
    if bytes.get(at) == Some(&b'.') {
        let count = digits(bytes, at + 1);
        if count == 0 {
            return None;
        }
        at += 1 + count;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        let count = digits(bytes, at);
        if count == 0 {
            return None;
        }
        at += count;
    }
    Some(at)
}

/// Returns the length of a positive integer of at most 15 digits at the start of `bytes`. Ids and counts nearly always
/// take this fast path.
#[inline]
pub(crate) fn short_integer(bytes: &[u8]) -> Option<usize> {
    const MAX_DIGITS: usize = 15;
    if !matches!(bytes.first(), Some(b'1'..=b'9')) {
        return None;
    }
    let mut length = 1;
    for byte in bytes.iter().skip(1) {
        match byte {
            b'0'..=b'9' if length < MAX_DIGITS => length += 1,
            b'0'..=b'9' | b'.' | b'e' | b'E' => return None,
            _ => break,
        }
    }
    Some(length)
}

#[inline]
fn digits(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or(&[]);
    rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len())
}

/// Returns `true` if the number is finite as an `f64`. Only a number with an exponent or hundreds of digits may not be.
pub(crate) fn is_finite(token: &[u8]) -> bool {
    const SURELY_FINITE: usize = 300;
    if token.len() < SURELY_FINITE && !token.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return true;
    }
    to_f64(token).is_some_and(f64::is_finite)
}

/// Parses the number as an `f64`.
pub(crate) fn to_f64(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// Largest integer up to which every integer is exact as an `f64`.
pub(crate) const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// Returns the value of an integer within the exact range of `f64`: `42.0` is 42.
pub(crate) fn to_safe_integer(token: &[u8]) -> Option<i64> {
    if length(token) != Some(token.len()) {
        return None;
    }
    let text = std::str::from_utf8(token).ok()?;
    let integer = match text.parse::<i64>() {
        Ok(integer) => integer,
        Err(_) => {
            let float: f64 = text.parse().ok()?;
            let whole = float.trunc() == float && float.abs() <= MAX_SAFE_INTEGER as f64;
            whole.then_some(float as i64)?
        }
    };
    (integer.unsigned_abs() <= MAX_SAFE_INTEGER.unsigned_abs()).then_some(integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar() {
        for good in ["0", "-0", "1", "-12", "0.5", "1e3", "1E+3", "1.25e-7"] {
            assert_eq!(length(good.as_bytes()), Some(good.len()), "{good}");
        }
        for bad in ["", "-", ".5", "1.", "1.e3", "1e", "1e+", "+1", "x"] {
            assert_eq!(length(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(length(b"01"), Some(1));
    }

    #[test]
    fn short_integers() {
        for (text, length) in [("1", 1), ("90210,", 5), ("123456789012345}", 15), ("7x", 1)] {
            assert_eq!(short_integer(text.as_bytes()), Some(length), "{text}");
        }
        for other in ["", "0", "01", "-1", "1.5", "12e3", "1E9", "1234567890123456", "x"] {
            assert_eq!(short_integer(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn finiteness() {
        assert!(is_finite(b"1e308"));
        assert!(is_finite(b"1e-999"));
        assert!(!is_finite(b"1e309"));
        assert!(!is_finite("9".repeat(400).as_bytes()));
        assert!(is_finite("9".repeat(305).as_bytes()));
    }

    #[test]
    fn safe_integers() {
        assert_eq!(to_safe_integer(b"42"), Some(42));
        assert_eq!(to_safe_integer(b"42.0"), Some(42));
        assert_eq!(to_safe_integer(b"4.2e1"), Some(42));
        assert_eq!(to_safe_integer(b"-0"), Some(0));
        assert_eq!(to_safe_integer(b"9007199254740991"), Some(MAX_SAFE_INTEGER));
        for other in ["9007199254740992", "1.5", "1e400", "\"1\"", "", "0x1", "+1", "-9223372036854775808"] {
            assert_eq!(to_safe_integer(other.as_bytes()), None, "{other}");
        }
    }
}
