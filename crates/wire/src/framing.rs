//! Formats a message as a single line.

use bytes::Bytes;
use memchr::memchr2;

use crate::json;

/// Reason why a message cannot be put on one line.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FramingError {
    /// A string has a raw line break. That is invalid JSON, and replacing the break would change the message.
    #[error("a raw line break inside the string at byte {at}")]
    BreakInString {
        /// Position of the string's opening quote.
        at: usize,
    },
}

/// Returns the message without CR and LF. Outside of strings, they become spaces, so that a pretty-printed body stays
/// one line. A message without line breaks is returned unchanged.
///
/// # Errors
/// If a string has a raw CR or LF.
pub fn single_line(bytes: &Bytes) -> Result<Bytes, FramingError> {
    let Some(_) = memchr2(b'\r', b'\n', bytes) else {
        return Ok(bytes.clone());
    };
    let mut out = bytes.to_vec();
    let mut at = 0;
    while let Some(quote) = memchr::memchr(b'"', &out[at..]).map(|found| at + found) {
        flatten(&mut out[at..quote]);
        // An unclosed string extends to the end, because its content cannot be told from what follows.
        at = json::skip_string(&out, quote).unwrap_or(out.len());
        if memchr2(b'\r', b'\n', &out[quote..at]).is_some() {
            return Err(FramingError::BreakInString { at: quote });
        }
    }
    flatten(&mut out[at..]);
    Ok(Bytes::from(out))
}

fn flatten(bytes: &mut [u8]) {
    for byte in bytes {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Bytes, FramingError> {
        single_line(&Bytes::copy_from_slice(text.as_bytes()))
    }

    /// Proves N-15.
    #[test]
    fn a_single_line_is_not_copied() {
        let bytes = Bytes::from_static(b"{\"a\": \"x\\ny\"}");
        assert_eq!(single_line(&bytes).unwrap().as_ptr(), bytes.as_ptr());
    }

    /// Proves N-15.
    #[test]
    fn line_breaks_become_spaces() {
        assert_eq!(check("{\r\n  \"a\": \"b\\\"c\",\n\"d\": 1\n}").unwrap(), "{    \"a\": \"b\\\"c\", \"d\": 1 }");
        assert_eq!(check("\n").unwrap(), " ");
    }

    /// Proves N-15.
    #[test]
    fn a_break_inside_a_string_is_refused() {
        assert_eq!(check("{\n\"a\":\"b\nc\"}"), Err(FramingError::BreakInString { at: 6 }));
        assert_eq!(check("{\"a\rb\":1}"), Err(FramingError::BreakInString { at: 1 }));
        assert_eq!(check("{\"a\\\n\":1}"), Err(FramingError::BreakInString { at: 1 }));
        assert_eq!(check("\"never closed\n"), Err(FramingError::BreakInString { at: 0 }));
    }
}
