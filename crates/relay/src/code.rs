//! Session codes: eight characters that a person reads off a page and gives to an agent.

use crate::random::{self, NoRandomness};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Length of a code, in characters.
const LENGTH: usize = 8;
/// Alphabet of generated codes: Base32, whose digits exclude those that look like letters.
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Session code. It gives access to the session, so its `Debug` output withholds it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Code([u8; LENGTH]);

/// Error for a text that is not a code.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a session code has {LENGTH} characters of A-Z and 0-9")]
pub struct NotACode;

impl Code {
    /// Generates a code of 40 random bits.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn new() -> Result<Self, NoRandomness> {
        Ok(Self::of(random::bytes()?))
    }

    fn of(bits: [u8; 5]) -> Self {
        let number = bits.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let digit = |place: usize| ALPHABET[(number >> (35 - 5 * place)) as usize & 31];
        Self(std::array::from_fn(digit))
    }

    /// Parses a code. Accepts 0, 1, 8 and 9 too, because earlier systems generated them.
    ///
    /// # Errors
    /// If the text has another form.
    pub fn parse(text: &str) -> Result<Self, NotACode> {
        let fits = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        let bytes: [u8; LENGTH] = text.as_bytes().try_into().map_err(|_| NotACode)?;
        if bytes.iter().all(fits) { Ok(Self(bytes)) } else { Err(NotACode) }
    }

    /// Returns the code in clear text, for peers that are entitled to it.
    #[must_use]
    pub fn expose(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(withheld)")
    }
}

impl TryFrom<String> for Code {
    type Error = NotACode;

    fn try_from(text: String) -> Result<Self, NotACode> {
        Self::parse(&text)
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.expose().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Base32 is given out, and codes with other digits, such as `ABC123XY`, are taken.
    /// Proves CO-1.
    #[test]
    fn codes_are_base32_and_those_of_earlier_systems_are_taken() {
        assert_eq!(Code::of([0; 5]).expose(), "AAAAAAAA");
        assert_eq!(Code::of([255; 5]).expose(), "77777777");
        assert_eq!(Code::of([0, 0, 0, 0, 33]).expose(), "AAAAAABB");
        for _ in 0..100 {
            let code = Code::new().unwrap();
            assert!(code.expose().bytes().all(|byte| ALPHABET.contains(&byte)));
            assert_eq!(Code::parse(code.expose()), Ok(code));
        }
        assert!(Code::parse("ABC123XY").is_ok() && Code::parse("A0189XYZ").is_ok());
        for bad in ["", "ABCDEFG", "ABCDEFGHI", "abcdefgh", "ABC-EFGH", "ABCDEFG ", "ÄBCDEFG", "ABCDEF\u{c4}"] {
            assert_eq!(Code::parse(bad), Err(NotACode), "{bad}");
        }
        assert_eq!(format!("{:?}", Code::parse("ABC123XY")), "Ok(Code(withheld))");
    }
}
