//! Converts HTTP heads for the tape, without their credentials.

use http::HeaderMap;
use signalbox_engine::fact::HttpHead;

/// Converts the head of a request for this path and query.
#[must_use]
pub fn of_request(method: &str, place: &str, headers: &HeaderMap) -> HttpHead {
    HttpHead::of_request(method, place, pairs(headers))
}

/// Converts the head of an answer.
#[must_use]
pub fn of_answer(status: u16, headers: &HeaderMap) -> HttpHead {
    HttpHead::of_answer(status, pairs(headers))
}

fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::http_head::{MAX_HEADERS, MAX_VALUE};

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    /// Proves S-29.
    #[test]
    fn heads_are_told_without_their_credentials() {
        let sent = headers(&[
            ("content-type", "application/json"),
            ("authorization", "Bearer sk-1"),
            ("mcp-session-id", "sk-2"),
            ("x-my-access-token", "sk-3"),
            ("cookie", "sk-4"),
            ("mcp-protocol-version", "2025-11-25"),
        ]);
        let head = of_request("POST", "/mcp?sessionId=sk-5&page=2&api_key=sk-6&key=&access_token=sk-7", &sent);
        assert!(head.redacted && !format!("{head:?}").contains("sk-"), "{head:?}");
        assert_eq!(
            head.url.as_deref(),
            Some("/mcp?sessionId=[redacted]&page=2&api_key=[redacted]&key=&access_token=[redacted]")
        );
        assert_eq!(head.headers[0], ("content-type".to_owned(), "application/json".to_owned()));
        assert_eq!(head.headers[5].1, "2025-11-25");
    }

    #[test]
    fn a_head_without_credentials_is_told_as_it_is() {
        let head = of_answer(202, &headers(&[("server", "x"), ("location", "/a?b=c")]));
        assert_eq!((head.status, head.redacted), (Some(202), false));
        assert_eq!(head.headers[1].1, "/a?b=c");
        let place = of_request("GET", "/mcp", &HeaderMap::new());
        assert_eq!((place.url.as_deref(), place.redacted), (Some("/mcp"), false));
    }

    #[test]
    fn a_head_is_told_within_bounds() {
        let mut many = HeaderMap::new();
        for number in 0..2 * MAX_HEADERS {
            many.insert(
                http::HeaderName::try_from(format!("x-{number}")).unwrap(),
                "ä".repeat(MAX_VALUE).parse().unwrap(),
            );
        }
        let head = of_answer(200, &many);
        assert_eq!(head.headers.len(), MAX_HEADERS);
        assert!(head.headers.iter().all(|(_, value)| value.len() <= MAX_VALUE));
    }
}
