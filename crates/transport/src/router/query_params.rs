//! Parses the query of a request, and decodes percent-encoded text. Malformed input is refused, never repaired.

use percent_encoding::percent_decode_str;

/// Maximum number of parameters in a query.
pub const MAX_PARAMETERS: usize = 256;

/// Text with invalid percent-encoding.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Undecodable {
    /// A percent sign without two hexadecimal digits after it.
    #[error("a `%` needs two hexadecimal digits behind it")]
    Percent,
    /// The decoded bytes are not UTF-8.
    #[error("its percent signs do not stand for UTF-8")]
    Utf8,
}

/// Reasons why a query is refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QueryError {
    /// The query cannot be decoded.
    #[error(transparent)]
    Undecodable(#[from] Undecodable),
    /// The query has too many parameters.
    #[error("it has more than {MAX_PARAMETERS} parameters")]
    TooMany,
}

/// Decodes percent-encoded text. Invalid encoding is an error.
pub fn decode(text: &str) -> Result<String, Undecodable> {
    let hexadecimal = |digits: &[u8]| digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
    // Every part but the first follows a percent sign.
    let well_formed = |part: &str| hexadecimal(part.as_bytes().get(..2).unwrap_or_default());
    if !text.split('%').skip(1).all(well_formed) {
        return Err(Undecodable::Percent);
    }
    percent_decode_str(text).decode_utf8().map(Into::into).map_err(|_| Undecodable::Utf8)
}

/// Parameters of a request, in their order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueryParams(Vec<(String, String)>);

impl QueryParams {
    /// Parses the part after `?` as `application/x-www-form-urlencoded`.
    ///
    /// # Errors
    /// Returns an error if the query is malformed or has too many parameters.
    pub fn read(text: &str) -> Result<Self, QueryError> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        if pairs.clone().nth(MAX_PARAMETERS).is_some() {
            return Err(QueryError::TooMany);
        }
        let form = |text: &str| decode(&text.replace('+', " "));
        let read = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((form(name)?, form(value)?))
        };
        pairs.map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the first value with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Returns all values with this name.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns all parameters as name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;

    #[test]
    fn parameters_are_decoded_in_their_order() {
        let query = QueryParams::read("a=1&b=x%20y+z&&a=%C3%A9&flag&=&c=1%3D2=3").unwrap();
        let all: Vec<_> = query.iter().collect();
        let expected = [("a", "1"), ("b", "x y z"), ("a", "é"), ("flag", ""), ("", ""), ("c", "1=2=3")];
        assert_eq!(all, expected);
        assert_eq!((query.get("a"), query.get("d")), (Some("1"), None));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "é"]);
        assert_eq!(QueryParams::read(""), Ok(QueryParams::default()));
    }

    #[test]
    fn what_is_not_written_correctly_is_refused() {
        for wrong in ["%", "a%", "a=%4", "a=%zz", "a=%2", "a=%%20", "%é1=1", "a=%+41"] {
            assert_eq!(QueryParams::read(wrong), Err(Undecodable::Percent.into()), "{wrong}");
        }
        for wrong in ["a=%ff", "%C3=1", "a=%ED%A0%80"] {
            assert_eq!(QueryParams::read(wrong), Err(Undecodable::Utf8.into()), "{wrong}");
        }
        assert!(QueryParams::read(&"a&".repeat(MAX_PARAMETERS)).is_ok());
        assert_eq!(QueryParams::read(&"a&".repeat(MAX_PARAMETERS + 1)), Err(QueryError::TooMany));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_again(pairs in prop::collection::vec((".{1,9}", ".{0,9}"), 0..9)) {
            let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
            let text: Vec<String> = pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
            let query = QueryParams::read(&text.join("&")).unwrap();
            let read: Vec<_> = query.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            prop_assert_eq!(read, pairs);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(%[0-9a-fA-F]{0,2}|[&=+é]|.){0,40}") {
            // Whatever can be read says the same again when it is written correctly.
            if let Ok(text) = decode(&text) {
                prop_assert_eq!(decode(&utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string()), Ok(text));
            }
            let _ = QueryParams::read(&text);
        }
    }
}
