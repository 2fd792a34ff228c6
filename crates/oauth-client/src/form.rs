//! Encoding and decoding of forms and queries.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Characters that are not percent-encoded in a value.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes a value of a form or a query.
pub fn encode(value: &str) -> String {
    utf8_percent_encode(value, UNRESERVED).to_string()
}

/// Encodes pairs as a form.
pub fn write(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    pairs.join("&")
}

/// Adds parameters to a URL.
pub fn extend(url: &str, pairs: &[(&str, &str)]) -> String {
    let joint = match url.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    format!("{url}{joint}{}", write(pairs))
}

/// Parses a query. `None` if a name is repeated, or a value is not UTF-8.
pub fn read(query: &str) -> Option<Vec<(String, String)>> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode =
            |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8().ok().map(|text| text.into_owned());
        let (name, value) = (decode(name)?, decode(value)?);
        if pairs.iter().any(|(other, _)| *other == name) {
            return None;
        }
        pairs.push((name, value));
    }
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let written = write(&[("a", "x y&z=1"), ("b", "ü+/")]);
        assert_eq!(written, "a=x%20y%26z%3D1&b=%C3%BC%2B%2F");
        let read = read(&written).unwrap();
        assert_eq!(read, [("a".to_owned(), "x y&z=1".to_owned()), ("b".to_owned(), "ü+/".to_owned())]);
        assert_eq!(super::read("a=1&a=2"), None);
        assert_eq!(extend("https://a/b?c=d", &[("e", "f")]), "https://a/b?c=d&e=f");
    }
}
