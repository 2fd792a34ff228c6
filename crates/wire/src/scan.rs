//! Strict scan. Input that passes means the same to every JSON reader downstream.

use crate::codes;
use crate::limits::Limits;
use crate::scanner::{self, NullSink};

/// Rule of the strict scan that the input violates.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanErrorKind {
    /// The bytes are not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// The bytes start with a byte order mark.
    #[error("a byte order mark")]
    ByteOrderMark,
    /// The bytes end before the value does.
    #[error("unexpected end")]
    UnexpectedEnd,
    /// A byte is not allowed at its position.
    #[error("unexpected byte")]
    UnexpectedByte,
    /// Data follows the value.
    #[error("something after the end of the message")]
    TrailingData,
    /// A number does not follow the grammar.
    #[error("malformed number")]
    MalformedNumber,
    /// A backslash does not start a valid escape.
    #[error("malformed escape")]
    MalformedEscape,
    /// A string contains a raw control character.
    #[error("control character in a string")]
    ControlCharacter,
    /// A string contains half of a surrogate pair.
    #[error("lone surrogate in a string")]
    LoneSurrogate,
    /// An object has the same key twice.
    #[error("duplicate key")]
    DuplicateKey,
    /// A number is too large for an `f64`.
    #[error("number out of range")]
    NumberOutOfRange,
    /// The message exceeds the size limit.
    #[error("message too large")]
    TooLarge,
    /// Objects and arrays exceed the nesting limit.
    #[error("nested too deeply")]
    TooDeep,
    /// An object or array has too many members.
    #[error("too many members")]
    TooWide,
}

/// Violation with its position.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("{kind} at byte {at}")]
pub struct ScanError {
    /// Rule that was violated.
    pub kind: ScanErrorKind,
    /// Position of the byte at which it was detected.
    pub at: usize,
}

impl ScanError {
    /// Returns the JSON-RPC error code: a parse error if the bytes are not JSON, and an invalid request if they are
    /// JSON that is not accepted.
    #[must_use]
    pub fn code(&self) -> i64 {
        use ScanErrorKind as K;
        match self.kind {
            K::NotUtf8
            | K::ByteOrderMark
            | K::UnexpectedEnd
            | K::UnexpectedByte
            | K::TrailingData
            | K::MalformedNumber
            | K::MalformedEscape
            | K::ControlCharacter => codes::PARSE_ERROR,
            K::LoneSurrogate | K::DuplicateKey | K::NumberOutOfRange | K::TooLarge | K::TooDeep | K::TooWide => {
                codes::INVALID_REQUEST
            }
        }
    }
}

