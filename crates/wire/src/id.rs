//! Request ids in their original notation.

use std::fmt;

use bytes::Bytes;

use crate::json;

/// Raw JSON token of an id. Ids are equal if their bytes are, so `1`, `"1"` and `1.0` differ, and every id returns to
/// its sender unchanged.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RawId(Bytes);

impl RawId {
    /// Creates an id from a token of valid JSON.
    #[must_use]
    pub fn from_token(token: Bytes) -> Self {
        Self(token)
    }

    /// Creates a numeric id.
    #[must_use]
    pub fn number(number: u64) -> Self {
        Self(Bytes::copy_from_slice(Digits::of(number).as_ref()))
    }

    /// Creates a string id. Escapes `text` as needed.
    #[must_use]
    pub fn string(text: &str) -> Self {
        Self(Bytes::from(json::quote(text)))
    }

    /// Creates the `null` id, for an error about a message whose id could not be read.
    #[must_use]
    pub fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    /// Returns the token as it appears in a message.
    #[must_use]
    pub fn token(&self) -> &[u8] {
        &self.0
    }

    /// Returns the token as a shared buffer.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Returns the number if the token is a plain unsigned integer: digits only, no leading zero.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        plain_number(&self.0)
    }

    /// Returns `true` if the id is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        &self.0[..] == b"null"
    }

    /// Copies the id into its own buffer, so that storing it does not keep the whole message alive.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }
}

/// Decimal digits of a number, formatted without allocation.
#[derive(Copy, Clone, Debug)]
pub struct Digits {
    text: [u8; 20],
    start: usize,
}

impl Digits {
    /// Formats a number in decimal.
    #[must_use]
    pub fn of(number: u64) -> Self {
        let mut digits = Self { text: [b'0'; 20], start: 20 };
        let mut left = number;
        loop {
            digits.start -= 1;
            digits.text[digits.start] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                return digits;
            }
        }
    }
}

impl AsRef<[u8]> for Digits {
    fn as_ref(&self) -> &[u8] {
        self.text.get(self.start..).unwrap_or(&[])
    }
}

/// Parses a token of digits without a leading zero.
pub(crate) fn plain_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 1 && digits[0] == b'0' {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let value = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(value)
    })
}

impl fmt::Display for RawId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for RawId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(token: &'static str) -> RawId {
        RawId::from_token(Bytes::from_static(token.as_bytes()))
    }

    #[test]
    fn numbers_are_written_in_digits() {
        for number in [0, 7, 10, 1_000_000, u64::MAX] {
            assert_eq!(Digits::of(number).as_ref(), number.to_string().as_bytes());
        }
    }

    /// Proves S-4.
    #[test]
    fn numbers_and_strings_stay_what_they_are() {
        assert_ne!(id("1"), id("\"1\""));
        assert_ne!(id("1"), id("1.0"));
        assert_eq!(id("7"), RawId::number(7));
        assert_eq!(id("\"a\\\"b\""), RawId::string("a\"b"));
        assert_eq!(format!("{} {:?}", id("1.0"), id("\"x\"")), "1.0 \"x\"");
        assert_eq!(id("5").detached(), id("5"));
    }

    #[test]
    fn only_plain_unsigned_integers_are_numbers() {
        assert_eq!(id("0").as_u64(), Some(0));
        assert_eq!(id("18446744073709551615").as_u64(), Some(u64::MAX));
        for other in ["18446744073709551616", "01", "-1", "1.0", "1e3", "\"1\"", "null", ""] {
            assert_eq!(id(other).as_u64(), None, "{other}");
        }
    }

    /// Proves N-43.
    #[test]
    fn null_is_an_id_of_its_own() {
        assert!(RawId::null().is_null());
        assert!(!id("\"null\"").is_null());
    }
}
