//! What a tape may know of the heads of HTTP: everything but credentials.

use http::HeaderMap;
use signalbox_engine::fact::HttpHead;

/// What stands in the place of a credential.
const REDACTED: &str = "[redacted]";
/// Most headers of one head that are told; what is beyond is left out.
const MAX_HEADERS: usize = 100;
/// Longest value that is told.
const MAX_VALUE: usize = 4096;

/// Headers that are credentials or may hold them. The id of a session is one: whoever has it is the client.
const SECRET_HEADERS: [&str; 10] = [
    "authorization",
    "proxy-authorization",
    "www-authenticate",
    "proxy-authenticate",
    "cookie",
    "set-cookie",
    "mcp-session-id",
    "x-api-key",
    "api-key",
    "x-auth-token",
];
/// Words that make a header or a member of a query a credential.
const SECRET_WORDS: [&str; 8] = ["token", "secret", "password", "session", "apikey", "signature", "credential", "auth"];

/// The head of a request for this path and query.
#[must_use]
pub fn of_request(method: &str, place: &str, headers: &HeaderMap) -> HttpHead {
    let mut head = HttpHead { method: Some(method.to_owned()), ..HttpHead::default() };
    head.url = Some(without_secrets(place, &mut head.redacted));
    add(headers, &mut head);
    head
}

/// The head of an answer.
#[must_use]
pub fn of_answer(status: u16, headers: &HeaderMap) -> HttpHead {
    let mut head = HttpHead { status: Some(status), ..HttpHead::default() };
    add(headers, &mut head);
    head
}

fn add(headers: &HeaderMap, head: &mut HttpHead) {
    for (name, value) in headers.iter().take(MAX_HEADERS) {
        let value = if SECRET_HEADERS.contains(&name.as_str()) || is_secret(name.as_str()) {
            head.redacted = true;
            REDACTED.to_owned()
        } else if name == http::header::LOCATION || name == http::header::REFERER {
            without_secrets(&String::from_utf8_lossy(value.as_bytes()), &mut head.redacted)
        } else {
            let mut value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            while value.len() > MAX_VALUE {
                value.pop();
            }
            value
        };
        head.headers.push((name.as_str().to_owned(), value));
    }
}

fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    matches!(&*plain, "key" | "code" | "sig" | "state") || SECRET_WORDS.iter().any(|word| plain.contains(word))
}

/// An address whose query has no credentials.
fn without_secrets(url: &str, redacted: &mut bool) -> String {
    let Some((path, query)) = url.split_once('?') else { return url.to_owned() };
    let member = |part: &str| match part.split_once('=') {
        Some((name, value)) if !value.is_empty() && is_secret(name) => {
            *redacted = true;
            format!("{name}={REDACTED}")
        }
        _ => part.to_owned(),
    };
    let query: Vec<String> = query.split('&').map(member).collect();
    format!("{path}?{}", query.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn s_29_heads_are_told_without_their_credentials() {
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