/// Checks that `bytes` are one JSON value by RFC 8259, in UTF-8, without duplicate keys or lone surrogates, with
/// numbers finite as `f64`, and within `limits`.
///
/// # Errors
/// The first violation found. A duplicate key is detected when its object closes.
pub fn scan(bytes: &[u8], limits: &Limits) -> Result<(), ScanError> {
    scanner::run(bytes, limits, &mut NullSink)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScanErrorKind as K;

    fn check(text: impl AsRef<[u8]>) -> Result<(), (K, usize)> {
        let limits = Limits { message: 1000, depth: 4, width: 20, ..Limits::default() };
        scan(text.as_ref(), &limits).map_err(|error| (error.kind, error.at))
    }

    #[test]
    fn accepts_json() {
        for text in [
            "{}",
            "[]",
            " [ ] ",
            "0",
            "\"\"",
            "null",
            r#"{"a":[1,-2.5e3,true,false,null,{"b":"\u00e9\ud83d\ude00é"}],"":{}}"#,
            "[[[[]]]]",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    /// Proves S-66.
    #[test]
    fn says_what_is_wrong_and_where() {
        assert_eq!(check(""), Err((K::UnexpectedEnd, 0)));
        assert_eq!(check("{\"a\":1"), Err((K::UnexpectedEnd, 6)));
        assert_eq!(check("[1,]"), Err((K::UnexpectedByte, 3)));
        assert_eq!(check("{\"a\" 1}"), Err((K::UnexpectedByte, 5)));
        assert_eq!(check("[1}"), Err((K::UnexpectedByte, 2)));
        assert_eq!(check("{,}"), Err((K::UnexpectedByte, 1)));
        assert_eq!(check("tru"), Err((K::UnexpectedByte, 0)));
        assert_eq!(check("{} x"), Err((K::TrailingData, 3)));
        assert_eq!(check("[01]"), Err((K::UnexpectedByte, 2)));
        assert_eq!(check("[-]"), Err((K::MalformedNumber, 1)));
        assert_eq!(check("[1e999]"), Err((K::NumberOutOfRange, 1)));
        assert_eq!(check("\"a\nb\""), Err((K::ControlCharacter, 2)));
        assert_eq!(check("\"a"), Err((K::UnexpectedEnd, 2)));
        assert_eq!(check("\"\\"), Err((K::UnexpectedEnd, 2)));
        assert_eq!(check(r#""\x""#), Err((K::MalformedEscape, 1)));
        assert_eq!(check(r#""\u12G4""#), Err((K::MalformedEscape, 1)));
        assert_eq!(check(r#""\ud800x""#), Err((K::LoneSurrogate, 1)));
        assert_eq!(check(r#""\udc00""#), Err((K::LoneSurrogate, 1)));
        assert_eq!(check(b"\"\xff\""), Err((K::NotUtf8, 1)));
        assert_eq!(check("\u{feff}{}"), Err((K::ByteOrderMark, 0)));
    }

    #[test]
    fn duplicate_keys_are_found_in_any_spelling_and_at_any_depth() {
        assert_eq!(check(r#"{"a":1,"a":2}"#), Err((K::DuplicateKey, 7)));
        assert_eq!(check(r#"[{"b":{"a":1,"\u0061":2}}]"#), Err((K::DuplicateKey, 13)));
        assert_eq!(check(r#"{"a":{"a":1},"b":{"a":1}}"#), Ok(()));
        let many: String = (0..18).map(|n| format!("\"{n}\":0,")).collect();
        assert_eq!(check(format!("{{{many}\"x\":0}}")), Ok(()));
        let at = 1 + many.len();
        assert_eq!(check(format!("{{{many}\"3\":0}}")), Err((K::DuplicateKey, at)));
    }

    #[test]
    fn size_depth_and_width_are_bounded() {
        assert_eq!(check("[[[[[]]]]]"), Err((K::TooDeep, 4)));
        let wide = |count: usize| format!("[{}]", vec!["1"; count].join(","));
        assert_eq!(check(wide(20)), Ok(()));
        assert_eq!(check(wide(21)), Err((K::TooWide, 40)));
        assert_eq!(check(format!("\"{}\"", "x".repeat(998))), Ok(()));
        assert_eq!(check(format!("\"{}\"", "x".repeat(999))), Err((K::TooLarge, 1000)));
        let deep = "[".repeat(10_000_000);
        assert_eq!(scan(deep.as_bytes(), &Limits::default()).unwrap_err().kind, K::TooDeep);
    }

    #[test]
    fn every_special_byte_is_found_at_every_place() {
        for length in 0..200 {
            for (byte, expected) in [(b'"', K::TrailingData), (b'\\', K::MalformedEscape), (7, K::ControlCharacter)] {
                let mut text = vec![b'x'; length + 2];
                text[0] = b'"';
                text[length + 1] = byte;
                text.extend_from_slice(b"yyyyyyyyyyyyyyyyyyyyyyyyy");
                assert_eq!(check(&text).unwrap_err().0, expected, "{length}");
            }
            let high = format!("\"{}é\u{7f}\"", "x".repeat(length));
            assert_eq!(check(&high), Ok(()));
        }
    }

    #[test]
    fn codes_tell_what_is_not_json_from_what_is_not_accepted() {
        let code = |text: &str| scan(text.as_bytes(), &Limits::default()).unwrap_err().code();
        assert_eq!(code("{"), codes::PARSE_ERROR);
        assert_eq!(code(r#"{"a":1,"a":1}"#), codes::INVALID_REQUEST);
        let error = ScanError { kind: K::DuplicateKey, at: 7 };
        assert_eq!(error.to_string(), "duplicate key at byte 7");
    }
}
