//! HTTP heads for tapes, without credentials.

use crate::fact::HttpHead;

/// Replacement for a credential.
const REDACTED: &str = "[redacted]";
/// Maximum number of headers recorded of one head; the rest are omitted.
pub const MAX_HEADERS: usize = 100;
/// Maximum length of a recorded value.
pub const MAX_VALUE: usize = 4096;

/// Headers that are credentials or may hold them. The session id is one, because presenting it is enough to act as the
/// client.
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
/// Words that mark a header or a query member as a credential.
const SECRET_WORDS: [&str; 8] = ["token", "secret", "password", "session", "apikey", "signature", "credential", "auth"];

impl HttpHead {
    /// Builds the head of a request for this path and query.
    #[must_use]
    pub fn of_request<'a>(method: &str, place: &str, headers: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut head = Self { method: Some(method.to_owned()), ..Self::default() };
        head.url = Some(without_secrets(place, &mut head.redacted));
        head.add(headers);
        head
    }

    /// Builds the head of a response.
    #[must_use]
    pub fn of_answer<'a>(status: u16, headers: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut head = Self { status: Some(status), ..Self::default() };
        head.add(headers);
        head
    }

    fn add<'a>(&mut self, headers: impl Iterator<Item = (&'a str, &'a [u8])>) {
        for (name, value) in headers.take(MAX_HEADERS) {
            let name = name.to_ascii_lowercase();
            let value = if SECRET_HEADERS.contains(&&*name) || is_secret(&name) {
                self.redacted = true;
                REDACTED.to_owned()
            } else {
                let value = truncate(value);
                match &*name {
                    "location" | "referer" => without_secrets(&value, &mut self.redacted),
                    _ => value,
                }
            };
            self.headers.push((name, value));
        }
    }
}

fn truncate(value: &[u8]) -> String {
    let mut value = String::from_utf8_lossy(value.get(..MAX_VALUE).unwrap_or(value)).into_owned();
    while value.len() > MAX_VALUE {
        value.pop();
    }
    value
}

fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    matches!(&*plain, "key" | "code" | "sig" | "state") || SECRET_WORDS.iter().any(|word| plain.contains(word))
}

/// Returns an address with the credentials in its query replaced.
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
